"""``envsolve diff``: what a change of a lock means, in files of several tools and in revisions of a git repository."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli

from tests.conftest import Envsolve

_CASES = tomli.loads((Path(__file__).parent / "diffs.toml").read_text(encoding="utf-8"))
_SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
_ON_LINUX = ("--platform", "linux-64")
_ALL = ("--fail-on", "driver-floor,capability,cuda-major,framework-major,python")
_OLD = "numpy==2.2.0\ntorch==2.14.1+cu126\n"
_NEW = "numpy==2.3.0\ntorch==2.14.1+cu130\n"

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Runs git in a repository, which is the current directory, with requirements.txt in one commit."""
    monkeypatch.chdir(tmp_path)

    def call(*command: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *settings, *command], check=True, capture_output=True, text=True).stdout

    call("init", "--quiet", "--initial-branch=main")
    Path("requirements.txt").write_text(_OLD, encoding="utf-8")
    call("add", "--all")
    call("commit", "--quiet", "--message=one")
    return call


def _case_texts(case: dict[str, Any]) -> tuple[str, str]:
    old = new = case["new"].lstrip("\n")
    for text, before in case["replaced"].items():
        assert text in old
        old = old.replace(text, before)
    return old, new


def _value(summary: dict[str, Any], name: str) -> str:
    return "unknown" if name in summary["unknown"] else summary[name] or "none"


@pytest.mark.thorough
@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, (case,) in _CASES.items()])
def test_a_changed_lock_has_consequences_for_machines(case: dict[str, Any], envsolve: Envsolve, tmp_path: Path) -> None:
    paths = [tmp_path / folder / case["name"] for folder in ("old", "new")]
    for path, text in zip(paths, _case_texts(case), strict=True):
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    done = envsolve("diff", *map(str, paths), *_ON_LINUX, *_ALL, "--json")
    document = json.loads(done.out)
    (found,) = document["diffs"]
    sides = (found["before"], found["after"])
    for name in ("driver_floor", "cuda", "cudnn"):
        assert [_value(it, name) for it in sides] == case[name], name
    if "compute_capabilities" in case:
        assert _value(found["after"], "compute_capabilities") == case["compute_capabilities"]
    built = [[f"{it['version']} ({it['build']})".removesuffix(" ()") for it in side["frameworks"]] for side in sides]
    assert built == case["frameworks"]
    assert [it["download_size"] for it in sides] == case.get("download_size", [None, None])
    assert found["capabilities_lost"] == case.get("lost", [])
    assert found["capabilities_gained"] == case.get("gained", [])
    assert [it["name"] for it in found["packages"]] == case["packages"]
    assert list(dict.fromkeys(it["kind"] for it in found["breaking"])) == case["fails"]
    assert all(it["fails"] for it in found["breaking"])
    lines = {it["line"] for it in found["breaking"] if it["kind"] in ("capability", "driver-floor")}
    assert lines == ({case["line"]} if lines else set())
    assert (done.code, document["ok"]) == ((1, False) if case["fails"] else (0, True))
    plain = envsolve("diff", *map(str, paths), *_ON_LINUX)
    assert (plain.code, plain.err) == (0, "")


def test_the_text_begins_with_the_consequences(git: Git, envsolve: Envsolve) -> None:
    Path("requirements.txt").write_text(_NEW, encoding="utf-8")
    done = envsolve("diff", "HEAD", "requirements.txt", *_ON_LINUX, "--fail-on", "cuda-major", "--fail-on", "python")
    assert done.code == 1
    assert done.out == (
        "HEAD:./requirements.txt -> requirements.txt (linux-64)\n"
        "  driver floor: 525.60.13 -> 580.65.06\n"
        "  compute capabilities: lost 5.0, 5.2, 6.0, 6.1, 7.0; gained 10.0, 10.3, 10.7, 12.0, 12.1\n"
        "  CUDA: 12.6 -> 13.0\n"
        "  pytorch: 2.14.1 (pytorch, cu126) -> 2.14.1 (pytorch, cu130)\n"
        "  fails: cuda-major\n"
        "  packages: 2 changed\n"
        "    ~ numpy 2.2.0 -> 2.3.0\n"
        "    ~ torch 2.14.1+cu126 -> 2.14.1+cu130\n"
    )


