"""What each format can express of a lock, tested by writing and reading files, in every order."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.errors import EnvsolveError, UsageError
from envsolve.lockfile.formats import IMAGE_PLATFORMS, write_python_lock
from envsolve.lockfile.lock import Lock, RequestedSpec, strong_digests
from envsolve.lockfile.reading import lock_at, locks_in
from envsolve.lockfile.stack import lock_of
from envsolve.lockfile.yaml_document import is_null
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.lock_format import IMAGE_FORMATS, PYTHON_FORMATS
from envsolve.model.package import PackageFile, Pin
from tests.laws import examples
from tests.lockfile.conda_locks import two_platforms, usual_conda_locks
from tests.lockfile.formats import LOCK_FORMATS, written
from tests.lockfile.locks import CUDA_INDEX, INDEX, PINS, locks, plain, rtx_3090
from tests.lockfile.restriction import HOLDS, Content, is_restricted, restricted
from tests.lockfile.test_pixi_toml import CASES, answers

COMMIT = "f" * 40
SOURCES = (
    Pin("own", "1.0", (PackageFile(f"own.git@{COMMIT}", f"git+https://example.org/own.git@{COMMIT}"),), None),
    Pin(
        "part",
        "",
        (PackageFile(f"own@{COMMIT}", f"git+ssh://git@example.org/own@{COMMIT}#subdirectory=src/part"),),
        None,
        via=("own",),
        marker="sys_platform == 'linux'",
    ),
    Pin("mine", "", (PackageFile(".", ".#editable"),), None, via=("-r requirements.in",)),
    Pin("other", "", (PackageFile("other", "../libs/other"),), None, marker="python_version > '3'"),
)
GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0"
WORDS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="@"), min_size=1, max_size=12)
"""As they stand in a lock: what may break a line, or hide a login, is for the tests of each format."""
SENTENCES = WORDS.filter(lambda text: not is_null(text))
LOCKS = locks(SENTENCES) | usual_conda_locks(SENTENCES)
READ_ALONE = {
    name: sorted((Path(__file__).parent / folder).glob(pattern))
    for name, folder, pattern in (
        ("pixi.lock", "conda_files", "pixi-*.lock"),
        ("uv.lock", "project_locks", "*/uv.lock"),
        ("poetry.lock", "project_locks", "*/poetry.lock"),
        ("pdm.lock", "project_locks", "*/pdm.lock"),
    )
}


def there_and_back(lock: Lock, format_name: str) -> Lock:
    """What is read from a file with ``lock``."""
    platform = Platform(lock.platform or "linux-64")
    (found,) = locks_in(format_name, written(lock, format_name), platform)
    return found


def lacking(lock: Lock, format_name: str) -> str | None:
    """The parts that a file with packages in this format needs and ``lock`` lacks, in words.

    None where it can be written.
    """
    holds = HOLDS[format_name]
    if Content.CONDA in holds and lock.platform not in tuple(Platform):
        return "platform"
    if format_name in IMAGE_FORMATS and (lock.interpreter is None or lock.platform not in IMAGE_PLATFORMS):
        return "Python for Linux"
    if Content.PROOFS not in holds:
        return None
    found = chain(_lacking_of_conda(lock, format_name, holds), _lacking_of_wheels(lock, format_name, holds))
    return next(found, None)


def _lacking_of_conda(lock: Lock, format_name: str, holds: Collection[Content]) -> Iterator[str]:
    for package in lock.conda if Content.CONDA in holds else ():
        if set("*^") & set(package.build):
            yield f"single build of {package.name}"
        if Content.ADDRESSES not in holds:
            continue
        if not package.url:
            yield f"address of {package.name}"
        elif package.md5 is None and (package.sha256 is None or format_name == "conda-lock"):
            yield f"{'md5' if format_name == 'conda-lock' else 'md5 and no sha256'} of {package.file_name}"


def _lacking_of_wheels(lock: Lock, format_name: str, holds: Collection[Content]) -> Iterator[str]:
    for pin in lock.pins:
        if not all(file.is_archive for file in pin.files):
            if Content.SOURCES not in holds:
                yield f"wheel or archive of {pin.name}"
            continue
        files = pin.files if Content.ALL_FILES in holds else pin.files[:1]
        digests = strong_digests(pin._replace(files=files))
        if not digests or (format_name == "conda-lock" and not any(it.startswith("sha256:") for it in digests)):
            yield f"sha256 of {pin.name}"
        if Content.ADDRESSES in holds and not all(it.url for it in files):
            yield f"address of {pin.name}"
        elif format_name == "conda-lock" and "#subdirectory=" in files[0].url:
            yield f"whole archive of {pin.name}"
        if not pin.version and (pin.index_url is not None or format_name == "conda-lock"):
            yield f"version of {pin.name}"


def real_locks(matrix: Matrix) -> Iterator[Lock]:
    """Locks that envsolve made, and those in files of an earlier version."""
    yield from (rtx_3090(matrix), plain(PINS), *two_platforms(matrix))
    yield rtx_3090(matrix)._replace(exported_from="conda-lock.yml")
    yield rtx_3090(matrix)._replace(default_is_plain=False, find_links=("https://example.org/links.html",))
    for path in GOLDEN.iterdir():
        if path.name not in ("expected.toml", "host.json", "record.json"):
            lock = lock_at(path, Platform.WIN_64 if "win-64" in path.name else Platform.LINUX_64)
            assert lock is not None
            yield lock._replace(open=())


def stacks(matrix: Matrix) -> Iterator[Lock]:
    """Stacks alone, for which packages are still to be chosen."""
    for case in CASES.values():
        for answer in answers(case, matrix):
            yield from (lock_of(answer), lock_of(answer, sets_library_path=True))


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", LOCK_FORMATS)
@settings(max_examples=examples(60))
@given(lock=LOCKS)
def test_written_values_are_read_back(format_name: str, lock: Lock) -> None:
    if is_blank(lock, format_name):
        return
    found = there_and_back(lock, format_name)
    assert not is_restricted(lock, format_name) or found == restricted(lock, format_name)
    is_recorded = found.made is not None and Content.RECORD in HOLDS[format_name]
    assert not is_recorded or found.made.packages_digest == found.packages_digest  # type: ignore[union-attr]  # see there


@pytest.mark.thorough
@pytest.mark.parametrize("first", LOCK_FORMATS)
@pytest.mark.parametrize("second", LOCK_FORMATS)
@given(lock=LOCKS)
@settings(max_examples=examples(20))
def test_values_that_both_formats_can_hold_survive_a_conversion(first: str, second: str, lock: Lock) -> None:
    require_law(lock, first, second)


@pytest.mark.thorough
@pytest.mark.parametrize("first", LOCK_FORMATS)
def test_locks_written_by_envsolve_survive_too(first: str, matrix: Matrix) -> None:
    for lock in real_locks(matrix):
        if lacking(lock, first) is None:
            for second in LOCK_FORMATS:
                require_law(lock, first, second)
        else:
            with pytest.raises(EnvsolveError):
                written(lock, first)


@pytest.mark.thorough
@pytest.mark.parametrize("first", ["environment", "pixi"])
def test_requests_of_a_stack_survive_too(first: str, matrix: Matrix) -> None:
    for lock in stacks(matrix):
        for second in LOCK_FORMATS:
            require_law(lock, first, second)


def is_blank(lock: Lock, format_name: str) -> bool:
    """Whether the file of a lock is empty. The format of an empty file is unknown."""
    return lacking(lock, format_name) is None and not written(lock, format_name).strip()


def require_law(lock: Lock, first: str, second: str) -> None:
    """A file in the format ``second`` of what is read from one in ``first`` has what both declare to hold.

    Where ``second`` lacks something in that, it is not written.
    """
    if is_blank(lock, first):
        return
    once = there_and_back(lock, first)
    assert not is_restricted(lock, first) or once == restricted(lock, first)
    if is_blank(once._replace(open=()), second):
        return
    if lacking(once, second) is None:
        again = once._replace(open=())
        assert not is_restricted(again, second) or there_and_back(again, second) == restricted(again, second)
        assert not is_restricted(once, first) or restricted(once, first) == once or once.open
    else:
        with pytest.raises(EnvsolveError):
            written(once, second)


def test_a_wheel_of_an_unnamed_index_is_from_the_default_one_in_requirements() -> None:
    lock = plain(PINS[:2], default_index=INDEX, default_is_plain=False, indexes=(CUDA_INDEX,))
    once = there_and_back(lock, "environment")
    assert {pin.index_url for pin in once.pins} == {""}
    assert {pin.index_url for pin in there_and_back(once, "requirements").pins} == {INDEX}


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("requirements", "pylock", "address of filelock"),
        ("requirements", "explicit", "address of filelock"),
        ("environment", "conda-lock", "address of bzip2"),
        ("explicit", "dockerfile", "Python for Linux"),
        ("explicit", "apptainer", "Python for Linux"),
        ("pixi", "requirements", None),
    ],
)
def test_losses_between_formats_are_declared(first: str, second: str, what: str | None, matrix: Matrix) -> None:
    lock = plain(PINS) if first == "requirements" else two_platforms(matrix)[0]
    lock = lock._replace(conda=tuple(it for it in lock.conda if it.name != "python"))
    assert lacking(there_and_back(lock, first), second) == what


def content_of(lock: Lock) -> set[Content]:
    """What of everything that some formats hold is in ``lock``."""
    files = [file for pin in lock.pins for file in pin.files if pin.index_url is not None]
    made = lock.made
    found = {
        Content.CONDA: lock.conda,
        Content.DIGESTS: any(it.md5 and it.sha256 for it in lock.conda),
        Content.PROOFS: any(map(strong_digests, lock.pins)),
        Content.ADDRESSES: any(file.url for file in files) or any(it.url for it in lock.conda),
        Content.UPLOADS: any(it.size is not None or it.upload_time for it in files),
        Content.ALL_FILES: any(len(pin.files) > 1 for pin in lock.pins),
        Content.REQUIREMENTS: any(pin.requires for pin in lock.pins) or any(it.depends for it in lock.conda),
        Content.REASONS: any(pin.via or pin.because for pin in lock.pins),
        Content.MARKERS: any(pin.marker for pin in lock.pins),
        Content.CATEGORIES: lock.categories,
        Content.PYTHONS: lock.requires_python or any(pin.requires_python for pin in lock.pins),
        Content.DEFAULT_INDEX: lock.default_index or lock.indexes,
        Content.SOURCES: not all(file.is_archive for pin in lock.pins for file in pin.files),
        Content.RECORD: made is not None and made.request is not None,
    }
    assert found.keys() == set(Content)
    return {content for content, locked in found.items() if locked}


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", LOCK_FORMATS)
def test_a_format_holds_exactly_what_it_declares(format_name: str, matrix: Matrix) -> None:
    linux, windows = two_platforms(matrix)
    pins = [it._replace(marker="python_version > '3'") for it in (*rtx_3090(matrix).pins, *windows.pins)]
    requested = (*linux.requested, *(RequestedSpec(spec, of_stack=True) for spec in ("python=3.12", "numpy=2")))
    lock = linux._replace(
        pins=tuple({pin.name: pin for pin in reversed(pins)}.values()),
        requested=requested,
        requires_python=">=3.12",
        default_is_plain=False,
        indexes=(CUDA_INDEX,),
    )
    whole = lock._replace(pins=(*lock.pins, *SOURCES))
    assert content_of(whole._replace(conda=(lock.conda[0]._replace(categories=("dev",)),))) == set(Content)
    if Content.SOURCES in HOLDS[format_name]:
        lock = whole
    assert content_of(there_and_back(lock, format_name)) == HOLDS[format_name]


@pytest.mark.thorough
@pytest.mark.parametrize("pin", SOURCES, ids=lambda pin: pin.name)
@pytest.mark.parametrize("format_name", LOCK_FORMATS)
def test_a_repository_or_folder_is_read_back_or_refused(format_name: str, pin: Pin, matrix: Matrix) -> None:
    lock = rtx_3090(matrix)._replace(pins=(pin,))
    if Content.SOURCES in HOLDS[format_name]:
        assert there_and_back(lock, format_name) == restricted(lock, format_name)
        assert lacking(lock, format_name) is None
    else:
        with pytest.raises(UsageError, match=f"does not support {pin.name}, which is from a "):
            write_python_lock(lock, format_name) if format_name in PYTHON_FORMATS else written(lock, format_name)
        assert lacking(lock, format_name) in (f"wheel or archive of {pin.name}", None)


@pytest.mark.parametrize("format_name", READ_ALONE)
def test_the_same_holds_for_files_that_are_only_read(format_name: str) -> None:
    texts = [path.read_text("utf-8") for path in READ_ALONE[format_name]]
    if format_name == "pdm.lock":  # the strategy static_urls has addresses in place of names
        texts += [text.replace('{file = "', '{url = "https://files.example.org/') for text in texts]
    found = [content_of(lock) for text in texts for lock in locks_in(format_name, text)]
    assert set().union(*found) == HOLDS[format_name]


def test_the_page_on_exporting_lists_what_each_format_holds() -> None:
    path = Path(__file__).parents[2] / "docs/exporting.md"
    page, first, last = path.read_text(encoding="utf-8"), "| what a file holds |", f"| {list(Content)[-1]} |"
    before, _, rest = page.partition(first)
    after = rest.partition(f"\n{last}")[2].partition("\n")[2]
    formats = (*LOCK_FORMATS, "json", *READ_ALONE)
    rows = [
        f"{first} {' | '.join(formats)} |",
        f"|{'---|' * (len(formats) + 1)}",
        *(f"| {it} {''.join('| yes ' if it in HOLDS[one] else '| ' for one in formats)}|" for it in Content),
    ]
    right = "\n".join((before + rows[0], *rows[1:], after))
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(right, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == right
