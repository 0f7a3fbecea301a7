"""dlopen from a library, in a real process and in the simulated one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from envsolve.binary.loader import Process
from envsolve.binary.lookup import Rule
from tests.binary.layouts import Lib, environ, lay_out, libraries, make_tiny, real_loader

PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

int main(int count, char **words) {
    for (int place = 1; place + 1 < count; place += 2) {
        struct link_map *map;
        void *caller = dlopen(words[place], RTLD_NOW);
        void *(*ask)(const char *) = caller ? (void *(*)(const char *))dlsym(caller, "ask") : 0;
        void *found = ask ? ask(words[place + 1]) : 0;
        if (found && dlinfo(found, RTLD_DI_LINKMAP, &map) == 0)
            printf("%s\\n", map->l_name);
        else
            printf("none\\n");
    }
    return 0;
}
"""
LIBRARY = "#include <dlfcn.h>\nvoid *ask(const char *name) { return dlopen(name, RTLD_NOW); }\n"


class Case(NamedTuple):
    """The options of the program and of ``lib/caller.so``, the layout, and where each name leads."""

    files: dict[str, Lib | str | bytes]
    opened: dict[str, tuple[str, Rule] | None]
    program: tuple[str, ...] = ()
    caller: tuple[str, ...] = ()
    library_path: str | None = None


OLD, NEW = "-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"
LEAF = Lib()
CASES = {
    "the DT_RUNPATH of the library that asks counts": Case(
        {"own/a.so": LEAF}, {"a.so": ("lib/../own/a.so", Rule.RUNPATH)}, caller=(NEW, "-Wl,-rpath,$ORIGIN/../own")
    ),
    "LD_LIBRARY_PATH comes before it": Case(
        {"own/a.so": LEAF, "other/a.so": LEAF},
        {"a.so": ("other/a.so", Rule.LIBRARY_PATH)},
        caller=(NEW, "-Wl,-rpath,{root}/own"),
        library_path="{root}/other",
    ),
    "the DT_RPATH of the library that asks comes before LD_LIBRARY_PATH": Case(
        {"own/a.so": LEAF, "other/a.so": LEAF},
        {"a.so": ("own/a.so", Rule.RPATH)},
        caller=(OLD, "-Wl,-rpath,{root}/own"),
        library_path="{root}/other",
    ),
    "the DT_RPATH of the program counts for every library without DT_RUNPATH": Case(
        {"own/a.so": Lib(("b.so",)), "own/b.so": LEAF},
        {"a.so": ("own/a.so", Rule.RPATH)},
        program=(OLD, "-Wl,-rpath,{root}/own"),
    ),
    "and not for one that has DT_RUNPATH": Case(
        {"own/a.so": LEAF},
        {"a.so": None},
        program=(OLD, "-Wl,-rpath,{root}/own"),
        caller=(NEW, "-Wl,-rpath,{root}/none"),
    ),
    "the DT_RUNPATH of the program does not count": Case(
        {"own/a.so": LEAF}, {"a.so": None}, program=(NEW, "-Wl,-rpath,{root}/own")
    ),
    "what was opened before is found by its soname": Case(
        {"own/a.so.1.2": Lib(soname="a.so")},
        {"{root}/own/a.so.1.2": ("own/a.so.1.2", Rule.PATH), "a.so": ("own/a.so.1.2", Rule.LOADED)},
    ),
    "what could not be loaded leaves nothing behind": Case(
        {"own/a.so": Lib(("b.so", "gone.so")), "own/b.so": LEAF},
        {"{root}/own/a.so": None, "b.so": None},
        caller=(NEW, "-Wl,-rpath,{root}/none"),
    ),
    "it needs what its own DT_RPATH leads to": Case(
        {"own/a.so": Lib(("b.so",), rpath="$ORIGIN/deep"), "own/deep/b.so": LEAF},
        {"{root}/own/a.so": ("own/a.so", Rule.PATH), "b.so": ("own/deep/b.so", Rule.LOADED)},
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_dlopen_from_a_library_takes_the_file_that_the_real_one_takes(case: Case, tmp_path: Path) -> None:
    real_loader()
    root = str(tmp_path)
    program, caller = tmp_path / "program", tmp_path / "lib/caller.so"
    caller.parent.mkdir()
    _compile(PROGRAM, program, *(it.replace("{root}", root) for it in case.program))
    _compile(LIBRARY, caller, "-shared", "-fPIC", *(it.replace("{root}", root) for it in case.caller))
    lay_out(tmp_path, case.files, make_tiny)
    library_path = None if case.library_path is None else case.library_path.replace("{root}", root)
    names = [name.replace("{root}", root) for name in case.opened]
    words = [word for name in names for word in (str(caller), name)]
    done = subprocess.run([str(program), *words], env=environ(library_path), capture_output=True, text=True, check=True)
    process = Process(libraries(), library_path=library_path, directory=tmp_path)
    process.start(program)
    process.open(str(caller))
    found = []
    for name, wanted in zip(names, case.opened.values(), strict=True):
        answers = process.open(name, str(caller))
        loaded = all(it.path is not None for it in answers)
        found.append(answers[0].path if loaded else "none")
        expected = None if wanted is None else (f"{root}/{wanted[0]}", wanted[1])
        assert ((answers[0].path, answers[0].rule) if loaded else None) == expected
    assert found == done.stdout.splitlines()


def _compile(source: str, path: Path, *options: str) -> None:
    command = ["gcc", "-O0", "-x", "c", "-", "-x", "none", "-o", str(path), *options, "-ldl"]
    try:
        subprocess.run(command, input=source, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("needs gcc")
