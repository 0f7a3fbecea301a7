"""Convert a Python lock: a requirements file to a pylock.toml and back, or to one with hashes.

A requirements file has digests but no addresses. Addresses come from an index, and only files whose digests are in the
lock are accepted, so that no other file can get in.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.app.environment.exact_files import ExactFiles, IndexOptions, Listed, exact_files
from envsolve.app.environment.exporting import (
    NOT_EXPORTED,
    PYLOCK,
    REQUIREMENTS,
    Exported,
    ExportRequest,
    NotWholeError,
)
from envsolve.app.packages.requirements import Requirements
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.index.settings import default_index
from envsolve.lockfile.formats import write_python_lock
from envsolve.lockfile.lock import Lock, Made, bare_files, strong_digests
from envsolve.model.lock_format import VENV_FORMATS
from envsolve.model.note import Note
from envsolve.model.package import PackageFile, Pin

_NOT_CACHED = "not-cached"
_FEW = 5


class _Places(NamedTuple):
    """The sources of packages: the index for pins that do not name another one, and the other indexes."""

    default: str
    is_plain: bool
    extra: tuple[str, ...]


def export_python(request: ExportRequest, was: str, read: Lock, environ: Mapping[str, str]) -> Exported:
    """The lock ``read`` from a file in the format ``was``, in its new format.

    Raises NotWholeError; UsageError ``lock-without-addresses`` or ``lock-without-hashes`` if an index would have to be
    queried; OutsideError if an index fails.
    """
    where = _of_requirements(read) if was == REQUIREMENTS else _of_pylock(read, request.indexes)
    missing = [pin for pin in read.pins if _is_incomplete(pin, request.format_name)]
    notes: list[Note] = []
    found: dict[Pin, Pin] = {}
    if missing:
        found, where, more = _from_indexes(request, read, missing, where, environ)
        notes += more
    pins = tuple(found.get(pin) or _pin(pin, where.default) for pin in read.pins)
    lock = read._replace(
        pins=pins,
        default_index=where.default,
        default_is_plain=where.is_plain,
        indexes=where.extra,
        exported_from=request.path.name,
    )
    text = write_python_lock(lock, request.format_name)
    lost = (Note(NOT_EXPORTED, it) for it in _lost(request, was, read))
    return Exported(((read.platform, text),), (*lost, *dict.fromkeys(notes)))


def _is_incomplete(pin: Pin, format_name: str) -> bool:
    if pin.index_url is None:
        if pin.files[0].is_archive and not strong_digests(pin):
            raise NotWholeError(f"it has no sha256 for {pin.name}, which is given by URL")
        return False
    return not strong_digests(pin) or (format_name == PYLOCK and any(not file.url for file in pin.files))


def _pin(pin: Pin, default: str) -> Pin:
    """A package with all necessary data, reduced to strong digests."""
    if pin.index_url is None:
        if not pin.version and pin.files[0].is_archive:
            raise NotWholeError(f"the URL of {pin.name} does not contain its version")
        return pin
    proven = all(strong_digests(pin._replace(files=(file,))) for file in pin.files)
    files = pin.files if proven else bare_files(strong_digests(pin))
    return pin._replace(files=files, index_url=pin.index_url or default)


def _from_indexes(
    request: ExportRequest, read: Lock, missing: Sequence[Pin], where: _Places, environ: Mapping[str, str]
) -> tuple[dict[Pin, Pin], _Places, list[Note]]:
    """The same packages completed from indexes, their sources, and notes."""
    notes = list[Note]()
    network = request.indexes.network if request.from_indexes else request.indexes.network._replace(offline=True)
    extra_urls = () if read.made is not None else read.indexes  # our locks record the index of each pin
    requirements = Requirements((), (), {}, read.default_index or None, extra_urls)
    mapped = {pin.name: pin.index_url for pin in read.pins if pin.index_url not in (None, "", read.default_index)}
    named = {pin.name: pin.version for pin in missing}
    with exact_files(
        request.indexes._replace(network=network),
        named,
        environ,
        requirements=requirements,
        interpreter=read.interpreter,
        mapped=mapped,
    ) as files:
        try:
            found = {pin: _listed(pin, files, notes.append) for pin in missing}
        except OutsideError as error:
            if error.code == _NOT_CACHED and not request.from_indexes:
                raise _needs_indexes(request, missing) from None
            raise
        notes += files.notes
        is_plain = where.is_plain and files.where.is_plain
        default = where.default if is_plain or not where.is_plain else files.where.default_shown
    used = (url for pin in found.values() if (url := pin.index_url) is not None and url != default)
    extra = dict.fromkeys((*where.extra, *used))
    return found, _Places(default, is_plain, tuple(extra)), notes


def _listed(pin: Pin, files: ExactFiles, on_note: Callable[[Note], None]) -> Pin:
    listed = files.of(pin.name, pin.version)
    if listed is None:
        raise UsageError(
            "not-on-index",
            f"no index has {pin.name} {pin.version}",
            hints=(Hint("name its index with --index-url or --extra-index-url"),),
        )
    chosen = _chosen(pin, listed, on_note)
    return pin._replace(files=chosen, index_url=listed.index_url, requires_python=chosen[0].requires_python)


def _chosen(pin: Pin, listed: Listed, on_note: Callable[[Note], None]) -> tuple[PackageFile, ...]:
    """The files whose digests are in the lock, or all files of the version if it has none. Fitting files come first."""
    ordered = tuple(dict.fromkeys((*listed.fitting, *sorted(listed.files, key=lambda it: it.is_wheel, reverse=True))))
    proofs = set(strong_digests(pin))
    if not proofs:
        return ordered
    chosen = tuple(it for it in ordered if proofs & _named(it))
    if not chosen:
        raise UsageError(
            "hash-not-on-index",
            f"the index lists no file of {pin.name} {pin.version} with the digests in the lock",
            (f"the index is {listed.index_url}",),
            (Hint("name the index that the lock was made from with --index-url"),),
        )
    gone = proofs - {it for file in chosen for it in _named(file)}
    if gone:
        text = f"{pin.name} {pin.version}: {len(gone)} digests are left out, because the index lists no file with them"
        on_note(Note("file-not-on-index", text))
    return chosen


def _named(file: PackageFile) -> set[str]:
    return {f"{algorithm}:{digest}" for algorithm, digest in file.hashes}


def _needs_indexes(request: ExportRequest, missing: Sequence[Pin]) -> UsageError:
    bare = [pin for pin in missing if not strong_digests(pin)]
    what = "hashes" if bare else "addresses"
    named = list(dict.fromkeys(pin.name for pin in bare or missing))
    names = ", ".join(named[:_FEW])
    more = " and others" if len(named) > _FEW else ""
    command = ["envsolve", "export", str(request.path), "--format", request.format_name, "--ask-index"]
    return UsageError(
        f"lock-without-{what}",
        f"{request.path.name} has no file {what}, which the format {request.format_name} needs",
        (f"missing for {names}{more}, and the cache does not have them all",),
        (Hint("fetch them from the package index", shlex.join(command)),),
    )


def _of_requirements(read: Lock) -> _Places:
    plain = default_index().rstrip("/")
    return _Places(read.default_index or plain, not read.default_index, read.indexes)


def _of_pylock(read: Lock, indexes: IndexOptions) -> _Places:
    """The order of the indexes of pins: as in the command that made the lock, or else by use.

    A pylock.toml may name an index for each package, or none, as those of uv and pip; it never says which one is the
    default.
    """
    plain = default_index().rstrip("/")
    made = Made("") if read.made is None else read.made
    used = Counter(pin.index_url for pin in read.pins if pin.index_url)
    named = [url.rstrip("/") for url in made.option("index-url")]
    has_unknown = any(_is_of_unknown_index(pin) for pin in read.pins)
    if has_unknown and indexes.index_url is not None:
        default, is_plain = without_secrets(indexes.index_url).rstrip("/"), False
    elif named:
        default, is_plain = named[-1], False
    elif not used or plain in used or has_unknown:
        default, is_plain = plain, True
    else:
        default, is_plain = used.most_common(1)[0][0], False
    recorded = [url.rstrip("/") for url in made.option("extra-index-urls")]
    order = dict.fromkeys((*_of_frameworks(read), *recorded, *used))
    typed = [without_secrets(url).rstrip("/") for url in indexes.extra_index_urls] if has_unknown else []
    extra = dict.fromkeys((*typed, *(url for url in order if url in used)))
    return _Places(default, is_plain, tuple(url for url in extra if url != default))


def _is_of_unknown_index(pin: Pin) -> bool:
    return pin.index_url == ""


def _of_frameworks(read: Lock) -> Iterator[str]:
    index = {pin.name: pin.index_url for pin in read.pins if pin.index_url}
    for framework in () if read.stack is None else read.stack.frameworks:
        if framework.package in index:
            yield index[framework.package]


def _lost(request: ExportRequest, was: str, read: Lock) -> Iterator[str]:
    name = request.path.name
    if was not in VENV_FORMATS:
        yield f"only the main dependencies of {name} are exported: no extras, no groups, not the project"
    if request.format_name == REQUIREMENTS and was != REQUIREMENTS:
        if request.indexes.index_url is None and any(map(_is_of_unknown_index, read.pins)):
            yield (
                f"{name} does not record the index of its packages: pip uses its configured index, "
                "unless you give --index-url here"
            )
        yield "a requirements file has only digests: no URLs, no sizes, no dependency table"
        if read.requires_python and read.made is None:
            yield f"the lock is for Python {read.requires_python}, which a requirements file cannot record"
    elif was == REQUIREMENTS and request.format_name == PYLOCK and _has_no_requirements(read):
        yield "the pylock.toml has no dependency table, because the requirements file has no dependencies"


def _has_no_requirements(lock: Lock) -> bool:
    return len(lock.pins) > 1 and not any(pin.requires for pin in lock.pins)
