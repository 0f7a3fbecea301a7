"""Which Python requirements become conda packages, and which are left to pip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.app.packages.conda_needs import companions, split_needs
from envsolve.app.packages.conda_requirements import CondaRequirements, requirements_on, with_stack
from envsolve.app.packages.requirements import read_requirements
from envsolve.app.request.channel_order import WHEELS
from envsolve.app.request.targets import Target
from envsolve.conda.session import Listed
from envsolve.errors import UnsolvableError
from envsolve.lockfile.lock import RequestedSpec
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Packages, Request
from envsolve.model.requester import Requester
from envsolve.model.solution import Machine, Problem

PROBLEM = Problem((), Platform.LINUX_64, (Machine(None, (), None),), True, None, None)


def listed(names: frozenset[str]) -> Mapping[str, Sequence[Listed]]:
    return {name: [Listed("13.9.4", "pyh_0", ())] for name in names}


def test_packages_with_wheel_hashes_stay_with_pip(tmp_path: Path) -> None:
    file = tmp_path / "requirements.in"
    file.write_text("rich==13.9.4 --hash=sha256:00\nclick\n", encoding="utf-8")
    wanted = read_requirements(Packages(files=(str(file),)))
    split = split_needs(CondaRequirements(python=wanted), wanted, PROBLEM, None, listed, frozenset())
    assert [it.spec for it in split.conda] == ["click"]
    assert [it.spec for it in split.by_pip] == ["rich==13.9.4"]
    assert split.python is not None
    assert split.python.hashes.keys() == {"rich"}


def target(platform: Platform = Platform.LINUX_64, *, python: str = ">=3.10,<3.15") -> Target:
    problem = PROBLEM._replace(platform=platform, python=SpecifierSet(python))
    return Target(Request((), python=problem.python), problem, (), (), fell_to_cpu=False)


def requirements(folder: Path, *, section: str = "", file: str = "", channels: str = "") -> CondaRequirements:
    """The requirements of an environment.yml with one entry in its pip section, and of a requirements file."""
    (folder / "requirements.in").write_text(f"{file}\n", encoding="utf-8")
    pip = f"\n  - pip: [{json.dumps(section)}]" if section else ""
    text = f"channels: [{channels}]\ndependencies:\n  - numpy{pip}\n"
    (folder / "environment.yml").write_text(text, encoding="utf-8")
    return requirements_on(
        Packages(files=(str(folder / "environment.yml"), str(folder / "requirements.in"))), Platform.LINUX_64
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("requirement", "frameworks", "python"),
    [
        ("torch>=2.8", {"pytorch": ">=2.8"}, ">=3.10,<3.15"),
        ("torch>=2.8; sys_platform == 'linux'", {"pytorch": ">=2.8"}, ">=3.10,<3.15"),
        ("torch; sys_platform == 'win32'", {}, ">=3.10,<3.15"),
        ("torch; python_version < '3.9'", {}, ">=3.10,<3.15"),
        ("torch; python_version < '3.13'", {"pytorch": ""}, ">=3.10,<3.13,<3.15"),
    ],
)
@pytest.mark.parametrize("where", ["section", "file"])
def test_the_marker_of_a_framework_is_evaluated(
    requirement: str, frameworks: dict[str, str], python: str, where: str, tmp_path: Path
) -> None:
    request = with_stack(target(), requirements(tmp_path, **{where: requirement}), ()).request
    assert {it.framework: str(it.specifier) for it in request.frameworks} == frameworks
    assert request.python == SpecifierSet(python)
    assert request.sources == (WHEELS if where == "section" and frameworks else ())


def test_the_python_of_an_environment_file_decides_markers(tmp_path: Path) -> None:
    wanted = requirements(tmp_path, file="torch; python_version < '3.13'")
    wanted = wanted._replace(conda=(*wanted.conda, RequestedSpec("python 3.14.*", "asked for")))
    assert with_stack(target(), wanted, ()).request.frameworks == ()


HASHED = "torch==2.9.1 --hash=sha256:00"


@pytest.mark.parametrize("where", ["section", "file"])
def test_a_framework_with_hashes_is_a_wheel_and_keeps_its_hashes(where: str, tmp_path: Path) -> None:
    wanted = requirements(tmp_path, **{where: HASHED})
    assert with_stack(target(), wanted, ("pytorch", "conda-forge")).request.sources == WHEELS
    assert wanted.python is not None
    assert wanted.python.hashes == {"torch": {("sha256", "00")}}


def test_hashes_in_a_constraint_select_a_wheel_of_the_requested_framework(tmp_path: Path) -> None:
    (tmp_path / "held.txt").write_text(f"{HASHED}\n", encoding="utf-8")
    wanted = requirements_on(Packages(constraints=(str(tmp_path / "held.txt"),)), Platform.LINUX_64)
    assert with_stack(target(), wanted, ()).request.sources == ()
    named = target()
    named = named._replace(request=named.request._replace(frameworks=(FrameworkRequest("pytorch", SpecifierSet()),)))
    assert with_stack(named, wanted, ()).request.sources == WHEELS


def test_entries_for_one_wheel_share_their_common_hashes(tmp_path: Path) -> None:
    text = "dependencies:\n- pip:\n  - own==1 --hash=sha256:aa --hash=sha256:bb\n  - own==1 --hash=sha256:bb\n"
    (tmp_path / "environment.yml").write_text(text, encoding="utf-8")
    wanted = requirements_on(Packages(files=(str(tmp_path / "environment.yml"),)), Platform.LINUX_64)
    assert wanted.python is not None
    assert wanted.python.hashes == {"own": {("sha256", "bb")}}


def test_without_a_companion_on_any_channel_the_fix_is_a_project_key() -> None:
    with pytest.raises(UnsolvableError, match="no-companion") as refused:
        tuple(companions(frozenset({"torchcodec"}), lambda _: {}, Requester("pyproject.toml")))
    assert ': sources = ["pytorch"] in pyproject.toml, or sources = ["pypi"] in ' in refused.value.hints[0].text
