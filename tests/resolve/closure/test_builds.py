"""A source distribution that only a build can ask: it is built where people allow it, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from tests.conftest import Envsolve
from tests.index.packages import sdist, wheel
from tests.index.server import IndexServer

PYPROJECT = b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
BACKEND = b"""
import os
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(directory, config_settings=None):
    os.mkdir(os.path.join(directory, "app-1.0.dist-info"))
    with open(os.path.join(directory, "app-1.0.dist-info", "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: app\\nVersion: 1.0\\nRequires-Dist: part\\n")
    return "app-1.0.dist-info"
def build_wheel(directory, config_settings=None, metadata_directory=None):
    raise SystemExit("the metadata are enough")
"""
BROKEN = b"raise RuntimeError('no compiler here')\n"


@pytest.fixture
def words() -> list[str]:
    return ["--format", "pylock", "--no-cache", "--platform", "linux-64", "--python", "3.12.4", "app"]


def listed(server: IndexServer, path: str, backend: bytes) -> list[str]:
    """The option that names an index with ``app`` in need of a build, and what it turns out to require."""
    shelf = server.index(path)
    shelf.add("app", [sdist("app", "1.0", static=False, members={"pyproject.toml": PYPROJECT, "backend.py": backend})])
    shelf.add("part", [wheel("part", "2.0")])
    return ["--index-url", shelf.index_url]


def test_a_build_tells_what_the_package_requires(server: IndexServer, words: list[str], envsolve: Envsolve) -> None:
    result = envsolve(*listed(server, "/build/simple/", BACKEND), "--allow-builds", *words)
    assert result.code == 0, result.err
    assert [it["name"] for it in tomli.loads(result.out)["packages"]] == ["app", "part"]


def test_without_leave_nothing_is_built(server: IndexServer, words: list[str], envsolve: Envsolve) -> None:
    result = envsolve(*listed(server, "/unbuilt/simple/", BROKEN), *words)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: needs-build\n")


def test_a_build_that_fails_says_what_it_said_last(server: IndexServer, words: list[str], envsolve: Envsolve) -> None:
    result = envsolve(*listed(server, "/broken/simple/", BROKEN), "--allow-builds", *words)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: build-failed\n")
    assert "no compiler here" in result.err


def marking(mark: Path) -> dict[str, bytes]:
    """The members of a source distribution whose build writes the file ``mark``."""
    return {"pyproject.toml": PYPROJECT, "backend.py": f"open({str(mark)!r}, 'w').close()\n".encode() + BACKEND}


def test_nothing_is_built_where_no_build_helps(
    server: IndexServer, words: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    """app is looked at before late, whose requirement nothing meets."""
    mark = tmp_path / "ran"
    shelf = server.index("/hopeless/simple/")
    shelf.add("app", [sdist("app", "1.0", static=False, members=marking(mark))])
    shelf.add("late", [wheel("late", "1.0", ["part>3"])])
    shelf.add("part", [wheel("part", "2.0")])
    result = envsolve("--index-url", shelf.index_url, "--allow-builds", *words, "late")
    assert (result.code, mark.exists()) == (1, False), result.err
    assert "late 1.0 requires part>3" in result.err


def test_builds_with_the_same_requirements_share_an_environment(
    server: IndexServer, words: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    """It is gone afterwards."""
    backend = "import sys\nwith open({!r}, 'a') as file:\n    print(sys.prefix, file=file)\n".format(
        str(tmp_path / "seen")
    )
    shelf = server.index("/shared/simple/")
    for name in ("app", "other"):
        members = {"pyproject.toml": PYPROJECT, "backend.py": backend.encode() + BACKEND.replace(b"app", name.encode())}
        shelf.add(name, [sdist(name, "1.0", static=False, members=members)])
    shelf.add("part", [wheel("part", "2.0")])
    result = envsolve("--index-url", shelf.index_url, "--allow-builds", *words, "other")
    assert result.code == 0, result.err
    (prefix,) = set((tmp_path / "seen").read_text(encoding="utf-8").splitlines())
    assert not Path(prefix).exists()


def test_source_requires_what_a_wheel_of_its_version_does(
    server: IndexServer, words: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    shelf = server.index("/wheel-of-another-python/simple/")
    made = wheel("app", "1.0", ["part"], tags="cp310-cp310-manylinux_2_17_x86_64")
    shelf.add("app", [made, sdist("app", "1.0", static=False, members=marking(mark))])
    shelf.add("part", [wheel("part", "2.0")])
    result = envsolve("--index-url", shelf.index_url, "--allow-builds", *words)
    assert (result.code, mark.exists()) == (0, False), result.err
    app, part = tomli.loads(result.out)["packages"]
    assert (app["name"], app["sdist"]["name"], part["name"]) == ("app", "app-1.0.tar.gz", "part")


def test_a_build_that_lacks_a_module_says_how_to_build_beside_it(
    server: IndexServer, words: list[str], envsolve: Envsolve
) -> None:
    result = envsolve(*listed(server, "/lacking/simple/", b"import torch_of_tomorrow\n"), "--allow-builds", *words)
    assert (result.code, result.out) == (3, "")
    assert "hint: a build has an environment of its own: build the wheel where torch_of_tomorrow is in" in result.err
    assert "pip wheel --no-build-isolation --no-deps app==1.0" in result.err


def test_a_lock_says_that_a_build_imports_a_framework_it_does_not_require(
    server: IndexServer, words: list[str], envsolve: Envsolve
) -> None:
    shelf = server.index("/importing/simple/")
    shelf.add("app", [sdist("app", "1.0", members={"setup.py": b"import torch\n"})])
    result = envsolve("--index-url", shelf.index_url, *words)
    assert result.code == 0, result.err
    assert "note: the build of app 1.0 imports torch, which its own build environment does not have" in result.err


@pytest.mark.parametrize("told", [None, "0" * 64], ids=["no hash", "another hash"])
def test_nothing_is_built_whose_hash_does_not_prove_it(
    told: str | None, server: IndexServer, words: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    made = sdist("app", "1.0", static=False, members=marking(mark))
    shelf = server.index(f"/{'un' if told is None else 'dis'}proven/simple/")
    shelf.add("app", [made._replace(sha256=told)])
    result = envsolve("--index-url", shelf.index_url, "--allow-builds", *words)
    assert (result.code, result.out, mark.exists()) == (3, "", False), result.err
    assert result.err.startswith("error: no-hash\n" if told is None else "error: hash-mismatch\n")
