"""Random libraries in random directories: the simulation finds the same files as the real loader."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.binary.loader import Process
from tests.binary.layouts import ABI, ARM, I386, Lib, lay_out, libraries, listed, make_tiny, real_loader
from tests.laws import examples

NAMES = ("a.so", "b.so", "c.so", "d.so")
DIRECTORIES = ("one", "two", "three")
ENTRIES = (
    "$ORIGIN",
    "${ORIGIN}/../two",
    "{root}/one",
    "{root}/two",
    "{root}/three/",
    "{root}/missing",
    "$ORIGIN/../one",
    "",
)

paths = st.one_of(st.none(), st.lists(st.sampled_from(ENTRIES), max_size=3).map(":".join))
own = st.builds(
    Lib,
    needed=st.lists(st.sampled_from((*NAMES, "libm.so.6", "{root}/three/a.so")), max_size=3, unique=True).map(tuple),
    rpath=paths,
    runpath=paths,
    soname=st.one_of(st.none(), st.sampled_from(NAMES)),
    no_default_directories=st.booleans(),
    abi=st.just(ABI),
)
things = st.one_of(
    own, own, own, own, st.sampled_from((ARM, I386)), st.sampled_from(("../one/a.so", "b.so", "gone.so"))
)
files = st.dictionaries(
    st.builds(
        "{}/{}{}".format, st.sampled_from(DIRECTORIES), st.sampled_from(("", "", "", "HWCAPS/")), st.sampled_from(NAMES)
    ),
    things,
    min_size=2,
    max_size=9,
)
library_paths = st.one_of(st.none(), st.lists(st.sampled_from(ENTRIES), max_size=3).map(":".join))


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None)
@given(files=files, root=own, library_path=library_paths, here=st.sampled_from(DIRECTORIES))
def test_every_library_comes_from_the_file_that_the_real_loader_lists(
    files: dict[str, Lib | str], root: Lib, library_path: str | None, here: str
) -> None:
    system = real_loader()
    hwcaps = f"glibc-hwcaps/{system.hwcaps[0]}" if system.hwcaps else "unused"
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        for directory in DIRECTORIES:
            (place / directory).mkdir()
        laid = {file.replace("HWCAPS", hwcaps): lib for file, lib in files.items()}
        lay_out(place, {**laid, "app/root.so": root}, make_tiny)
        given_path = None if library_path is None else library_path.replace("{root}", name)
        process = Process(libraries(), library_path=given_path, directory=place / here)
        answers = process.start(place / "app/root.so")
        real = listed(place / "app/root.so", place / here, given_path)
        loaded = {it.path for it in process.loaded[2:]}
        missing = {it.name for it in answers if it.path is None}
    apart = {str(system.interpreter), system.interpreter.name}
    assert loaded - apart == {file for _, file in real if file is not None} - apart
    assert missing == {name for name, file in real if file is None}
