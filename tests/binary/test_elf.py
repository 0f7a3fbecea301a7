"""What libraries state about themselves, and every way in which a file is not a library."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.binary.elf import Abi, read_library, read_needed_versions
from envsolve.binary.library_code import read_device_code
from envsolve.binary.unreadable import Damage, UnreadableLibraryError
from tests.binary.layouts import ABI, ARM, I386, Lib, made_by_gcc, real_loader, tiny_library
from tests.laws import examples

WHOLE = Lib(("libm.so.6", "liba.so.1"), runpath="$ORIGIN/../a:/b", soname="libx.so.2")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of gcc with all its sections."""
    path = tmp_path_factory.mktemp("compiled") / "libx.so"
    made_by_gcc(path.parent)(path, WHOLE)
    return path


def test_a_compiled_library_lists_its_name_and_needs(compiled: Path) -> None:
    library = read_library(compiled)
    assert (library.abi, library.soname, library.needed) == (ABI, "libx.so.2", ("libm.so.6", "liba.so.1"))
    assert (library.rpath, library.runpath) == (None, "$ORIGIN/../a:/b")
    assert library.size == compiled.stat().st_size == library.whole_size


def test_a_library_without_sections_is_read_by_its_segments(tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(tiny_library(WHOLE._replace(rpath="/old", runpath=None, no_default_directories=True)))
    library = read_library(path, abi=ABI)
    assert (library.soname, library.needed, library.rpath) == ("libx.so.2", WHOLE.needed, "/old")
    assert library.no_default_directories


def test_needed_symbol_versions_are_those_of_the_library() -> None:
    system = real_loader()
    libm = system.cached["libm.so.6"]
    found = read_needed_versions(libm)
    assert ("libc.so.6", "GLIBC_2.2.5") in {(it.library, it.version) for it in found}
    assert {it.library for it in found} <= set(read_library(libm).needed)


@pytest.mark.parametrize(("lib", "machine"), [(I386, "EM_386, 32 bit"), (ARM, "EM_AARCH64, 64 bit")])
def test_a_library_for_another_machine_is_recognised(lib: Lib, machine: str, tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(tiny_library(lib))
    assert read_library(path).abi == lib.abi
    with pytest.raises(UnreadableLibraryError, match=f"is for {machine}, not for EM_X86_64, 64 bit") as refused:
        read_library(path, abi=Abi("EM_X86_64", 64))
    assert refused.value.damage is Damage.OTHER_MACHINE


@pytest.mark.parametrize(
    ("content", "damage"),
    [
        (b"", Damage.EMPTY),
        (b"<html>not found</html>", Damage.NO_LIBRARY),
        (b"MZ" + bytes(200), Damage.NO_LIBRARY),
        (b"\x7fELF", Damage.TRUNCATED),
        (b"\x7fELF\x07" + bytes(100), Damage.NO_LIBRARY),
        (b"\x7fELF\x02\x01\x01" + bytes(57) + b"\xff" * 400, Damage.NO_LIBRARY),
    ],
)
def test_a_file_that_is_no_library_is_reported(content: bytes, damage: Damage, tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(content)
    with pytest.raises(UnreadableLibraryError) as refused:
        read_library(path)
    assert refused.value.damage is damage


def test_a_broken_link_is_reported_with_its_target(tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.symlink_to("libx.so.2.7")
    with pytest.raises(UnreadableLibraryError, match=r"is a link to libx\.so\.2\.7, which is not there") as refused:
        read_library(path)
    assert refused.value.damage is Damage.BROKEN_LINK


def test_a_directory_in_place_of_a_library_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLibraryError) as refused:
        read_library(tmp_path)
    assert refused.value.damage is Damage.UNREADABLE


@settings(max_examples=examples(80), deadline=None)
@given(share=st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_library_truncated_anywhere_is_recognised(compiled: Path, share: float) -> None:
    content = compiled.read_bytes()
    cut = compiled.with_name(f"cut-{os.getpid()}.so")
    cut.write_bytes(content[: max(1, int(share * len(content)))])
    with pytest.raises(UnreadableLibraryError) as refused:
        read_library(cut)
    assert refused.value.damage is Damage.TRUNCATED


@pytest.mark.thorough
@settings(max_examples=examples(200), deadline=None)
@given(changes=st.dictionaries(st.integers(0, 700), st.integers(0, 255), min_size=1, max_size=6))
def test_a_corrupted_library_is_read_or_refused(compiled: Path, changes: dict[int, int]) -> None:
    content = bytearray(compiled.read_bytes())
    for place, value in changes.items():
        content[place] = value
    changed = compiled.with_name(f"changed-{os.getpid()}.so")
    changed.write_bytes(content)
    with suppress(UnreadableLibraryError):
        read_library(changed)
    with suppress(UnreadableLibraryError):
        read_needed_versions(changed)
    with suppress(UnreadableLibraryError):
        read_device_code(changed)


def test_a_truncated_library_still_lists_its_needs_if_they_are_readable(compiled: Path, tmp_path: Path) -> None:
    """Like the loader of glibc, which maps the existing part; the process dies where it reads beyond."""
    path = tmp_path / "libx.so"
    path.write_bytes(compiled.read_bytes()[:-200])
    message = f"ends after {path.stat().st_size} bytes, but its tables require {compiled.stat().st_size}"
    with pytest.raises(UnreadableLibraryError, match=message):
        read_library(path)
    library = read_library(path, truncated=True)
    assert library.is_truncated
    assert library.needed == WHOLE.needed
    listed = subprocess.run([str(real_loader().interpreter), "--list", str(path)], capture_output=True, check=False)
    assert re.search(rb"libm\.so\.6 => ", listed.stdout) or b"liba.so.1" in listed.stderr
