"""Requirements by URL: repositories, folders, archives; their locks, and what installers do with them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import tomli

from envsolve.model.lock_format import CONDA_FORMATS, IMAGE_FORMATS
from tests.cli.locking import undisturbed
from tests.conda.packages import MINOR
from tests.conftest import Envsolve, Result
from tests.index.packages import sdist, wheel
from tests.index.repositories import GitServer, project
from tests.index.server import IndexServer


class World(NamedTuple):
    """An index with alpha, which requires beta, a server of repositories, and a command that locks."""

    envsolve: Envsolve
    server: IndexServer
    git: GitServer

    def __call__(self, *words: str, code: int = 0) -> Result:
        common = ("--gpu", "none", "--python", MINOR, "--index-url", self.server.index_url, "--cache-dir", "cache")
        done = self.envsolve(*words, *common)
        assert done.code == code, done.err + done.out
        return done

    def lock(self, *words: str) -> dict[str, dict[str, object]]:
        """The packages of a pylock.toml for ``words``, by name."""
        text = self(*words, "--format", "pylock").out
        return {it["name"]: it for it in tomli.loads(text)["packages"]}

    def address(self, repository: str, revision: str = "") -> str:
        """The address of a repository in a requirement."""
        return f"git+{self.git.url}/{repository}{f'@{revision}' if revision else ''}"


@pytest.fixture
def here(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    (tmp_path / "here").mkdir()
    undisturbed(monkeypatch, tmp_path / "here")
    with IndexServer(recorded=False) as index, GitServer(tmp_path / "repositories") as git:
        index.add("alpha", [wheel("alpha", "1.0", ["beta"]), wheel("alpha", "2.0", ["beta>=1"])])
        index.add("beta", [wheel("beta", "1.0"), wheel("beta", "2.0")])
        yield World(envsolve, index, git)


@pytest.mark.thorough
@pytest.mark.parametrize("revision", ["", "main", "v1", "commit", "short"])
def test_a_repository_is_locked_at_its_commit_with_its_requirements(here: World, revision: str) -> None:
    commit = here.git.commit("own", project("own", "1.5", ("alpha<2",)), tag="v1")
    named = {"commit": commit, "short": commit[:8]}.get(revision, revision)
    found = here.lock(f"own @ {here.address('own', named)}")
    assert found["own"]["vcs"] == {"type": "git", "url": f"{here.git.url}/own", "commit-id": commit}
    assert found["own"]["version"] == "1.5"
    assert found["alpha"]["version"] == "1.0"
    assert found["beta"]["version"] == "2.0"


@pytest.mark.thorough
def test_a_commit_is_fetched_from_a_server_that_does_not_serve_it_directly(
    envsolve: Envsolve, here: World, tmp_path: Path
) -> None:
    with GitServer(tmp_path / "others", allows_commits=False) as git:
        first = git.commit("own", project("own", "1.0"))
        git.commit("own", project("own", "2.0"))
        other = World(envsolve, here.server, git)
        assert other.lock(f"own @ {other.address('own', first)}")["own"]["version"] == "1.0"


@pytest.mark.thorough
def test_a_repository_may_omit_its_project_name(here: World) -> None:
    here.git.commit("team/Own_Project.git", project("own-project"))
    here.git.commit("team/library", {f"python/{it}": text for it, text in project("library").items()})
    here.git.commit("team/other", project("renamed"))
    assert "own-project" in here.lock(here.address("team/Own_Project.git"))
    found = here.lock(f"{here.address('team/library')}#subdirectory=python&egg=library")
    assert found["library"]["vcs"]["subdirectory"] == "python"  # type: ignore[index]  # a table
    assert "renamed" in here.lock(here.address("team/other"))
    done = here(f"other @ {here.address('team/other')}", "--format", "pylock", code=2)
    assert "error: direct-reference-invalid" in done.err
    assert f"hint: write 'renamed @ {here.address('team/other')}'" in done.err


@pytest.mark.thorough
def test_a_lock_of_an_unnamed_repository_is_stable(here: World) -> None:
    first = here.git.commit("team/other", project("renamed", "1.0", ("alpha",)))
    words = (here.address("team/other"), "beta", "-o", "pylock.toml")
    here(*words)
    before = Path("pylock.toml").read_text()
    assert f'"renamed @ {here.address("team/other")}"' in before
    here.git.commit("team/other", project("renamed", "2.0"))
    here(*words)
    assert Path("pylock.toml").read_text() == before
    here(*words, "alpha<2")
    assert f'commit-id = "{first}"' in Path("pylock.toml").read_text()
    here(*words, "-P", "renamed")
    assert 'version = "2.0"' in Path("pylock.toml").read_text()


@pytest.mark.thorough
def test_a_project_without_a_static_name_gets_it_from_the_build(here: World) -> None:
    files = project("renamed", "1.0", ("alpha<2",), static=False)
    here.git.commit("other", {**files, "pyproject.toml": files["pyproject.toml"].partition("[project]")[0]})
    assert here.lock(here.address("other"), "--allow-builds").keys() == {"alpha", "beta", "renamed"}
    done = here(here.address("other"), "--format", "pylock", "--no-cache", code=1)
    assert "error: needs-build\n  other must be built" in done.err


def test_an_environment_yml_only_has_the_url(here: World) -> None:
    words = (here.address("other"), "--framework", "pytorch", "--gpu", "none", "--no-cache")
    done = here.envsolve(*words)
    assert done.code == 0, done.err
    assert f"    - {here.address('other')}  " in done.out
    done = here.envsolve(*words, "--format", "pixi")
    assert "the format 'pixi' does not support other, which is from a repository" in done.err


@pytest.mark.thorough
@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[project]\nname = 'renamed'\ndynamic = ['version', 'dependencies']\n"},
        {"setup.cfg": "[metadata]\nname = renamed\n", "setup.py": "import setuptools\nsetuptools.setup()\n"},
        {"setup.py": "from setuptools import setup\nsetup(name='renamed', version=open('v').read())\n"},
    ],
)
def test_the_name_of_a_repository_is_found_without_a_build(here: World, files: dict[str, str]) -> None:
    here.git.commit("team/other", files)
    for allow in ((), ("--allow-builds",)):
        done = here(f"other @ {here.address('team/other')}", "--format", "pylock", *allow, code=2)
        assert f"hint: write 'renamed @ {here.address('team/other')}'" in done.err


def test_a_folder_with_only_a_setup_py_has_a_name_and_is_built(here: World) -> None:
    Path("setup.py").write_text("from setuptools import setup\nsetup(name='mine', install_requires=['alpha'])\n")
    done = here("-e", ".", "--format", "pylock", code=1)
    assert "error: needs-build\n  mine must be" in done.err
    assert "cause: -e . has no static metadata" in done.err
    Path("setup.py").write_text("from setuptools import setup\nsetup(**{})\n")
    done = here("-e", ".", "--format", "pylock", code=2)
    assert "no pyproject.toml, setup.cfg or setup.py in . states the package name" in done.err


def test_a_folder_is_read_like_pip_reads_it(here: World) -> None:
    for path, text in project("mine", requires=("beta<2",)).items():
        Path("parts/mine").mkdir(parents=True, exist_ok=True)
        Path("parts/mine", path).write_text(text)
    Path("in.txt").write_text("parts/mine\n")
    assert here.lock("-r", "in.txt")["mine"]["directory"] == {"path": "./parts/mine"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["my project", "a%20b", "100% mine", "größer als"])
def test_the_path_of_a_folder_may_contain_any_characters(here: World, name: str) -> None:
    for path, text in project("mine", requires=("beta<2",)).items():
        Path(name).mkdir(exist_ok=True)
        Path(name, path).write_text(text)
    for editable in (False, True):
        words = (("-e",) if editable else ()) + (f"./{name}",)
        directory = {"path": f"./{name}", **({"editable": True} if editable else {})}
        assert here.lock(*words)["mine"]["directory"] == directory
        here(*words, "-o", "requirements.txt", "--force")
        before = Path("requirements.txt").read_text()
        here(*words, "-o", "requirements.txt", "--offline")
        assert Path("requirements.txt").read_text() == before
        here(*words, "-o", "pylock.toml", "--force")
        line = f"\n{'-e ' if editable else ''}./{name}  # mine\n"
        assert line in here.envsolve("export", "pylock.toml", "--format", "requirements").out


@pytest.mark.parametrize("name", ["two  spaces", "ends ", "an -option", "a\ttab", 'a"quote'])
def test_a_path_that_requirements_files_cannot_represent_is_refused(here: World, name: str) -> None:
    for path, text in project("mine").items():
        Path(name).mkdir(exist_ok=True)
        Path(name, path).write_text(text)
    done = here.envsolve(f"./{name}/", "--gpu", "none", "--format", "requirements", "--python", MINOR, "--offline")
    assert done.code in (2, 3)
    assert "rename the folder" in done.err or "unsound-package" in done.err


@pytest.mark.thorough
def test_url_requirements_of_a_repository_are_followed(here: World) -> None:
    here.git.commit("part", project("part", "3.0", ("beta<2",)))
    here.git.commit("own", project("own", "1.0", (f"part @ {here.address('part')}",)))
    found = here.lock(f"own @ {here.address('own')}")
    assert (found["part"]["version"], found["beta"]["version"]) == ("3.0", "1.0")


@pytest.mark.thorough
def test_a_branch_keeps_its_commit_until_upgraded(here: World) -> None:
    first = here.git.commit("own", project("own"))
    words = (f"own @ {here.address('own', 'main')}", "alpha")
    here(*words, "-o", "pylock.toml")
    second = here.git.commit("own", project("own", "2.0"))
    here.git.commit("own", project("own", "3.0"), branch="next")
    here(*words, "beta<2", "-o", "pylock.toml")
    assert first in Path("pylock.toml").read_text()
    here(*words, "-o", "pylock.toml", "-P", "own")
    assert second in Path("pylock.toml").read_text()
    here(f"own @ {here.address('own', 'next')}", "-o", "pylock.toml")
    assert 'version = "3.0"' in Path("pylock.toml").read_text()


@pytest.mark.thorough
def test_a_build_that_imports_a_framework_is_reported(here: World) -> None:
    stated = "[build-system]\nrequires = ['setuptools']\n[project]\nname = 'own'\nversion = '1.0'\n"
    here.git.commit("own", {"pyproject.toml": stated, "setup.py": "import torch\n"})
    for _ in range(2):  # the second time from the cache
        done = here(f"own @ {here.address('own')}", "--format", "pylock")
        assert "note: the build of own 1.0 imports torch, " in done.err


@pytest.mark.thorough
def test_facts_of_a_commit_are_cached(here: World) -> None:
    commit = here.git.commit("own", project("own"))
    before = here.lock(f"own @ {here.address('own', commit)}")
    requests = len(here.git.requests)
    assert here.lock(f"own @ {here.address('own', commit)}") == before
    assert here.lock(f"own @ {here.address('own', commit)}", "--offline") == before
    assert len(here.git.requests) == requests
    done = here(f"own @ {here.address('own', 'main')}", "--format", "pylock", "--offline", code=3)
    assert "error: not-cached" in done.err


@pytest.mark.thorough
def test_an_unchanged_branch_is_not_fetched_again(here: World) -> None:
    here.git.commit("own", project("own"), tag="v1")
    here.git.commit("own", project("own", "2.0"))
    for revision, version in (("", "2.0"), ("main", "2.0"), ("v1", "1.0")):
        assert here.lock(f"own @ {here.address('own', revision)}")["own"]["version"] == version
    before = len(here.git.requests)
    for revision, version in (("", "2.0"), ("main", "2.0"), ("v1", "1.0")):
        assert here.lock(f"own @ {here.address('own', revision)}")["own"]["version"] == version
    requests = here.git.requests[before:]
    assert [it for it in requests if "git-upload-pack" in it and "info" not in it] == [
        "/own/git-upload-pack"
    ] * 3  # refs
    here.git.commit("own", project("own", "3.0"))
    assert here.lock(f"own @ {here.address('own')}")["own"]["version"] == "3.0"


@pytest.mark.thorough
def test_several_builds_are_refused_together_for_any_python(here: World) -> None:
    names = ("one", "two", "three", "four")
    for name in names:
        here.git.commit(name, project(name, static=False))
    requirements = [f"{name} @ {here.address(name)}" for name in names]
    common = ("--gpu", "none", "--index-url", here.server.index_url, "--format", "pylock")
    done = here.envsolve(*requirements, *common)
    assert done.code == 1
    assert done.err.count("has no static metadata") == len(names)
    assert "--python" not in done.err.partition("hint:")[2]


@pytest.mark.thorough
def test_a_dynamic_version_is_not_named(here: World) -> None:
    """Only a build could report it."""
    text = "[project]\nname = 'own'\ndynamic = ['version']\ndependencies = ['beta<2']\nrequires-python = '{}'\n"
    here.git.commit("own", {"pyproject.toml": text.format(">=3.9")})
    own = f"own @ {here.address('own')}"
    assert "\ncause: own requires beta<2\n" in here(own, "beta>=2", "--format", "pylock", code=1).err
    overridden = here(own, "--override", "beta>=2", "--format", "pylock").err
    assert "note: own requires beta<2, replaced by --override: beta 2.0\n" in overridden
    here.git.commit("own", {"pyproject.toml": text.format("<3.9")})
    assert "\ncause: own: it does not support this Python\n" in here(own, "--format", "pylock", code=1).err


def test_dynamic_requirements_need_a_build(here: World) -> None:
    here.git.commit("own", project("own", "1.0", ("alpha<2",), static=False))
    words = (f"own @ {here.address('own')}", "--format", "pylock")
    done = here(*words, code=1)
    assert done.err.startswith("error: needs-build\n  own must be built to read its requirements")
    assert f"cause: {here.address('own')} has no static metadata (required by the command line)\n" in done.err
    assert "--allow-builds" in done.err
    packages = tomli.loads(here(*words, "--allow-builds").out)["packages"]
    assert [(it["name"], it["version"]) for it in packages] == [("alpha", "1.0"), ("beta", "2.0"), ("own", "1.0")]


@pytest.mark.thorough
def test_a_build_with_a_missing_module_names_the_fix(here: World) -> None:
    files = project("own", "1.0", static=False)
    here.git.commit("own", {**files, "backend.py": "import torch_of_tomorrow\n"})
    done = here(f"own @ {here.address('own')}", "--format", "pylock", "--allow-builds", code=3)
    assert f"pip wheel --no-build-isolation --no-deps {here.address('own')}\n" in done.err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("address", "code", "says"),
    [
        ("missing", 3, "cannot read git+http://127.0.0.1:"),
        ("own@absent", 3, "it has no branch, tag or commit 'absent'"),
        ("own#subdirectory=absent", 2, "it has no pyproject.toml and no setup.py"),
        ("own#subdirectory=../..", 2, "leads out of the project"),
    ],
)
def test_an_unreachable_repository_is_one_error(here: World, address: str, code: int, says: str) -> None:
    here.git.commit("own", project("own"))
    done = here(f"own @ git+{here.git.url}/{address}", "--format", "pylock", code=code)
    assert says in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


@pytest.mark.thorough
def test_a_missing_commit_is_not_reported_as_a_missing_branch(here: World, tmp_path: Path) -> None:
    here.git.commit("own", project("own"))
    for file in (tmp_path / "repositories" / "own" / ".git" / "objects").glob("??/*"):
        if b"blob" in zlib.decompress(file.read_bytes())[:4]:
            file.unlink()
    done = here(f"own @ {here.address('own')}", "--format", "pylock", code=3)
    assert "error: repository-unreadable" in done.err
    assert "no branch" not in done.err


def test_a_conflict_with_the_project_itself_is_not_an_internal_error(here: World) -> None:
    for path, text in project("mine", requires=("pytorch",)).items():
        Path(path).write_text(text)
    for words in (("-e", "."), (".",)):
        done = here(*words, "--format", "pylock", code=1)
        assert "error: package-not-found" in done.err


def test_without_git_a_repository_cannot_be_locked(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    here.git.commit("own", project("own"))
    monkeypatch.setenv("PATH", "")
    assert "error: git-not-found" in here(f"own @ {here.address('own')}", "--format", "pylock", code=3).err


@pytest.mark.thorough
def test_a_link_out_of_a_repository_is_not_followed(here: World, tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text(project("own", requires=("alpha",))["pyproject.toml"])
    root = tmp_path / "repositories" / "own"
    here.git.commit("own", {"setup.py": ""})
    (root / "pyproject.toml").symlink_to(tmp_path / "secret.toml")
    here.git.commit("own", {})
    assert "error: needs-build" in here(f"own @ {here.address('own')}", "--format", "pylock", code=1).err


@pytest.mark.thorough
def test_credentials_are_in_no_lock_and_no_message(here: World) -> None:
    here.git.commit("own", project("own"))
    opened = here.address("own").replace("http://", "http://user:s3cr3t@")
    done = here(f"own @ {opened}", "--format", "requirements")
    assert "s3cr3t" not in done.out + done.err
    assert "own @ git+http://127.0.0.1" in done.out
    assert "s3cr3t" not in here(f"own @ {opened}absent", "--format", "requirements", code=3).err


@pytest.mark.thorough
def test_the_project_itself_brings_its_requirements(here: World) -> None:
    extras = "[project.optional-dependencies]\ndev = ['alpha<2']\n"
    for path, text in project("mine", requires=("beta<2",)).items():
        Path(path).write_text(text + (extras if path == "pyproject.toml" else ""))
    found = here.lock(".")
    assert found["mine"]["directory"] == {"path": "."}
    assert "version" not in found["mine"]
    assert found["beta"]["version"] == "1.0"
    Path("requirements.in").write_text("-e .[dev]\n")
    found = here.lock("-r", "requirements.in")
    assert found["mine"]["directory"] == {"path": ".", "editable": True}
    assert found["alpha"]["version"] == "1.0"
    assert "\n-e .  # mine\n" in here("-r", "requirements.in", "--format", "requirements").out


def test_an_unreadable_folder_is_one_error(here: World) -> None:
    Path("mine", "pyproject.toml").mkdir(parents=True)
    done = here("mine @ ./mine", "--format", "pylock", code=2)
    assert done.err.startswith(
        "error: direct-reference-invalid\n  'mine @ ./mine': cannot read ./mine/pyproject.toml: "
    )


def test_a_change_of_the_project_makes_its_lock_stale(here: World) -> None:
    for path, text in project("mine", requires=("beta<2",)).items():
        Path(path).write_text(text)
    words = (".", "-o", "pylock.toml")
    here(*words)
    before = Path("pylock.toml").read_text()
    here(*words)
    assert Path("pylock.toml").read_text() == before
    Path("pyproject.toml").write_text(project("mine", requires=("alpha",))["pyproject.toml"])
    here(*words)
    assert "alpha" in Path("pylock.toml").read_text()


@pytest.mark.parametrize("folder", ["archive", "-/archive"])
def test_the_archive_of_a_commit_is_named_like_its_repository(here: World, folder: str) -> None:
    file = sdist("own", "1.0", ["alpha<2"])
    here.server.add("own", [file])
    address = f"{here.server.url}/files/own/{folder}/{'0a' * 20}.tar.gz"
    done = here(address, "--format", "pylock", code=3)
    assert f"own @ {address} cannot be fetched" in done.err


def test_an_archive_is_locked_with_its_digest(here: World) -> None:
    file = sdist("own", "1.0", ["alpha<2"])
    here.server.add("own", [file])
    found = here.lock(f"{here.server.url}/files/own/{file.name}")
    assert found["own"]["archive"]["hashes"] == {"sha256": file.sha256}  # type: ignore[index]  # a table
    assert found["alpha"]["version"] == "1.0"


@pytest.mark.parametrize("name", ["", "own @ "])
def test_a_marker_may_follow_a_url_like_in_pip(here: World, name: str) -> None:
    """People write ``https://...whl; sys_platform == "linux"``, and PEP 508 has a space before the semicolon."""
    here.server.add("own", [wheel("own", "1.0", ["alpha<2"])])
    address = f"{here.server.url}/files/own/own-1.0-py3-none-any.whl"
    Path("in.txt").write_text(
        f"{name}{address}; sys_platform == 'linux'\n{name}{address.replace('1.0', '2.0')}; sys_platform == 'win32'\n"
    )
    assert here.lock("-r", "in.txt")["own"]["version"] == "1.0"


