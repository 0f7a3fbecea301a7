"""What DLLs need, and where Windows finds it when Python loads them."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.binary.dll import read_dll
from envsolve.binary.dll_search import DllLookup, DllRule, DllSearch
from envsolve.binary.library_code import read_device_code
from envsolve.binary.unreadable import Damage, UnreadableLibraryError
from tests.binary.tiny_dll import tiny_dll
from tests.laws import examples
from tests.scripts.fat_binary import fat_binary

WHOLE = tiny_dll(("KERNEL32.dll", "a.dll"), ("late.dll",), sections={".nv_fatb": fat_binary((80,), (90,))})
CASES: dict[str, tuple[dict[str, bytes], str | None, DllRule | None]] = {
    "beside the DLL that is loaded, first": (
        {"package/b.dll": tiny_dll(), "python/b.dll": tiny_dll(), "added/b.dll": tiny_dll()},
        "package/b.dll",
        DllRule.DLL_DIRECTORY,
    ),
    "beside python.exe": (
        {"python/b.dll": tiny_dll(), "added/b.dll": tiny_dll()},
        "python/b.dll",
        DllRule.PROGRAM_DIRECTORY,
    ),
    "where os.add_dll_directory leads": (
        {"added/b.dll": tiny_dll(), "system/b.dll": tiny_dll()},
        "added/b.dll",
        DllRule.ADDED,
    ),
    "in System32": ({"system/b.dll": tiny_dll(), "path/b.dll": tiny_dll()}, "system/b.dll", DllRule.SYSTEM),
    "whatever the case of its name": ({"added/B.DLL": tiny_dll()}, "added/B.DLL", DllRule.ADDED),
    "and not in PATH": ({"path/b.dll": tiny_dll()}, None, None),
}


def _search(root: Path, files: dict[str, bytes]) -> DllSearch:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    added, on_path = [root / "added", root / "more"], [root / "path"]
    return DllSearch(program=root / "python", system=root / "system", added=added, path=on_path)


def _by_name(answers: list[DllLookup]) -> dict[str, DllLookup]:
    return {answer.name: answer for answer in answers}


def test_imports_and_delayed_imports_are_read_separately(tmp_path: Path) -> None:
    path = tmp_path / "x.dll"
    path.write_bytes(tiny_dll(("KERNEL32.dll", "cudart64_12.dll"), ("cublas64_12.dll",)))
    dll = read_dll(path)
    assert dll.machine == "x86-64"
    assert (dll.imports, dll.delayed) == (("KERNEL32.dll", "cudart64_12.dll"), ("cublas64_12.dll",))


@pytest.mark.parametrize(
    ("content", "damage"),
    [
        (b"", Damage.EMPTY),
        (b"text", Damage.NO_LIBRARY),
        (b"<html>" * 50, Damage.NO_LIBRARY),
        (tiny_dll(("a.dll",))[:-100], Damage.TRUNCATED),
        (tiny_dll(("a.dll",), sections={".nv_fatb": bytes(4000)})[:-2000], Damage.TRUNCATED),
    ],
)
def test_a_file_that_is_no_dll_is_reported(content: bytes, damage: Damage, tmp_path: Path) -> None:
    path = tmp_path / "x.dll"
    path.write_bytes(content)
    with pytest.raises(UnreadableLibraryError) as refused:
        read_dll(path)
    assert refused.value.damage is damage


@pytest.mark.thorough
@settings(max_examples=examples(60), deadline=None)
@given(changes=st.dictionaries(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), min_size=1, max_size=6))
def test_a_corrupted_dll_is_read_or_refused(changes: dict[int, int]) -> None:
    content = bytearray(WHOLE)
    for place, value in changes.items():
        content[place] = value
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "x.dll")
        path.write_bytes(content)
        with suppress(UnreadableLibraryError):
            read_dll(path)
        with suppress(UnreadableLibraryError):
            read_device_code(path)


@pytest.mark.thorough
@pytest.mark.parametrize(("files", "wanted", "rule"), CASES.values(), ids=CASES)
def test_a_dll_is_found(files: dict[str, bytes], wanted: str | None, rule: DllRule | None, tmp_path: Path) -> None:
    search = _search(tmp_path, {"package/a.pyd": tiny_dll(("b.dll",)), **files})
    (answer,) = search.open(tmp_path / "package/a.pyd")
    assert (answer.path, answer.rule) == (None if wanted is None else tmp_path / wanted, rule)
    assert answer.on_path == (() if wanted else (tmp_path / "path/b.dll",))


@pytest.mark.thorough
def test_the_search_for_a_dll_includes_the_directory_of_the_dll_that_needs_it(tmp_path: Path) -> None:
    """All libraries of one call use the directory of the DLL that the call names, not of those in between."""
    files = {
        "package/a.pyd": tiny_dll(("b.dll",)),
        "added/b.dll": tiny_dll(("c.dll", "d.dll")),
        "added/c.dll": tiny_dll(),
        "package/c.dll": tiny_dll(),
        "more/d.dll": tiny_dll(),
    }
    found = _by_name(_search(tmp_path, files).open(tmp_path / "package/a.pyd"))
    assert {name: str(it.path and it.path.relative_to(tmp_path)) for name, it in found.items()} == {
        "b.dll": "added/b.dll",
        "c.dll": "package/c.dll",
        "d.dll": "more/d.dll",
    }
    assert found["c.dll"].shadowed == (tmp_path / "added/c.dll",)


def test_a_loaded_dll_is_found_by_its_name_alone(tmp_path: Path) -> None:
    search = _search(tmp_path, {"one/a.dll": tiny_dll(), "two/b.pyd": tiny_dll(("A.dll",)), "added/a.dll": tiny_dll()})
    search.open(tmp_path / "one/a.dll")
    (answer,) = search.open(tmp_path / "two/b.pyd")
    assert (answer.path, answer.rule) == (tmp_path / "one/a.dll", DllRule.LOADED)


def test_delayed_imports_count_if_requested_and_api_sets_never(tmp_path: Path) -> None:
    imports = ("api-ms-win-core-file-l1-1-0.dll", "EXT-MS-WIN-x.dll")
    search = _search(tmp_path, {"package/a.pyd": tiny_dll(imports, ("late.dll",))})
    assert search.open(tmp_path / "package/a.pyd") == []
    (answer,) = search.open(tmp_path / "package/a.pyd", delayed=True)
    assert (answer.name, answer.path) == ("late.dll", None)


def test_a_damaged_dll_is_an_error_of_the_dll_that_needs_it(tmp_path: Path) -> None:
    search = _search(tmp_path, {"package/a.pyd": tiny_dll(("b.dll",)), "package/b.dll": b""})
    (answer,) = search.open(tmp_path / "package/a.pyd")
    assert answer.path is None
    assert answer.failure is not None
    assert answer.failure.damage is Damage.EMPTY
