"""The cache on disk: an entry is read exactly as written, or not at all; and no fault of the cache is an error."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.errors import UsageError
from envsolve.index import store as store_module
from envsolve.index.store import Amount, Store, parse_size, store_at

KEY = "https://packages.example.org/simple/torch/"
DAY = 86400
is_root = sys.platform != "win32" and os.geteuid() == 0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def entry_files(store: Store) -> list[Path]:
    assert store.directory is not None
    return sorted(store.directory.rglob("*.kept"))


def child(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python process with the store in ``argv[1]`` as ``store``."""
    imports = "import sys\nfrom pathlib import Path\nfrom envsolve.index.store import Store\n"
    opening = f"{imports}store = Store(Path(sys.argv[1]))\n"
    return subprocess.Popen([sys.executable, "-c", opening + script, *arguments], stdout=subprocess.PIPE, text=True)


def test_an_entry_is_read_by_another_process(store: Store) -> None:
    store.write("pages", KEY, b"one\0two")
    assert store.read("pages", KEY) == b"one\0two"
    reader = child(f"print(store.read('pages', {KEY!r}))", str(store.directory))
    assert reader.communicate(timeout=30)[0] == "b'one\\x00two'\n"
    assert store.failure is None


def test_a_missing_entry_is_not_found(store: Store) -> None:
    assert store.read("pages", KEY) is None
    store.write("metadata", KEY, b"of another bucket")
    assert store.read("pages", KEY) is None


def test_new_content_replaces_the_old(store: Store) -> None:
    for content in (b"long, and the first", b"", b"last"):
        store.write("pages", KEY, content)
        assert store.read("pages", KEY) == content
    assert store.size().files == 1


@pytest.mark.thorough
@given(
    st.dictionaries(
        st.one_of(
            st.text(st.characters(), max_size=300), st.sampled_from(["..", "/etc/passwd", "CON", "a/../../b", "\0"])
        ),
        st.binary(max_size=200),
        max_size=5,
    )
)
def test_every_key_has_its_own_entry_inside_the_directory(contents: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(place) / "cache")
        for key, content in contents.items():
            store.write("pages", key, content)
        assert {key: store.read("pages", key) for key in contents} == contents
        assert store.failure is None
        assert {path.name for path in Path(place).iterdir()} <= {"cache"}
        names = [path.name for path in entry_files(store)]
        assert len(names) == len(contents)
        assert all(name.isascii() and len(name) < 90 and name.count(".") == 1 for name in names)


@pytest.mark.parametrize("length", [50_000])
def test_a_very_long_key_works(store: Store, length: int) -> None:
    store.write("pages", "x" * length, b"content")
    assert store.read("pages", "x" * length) == b"content"
    assert store.read("pages", "x" * (length + 1)) is None


def flipped(stored: bytes, place: int) -> bytes:
    return stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut within its header": lambda stored: stored[:20],
    "cut": lambda stored: stored[:-1],
    "longer": lambda stored: stored + b"\0",
    "flipped at its end": lambda stored: flipped(stored, len(stored) - 1),
    "full of zeros, as after a power failure": lambda stored: bytes(len(stored)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_counts_as_absent_and_heals(store: Store, damage: str) -> None:
    store.write("pages", KEY, b"content")
    (path,) = entry_files(store)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert store.read("pages", KEY) is None
    assert not path.exists()
    store.write("pages", KEY, b"content")
    assert store.read("pages", KEY) == b"content"


def test_an_entry_written_while_damage_is_found_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write("pages", "key", b"first")
    (path,) = entry_files(store)
    path.write_bytes(b"damaged")
    read = store_module._read

    def read_slowly(*arguments: Any) -> Any:
        found = read(*arguments)
        Store(store.directory).write("pages", "key", b"second")
        return found

    monkeypatch.setattr(store_module, "_read", read_slowly)
    assert store.read("pages", "key") is None
    monkeypatch.undo()
    assert store.read("pages", "key") == b"second"


def test_every_flipped_bit_is_noticed(store: Store) -> None:
    store.write("pages", KEY, b"content")
    (path,) = entry_files(store)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(flipped(whole, place))
        assert store.read("pages", KEY) is None, place


def test_a_file_of_another_key_is_not_used(store: Store) -> None:
    store.write("pages", "one", b"of one")
    (path,) = entry_files(store)
    content = path.read_bytes()
    store.write("pages", "two", b"of two")
    (other,) = set(entry_files(store)) - {path}
    other.write_bytes(content)
    assert store.read("pages", "two") is None
    assert store.read("pages", "one") == b"of one"


def test_only_this_user_may_read_the_cache(store: Store) -> None:
    previous = os.umask(0)
    try:
        store.write("pages", KEY, b"of a private index")
    finally:
        os.umask(previous)
    assert store.directory is not None
    modes = {path.stat().st_mode & 0o777 for path in [*entry_files(store), *store.directory.rglob("pruned")]}
    assert modes == {0o600}
    assert (store.directory / "kept").stat().st_mode & 0o777 == 0o700


def test_a_new_cache_directory_is_marked_for_backups_and_git(store: Store) -> None:
    store.write("pages", KEY, b"content")
    assert store.directory is not None
    assert (store.directory / "CACHEDIR.TAG").read_bytes().startswith(b"Signature: 8a477f597d28d172789f06886806bc55\n")
    assert (store.directory / ".gitignore").read_text(encoding="ascii") == "*\n"


def test_a_directory_with_other_files_is_not_marked(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    store = Store(tmp_path)
    store.write("pages", KEY, b"content")
    assert store.clear().files == 1
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.tex", "kept"}


@pytest.mark.thorough
def test_processes_that_write_and_read_the_same_keys_never_see_a_torn_file(store: Store) -> None:
    script = (
        "import random\n"
        "for _ in range(400):\n"
        "    key = str(random.randrange(4))\n"
        "    store.write('pages', key, random.choice(b'abc').to_bytes(1) * random.randrange(1, 20_000))\n"
        "    found = store.read('pages', key)\n"
        "    print('torn' if found is None or len(set(found)) > 1 else 'whole')\n"
        "print(store.failure)\n"
    )
    writers = [child(script, str(store.directory)) for _ in range(3)]
    lines = {line for writer in writers for line in writer.communicate(timeout=60)[0].splitlines()}
    assert lines == {"whole", "None"}
    assert store.size().files == 4


@pytest.mark.thorough
def test_threads_share_a_store(store: Store) -> None:
    def work(number: int) -> bool:
        content = bytes([number % 5]) * 3000
        store.write("pages", str(number % 5), content)
        return store.read("pages", str(number % 5)) == content

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(300)))
    assert store.failure is None


