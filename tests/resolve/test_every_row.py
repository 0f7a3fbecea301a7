"""Every GPU build in the matrix is usable: some toolkit, cuDNN and driver support it on the GPUs it was built for."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.frameworks import FRAMEWORKS
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem
from envsolve.resolve.catalogue import Catalogue
from envsolve.resolve.parts import Candidate, framework_identifier
from envsolve.resolve.provider import Provider


def problem(release: Release, gpu: ComputeCapability) -> Problem:
    requested = FrameworkRequest(release.framework, SpecifierSet())
    machine = Machine(None, ((gpu, ""),), None, windows_driver=release.platform.is_windows)
    return Problem(
        frameworks=(requested,), platform=release.platform, machines=(machine,), cpu=False, python=None, cuda=None
    )


@pytest.mark.thorough
@pytest.mark.parametrize("platform", [Platform.LINUX_64, Platform.WIN_64, Platform.LINUX_AARCH64])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_build_runs_on_some_gpu_that_it_has_code_for(framework: str, platform: Platform, matrix: Matrix) -> None:
    table = matrix.framework(framework, platform)
    catalogue = Catalogue.of(matrix.cuda, matrix.cudnn, {framework: table})
    builds = [release for release in table.releases if release.cuda is not None]
    hopeless = []
    for release in builds:
        stopped = []
        for target in release.code.sass:
            sources = (Source.PYPI, Source.PYTORCH) if release.source.is_wheel else (release.source,)
            posed = problem(release, target.capability)
            provider = Provider(Request(posed.frameworks), posed, catalogue, sources)
            against = next(provider.unmet(Candidate(framework_identifier(framework), release)), None)
            if against is None:
                break
            stopped.append(against[-1].because.text)
        else:
            hopeless.append(f"{release.label}: {stopped[-1]}")
    assert hopeless == []
