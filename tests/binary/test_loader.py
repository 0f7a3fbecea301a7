"""Which file a library comes from: each rule alone and combined, compared with the real loader."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from envsolve.binary.loader import Process
from envsolve.binary.lookup import Rule
from envsolve.binary.unreadable import Damage
from tests.binary.layouts import (
    ARM,
    I386,
    Lib,
    Make,
    lay_out,
    libraries,
    listed,
    made_by_gcc,
    make_tiny,
    real_loader,
    tiny_library,
)

LEAF = Lib()


class Case(NamedTuple):
    """Libraries, of which ``app/root.so`` is loaded, and where each library that it needs is found, by which rule."""

    files: dict[str, Lib | str | bytes]
    found: dict[str, tuple[str, Rule] | None]
    library_path: str | None = None
    shadowed: tuple[str, ...] = ()


CASES = {
    "DT_RPATH is searched before LD_LIBRARY_PATH": Case(
        {"app/root.so": Lib(("a.so",), rpath="{root}/own"), "own/a.so": LEAF, "other/a.so": LEAF},
        {"a.so": ("own/a.so", Rule.RPATH)},
        "{root}/other",
        ("other/a.so",),
    ),
    "LD_LIBRARY_PATH is searched before DT_RUNPATH": Case(
        {"app/root.so": Lib(("a.so",), runpath="{root}/own"), "own/a.so": LEAF, "other/a.so": LEAF},
        {"a.so": ("other/a.so", Rule.LIBRARY_PATH)},
        "{root}/other",
        ("own/a.so",),
    ),
    "DT_RPATH of what loaded the asker counts": Case(
        {"app/root.so": Lib(("a.so",), rpath="{root}/own"), "own/a.so": Lib(("b.so",)), "own/b.so": LEAF},
        {"a.so": ("own/a.so", Rule.RPATH), "b.so": ("own/b.so", Rule.RPATH)},
    ),
    "DT_RUNPATH of what loaded the asker does not count": Case(
        {"app/root.so": Lib(("a.so",), runpath="{root}/own"), "own/a.so": Lib(("b.so",)), "own/b.so": LEAF},
        {"a.so": ("own/a.so", Rule.RUNPATH), "b.so": None},
    ),
    "an asker with DT_RUNPATH does not use the DT_RPATH of others": Case(
        {
            "app/root.so": Lib(("a.so",), rpath="{root}/own"),
            "own/a.so": Lib(("b.so",), runpath="{root}/empty"),
            "own/b.so": LEAF,
        },
        {"a.so": ("own/a.so", Rule.RPATH), "b.so": None},
    ),
    "a DT_RUNPATH in the middle does not cut the chain of DT_RPATH": Case(
        {
            "app/root.so": Lib(("a.so",), rpath="{root}/own"),
            "own/a.so": Lib(("b.so",), runpath="{root}/deep"),
            "deep/b.so": Lib(("c.so",)),
            "own/c.so": LEAF,
        },
        {"b.so": ("deep/b.so", Rule.RUNPATH), "c.so": ("own/c.so", Rule.RPATH)},
    ),
    "the nearest DT_RPATH of the chain is searched first": Case(
        {
            "app/root.so": Lib(("a.so",), rpath="{root}/far"),
            "far/a.so": Lib(("b.so",), rpath="{root}/near"),
            "far/b.so": LEAF,
            "near/b.so": LEAF,
        },
        {"b.so": ("near/b.so", Rule.RPATH)},
        shadowed=("far/b.so",),
    ),
    "$ORIGIN is the directory of the file that says it": Case(
        {"app/root.so": Lib(("a.so",), runpath="$ORIGIN/../own"), "own/a.so": LEAF},
        {"a.so": ("app/../own/a.so", Rule.RUNPATH)},
    ),
    "$ORIGIN is where a link lies and not where it leads": Case(
        {
            "app/root.so": Lib(("a.so",), rpath="{root}/links"),
            "links/a.so": "../files/a.so.1",
            "files/a.so.1": Lib(("b.so",), runpath="${ORIGIN}"),
            "links/b.so": LEAF,
            "files/b.so": LEAF,
        },
        {"a.so": ("links/a.so", Rule.RPATH), "b.so": ("links/b.so", Rule.RUNPATH)},
    ),
    "$LIB and $PLATFORM are those of the loader": Case(
        {
            "app/root.so": Lib(("a.so", "b.so"), runpath="{root}/$LIB:{root}/$PLATFORM"),
            "{LIB}/a.so": LEAF,
            "{PLATFORM}/b.so": LEAF,
        },
        {"a.so": ("{LIB}/a.so", Rule.RUNPATH), "b.so": ("{PLATFORM}/b.so", Rule.RUNPATH)},
    ),
    "a longer word is no token": Case(
        {"app/root.so": Lib(("a.so",), runpath="{root}/$ORIGINAL"), "$ORIGINAL/a.so": LEAF},
        {"a.so": ("$ORIGINAL/a.so", Rule.RUNPATH)},
    ),
    "an empty entry is the current directory": Case(
        {"app/root.so": Lib(("a.so",), runpath="{root}/none:"), "here/a.so": LEAF},
        {"a.so": ("a.so", Rule.RUNPATH)},
    ),
    "an empty entry of LD_LIBRARY_PATH too, and a semicolon separates there": Case(
        {"app/root.so": Lib(("a.so", "b.so")), "here/a.so": LEAF, "other/b.so": LEAF},
        {"a.so": ("a.so", Rule.LIBRARY_PATH), "b.so": ("other/b.so", Rule.LIBRARY_PATH)},
        "{root}/none;;{root}/other",
    ),
    "an empty LD_LIBRARY_PATH is none": Case(
        {"app/root.so": Lib(("a.so",)), "here/a.so": LEAF}, {"a.so": None}, library_path=""
    ),
    "what is loaded by its soname is not searched": Case(
        {
            "app/root.so": Lib(("a.so", "b.so"), runpath="{root}/own"),
            "own/a.so": Lib(soname="b.so"),
            "own/b.so": LEAF,
        },
        {"a.so": ("own/a.so", Rule.RUNPATH), "b.so": ("own/a.so", Rule.LOADED)},
    ),
    "what was asked for by a file name is not searched again": Case(
        {
            "app/root.so": Lib(("a.so", "b.so"), runpath="{root}/own"),
            "own/a.so": Lib(soname="z.so"),
            "own/b.so": Lib(("a.so",), runpath="{root}/deep"),
            "deep/a.so": LEAF,
        },
        {"a.so": ("own/a.so", Rule.RUNPATH)},
    ),
    "two names of one file are one library": Case(
        {
            "app/root.so": Lib(("a.so", "b.so"), runpath="{root}/own"),
            "own/a.so": Lib(("c.so",), runpath="$ORIGIN"),
            "own/b.so": "a.so",
            "own/c.so": LEAF,
        },
        {"b.so": ("own/a.so", Rule.RUNPATH)},
    ),
    "what is needed is loaded breadth first": Case(
        {
            "app/root.so": Lib(("a.so", "b.so"), runpath="{root}/own"),
            "own/a.so": Lib(("c.so",), runpath="{root}/first"),
            "own/b.so": Lib(soname="c.so"),
            "first/c.so": LEAF,
        },
        {"b.so": ("own/b.so", Rule.RUNPATH), "c.so": ("own/b.so", Rule.LOADED)},
    ),
    "libraries for other machines are passed over": Case(
        {
            "app/root.so": Lib(("a.so",), runpath="{root}/i386:{root}/arm:{root}/own"),
            "i386/a.so": I386,
            "arm/a.so": ARM,
            "own/a.so": LEAF,
        },
        {"a.so": ("own/a.so", Rule.RUNPATH)},
    ),
    "a link that leads to nothing is passed over": Case(
        {
            "app/root.so": Lib(("a.so",), runpath="{root}/own:{root}/other"),
            "own/a.so": "a.so.1",
            "other/a.so": LEAF,
        },
        {"a.so": ("other/a.so", Rule.RUNPATH)},
    ),
    "links that lead in a circle end the search of their path, and of no other": Case(
        {
            "app/root.so": Lib(("a.so",), runpath="{root}/own"),
            "circle/a.so": "a.so",
            "other/a.so": LEAF,
            "own/a.so": LEAF,
        },
        {"a.so": ("own/a.so", Rule.RUNPATH)},
        "{root}/circle:{root}/other",
    ),
    "files for this processor come first in each directory": Case(
        {
            "app/root.so": Lib(("a.so", "b.so"), runpath="{root}/own:{root}/other"),
            "own/glibc-hwcaps/{HWCAPS}/a.so": LEAF,
            "own/a.so": LEAF,
            "other/glibc-hwcaps/{HWCAPS}/b.so": LEAF,
            "own/b.so": LEAF,
        },
        {"a.so": ("own/glibc-hwcaps/{HWCAPS}/a.so", Rule.RUNPATH), "b.so": ("own/b.so", Rule.RUNPATH)},
        shadowed=("own/a.so", "other/glibc-hwcaps/{HWCAPS}/b.so"),
    ),
    "a path is taken as it is": Case(
        {"app/root.so": Lib(("{root}/own/a.so",)), "own/a.so": LEAF, "other/a.so": LEAF},
        {"{root}/own/a.so": ("own/a.so", Rule.PATH)},
        "{root}/other",
    ),
    "a library of the system is found by the cache": Case(
        {"app/root.so": Lib(("libm.so.6",))}, {"libm.so.6": ("{CACHED}", Rule.CACHE)}
    ),
    "DT_RUNPATH is searched before the cache": Case(
        {"app/root.so": Lib(("libm.so.6",), runpath="{root}/own"), "own/libm.so.6": LEAF},
        {"libm.so.6": ("own/libm.so.6", Rule.RUNPATH)},
        shadowed=("{CACHED}",),
    ),
    "with -z nodefaultlib neither cache nor default directories count": Case(
        {"app/root.so": Lib(("libm.so.6",), no_default_directories=True)}, {"libm.so.6": None}
    ),
}


@pytest.fixture(scope="module")
def gcc(tmp_path_factory: pytest.TempPathFactory) -> Make:
    return made_by_gcc(tmp_path_factory.mktemp("stubs"))


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Make:
    chosen: Make = make_tiny if request.param == "tiny" else request.getfixturevalue("gcc")
    return chosen


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "case"),
    [
        pytest.param(
            maker, case, id=f"{maker} {name}", marks=[pytest.mark.thorough] if maker == "gcc" and place % 4 else []
        )
        for place, (name, case) in enumerate(CASES.items())
        for maker in ("gcc", "tiny")
    ],
    indirect=["make"],
)
def test_the_chosen_file_is_the_one_of_the_real_loader(case: Case, make: Make, tmp_path: Path) -> None:
    words = _words(tmp_path, case)
    lay_out(tmp_path, {_filled(name, words): lib for name, lib in case.files.items()}, make)
    library_path = None if case.library_path is None else _filled(case.library_path, words)
    here, root = tmp_path / "here", tmp_path / "app/root.so"
    here.mkdir(exist_ok=True)
    answers = Process(libraries(), library_path=library_path, directory=here).start(root)
    first = {answer.name: answer for answer in reversed(answers)}
    real = dict(listed(root, here, library_path))
    for name, wanted in case.found.items():
        answer = first[_filled(name, words)]
        path, rule = (None, None) if wanted is None else (_placed(tmp_path, wanted[0], words), wanted[1])
        assert (answer.path, answer.rule) == (path, rule)
        assert rule is Rule.LOADED or real.get(answer.name, path) == path
    shadowed = {other for answer in answers for other in answer.shadowed}
    assert shadowed == {_placed(tmp_path, name, words) for name in case.shadowed}
    assert {answer.path for answer in answers} <= {*real.values(), str(real_loader().interpreter)}


def test_a_missing_library_is_reported_with_the_searched_paths(tmp_path: Path) -> None:
    files = {"app/root.so": Lib(("a.so",), rpath="{root}/far"), "far/a.so": Lib(("gone.so",), rpath="$ORIGIN/near")}
    lay_out(tmp_path, files, make_tiny)
    process = Process(libraries(), library_path="/nowhere", directory=tmp_path)
    (answer,) = [it for it in process.start(tmp_path / "app/root.so") if it.path is None]
    assert answer.requester == f"{tmp_path}/far/a.so"
    assert answer.looked_in[:4] == (
        (Rule.RPATH, f"{tmp_path}/far/near/"),
        (Rule.RPATH, f"{tmp_path}/far/"),
        (Rule.LIBRARY_PATH, "/nowhere/"),
        (Rule.CACHE, "/etc/ld.so.cache"),
    )
    assert [directory for rule, directory in answer.looked_in if rule is Rule.DEFAULT] == [*real_loader().directories]


@pytest.mark.parametrize(
    ("content", "damage", "message"),
    [
        (b"", Damage.EMPTY, "file too short"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n" * 2, Damage.NO_LIBRARY, "invalid ELF header"),
        (tiny_library(LEAF)[:40], Damage.TRUNCATED, "file too short"),
    ],
    ids=["empty", "text", "half a header"],
)
def test_a_file_that_is_no_library_ends_the_search(
    content: bytes, damage: Damage, message: str, tmp_path: Path
) -> None:
    files: dict[str, Lib | str | bytes] = {
        "app/root.so": Lib(("a.so",), runpath="{root}/own:{root}/other"),
        "own/a.so": content,
        "other/a.so": LEAF,
    }
    lay_out(tmp_path, files, make_tiny)
    (answer,) = Process(libraries(), directory=tmp_path).start(tmp_path / "app/root.so")
    assert (answer.path, answer.rule) == (None, Rule.RUNPATH)
    assert answer.failure is not None
    assert answer.failure.damage is damage
    command = [str(real_loader().interpreter), "--list", str(tmp_path / "app/root.so")]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert f"own/a.so: {message}" in done.stderr


def _words(root: Path, case: Case) -> dict[str, str]:
    """The values of the placeholders in a case on this machine."""
    system = real_loader()
    if not system.hwcaps and "{HWCAPS}" in str(case):
        pytest.skip("this loader knows no glibc-hwcaps")
    hwcaps = system.hwcaps[-1] if system.hwcaps else ""
    cached = str(system.cached.get("libm.so.6", ""))
    known = {"{LIB}": system.lib, "{PLATFORM}": system.platform, "{HWCAPS}": hwcaps, "{CACHED}": cached}
    return {**known, "{root}": str(root)}


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _placed(root: Path, text: str, words: dict[str, str]) -> str:
    """A file of a layout as the loader writes it; a bare name is a file in the current directory."""
    return text if "/" not in text and "{" not in text else str(root / _filled(text, words))