@pytest.mark.thorough
def test_a_killed_writer_leaves_nothing_readable_and_its_files_are_pruned(store: Store) -> None:
    store.write("pages", KEY, b"whole")
    script = f"print(flush=True)\nwhile True: store.write('pages', {KEY!r}, b'x' * 3_000_000)\n"
    for delay in (0.0, 0.01, 0.02, 0.03):
        writer = child(script, str(store.directory))
        assert writer.stdout is not None
        with writer.stdout:
            writer.stdout.readline()
            time.sleep(delay)
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
        assert store.read("pages", KEY) in (b"whole", b"x" * 3_000_000)
    (entry,) = entry_files(store)
    rest = entry.with_name("rest.part")
    rest.write_bytes(b"half")
    for path in entry.parent.glob("*.part"):
        os.utime(path, (time.time() - 7200,) * 2)
    store.prune()
    assert list(entry.parent.iterdir()) == [entry]


def aged(store: Store, key: str, days: float, size: int = 1000) -> None:
    """An entry that was used so many days ago."""
    before = set(entry_files(store))
    store.write("pages", key, bytes(size))
    (path,) = set(entry_files(store)) - before
    os.utime(path, (time.time() - days * DAY,) * 2)


def left(store: Store, keys: str) -> str:
    """The keys that are still cached, without reading them, which would record their use."""
    assert store.directory is not None
    return "".join(key for key in keys if list(store.directory.rglob(f"{key}-*.kept")))


def test_the_least_recently_used_are_removed_first_and_no_more_than_necessary(store: Store) -> None:
    for key, days in (("b", 2.0), ("d", 4.0), ("a", 1.0), ("c", 3.0)):
        aged(store, key, days)
    store.limit = 2500
    assert store.prune().files == 2
    assert left(store, "abcd") == "ab"


def test_reading_counts_as_use(store: Store) -> None:
    for key, days in (("a", 5.0), ("b", 3.0)):
        aged(store, key, days)
    assert store.read("pages", "a") is not None
    store.limit = 1500
    store.prune()
    assert left(store, "ab") == "a"


def test_unused_entries_are_removed_even_if_there_is_room(store: Store) -> None:
    aged(store, "a", 91.0)
    aged(store, "b", 89.0)
    assert store.prune().files == 1
    assert left(store, "ab") == "b"


def test_a_cache_within_its_limits_is_not_pruned(store: Store) -> None:
    aged(store, "a", 10.0)
    assert store.prune() == Amount(0, 0)
    assert store.size().files == 1


