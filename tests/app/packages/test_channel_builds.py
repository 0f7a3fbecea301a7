"""A build of the matrix counts if the channels have it, with their Pythons."""

from collections.abc import Mapping

import pytest
from packaging.version import Version

from envsolve.app.packages.channel_builds import ChannelBuilds
from envsolve.conda.session import Listed
from envsolve.matrix import Matrix, find_matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source

_TABLE = Matrix(find_matrix()).framework("tensorflow", Platform.LINUX_64)


def _builds(**listed: list[Listed]) -> ChannelBuilds:
    def listing(source: Source, platform: Platform, names: frozenset[str]) -> Mapping[str, tuple[Listed, ...]]:
        assert (source, platform) == (Source.CONDA_FORGE, Platform.LINUX_64)
        return {name: tuple(packages) for name, packages in listed.items() if name in names}

    return ChannelBuilds(listing, tuple(Source))


def _conda(table: FrameworkTable) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(str(it.version), it.build, it.pythons) for it in table.releases if it.source is Source.CONDA_FORGE]


def _listed(version: str, build: str, *depends: str) -> Listed:
    return Listed(version, build, depends)


def test_conda_forge_rows_need_a_build_on_the_channel_and_wheels_do_not() -> None:
    found = _builds(tensorflow=[_listed("2.19.1", "cuda128py312h_251", "python >=3.12,<3.13.0a0")])(_TABLE)
    assert _conda(found) == [("2.19.1", "cuda128", ("3.12",))]
    assert [it for it in found.releases if it.source.is_wheel] == [it for it in _TABLE.releases if it.source.is_wheel]


@pytest.mark.parametrize(
    ("depends", "pythons"),
    [
        (["python >=3.12,<3.13.0a0", "python_abi 3.12.* *_cp312"], ("3.12",)),
        (["python 3.11.*"], ("3.11",)),
        (["python >=3.11"], ("3.11", "3.12")),
        (["python"], ("3.10", "3.11", "3.12")),
        ([], ("3.10", "3.11", "3.12")),
        (["python >=3.12,<3.13.0a0", "python_abi 3.12.* *_cp312t"], ()),
        (["python >=3.12", "python_abi 3.12.* *_pypy312_pp73"], ()),
        (["python 3.10.*|3.12.*"], ("3.10", "3.11", "3.12")),
    ],
)
def test_pythons_are_those_that_the_dependencies_allow(depends: list[str], pythons: tuple[str, ...]) -> None:
    found = _builds(tensorflow=[_listed("2.19.1", "cuda128h_251", *depends)])(_TABLE)
    assert [it[2] for it in _conda(found)] == ([pythons] if pythons else [])


def test_a_version_that_does_not_depend_on_python_is_skipped() -> None:
    assert _conda(_builds(tensorflow=[_listed("2.19.1z_3", "cuda128h_251")])(_TABLE)) == []


def test_a_build_is_excluded_for_one_python_only() -> None:
    builds = _builds(tensorflow=[_listed("2.19.1", "cuda128h_251", "python >=3.11")])
    release = next(it for it in builds(_TABLE).releases if it.source is Source.CONDA_FORGE)
    builds.leave_out(release, Version("3.12"))
    assert _conda(builds(_TABLE)) == [("2.19.1", "cuda128", ("3.11",))]


def test_other_versions_of_a_locked_build_are_excluded_for_its_cuda_and_python() -> None:
    packages = [_listed("2.19.1", "cuda128h_1"), _listed("2.17.0", "cuda120h_1"), _listed("2.14.0", "cuda118h_1")]
    builds = _builds(tensorflow=packages)
    newest = next(
        it for it in builds(_TABLE).releases if it.source is Source.CONDA_FORGE and str(it.version) == "2.19.1"
    )
    builds.keep(newest, Version("3.11"), Version("2.17.0"))
    left = {version: pythons for version, _, pythons in _conda(builds(_TABLE))}
    assert "3.11" not in left["2.19.1"]
    assert "3.11" in left["2.17.0"]
    assert "3.11" in left["2.14.0"], "it is for another CUDA, of which nothing was said"
    builds.keep(newest, Version("3.11"), None)
    assert "3.11" not in {version: pythons for version, _, pythons in _conda(builds(_TABLE))}.get("2.17.0", ())


def test_a_build_without_its_companions_is_excluded() -> None:
    table = Matrix(find_matrix()).framework("jax", Platform.LINUX_64)
    jaxlib = [_listed("0.10.2", "cuda129_py314h_200", "python >=3.14,<3.15.0a0")]

    def versions(found: FrameworkTable) -> list[Release]:
        return [it for it in found.releases if it.source is Source.CONDA_FORGE]

    assert versions(_builds(jaxlib=jaxlib)(table)) == []
    assert versions(_builds(jaxlib=jaxlib, jax=[_listed("0.10.1", "pyhd_0")])(table)) == []
    assert len(versions(_builds(jaxlib=jaxlib, jax=[_listed("0.10.2", "pyhd_0")])(table))) == 1