def test_an_unreachable_archive_is_not_reported_as_missing_on_an_index(here: World) -> None:
    done = here("own @ http://127.0.0.1:9/own-1.0-py3-none-any.whl", "--format", "pylock", code=3)
    assert "http://127.0.0.1:9/own-1.0-py3-none-any.whl cannot be reached" in done.err
    assert "another index" not in done.err


def test_a_local_wheel_is_locked(here: World) -> None:
    file = wheel("own", "1.0", ["alpha<2"])
    assert file.content is not None
    Path(file.name).write_bytes(file.content)
    found = here.lock(f"./{file.name}")
    digest = hashlib.sha256(file.content).hexdigest()
    assert found["own"]["archive"] == {  # the path of the machine that made it
        "url": Path(file.name).absolute().as_uri(),
        "size": len(file.content),
        "hashes": {"sha256": digest},
    }
    assert found["alpha"]["version"] == "1.0"
    for format_name in IMAGE_FORMATS:
        refused = here(f"./{file.name}", "--format", format_name, code=2)
        assert "an image cannot have own, which is from a folder of this machine" in refused.err


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", [*CONDA_FORMATS, *IMAGE_FORMATS])
def test_a_format_that_cannot_represent_a_repository_is_refused(here: World, format_name: str) -> None:
    words = (here.address("own"), "-f", "pytorch", "--format", format_name)
    done = here.envsolve(*words, "--gpu", "none", "--index-url", here.server.index_url, "--no-cache")
    assert (done.code, done.out) == (2, "")
    message = f"the format '{format_name}' does not support own, which is from a repository"
    assert f"{message}\ncause: {here.address('own')}\n" in done.err
    assert "--format requirements or --format pylock" in done.err


