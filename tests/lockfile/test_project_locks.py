"""uv.lock, poetry.lock and pdm.lock: real ones as their own tools export them, and made-up ones with special cases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from packaging.markers import Marker

from envsolve.boundary.files import FileError
from envsolve.lockfile import pylock_toml, requirements_txt
from envsolve.lockfile.lock import Lock, strong_digests
from envsolve.lockfile.reading import lock_at, locks_in
from envsolve.model.host import Platform
from envsolve.model.package import PackageFile

LOCKS = sorted((Path(__file__).parent / "project_locks").glob("*/*.lock"))
DIGEST = "a" * 64
PLATFORMS = (
    ("linux", "Linux", "x86_64"),
    ("linux", "Linux", "aarch64"),
    ("win32", "Windows", "AMD64"),
    ("darwin", "Darwin", "arm64"),
)
PYTHONS = ("3.10.4", "3.11.0", "3.11.9", "3.12.1", "3.13.0", "3.14.2")


def environments() -> Iterator[dict[str, str]]:
    for system, name, machine in PLATFORMS:
        for python in PYTHONS:
            for implementation in ("CPython", "PyPy"):
                yield {
                    "sys_platform": system,
                    "platform_system": name,
                    "platform_machine": machine,
                    "python_full_version": python,
                    "python_version": python.rpartition(".")[0],
                    "platform_python_implementation": implementation,
                    "implementation_name": implementation.lower(),
                }


def installed(lock: Lock, environment: dict[str, str]) -> set[tuple[str, str]]:
    """The packages on a machine; uv names the projects of a workspace as well, which are folders."""
    of_files = (pin for pin in lock.pins if all(it.is_archive for it in pin.files))
    holding = (pin for pin in of_files if not pin.marker or Marker(pin.marker).evaluate(environment))
    return {(pin.name, pin.version) for pin in holding}


def read(name: str, text: str) -> Lock:
    (lock,) = locks_in(name, text)
    return lock


def real(directory: str) -> Lock:
    (path,) = (path for path in LOCKS if path.parent.name == directory)
    lock = lock_at(path, Platform.LINUX_64)
    assert lock is not None
    return lock


def exported_by_tool(directory: Path) -> Lock:
    pylock = directory / "pylock.toml"
    if pylock.exists():
        return pylock_toml.read(pylock.read_text("utf-8"))
    return requirements_txt.read((directory / "requirements.txt").read_text("utf-8"))


@pytest.mark.thorough
@pytest.mark.parametrize("path", LOCKS, ids=lambda it: it.parent.name)
def test_a_universal_lock_installs_what_the_tool_installs(path: Path) -> None:
    lock, exported = lock_at(path, Platform.LINUX_64), exported_by_tool(path.parent)
    assert lock is not None
    assert lock.open == ()
    for environment in environments():
        assert installed(lock, environment) == installed(exported, environment), environment


@pytest.mark.parametrize("directory", ["uv", "uv-conflicts", "uv-workspace"])
def test_files_and_indexes_of_a_uv_lock_equal_those_that_uv_exports(directory: str) -> None:
    lock, exported = real(directory), exported_by_tool(LOCKS[0].parents[1] / directory)
    pins = {(pin.name, pin.version): pin for pin in exported.pins}
    for pin in lock.pins:
        by_uv = pins[pin.name, pin.version]
        assert pin.index_url == by_uv.index_url
        assert set(map(essential, pin.files)) == set(map(essential, by_uv.files))
    assert lock.requires_python == exported.requires_python


def essential(file: PackageFile) -> PackageFile:
    """The parts that uv does not leave out or round."""
    return file._replace(name="", upload_time=None)


@pytest.mark.parametrize("path", LOCKS, ids=lambda it: it.parent.name)
def test_each_package_has_digests_and_fits_both_formats(path: Path) -> None:
    lock = lock_at(path, Platform.LINUX_64)
    assert lock is not None
    assert all(map(strong_digests, lock.pins))
    again = requirements_txt.read(requirements_txt.write(lock))
    assert [(pin.name, pin.version or "2.1.0", pin.marker) for pin in again.pins] == [
        (pin.name, pin.version, pin.marker) for pin in lock.pins
    ]
    assert list(map(strong_digests, again.pins)) == list(map(strong_digests, lock.pins))


def test_extras_and_groups_of_the_project_are_left_out_and_those_of_packages_included() -> None:
    for directory in ("uv", "poetry", "pdm"):
        names = set(real(directory).versions)
        assert names.isdisjoint({"demo", "tabulate", "pytest"})
        assert {"requests", "pysocks"} <= names


def test_indexes_are_read_from_the_lock() -> None:
    for directory, index in (
        ("uv", "https://packages.example/simple"),
        ("poetry", "https://packages.example/simple"),
        ("pdm", ""),
    ):
        assert {pin.index_url for pin in real(directory).pins} == {index, None}


def test_requirements_of_packages_are_known() -> None:
    for directory in ("uv", "poetry", "pdm"):
        requires = {pin.name: pin.requires for pin in real(directory).pins}
        assert {"certifi", "charset-normalizer", "idna", "urllib3"} <= set(requires["requests"])


UV = f"""\
version = 1
requires-python = ">=3.11"
[[package]]
name = "demo"
source = {{ editable = "." }}
dependencies = [{{ name = "One_Pin", marker = "sys_platform == 'linux'" }}]
[[package]]
name = "one-pin"
version = "1.0"
source = {{ SOURCE }}
wheels = [{{ url = "https://files.example/one_pin-1.0-py3-none-any.whl", hash = "sha256:{DIGEST}" }}]
"""
POETRY = f"""\
[[package]]
name = "One_Pin"
version = "1.0"
groups = ["main"]
files = [{{ file = "one_pin-1.0-py3-none-any.whl", hash = "sha256:{DIGEST}" }}]
[package.source]
SOURCE
[metadata]
lock-version = "2.1"
python-versions = ">=3.11"
"""
PDM = f"""\
[metadata]
lock_version = "4.5.0"
strategy = ["inherit_metadata"]
[[package]]
name = "One_Pin"
version = "1.0"
groups = ["default"]
files = [{{ file = "one_pin-1.0-py3-none-any.whl", hash = "sha256:{DIGEST}" }}]
SOURCE
"""
WHEEL = "https://files.example/one_pin-1.0-py3-none-any.whl"
COMMIT = "0a1b" * 10
FOLDER = "'one-pin' is from a folder of one machine, which no other one has"
NO_COMMIT = "one-pin is from a repository, and not pinned to a commit"
ONE_MACHINE = "'one-pin' is a file of one machine, which no other one has"


def with_source(name: str, source: str) -> Lock:
    return read(name, {"uv.lock": UV, "poetry.lock": POETRY, "pdm.lock": PDM}[name].replace("SOURCE", source))


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("uv.lock", 'git = "https://git.example/one?rev=v1#0a1b"', NO_COMMIT),
        ("uv.lock", 'editable = "one"', FOLDER),
        ("uv.lock", 'directory = "one"', FOLDER),
        ("uv.lock", 'path = "one_pin-1.0-py3-none-any.whl"', FOLDER),
        ("uv.lock", 'registry = "../wheels"', FOLDER),
        ("poetry.lock", 'type = "git"\nurl = "https://git.example/one"\nresolved_reference = "0a1b"', NO_COMMIT),
        ("poetry.lock", 'type = "directory"\nurl = "one"', FOLDER),
        ("poetry.lock", 'type = "file"\nurl = "one_pin-1.0-py3-none-any.whl"', ONE_MACHINE),
        ("pdm.lock", 'git = "https://git.example/one"\nrevision = "0a1b"', NO_COMMIT),
        ("pdm.lock", 'path = "./one"', FOLDER),
        ("pdm.lock", 'url = "file:///one_pin-1.0-py3-none-any.whl"', ONE_MACHINE),
    ],
)
def test_a_package_without_an_index_is_open(name: str, source: str, reason: str) -> None:
    lock = with_source(name, source)
    assert lock.pins == ()
    assert [(it.reason, it.name) for it in lock.open] == [(reason, "one-pin")]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("uv.lock", f'git = "https://me:secret@git.example/x?subdirectory=src%2Fpart&rev=v1#{COMMIT}"'),
        (
            "poetry.lock",
            f'type = "git"\nurl = "https://git.example/x"\nresolved_reference = "{COMMIT}"\nsubdirectory = "src/part"',
        ),
        ("pdm.lock", f'git = "https://git.example/x"\nrevision = "{COMMIT}"\nsubdirectory = "src/part"'),
    ],
)
def test_a_repository_stays_at_its_commit(name: str, source: str) -> None:
    (pin,) = with_source(name, source).pins
    assert (pin.version, pin.index_url) == ("1.0", None)
    assert pin.files[0].url == f"git+https://git.example/x@{COMMIT}#subdirectory=src/part"


def test_a_repository_may_have_an_ssh_url() -> None:
    source = f'type = "git"\nurl = "git@git.example:team/one.git"\nresolved_reference = "{COMMIT}"'
    (pin,) = with_source("poetry.lock", source).pins
    assert pin.files[0].url == f"git+ssh://git@git.example/team/one.git@{COMMIT}"


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("uv.lock", f'url = "{WHEEL}"'),
        ("poetry.lock", f'type = "url"\nurl = "{WHEEL}"'),
        ("pdm.lock", f'url = "{WHEEL}"'),
    ],
)
def test_a_package_from_a_url_keeps_it(name: str, source: str) -> None:
    (pin,) = with_source(name, source).pins
    assert pin.index_url is None
    assert pin.files == (PackageFile(WHEEL.rpartition("/")[2], WHEEL, (("sha256", DIGEST),)),)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("uv.lock", 'registry = "https://me:secret@index.example/simple/"'),
        ("poetry.lock", 'type = "legacy"\nurl = "https://me:secret@index.example/simple/"'),
    ],
)
def test_credentials_in_urls_are_removed(name: str, source: str) -> None:
    (pin,) = with_source(name, source).pins
    assert pin.index_url == "https://index.example/simple"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("uv.lock", "[[package", "it is not TOML"),
        ("uv.lock", POETRY, "it is not a uv.lock of version 1"),
        ("uv.lock", UV.replace("version = 1\n", "version = 2\n"), "it is not a uv.lock of version 1"),
        ("uv.lock", UV.replace('editable = "."', 'registry = "https://index.example"'), "which package is the project"),
        ("uv.lock", UV.replace("One_Pin", "two"), "it requires 'two', of which it has none that fits"),
        ("uv.lock", UV.replace("sys_platform ==", "sys_platform is"), "is not a marker"),
        ("uv.lock", UV.replace('"One_Pin"', "1"), "'name' is invalid: '1'"),
        ("poetry.lock", UV, "it is TOML, but not a poetry.lock"),
        ("poetry.lock", POETRY.replace('"2.1"', '"2.0"'), "lock it with Poetry 2.1 or newer"),
        ("poetry.lock", POETRY.replace('"2.1"', '"3.0"'), "lock it with Poetry 2.1 or newer"),
        ("poetry.lock", POETRY.replace('"2.1"', '"x"'), "'x' is not a version of its format"),
        ("poetry.lock", POETRY.replace("One_Pin", "-r other"), "'-r other' is not a package name"),
        ("pdm.lock", UV, "it is TOML, but not a pdm.lock"),
        ("pdm.lock", PDM.replace("4.5.0", "4.4.1"), "lock it with PDM 2.20 or newer and -S inherit_metadata"),
        ("pdm.lock", PDM.replace('"inherit_metadata"', ""), "lock it with PDM 2.20 or newer and -S inherit_metadata"),
    ],
)
def test_a_file_that_is_no_such_lock_is_one_error(name: str, text: str, message: str) -> None:
    with pytest.raises(FileError) as refused:
        read(name, text.replace("SOURCE\n", "").replace("SOURCE", 'registry = "https://index.example"'))
    assert message in refused.value.reason


def test_a_poetry_lock_has_a_marker_for_each_group() -> None:
    markers = (
        'groups = ["main", "dev"]\nmarkers = { main = "sys_platform == \'win32\'", dev = "python_version < \'3\'" }'
    )
    (pin,) = read("poetry.lock", POETRY.replace('groups = ["main"]', markers).replace("SOURCE", "")).pins
    assert pin.marker == "sys_platform == 'win32'"


def test_a_package_for_an_extra_of_the_project_is_not_installed() -> None:
    only = 'groups = ["main"]\nmarkers = "extra == \\"gpu\\""'
    assert read("poetry.lock", POETRY.replace('groups = ["main"]', only).replace("SOURCE", "")).pins == ()
    either = "groups = [\"main\"]\nmarkers = \"sys_platform == 'linux' or extra == 'gpu'\""
    (pin,) = read("poetry.lock", POETRY.replace('groups = ["main"]', either).replace("SOURCE", "")).pins
    assert pin.marker == "sys_platform == 'linux'"


def test_each_version_of_a_package_has_its_own_requirements() -> None:
    pins = real("uv").with_requirers().pins
    requires = {(pin.name, pin.version): pin.requires for pin in pins}
    assert requires["importlib-metadata", "9.0.1"] == ("zipp",)
    assert requires["importlib-metadata", "10.2.0"] == ("lazy-importer", "zipp")
    assert {pin.name: pin.via for pin in pins}["lazy-importer"] == ("importlib-metadata",)


def graph(*packages: str, extras: str = "") -> Lock:
    """The uv.lock of a project that requires ``a``; each package is ``name: required ; marker, ...``."""
    text = 'version = 1\nrequires-python = ">=3.11"\n'
    for package in ("demo: a", *packages):
        name, _, needed = package.partition(":")
        entries = []
        for it in filter(None, (word.strip() for word in needed.split(","))):
            required, _, marker = it.partition(";")
            dependency, _, extra = required.strip().partition("/")
            extras_of = f', extra = ["{extra}"]' if extra else ""
            entries.append(f'{{ name = "{dependency}", marker = "{marker.strip()}"{extras_of} }}')
        source = 'virtual = "."' if name == "demo" else 'registry = "https://index.example/simple"'
        text += f'[[package]]\nname = "{name}"\nversion = "1"\nsource = {{ {source} }}\n'
        text += f"dependencies = [{', '.join(entries)}]\n"
        text += f'wheels = [{{ url = "https://files.example/{name}-1-py3-none-any.whl", hash = "sha256:{DIGEST}" }}]\n'
        text += extras if name == "b" else ""
    return read("uv.lock", text)


def markers(lock: Lock) -> dict[str, str]:
    return {pin.name: pin.marker for pin in lock.pins}


def test_a_package_has_the_markers_of_its_dependents() -> None:
    lock = graph("a: b ; sys_platform == 'linux', c ; os_name == 'nt'", "b: d", "c: d ; python_version < '3.12'", "d:")
    assert markers(lock) == {
        "a": "",
        "b": "sys_platform == 'linux'",
        "c": "os_name == 'nt'",
        "d": "(os_name == 'nt' and python_version < '3.12') or sys_platform == 'linux'",
    }


def test_a_dependency_cycle_ends() -> None:
    lock = graph("a: b ; sys_platform == 'linux'", "b: c, a", "c: b, d ; os_name == 'posix'", "d: c ; os_name != 'x'")
    assert markers(lock) == {
        "a": "",
        "b": "sys_platform == 'linux'",
        "c": "sys_platform == 'linux'",
        "d": "os_name == 'posix' and sys_platform == 'linux'",
    }


def test_an_extra_brings_its_requirements_and_nothing_else_does() -> None:
    extras = '[package.optional-dependencies]\nfast = [{ name = "c" }]\nslow = [{ name = "d" }]\n'
    lock = graph("a: b/fast ; sys_platform == 'linux', b", "b:", "c:", "d:", extras=extras)
    assert markers(lock) == {"a": "", "b": "", "c": "sys_platform == 'linux'"}


def test_a_graph_made_to_be_slow_is_refused() -> None:
    steps = range(40)
    packages = [f"p{it}: p{it + 1} ; os_name == 'a{it}', p{it + 1} ; os_name == 'b{it}'" for it in steps]
    with pytest.raises(FileError, match="more than 64 alternatives"):
        graph("a: p0", *packages, "p40:")


def test_a_graph_in_which_everything_requires_everything_is_refused() -> None:
    places = [" and ".join(f"os_name != '{it}'" for it in three) for three in combinations(range(7), 3)]
    names = [f"p{it}" for it in range(len(places))]
    first = ", ".join(f"{name} ; {place}" for name, place in zip(names, places, strict=True))
    with pytest.raises(FileError, match="too many cycles"):
        graph(f"a: {first}", *(f"{name}: {', '.join(names)}" for name in names))