def test_unchanged_locks_are_one_line(git: Git, envsolve: Envsolve) -> None:
    done = envsolve("diff", "HEAD", *_ON_LINUX)
    assert done.code == 0
    assert done.out == (
        "HEAD:./requirements.txt -> requirements.txt (linux-64)\n"
        "  unchanged: driver floor 525.60.13, CUDA 12.6\n"
        "  packages: none changed\n"
    )


def test_unknown_facts_are_reported(git: Git, envsolve: Envsolve) -> None:
    Path("requirements.txt").write_text("torch==99.0\n", encoding="utf-8")
    done = envsolve("diff", "HEAD", *_ON_LINUX)
    assert "  driver floor: 525.60.13 -> unknown\n" in done.out
    facts = "driver floor, compute capabilities, CUDA, cuDNN"
    assert f"  unknown in requirements.txt: {facts} (the matrix does not have torch 99.0)\n" in done.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("HEAD",), ["HEAD:./requirements.txt", "requirements.txt"]),
        (("HEAD", "requirements.txt"), ["HEAD:./requirements.txt", "requirements.txt"]),
        (("HEAD:requirements.txt",), ["HEAD:requirements.txt", "requirements.txt"]),
        (("HEAD:./requirements.txt", "requirements.txt"), ["HEAD:./requirements.txt", "requirements.txt"]),
        (("main:requirements.txt", ":requirements.txt"), ["main:requirements.txt", ":requirements.txt"]),
        ((":requirements.txt", "HEAD"), [":requirements.txt", "HEAD:requirements.txt"]),
        (("requirements.txt", "HEAD"), ["requirements.txt", "HEAD:./requirements.txt"]),
        (("HEAD", "main"), ["HEAD:./requirements.txt", "main:./requirements.txt"]),
    ],
)
def test_a_side_is_a_file_or_a_revision(
    arguments: tuple[str, ...], names: list[str], git: Git, envsolve: Envsolve
) -> None:
    done = envsolve("diff", *arguments, *_ON_LINUX, "--json")
    (found,) = json.loads(done.out)["diffs"]
    assert [found["old"], found["new"]] == names


