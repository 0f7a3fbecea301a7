"""Ties: which row comes first, which toolkit counts, which C library of several is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from envsolve.matrix import Matrix
from envsolve.releases.reader import ReadRow, Value
from envsolve.releases.requirements import CudaReleases, requirements
from scripts.matrix_refresh.index import Index
from scripts.matrix_refresh.toml_file import MatrixFile
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import BuiltFile

TODAY = "2026-12-24"
TOP = 'schema_version = 1\nupdated = "2026-11-20"\nframework = "thing"\n'


def _row(version: str, build: str, **values: Value) -> ReadRow:
    key: dict[str, Value] = {"version": version, "source": "pypi", "platform": "linux-64", "build": build}
    return ReadRow({**key, "package": "thing", **values}, {}, ())


def _file(folder: Path, *rows: str) -> MatrixFile:
    path = folder / "thing.toml"
    path.write_text(TOP + "".join(f"\n[[release]]\n{row}\n" for row in rows), encoding="utf-8")
    return MatrixFile(path)


def _taken(version: str, build: str) -> str:
    return (
        f'version = "{version}"\nsource = "pypi"\nplatform = "linux-64"\nbuild = "{build}"\npackage = "thing"\n'
        'evidence = ["page"]'
    )


@pytest.mark.parametrize("build", ["gpu", "cuda", "cuda13"])
def test_a_gpu_build_is_sorted_before_the_cpu_build_even_without_a_number(build: str, tmp_path: Path) -> None:
    file = _file(tmp_path, _taken("1.0", "cpu"))
    file.merge(_row("1.0", build), TODAY)
    assert [row["build"] for row in file.rows()] == [build, "cpu"]


def test_the_cpu_build_is_sorted_after_a_gpu_build_without_a_number(tmp_path: Path) -> None:
    file = _file(tmp_path, _taken("1.0", "gpu"))
    file.merge(_row("1.0", "cpu"), TODAY)
    assert [row["build"] for row in file.rows()] == ["gpu", "cpu"]


@pytest.mark.parametrize(
    ("there", "new", "order"),
    [
        ("1.0", "1.0.post1", ["1.0.post1", "1.0"]),
        ("1.0.post1", "1.0.post2", ["1.0.post2", "1.0.post1"]),
        ("1.0.post1", "1.0", ["1.0.post1", "1.0"]),
    ],
)
def test_a_post_release_is_newer_than_its_release(there: str, new: str, order: list[str], tmp_path: Path) -> None:
    file = _file(tmp_path, _taken(there, "cpu"))
    file.merge(_row(new, "cpu"), TODAY)
    assert [row["version"] for row in file.rows()] == order


def test_facts_set_by_hand_stay_inferred_whatever_the_wheel_says(tmp_path: Path) -> None:
    """The wheel's statement does not count for it, so it proves nothing either."""
    row = _taken("1.0", "cuda12") + '\ncuda = "12.6"\nglibc = "2.28"\ninferred = ["cuda", "glibc"]\nby_hand = ["cuda"]'
    file = _file(tmp_path, row)
    file.merge(_row("1.0", "cuda12", cuda="12.6", glibc="2.28"), TODAY)
    assert file.rows()[0]["inferred"] == ["cuda"]


COMPILERS = ("nvidia-cuda-nvcc", "nvidia-nvjitlink", "nvidia-nvvm")


def _components() -> str:
    """Two toolkits with a library and every compiler; packages have the major in their names before 13."""
    text = TOP.replace('framework = "thing"\n', "")
    for version in ("13.1.0", "13.0.2", "12.9.1", "12.8.1"):
        cuda, suffix = version.rpartition(".")[0], "-cu12" if version.startswith("12") else ""
        text += f'\n[[toolkit]]\nversion = "{version}"\ncuda = "{cuda}"\nevidence = ["docs"]\n\n[toolkit.components]\n'
        text += "".join(f'{name}{suffix} = "=={cuda}.7"\n' for name in ("nvidia-cublas", *COMPILERS))
    return text + '\n[evidence.docs]\nkind = "project-docs"\nreference = "a page"\nseen = "2026-11-19"\n'


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("suffix", "library", "requested", "admitted"),
    [("-cu12", "12.8", "12.9", ">=12.8,<13"), ("", "13.0", "13.1", ">=13.0,<14")],
)
def test_a_compiler_with_a_newer_version_does_not_decide(
    compiler: str, suffix: str, library: str, requested: str, admitted: str, tmp_path: Path
) -> None:
    (tmp_path / "cuda_components.toml").write_text(_components(), encoding="utf-8")
    releases = CudaReleases(Matrix(tmp_path).components)
    libraries = requirements([f"nvidia-cublas{suffix}>={library}"])
    assert releases.admitted(libraries) == admitted
    assert releases.admitted([*libraries, *requirements([f"{compiler}{suffix}>={requested}"])]) == admitted
    assert releases.admitted(requirements([f"{compiler}{suffix}>={requested}"])) is None


@pytest.mark.parametrize(
    ("tags", "glibc"),
    [
        ("manylinux_2_27_x86_64.manylinux_2_28_x86_64", "2.27"),
        ("manylinux2014_x86_64.manylinux_2_28_x86_64", "2.17"),
        ("manylinux1_x86_64.manylinux2010_x86_64", "2.5"),
        ("manylinux_2_9_x86_64.manylinux_2_10_x86_64", "2.9"),
    ],
)
def test_the_oldest_c_library_of_several_tags_counts(
    tags: str, glibc: str, index: ServedIndex, session: requests.Session, tmp_path: Path
) -> None:
    """An installer accepts a wheel if any of its tags fits."""
    index.add(BuiltFile(f"thing-1.0-cp312-cp312-{tags}.whl", b"a wheel"))
    (found,) = Index(index.endpoint, tmp_path, session, offline=False).wheels("thing")
    assert found.glibc == glibc
