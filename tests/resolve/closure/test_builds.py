"""A source distribution that must be built to know its requirements: it is built only if allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tomli

from tests.conftest import Envsolve
from tests.index.packages import sdist, wheel
from tests.index.server import IndexServer
from tests.index.shelf import Shelf

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
    """The option for an index where ``app`` must be built, and its requirements after the build."""
    shelf = server.index(path)
    shelf.add("app", [sdist("app", "1.0", static=False, members={"pyproject.toml": PYPROJECT, "backend.py": backend})])
    shelf.add("part", [wheel("part", "2.0")])
    return ["--index-url", shelf.index_url]


@pytest.mark.thorough
def test_a_build_gives_the_requirements_of_the_package(
    server: IndexServer, words: list[str], envsolve: Envsolve
) -> None:
    result = envsolve(*listed(server, "/build/simple/", BACKEND), "--allow-builds", *words)
    assert result.code == 0, result.err
    assert [it["name"] for it in tomli.loads(result.out)["packages"]] == ["app", "part"]


@pytest.mark.thorough
def test_the_metadata_of_a_build_is_cached_and_used_when_builds_are_not_allowed(
    server: IndexServer, words: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    words = ["--cache-dir", str(tmp_path), *(it for it in words if it != "--no-cache")]
    index = listed(server, "/kept/simple/", BACKEND)
    assert envsolve(*index, "--allow-builds", *words).code == 0
    result = envsolve(*index, "--offline", *words)
    assert result.code == 0, result.err
    assert [it["name"] for it in tomli.loads(result.out)["packages"]] == ["app", "part"]


def test_nothing_is_built_without_permission(server: IndexServer, words: list[str], envsolve: Envsolve) -> None:
    result = envsolve(*listed(server, "/unbuilt/simple/", BROKEN), *words)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: needs-build\n")


def test_a_failed_build_reports_its_last_line(server: IndexServer, words: list[str], envsolve: Envsolve) -> None:
    result = envsolve(*listed(server, "/broken/simple/", BROKEN), "--allow-builds", *words)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: build-failed\n")
    assert "no compiler here" in result.err


NEEDY = b'[build-system]\nrequires = ["%s"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def builder(server: IndexServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shelf:
    """An index with setuptools of which only the older has pkg_resources, also configured for pip."""
    shelf = server.index(f"/{tmp_path.name}/simple/")
    old = wheel("setuptools", "81.0.0", members={"pkg_resources.py": b""})
    shelf.add("setuptools", [old, wheel("setuptools", "82.0.0")])
    shelf.add("part", [wheel("part", "2.0")])
    for name in [it for it in os.environ if it.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", shelf.index_url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return shelf


def needy(builder: Shelf, first_line: bytes) -> None:
    """Add ``app`` to the index with setuptools; its build begins with ``first_line``."""
    members = {"pyproject.toml": NEEDY % b"setuptools", "backend.py": first_line + BACKEND}
    builder.add("app", [sdist("app", "1.0", static=False, members=members)])


@pytest.mark.thorough
def test_a_build_that_needs_older_tools_gets_them_with_a_note(
    builder: Shelf, words: list[str], envsolve: Envsolve
) -> None:
    needy(builder, b"import pkg_resources")
    result = envsolve("--index-url", builder.index_url, "--allow-builds", *words)
    assert result.code == 0, result.err
    assert [it["name"] for it in tomli.loads(result.out)["packages"]] == ["app", "part"]
    message = "app 1.0 failed to build, and was built with setuptools<82 (setuptools 82 removed pkg_resources)"
    assert f"note: {message}\n" in result.err


@pytest.mark.thorough
def test_a_build_that_also_fails_with_older_tools_reports_both(
    builder: Shelf, words: list[str], envsolve: Envsolve
) -> None:
    needy(builder, b"raise ImportError(\"No module named 'setuptools.dep_util'\")")
    builder.add("setuptools", [wheel("setuptools", "82.0.0"), wheel("setuptools", "69.5.1")])
    result = envsolve("--index-url", builder.index_url, "--allow-builds", *words)
    assert (result.code, result.out) == (3, "")
    assert "cause: ImportError: No module named 'setuptools.dep_util'\n" in result.err
    assert "cause: with setuptools<70: ImportError: No module named 'setuptools.dep_util'\n" in result.err
    assert "pip wheel" not in result.err  # no module of the machine's own would help


@pytest.mark.thorough
def test_build_constraints_bound_what_a_build_requires_and_the_lock_records_them(
    builder: Shelf, words: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    needy(builder, b"import pkg_resources")
    limits = tmp_path / "limits.txt"
    limits.write_text("setuptools==81.*\nwheel<1; python_version < '3'\n")
    result = envsolve("--index-url", builder.index_url, "--allow-builds", "--build-constraint", str(limits), *words)
    assert result.code == 0, result.err
    assert "built with" not in result.err
    options = tomli.loads(result.out)["tool"]["envsolve"]["options"]
    assert options["build-constraints"] == ["setuptools==81.*", "wheel<1; python_version < '3'"]
    limits.write_text("setuptools>=82\n")
    result = envsolve("--index-url", builder.index_url, "--allow-builds", "--build-constraint", str(limits), *words)
    assert (result.code, result.out) == (3, "")
    assert "No module named 'pkg_resources'" in result.err


def test_build_constraints_that_cannot_be_read_are_named(words: list[str], envsolve: Envsolve, tmp_path: Path) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text("setuptools=<82\n")
    result = envsolve("--allow-builds", "--build-constraint", str(limits), *words)
    assert (result.code, result.out) == (2, "")
    assert f"{limits}:1: 'setuptools=<82'" in result.err


STUB = b'[build-system]\nrequires = []\nbuild-backend = "wheel_stub.buildapi"\n'
LEADS = STUB + b'[tool.wheel_stub]\nindex_url = "https://pypi.nvidia.com/"\n'


@pytest.mark.parametrize("static", [True, False], ids=["locked", "refused"])
def test_an_archive_that_only_leads_to_another_index_names_it(
    static: bool, server: IndexServer, words: list[str], envsolve: Envsolve
) -> None:
    shelf = server.index(f"/stub{int(static)}/simple/")
    shelf.add("app", [sdist("app", "1.0", static=static, members={"pyproject.toml": LEADS})])
    result = envsolve("--index-url", shelf.index_url, *words)
    assert result.code == (0 if static else 1), result.err
    assert "leads to the index https://pypi.nvidia.com" in result.err
    assert "add the index that has the wheels" in result.err
    assert "--extra-index-url https://pypi.nvidia.com" in result.err


def test_the_failed_build_of_a_placeholder_names_the_index(
    server: IndexServer, words: list[str], envsolve: Envsolve
) -> None:
    info = b"Metadata-Version: 2.1\nName: app\nVersion: 1.0\n\nThis is a placeholder from NVIDIA.\n"
    members = {"pyproject.toml": PYPROJECT, "backend.py": BROKEN}
    shelf = server.index("/placeholder/simple/")
    shelf.add("app", [sdist("app", "1.0", pkg_info=info, members=members)])
    result = envsolve("--index-url", shelf.index_url, "--allow-builds", *words)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: build-failed\n")
    assert "cause: it only leads to the index https://pypi.nvidia.com\n" in result.err


def marking(mark: Path) -> dict[str, bytes]:
    """The members of a source distribution. Its build writes the file ``mark``."""
    return {"pyproject.toml": PYPROJECT, "backend.py": f"open({str(mark)!r}, 'w').close()\n".encode() + BACKEND}


def test_nothing_is_built_if_no_build_would_help(
    server: IndexServer, words: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    """app is read before late, which has a requirement that nothing meets."""
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
    """It is removed afterwards."""
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


def test_requirements_of_a_source_distribution_come_from_a_wheel_of_its_version(
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


def test_a_build_with_a_missing_module_suggests_no_build_isolation(
    server: IndexServer, words: list[str], envsolve: Envsolve
) -> None:
    result = envsolve(*listed(server, "/lacking/simple/", b"import torch_of_tomorrow\n"), "--allow-builds", *words)
    assert (result.code, result.out) == (3, "")
    assert "hint: a build has an environment of its own: build the wheel where torch_of_tomorrow is in" in result.err
    assert "pip wheel --no-build-isolation --no-deps app==1.0" in result.err


def test_a_lock_records_that_a_build_imports_an_undeclared_framework(
    server: IndexServer, words: list[str], envsolve: Envsolve
) -> None:
    shelf = server.index("/importing/simple/")
    shelf.add("app", [sdist("app", "1.0", members={"setup.py": b"import torch\n"})])
    result = envsolve("--index-url", shelf.index_url, *words)
    assert result.code == 0, result.err
    assert "note: the build of app 1.0 imports torch, which its own build environment does not have" in result.err


@pytest.mark.parametrize("digest", [None, "0" * 64], ids=["no hash", "another hash"])
def test_nothing_is_built_without_a_matching_hash(
    digest: str | None, server: IndexServer, words: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    made = sdist("app", "1.0", static=False, members=marking(mark))
    shelf = server.index(f"/{'un' if digest is None else 'dis'}proven/simple/")
    shelf.add("app", [made._replace(sha256=digest)])
    result = envsolve("--index-url", shelf.index_url, "--allow-builds", *words)
    assert (result.code, result.out, mark.exists()) == (3, "", False), result.err
    assert result.err.startswith("error: no-hash\n" if digest is None else "error: hash-mismatch\n")
