"""The cache of the loader, as the real ldconfig writes it and in its older format."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from envsolve.binary.loader_cache import FLAGS, CacheEntry, chosen_files, read_cache
from tests.binary.layouts import ABI, Lib, lay_out, make_tiny, real_loader

FLAG = FLAGS[ABI.machine, ABI.bits]


@pytest.fixture
def ldconfig() -> str:
    real_loader()
    program = shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if program is None:
        pytest.skip("needs ldconfig")
    return program


def test_the_cache_of_this_machine_has_the_entries_that_ldconfig_prints(ldconfig: str) -> None:
    done = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True)
    printed = re.findall(r"^\t(\S+) \(libc6,x86-64\S*?[^)]*\) => (.+)$", done.stdout, re.MULTILINE)
    cached = [(it.name, str(it.path)) for it in read_cache(Path("/etc/ld.so.cache")) if it.flags == FLAG]
    assert printed
    assert sorted(cached) == sorted(printed)


@pytest.mark.thorough
def test_the_entry_of_ldconfig_for_this_processor_is_chosen(ldconfig: str, tmp_path: Path) -> None:
    hwcaps = real_loader().hwcaps
    if not hwcaps:
        pytest.skip("this loader knows no glibc-hwcaps")
    best = f"lib/glibc-hwcaps/{hwcaps[-1]}"
    soname = Lib(soname="liba.so.1")
    lay_out(tmp_path, {"lib/liba.so.1": soname, f"{best}/liba.so.1": soname, "lib/libb.so.1": Lib()}, make_tiny)
    cache, configuration = tmp_path / "ld.so.cache", tmp_path / "ld.so.conf"
    configuration.write_text(f"{tmp_path}/lib\n", encoding="utf-8")
    subprocess.run([ldconfig, "-X", "-C", str(cache), "-f", str(configuration)], check=True, capture_output=True)
    entries = [it for it in read_cache(cache) if it.path.is_relative_to(tmp_path)]
    plain = tmp_path / "lib/liba.so.1"
    assert {(it.path, it.hwcaps) for it in entries if it.name == "liba.so.1"} == {
        (plain, None),
        (tmp_path / best / "liba.so.1", hwcaps[-1]),
    }
    assert chosen_files(entries, FLAG, hwcaps)["liba.so.1"] == tmp_path / best / "liba.so.1"
    assert chosen_files(entries, FLAG, ())["liba.so.1"] == plain


def test_entries_for_other_machines_and_legacy_subdirectories_are_skipped() -> None:
    entries = (
        CacheEntry("liba.so", Path("/lib32/liba.so"), 0x3, None),
        CacheEntry("liba.so", Path("/lib/tls/liba.so"), FLAG, "legacy 0x8000000000000000"),
        CacheEntry("liba.so", Path("/lib/liba.so"), FLAG, None),
        CacheEntry("liba.so", Path("/usr/lib/liba.so"), FLAG, None),
    )
    assert chosen_files(entries, FLAG, ("x86-64-v3",)) == {"liba.so": Path("/lib/liba.so")}


def test_a_cache_after_a_table_of_the_old_format_is_read(tmp_path: Path) -> None:
    old = b"ld.so-1.7.0\0" + struct.pack("<I", 1) + bytes(12)
    strings = b"liba.so\0/lib/liba.so\0"
    start = 48 + 24
    table = struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", 1, len(strings), 0, 0)
    table += struct.pack("<iIIIQ", FLAG, start, start + 8, 0, 0) + strings
    (tmp_path / "cache").write_bytes(old.ljust((len(old) + 7) // 8 * 8, b"\0") + table)
    assert read_cache(tmp_path / "cache") == (CacheEntry("liba.so", Path("/lib/liba.so"), FLAG, None),)


@pytest.mark.parametrize("content", [b"", b"text", b"ld.so-1.7.0\0", b"glibc-ld.so.cache1.1" + b"\xff" * 90])
def test_a_cache_of_another_format_is_ignored(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(content)
    assert read_cache(tmp_path / "cache") == ()
    assert read_cache(tmp_path / "missing") == ()