@pytest.mark.thorough
def test_a_conda_file_with_a_repository_suggests_another_format(here: World) -> None:
    Path("environment.yml").write_text(
        f"dependencies:\n- python=3.11\n- pip:\n  - -e {here.address('own')}@main#egg=own\n"
    )
    common = ("-r", "environment.yml", "-f", "pytorch", "--gpu", "none", "--no-cache")
    for format_name in ("conda-lock", "pylock"):
        done = here.envsolve(*common, "--format", format_name)
        assert done.code == 2
        assert "move the requirements of pip to a requirements file, and lock that" in done.err


@pytest.mark.thorough
@pytest.mark.parametrize("installer", ["uv", "pip"])
@pytest.mark.parametrize("name", ["requirements.txt", "pylock.toml"])
def test_create_installs_them(
    here: World, name: str, installer: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commit = here.git.commit("own", project("own", "1.5", ("beta<2",)))
    for folder, named in ((".", "mine"), ("my own", "other")):
        Path(folder).mkdir(exist_ok=True)
        for path, text in project(named).items():
            Path(folder, path).write_text(text)
    Path("in.txt").write_text(f"own @ {here.address('own')}\n-e .\n-e ./my own\n")
    here("-r", "in.txt", "-o", name)
    if installer == "pip":
        monkeypatch.setattr("envsolve.app.environment.making.find_uv", lambda: None)
    create = ("create", "env", "--lock", name, "--cache-dir", "cache", "--no-validate")
    done = here.envsolve(*create)
    assert (done.code, "error: build-refused" in done.err) == (2, True)
    done = here.envsolve(*create, "--allow-builds")
    assert done.code == 0, done.err
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "--python", "env/bin/python", "freeze", "--all"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = listed.stdout.splitlines()
    assert f"own @ git+{here.git.url}/own@{commit}" in lines
    assert "beta==1.0" in lines
    assert any("mine" in line for line in lines)
    assert any("other" in line for line in lines)
