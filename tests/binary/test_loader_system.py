"""The settings built into a loader: as it reports them, and as distributions build older ones."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from envsolve.binary.elf import Abi
from envsolve.binary.loader_system import _diagnostics, _system, loader_system
from tests.binary.layouts import ABI, real_loader


def test_search_directories_are_those_in_the_help_of_the_loader() -> None:
    system = real_loader()
    done = subprocess.run([str(system.interpreter), "--help"], env={}, capture_output=True, text=True, check=True)
    searched = re.findall(r"^  (\S+) \(system search path\)$", done.stdout, re.MULTILINE)
    _, _, after = done.stdout.partition("Subdirectories of glibc-hwcaps")
    preferred = re.findall(r"^  (\S+) \(supported, searched\)$", after.partition("\n\n")[0], re.MULTILINE)
    if not searched:
        pytest.skip("this loader is older than 2.33 and does not say")
    assert [directory.rstrip("/") for directory in system.directories] == searched
    assert list(system.hwcaps) == preferred


def test_the_c_library_is_where_the_loader_looks_for_it() -> None:
    system = real_loader()
    places = [Path(directory, "libc.so.6") for directory in system.directories]
    assert system.cached["libc.so.6"].resolve() in [place.resolve() for place in places]


def test_a_loader_without_diagnostics_has_the_usual_directories() -> None:
    diagnostics = _diagnostics("/bin/false")
    assert diagnostics == {}
    system = _system(ABI, str(real_loader().interpreter), ["/lib64", "/usr/lib64/"], diagnostics, "x86_64")
    assert system.directories == ("/lib64/", "/usr/lib64/")
    assert (system.hwcaps, system.platform, str(system.cache)) == ((), "x86_64", "/etc/ld.so.cache")
    assert _diagnostics("/no/such/loader") == {}


def test_a_machine_without_a_loader_for_an_abi_has_no_system() -> None:
    assert loader_system(Abi("EM_S390", 64)) is None
