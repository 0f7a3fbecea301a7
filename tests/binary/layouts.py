"""Libraries laid out in directories, as a case describes them, and the result of the real loader.

Two makers: gcc, and :func:`tiny_library`, which writes the few hundred bytes that the loader of glibc needs and takes a
thousandth of the time. In paths ``{root}`` stands for the directory that all is laid out under.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from envsolve.binary.elf import Abi
from envsolve.binary.loader import Libraries
from envsolve.binary.loader_system import LoaderSystem, loader_system

ABI = Abi("EM_X86_64", 64)
MACHINES = {"EM_386": 3, "EM_X86_64": 62, "EM_AARCH64": 183}
_LINE = re.compile(r"\t(\S+)(?: => (.+?))?(?: \(0x[0-9a-f]+\))?")


class Lib(NamedTuple):
    """One library of a layout."""

    needed: tuple[str, ...] = ()
    rpath: str | None = None
    runpath: str | None = None
    soname: str | None = None
    no_default_directories: bool = False
    abi: Abi = ABI


I386 = Lib(abi=Abi("EM_386", 32))
ARM = Lib(abi=Abi("EM_AARCH64", 64))
Make = Callable[[Path, Lib], None]


def tiny_library(lib: Lib) -> bytes:
    """A library without code: a header, one loadable segment of everything, and the dynamic segment within."""
    names = [*lib.needed, *(name for name in (lib.soname, lib.rpath, lib.runpath) if name is not None)]
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)

    def at(name: str) -> int:
        return strings.index(b"\0" + name.encode() + b"\0") + 1

    wide = lib.abi.bits == 64
    head, program, entry = (64, 56, "<qQ") if wide else (52, 32, "<iI")
    place = head + 2 * program
    tags = [(1, at(name)) for name in lib.needed]
    tags += [
        (tag, at(name)) for tag, name in ((14, lib.soname), (15, lib.rpath), (29, lib.runpath)) if name is not None
    ]
    tags += [(0x6FFFFFFB, 0x800)] if lib.no_default_directories else []
    count = len(tags) + 6
    table = place + count * struct.calcsize(entry)
    symbols = table + len(strings) + -len(strings) % 8
    tags += [(5, table), (6, symbols), (10, len(strings)), (11, 24 if wide else 16), (4, symbols + 24), (0, 0)]
    dynamic = b"".join(struct.pack(entry, *tag) for tag in tags)
    content = dynamic + strings.ljust(symbols - table, b"\0") + bytes(24) + struct.pack("<4I", 1, 1, 0, 0)
    ident = struct.pack("<4s5B7x", b"\x7fELF", 2 if wide else 1, 1, 1, 0, 0)
    rest = (3, MACHINES[lib.abi.machine], 1, 0, head, 0, 0, head, program, 2, 0, 0, 0)
    header = ident + struct.pack("<2HI3QI6H" if wide else "<2HI3II6H", *rest)
    segments = ((1, 0, place + len(content), 0x1000), (2, place, len(dynamic), 8))
    for kind, offset, size, align in segments:
        if wide:
            header += struct.pack("<2I6Q", kind, 6, offset, offset, offset, size, size, align)
        else:
            header += struct.pack("<8I", kind, offset, offset, offset, size, size, 6, align)
    return header + content


def make_tiny(path: Path, lib: Lib) -> None:
    """Write a library without code."""
    path.write_bytes(tiny_library(lib))


def made_by_gcc(stubs: Path) -> Make:
    """A maker that compiles; ``stubs`` has empty libraries to link against. Skips the test without gcc."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")

    def compiled(path: Path, *options: str) -> None:
        command = [compiler, "-shared", "-nostdlib", "-fPIC", "-x", "c", "/dev/null", "-x", "none", "-o", str(path)]
        subprocess.run([*command, *options], check=True)

    def make(path: Path, lib: Lib) -> None:
        options = ["-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"]
        for name in lib.needed:
            stub = stubs / name.replace("/", "_")
            if not stub.exists():
                compiled(stub, f"-Wl,-soname,{name}")
            options.append(str(stub))
        if lib.soname is not None:
            options.append(f"-Wl,-soname,{lib.soname}")
        if lib.rpath is not None:
            options += ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{lib.rpath}"]
        if lib.runpath is not None:
            options += ["-Wl,--enable-new-dtags", f"-Wl,-rpath,{lib.runpath}"]
        if lib.no_default_directories:
            options.append("-Wl,-z,nodefaultlib")
        compiled(path, *options)

    return make


def lay_out(root: Path, files: Mapping[str, Lib | str | bytes], make: Make) -> None:
    """Make every library, without gcc for other machines; text is the target of a link, bytes are a whole file."""
    for name, what in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Lib):
            search_paths = [
                None if text is None else text.replace("{root}", str(root)) for text in (what.rpath, what.runpath)
            ]
            needed = tuple(name.replace("{root}", str(root)) for name in what.needed)
            maker = make if what.abi == ABI else make_tiny
            maker(path, what._replace(needed=needed, rpath=search_paths[0], runpath=search_paths[1]))
        elif isinstance(what, bytes):
            path.write_bytes(what)
        else:
            path.symlink_to(what)


@cache
def real_loader() -> LoaderSystem:
    """The loader of this machine; skips the test if it is not that of glibc on x86-64."""
    system = loader_system(ABI)
    if system is None or os.uname().machine != "x86_64":
        pytest.skip("needs the loader of glibc on x86-64")
    return system


def libraries() -> Libraries:
    """An empty cache of read libraries, for the loader of this machine."""
    return Libraries(real_loader())


def environ(library_path: str | None) -> dict[str, str]:
    """The environment of a child process: LD_LIBRARY_PATH and nothing else."""
    return {} if library_path is None else {"LD_LIBRARY_PATH": library_path}


def listed(root: Path, directory: Path, library_path: str | None = None) -> list[tuple[str, str | None]]:
    """The files that the real loader lists for ``root``, by name; None for names that it does not find.

    This is what ``ld.so --list`` prints, which however ends at the first library that is missing; ldd's way goes on.
    """
    command = [str(real_loader().interpreter), str(root)]
    variables = environ(library_path) | {"LD_TRACE_LOADED_OBJECTS": "1"}
    done = subprocess.run(command, env=variables, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 127), done.stderr
    found = (match for match in map(_LINE.fullmatch, done.stdout.splitlines()) if match is not None)
    lines = [(match[1], match[2]) for match in found if not match[1].startswith(("linux-vdso", "statically"))]
    return [(name, None if file == "not found" else file or name) for name, file in lines]
