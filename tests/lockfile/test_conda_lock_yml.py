"""conda-lock.yml: the bytes, that its readers accept it, and that nothing in it becomes another package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from envsolve.errors import OutsideError
from envsolve.lockfile import conda_lock_yml, environment_yml, explicit
from envsolve.lockfile.formats import write_conda_lock
from envsolve.lockfile.lock import Lock, RequestedSpec
from envsolve.matrix import Matrix
from tests.laws import examples
from tests.lockfile.conda_locks import CHANNEL, WHEELS, conda_locks, package, plain, two_platforms
from tests.lockfile.judges import conda_lock_renders, rattler
from tests.lockfile.locks import file

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "tensorflow.conda-lock.yml"
PLATFORMS = ("linux-64", "win-64")


def read(*locks: Lock) -> Mapping[str, Any]:
    """The file parsed as YAML."""
    document: Mapping[str, Any] = yaml.load(conda_lock_yml.write(locks), yaml.CSafeLoader)  # the safe one, in C
    return document


def kinds(*locks: Lock) -> list[tuple[str, str, bool]]:
    """Each entry with its category and whether it is optional."""
    return [(entry["name"], entry["category"], entry["optional"]) for entry in read(*locks)["package"]]


@pytest.fixture(scope="module")
def both(matrix: Matrix) -> tuple[Lock, ...]:
    """Two platforms, two managers, three categories."""
    return two_platforms(matrix)


@pytest.fixture(scope="module")
def rendered(both: tuple[Lock, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The output of conda-lock for the file."""
    return conda_lock_renders(conda_lock_yml.write(both), tmp_path_factory.mktemp("rendered"), PLATFORMS)


def test_the_output_equals_the_recorded_one(both: tuple[Lock, ...]) -> None:
    text = conda_lock_yml.write(both)
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text == SNAPSHOT.read_text(encoding="utf-8")


def test_the_order_of_packages_does_not_matter(both: tuple[Lock, ...]) -> None:
    wheels = [tuple(pin._replace(requires=pin.requires[::-1]) for pin in it.pins[::-1]) for it in both]
    other = tuple(it._replace(conda=it.conda[::-1], pins=pins) for it, pins in zip(both, wheels, strict=True))
    assert conda_lock_yml.write(other) == conda_lock_yml.write(both)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1], ids=PLATFORMS)
def test_conda_lock_installs_the_packages_of_our_explicit_file(
    both: tuple[Lock, ...], rendered: dict[str, str], number: int
) -> None:
    lock = both[number]
    ours = [line for line in explicit.write(lock).splitlines() if line.startswith(("https:", "# pip "))]
    theirs = [line for line in rendered[lock.platform].splitlines() if line.startswith(("https:", "# pip "))]
    assert sorted(ours) == sorted(theirs)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1], ids=PLATFORMS)
def test_conda_lock_passes_conda_the_specs_of_our_exact_environment(
    both: tuple[Lock, ...], rendered: dict[str, str], number: int
) -> None:
    lock = both[number]
    ours = yaml.safe_load(environment_yml.write(lock))["dependencies"]
    theirs = yaml.safe_load(rendered[f"{lock.platform}.yml"])["dependencies"]
    assert [spec for spec in ours if isinstance(spec, str)] == [spec for spec in theirs if isinstance(spec, str)]
    wheels = [line for line in (ours[-1]["pip"] if lock.pins else ()) if not line.startswith("--")]
    assert wheels == [line.replace(" == ", "==") for line in (theirs[-1]["pip"] if lock.pins else ())]