def test_paths_of_a_revision_are_relative_to_the_top(
    git: Git, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = Path("below")
    below.mkdir()
    monkeypatch.chdir(below)
    found = json.loads(envsolve("diff", "HEAD:requirements.txt", *_ON_LINUX, "--json").out)["diffs"][0]
    assert found["new"] == str(Path("..", "requirements.txt"))
    done = envsolve("diff", "HEAD:./requirements.txt", *_ON_LINUX)
    assert done.code == 2
    assert "  ./requirements.txt is not in HEAD\n" in done.err


def test_a_revision_alone_means_all_locks_of_the_project(git: Git, envsolve: Envsolve) -> None:
    text = 'frameworks = ["pytorch"]\nplatforms = ["linux-64"]\noutputs = ["locks/{platform}.requirements.txt"]\n'
    Path("envsolve.toml").write_text(text, encoding="utf-8")
    Path("locks").mkdir()
    lock = Path("locks", "linux-64.requirements.txt")
    lock.write_text(_OLD, encoding="utf-8")
    done = envsolve("diff", "HEAD")
    assert (done.code, "no lock is in both versions: locks/linux-64.requirements.txt" in done.err) == (2, True)
    git("add", "--all")
    git("commit", "--quiet", "--message=two")
    lock.write_text(_NEW, encoding="utf-8")
    found = json.loads(envsolve("diff", "HEAD", *_ON_LINUX, "--json").out)["diffs"]
    assert [it["new"] for it in found] == [str(lock)]  # and not requirements.txt, which the project does not name


def test_the_project_can_be_named(git: Git, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("envsolve.toml").write_text('frameworks = ["pytorch"]\noutputs = ["requirements.txt"]\n', encoding="utf-8")
    Path("requirements.txt").write_text(_NEW, encoding="utf-8")
    (elsewhere := Path.cwd().parent / "elsewhere").mkdir()  # outside of the repository
    project = Path.cwd().name
    monkeypatch.chdir(elsewhere)
    words = ("diff", "HEAD", "--project", f"../{project}", *_ON_LINUX)
    assert [it["new"] for it in json.loads(envsolve(*words, "--json").out)["diffs"]] == ["requirements.txt"]
    assert f"file=../{project}/requirements.txt" in envsolve(*words, "--output-format", "github").out
    done = envsolve("diff", "HEAD:requirements.txt", "--project", f"../{project}")
    assert "--project is about the locks that a project names" in done.err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("requirements.txt",), "usage", "NEW is missing"),
        (("nothing-here",), "no-such-version", "nothing-here is neither a file nor a git revision"),
        (("HEAD~9:requirements.txt",), "no-such-version", "'HEAD~9' is not a git revision"),
        (("HEAD:other.txt",), "no-such-version", "other.txt is not in HEAD"),
        ((":other.txt", "requirements.txt"), "no-such-version", "other.txt is not in the index"),
        (("HEAD", "conflict.txt"), "no-such-version", "./conflict.txt is not in HEAD"),
        (("requirements.txt", "conflict.txt"), "held-unreadable", "conflict.txt:1: unresolved merge conflict"),
        (("requirements.txt", "prose.txt"), "held-unreadable", "cannot read prose.txt:2: 'no requirement at"),
        (("requirements.txt", "pyproject.toml"), "held-unreadable", "cannot read pyproject.toml"),
        (("HEAD", "--fail-on", "driver"), "usage", "did you mean driver-floor?"),
        (("HEAD", "--json", "--output-format", "junit"), "contradictory-options", "--output-format junit"),
    ],
)
def test_incomparable_files_are_an_error(
    arguments: tuple[str, ...], code: str, says: str, git: Git, envsolve: Envsolve
) -> None:
    Path("conflict.txt").write_text("<<<<<<< a\nx==1\n=======\nx==2\n>>>>>>> b\n", encoding="utf-8")
    Path("pyproject.toml").write_text("[project]\nname = 'demo'\n", encoding="utf-8")
    Path("prose.txt").write_text("# words\nno requirement at all\n", encoding="utf-8")
    done = envsolve("diff", *arguments)
    assert done.code == 2
    assert f"error: {code}\n" in done.err
    assert says in done.err


def test_without_git_two_files_can_be_compared(git: Git, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert envsolve("diff", "requirements.txt", "requirements.txt").code == 0
    done = envsolve("diff", "HEAD", "requirements.txt")
    assert (done.code, "error: git-not-found" in done.err) == (3, True)


def test_a_lock_for_several_platforms_is_compared_on_each(envsolve: Envsolve) -> None:
    lock = str(_SNAPSHOTS / "tensorflow.conda-lock.yml")
    found = json.loads(envsolve("diff", lock, lock, "--json").out)["diffs"]
    assert [(it["platform"], it["after"]["driver_floor"]) for it in found] == [
        ("linux-64", "525.60.13"),
        ("win-64", "456.38"),
    ]
    done = envsolve(
        "diff",
        str(_SNAPSHOTS / "tensorflow.win-64.explicit.txt"),
        str(_SNAPSHOTS / "tensorflow.linux-64.explicit.txt"),
    )
    assert (done.code, "error: different-platforms" in done.err) == (2, True)


def test_locks_of_two_formats_can_be_compared(envsolve: Envsolve) -> None:
    pylock, requirements = (
        str(_SNAPSHOTS / name) for name in ("pylock.python-lock-rtx-3090.toml", "python-lock-rtx-3090.requirements.txt")
    )
    (found,) = json.loads(envsolve("diff", pylock, requirements, "--json").out)["diffs"]
    assert found["packages"] == []
    assert found["breaking"] == []
    assert found["before"]["compute_capabilities"] == found["after"]["compute_capabilities"] != []


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("--hash=sha256:" + "0" * 64, "--hash=sha256:" + "1" * 64, ["files"]),
        ("https://index.example.org/", "https://mirror.example.org/", ["source"]),
    ],
)
def test_a_package_with_other_files_or_another_origin_is_named(
    old: str, new: str, differs: list[str], envsolve: Envsolve, tmp_path: Path
) -> None:
    text = f"--index-url https://index.example.org/simple\nnumpy==2.2.0 --hash=sha256:{'0' * 64}\n"
    paths = [tmp_path / name for name in ("old.txt", "new.txt")]
    for path, changed in zip(paths, (text, text.replace(old, new)), strict=True):
        path.write_text(changed, encoding="utf-8")
    (found,) = json.loads(envsolve("diff", *map(str, paths), "--json").out)["diffs"]
    assert found["packages"] == [{"name": "numpy", "before": "2.2.0", "after": "2.2.0", "differs": differs}]
    assert f"    ~ numpy 2.2.0 (other {differs[0]})\n" in envsolve("diff", *map(str, paths)).out