def test_the_limit_is_enforced_once_a_day(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    aged(Store(directory), "a", 2.0, size=5000)
    Store(directory, limit=3000).write("pages", "b", b"new")
    assert left(Store(directory), "ab") == "ab"
    stamp = directory / "kept" / "pruned"
    os.utime(stamp, (time.time() - 2 * DAY,) * 2)
    Store(directory, limit=3000).write("pages", "c", b"new")
    assert left(Store(directory), "abc") == "bc"
    assert time.time() - stamp.stat().st_mtime < 60


def test_clear_removes_all_entries_and_the_cache_still_works(store: Store) -> None:
    for key in "abc":
        store.write("pages", key, b"content")
    amount = store.size()
    assert (store.clear(), amount.files) == (amount, 3)
    assert store.size() == Amount(0, 0)
    store.write("pages", "a", b"again")
    assert store.read("pages", "a") == b"again"


def test_a_removed_directory_is_created_again(store: Store) -> None:
    store.write("pages", KEY, b"content")
    assert store.directory is not None
    shutil.rmtree(store.directory)
    assert store.read("pages", KEY) is None
    store.write("pages", KEY, b"again")
    assert store.read("pages", KEY) == b"again"


@pytest.mark.skipif(is_root, reason="nothing is read-only to root")
def test_a_read_only_directory_is_read_and_not_written_to(store: Store) -> None:
    store.write("pages", "old", b"content")
    folder = entry_files(store)[0].parent
    folder.chmod(0o500)
    try:
        store.write("pages", "new", b"content")
        assert store.read("pages", "old") == b"content"
        assert store.read("pages", "new") is None
    finally:
        folder.chmod(0o700)
    assert store.failure is not None
    assert "Permission denied" in store.failure


def test_a_file_in_place_of_the_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("", encoding="utf-8")
    store = Store(tmp_path / "cache")
    store.write("pages", KEY, b"content")
    assert store.read("pages", KEY) is None
    assert store.failure == f"the cache is not used: {tmp_path / 'cache'}: Not a directory"


def test_a_full_disk_is_reported_once_and_entries_stay(store: Store) -> None:
    store.write("pages", "old", b"content")
    script = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "store.write('pages', 'old', b'x' * 5000)\n"
        "print(store.failure)\n"
        "store.write('pages', 'small', b'x')\n"
        "print(store.read('pages', 'old'), store.read('pages', 'small'))\n"
    )
    lines = child(script, str(store.directory)).communicate(timeout=30)[0].splitlines()
    assert lines == [f"the cache in {store.directory} cannot be written to: File too large", "b'content' None"]
    assert store.size().files == 1


def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kept").symlink_to(tmp_path / "elsewhere")
    store = Store(tmp_path / "cache")
    store.write("pages", KEY, b"content")
    assert store.read("pages", KEY) is None
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert store.failure is not None
    assert "only this user" in store.failure


def test_a_folder_that_others_can_write_to_is_not_used(store: Store) -> None:
    store.write("pages", KEY, b"content")
    assert store.directory is not None
    (store.directory / "kept").chmod(0o777)
    other = Store(store.directory)
    assert other.read("pages", KEY) is None
    assert other.clear() == Amount(0, 0)
    assert other.failure is not None
    assert "only this user" in other.failure


@pytest.mark.skipif(not is_root, reason="only root can make a directory of somebody else's")
def test_a_directory_of_another_user_is_not_used(store: Store) -> None:
    store.write("pages", KEY, b"content")
    assert store.directory is not None
    os.chown(store.directory, 12345, 12345)
    other = Store(store.directory)
    assert other.read("pages", KEY) is None
    assert other.failure == f"the cache is not used: {store.directory} belongs to another user"


def test_a_user_without_a_home_has_no_cache_and_no_error() -> None:
    store = Store(None)
    store.write("pages", KEY, b"content")
    assert store.read("pages", KEY) is None
    assert (store.size(), store.clear(), store.prune()) == (Amount(0, 0),) * 3
    assert store.failure is not None
    assert "no home" in store.failure


def test_the_directory_is_an_option_or_a_variable_or_the_default(tmp_path: Path) -> None:
    environ = {"ENVSOLVE_CACHE_DIR": str(tmp_path / "of the variable")}
    assert store_at(str(tmp_path / "named"), environ).directory == tmp_path / "named"
    assert store_at(None, environ).directory == tmp_path / "of the variable"
    users = store_at(None, {}).directory
    assert users is not None
    assert users.name in ("envsolve", "Cache")


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("1000", 1000), ("500MB", 500_000_000), ("2 gb", 2 * 10**9), ("1.5kB", 1500)]
)
def test_a_size_is_bytes_or_has_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert store_at(None, {"ENVSOLVE_CACHE_SIZE": text}).limit == size


def test_a_size_beyond_all_disks_is_no_limit() -> None:
    assert parse_size(f"{'9' * 400} GB") > 10**18


@pytest.mark.parametrize("text", ["much", "-1", "5 MiB", "1,5GB", "MB"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"ENVSOLVE_CACHE_SIZE.*500MB"):
        store_at(None, {"ENVSOLVE_CACHE_SIZE": text})


def test_reading_is_fast_compared_to_its_lock(store: Store) -> None:
    """A limit that a listing of the folder or a second look at each file would exceed, on a busy machine too."""
    content = bytes(range(250)) * 20
    for number in range(400):
        store.write("pages", f"{KEY}{number}", content)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for number in range(400):
            assert store.read("pages", f"{KEY}{number}") == content
        times.append(time.perf_counter() - start)
    assert min(times) / 400 < 250e-6