def test_rattler_reads_the_same_packages(both: tuple[Lock, ...], tmp_path: Path) -> None:
    path = tmp_path / "conda-lock.yml"
    path.write_text(conda_lock_yml.write(both), encoding="utf-8")
    answer = (
        "{str(platform): sorted([it.name, str(it.version), it.hashes.sha256.hex()] for it in environment.packages"
        "(platform)) for _, environment in LockFile.from_path(asked).environments() for platform in"
        " environment.platforms()}"
    )
    expected = {}
    for lock in both:
        wheels = [(pin.name, pin.version, dict(pin.files[0].hashes)["sha256"]) for pin in lock.pins]
        packages = [(it.name, it.version, str(it.sha256)) for it in lock.conda]
        expected[lock.platform] = [list(fields) for fields in sorted([*packages, *wheels])]
    assert rattler(answer, str(path)) == expected


def test_a_package_is_in_main_or_in_each_category_that_requires_it(both: tuple[Lock, ...]) -> None:
    found = [entry[1:] for entry in kinds(*both) if entry[0] == "packaging"]
    assert found == [("dev", True), ("docs", True)]
    assert ("iniconfig", "dev", True) in kinds(*both)
    assert [entry for entry in kinds(*both) if entry[0] == "python"] == [("python", "main", False)] * 2


def test_main_overrides_other_categories() -> None:
    requested = (RequestedSpec("packaging", category="docs"), RequestedSpec("pytest >=8"))
    locked = plain(package("pytest"), package("packaging"), requested=requested)
    assert kinds(locked) == [("packaging", "main", False), ("pytest", "main", False)]


def test_a_package_that_nothing_requires_is_not_lost() -> None:
    locked = plain(package("tzdata"), package("packaging"), requested=(RequestedSpec("packaging", category="docs"),))
    assert kinds(locked) == [("packaging", "docs", True), ("tzdata", "main", False)]


def test_a_wheel_requires_its_conda_package() -> None:
    wheel = WHEELS[0]._replace(requires=("Packaging", "numpy"))
    requested = (RequestedSpec("TensorFlow[and-cuda]>=2", category="gpu", by_pip=True), RequestedSpec("python"))
    locked = plain(package("packaging"), pip=(wheel, WHEELS[1]), requested=requested)
    assert kinds(locked) == [("packaging", "gpu", True), ("numpy", "gpu", True), ("tensorflow", "gpu", True)]


def test_a_requirement_satisfied_by_conda_is_in_its_category() -> None:
    requested = (RequestedSpec("Python-ABI", category="dev", by_pip=True),)
    assert kinds(plain(package("python_abi"), requested=requested)) == [("python_abi", "dev", True)]


def test_everything_except_optional_is_text(both: tuple[Lock, ...]) -> None:
    versions = [
        package("python_abi")._replace(name=f"p{number}", version=it) for number, it in enumerate(["3.10", "1"])
    ]
    odd = plain(*versions, package("tzdata")._replace(md5="0" * 31 + "1", sha256="1" * 63 + "e", build="0"))
    for entry in [*read(*both)["package"], *read(odd)["package"]]:
        texts = {**entry, **entry["hash"], **entry["dependencies"]}
        del texts["hash"], texts["dependencies"], texts["optional"]
        assert {type(text) for text in texts.values()} == {str}
        assert type(entry["optional"]) is bool


def test_virtual_packages_and_both_bounds_of_a_dependency_are_written(both: tuple[Lock, ...]) -> None:
    found = next(entry for entry in read(*both)["package"] if entry["name"] == "libprotobuf")
    assert found["dependencies"]["__glibc"] == ">=2.17,<3.0.a0"
    assert found["dependencies"]["libabseil"] == ">=20250512.1,<20250513.0a0 cxx17*"


@pytest.mark.parametrize(
    ("depends", "expected"),
    [
        (("python >=3.11,<3.12.0a0", "python 3.11.* *_cpython"), {"python": ">=3.11,<3.12.0a0,3.11.* *_cpython"}),
        (("a 1|2", "a >=1"), {"a": "(1|2),>=1"}),
        (("vc >=14", "vc >=14"), {"vc": ">=14"}),
        (("python", "python >=3.9"), {"python": ">=3.9"}),
        (("b * *cuda*", "b"), {"b": "* *cuda*"}),
        (("numpy>=1.11", "conda-forge::Blas =1.0"), {"blas": "=1.0", "numpy": ">=1.11"}),
        (("a >= 2", "a[version='<3']"), {"a": "[version='<3']"}),
        (("", "  "), {}),
    ],
)
def test_a_name_is_written_once_with_all_its_requirements(depends: tuple[str, ...], expected: dict[str, str]) -> None:
    assert read(plain(package("tzdata")._replace(depends=depends)))["package"][0]["dependencies"] == expected