@pytest.mark.thorough
@pytest.mark.parametrize("driver", ["", "banana"])
def test_an_invalid_recorded_driver_is_ignored(driver: str, envsolve: Envsolve, tmp_path: Path) -> None:
    lock = _SNAPSHOTS / "pylock.python-lock-rtx-3090.toml"
    found = json.loads(envsolve("diff", str(lock), str(lock), "--json").out)["diffs"][0]["after"]
    text, floor = lock.read_text(encoding="utf-8"), f'minimum_driver = "{found["driver_floor"]}"'
    assert text.count(floor) == 1
    other = tmp_path / "pylock.toml"
    other.write_text(text.replace(floor, f'minimum_driver = "{driver}"'), encoding="utf-8")
    done = envsolve("diff", str(lock), str(other), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["diffs"][0]["after"] == found


def test_packages_for_other_platforms_are_ignored(envsolve: Envsolve, tmp_path: Path) -> None:
    text = _CASES["a newer PyTorch in a uv.lock drops old GPUs"][0]["new"]
    runtime = text.replace("nvidia-cudnn-cu12", "nvidia-cuda-runtime-cu12").replace("9.10.2.21", "12.8.90")
    marker = "platform_machine == 'x86_64' and sys_platform == 'linux'"
    locked = runtime.replace('"nvidia-cuda-runtime-cu12" }', f'"nvidia-cuda-runtime-cu12", marker = "{marker}" }}')
    paths = [tmp_path / folder / "uv.lock" for folder in ("old", "new")]
    for path, version in zip(paths, ("2.8.0", "2.9.0"), strict=True):
        path.parent.mkdir()
        path.write_text(locked.replace("2.9.0", version), encoding="utf-8")
    (found,) = json.loads(envsolve("diff", *map(str, paths), "--platform", "osx-arm64", *_ALL, "--json").out)["diffs"]
    for side in (found["before"], found["after"]):
        assert [side[it] for it in ("driver_floor", "cuda", "cudnn", "compute_capabilities")] == [None, None, None, []]
        assert side["unknown"] == {}
    assert found["breaking"] == []
    (found,) = json.loads(envsolve("diff", *map(str, paths), *_ON_LINUX, "--json").out)["diffs"]
    assert [found["after"][it] for it in ("driver_floor", "cuda")] == ["525.60.13", "12.8"]


def test_the_recorded_drivers_of_two_locks_are_compared(envsolve: Envsolve, tmp_path: Path) -> None:
    text = (_SNAPSHOTS / "tensorflow.linux-64.explicit.txt").read_text(encoding="utf-8")
    assert "525.60.13" in text
    paths = [tmp_path / name for name in ("old.txt", "new.txt")]
    for path, changed in zip(paths, (text, text.replace("525.60.13", "570.26")), strict=True):
        path.write_text(changed, encoding="utf-8")
    done = envsolve("diff", *map(str, paths))
    assert "  driver floor: 525.60.13 -> 570.26\n" in done.out
    added = text.replace("\n@EXPLICIT", "\n@EXPLICIT\nhttps://conda.example.org/noarch/demo-1.0-0.conda#" + "0" * 32)
    paths[1].write_text(added.replace("525.60.13", "570.26"), encoding="utf-8")
    assert "unchanged: driver floor 525.60.13" in envsolve("diff", *map(str, paths)).out  # not what it was made for