def test_a_package_without_md5_cannot_be_written() -> None:
    for md5 in (None, "0" * 31, "Z" * 32):
        with pytest.raises(OutsideError, match=r"no-hash.*tzdata-2025b") as raised:
            conda_lock_yml.write((plain(package("tzdata")._replace(md5=md5)),))
        assert "tzdata 2025b is from https://conda.anaconda.org/conda-forge" in raised.value.cause[0]


def test_a_wheel_without_sha256_cannot_be_written() -> None:
    other = file("numpy-1.26.4-py3-none-any.whl", hashes=(("sha512", "0" * 128),))
    with pytest.raises(OutsideError, match=r"no-hash.*numpy 1\.26\.4"):
        conda_lock_yml.write((plain(pip=(WHEELS[1]._replace(files=(other,)),)),))


def test_a_subdirectory_of_an_archive_cannot_be_written() -> None:
    url = "https://files.example.org/main.zip#subdirectory=pkg"
    with pytest.raises(OutsideError, match="unsound-package"):
        conda_lock_yml.write((plain(pip=(WHEELS[1]._replace(files=(file("main.zip", url=url),), index_url=None),)),))


def test_no_credentials_are_written() -> None:
    private = "https://user:hush@example.org/conda-forge"
    locked = package("tzdata", channel=private)
    wheel = WHEELS[1]._replace(files=(file("numpy-1.whl", url="https://user:hush@example.org/numpy-1.whl"),))
    lock = plain(
        locked,
        pip=(wheel,),
        requested=(RequestedSpec(f"{private}::tzdata"),),
        command=f"envsolve -c {private}",
        channels=(private,),
        sources=(f"{private}/env.yml",),
    )
    ((_, text),) = write_conda_lock((lock,), "conda-lock")
    assert "hush" not in text
    assert "https://example.org/conda-forge/noarch/tzdata" in text


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("name", "a\nb"),
        ("name", "../a"),
        ("version", "1 2"),
        ("build", "a#"),
        ("url", "tzdata.conda"),
        ("url", f"{CHANNEL}/noarch/#tzdata-1-0.conda"),
    ],
)
def test_text_that_could_break_a_line_is_refused(field: str, text: str) -> None:
    locked = package("tzdata")._replace(**{field: text})  # type: ignore[arg-type]  # each of them is a text
    with pytest.raises(OutsideError, match="unsound-package"):
        conda_lock_yml.write((plain(locked),))


def test_a_lock_without_files_still_names_a_source() -> None:
    """mamba refuses a file without sources (libmamba/src/core/env_lockfile_conda.cpp)."""
    assert read(plain())["metadata"]["sources"] == ["the command line"]
    assert read(plain())["package"] == []


@settings(max_examples=examples(40))
@given(conda_locks())
def test_arbitrary_text_in_a_lock_is_preserved(lock: Lock) -> None:
    document = read(lock)
    assert list(document) == ["version", "metadata", "package"]
    assert {entry["name"] for entry in document["package"]} == {it.name for it in lock.conda}
    by_name = {it.name: it for it in lock.conda}
    for entry in document["package"]:
        locked = by_name[entry["name"]]
        assert (entry["version"], entry["build"], entry["hash"]) == (locked.version, locked.build, {"md5": locked.md5})
    assert len(document["metadata"]["channels"]) == len(lock.channels)
    assert set(document["metadata"]) <= {*("content_hash", "channels", "platforms", "sources", "custom_metadata")}
