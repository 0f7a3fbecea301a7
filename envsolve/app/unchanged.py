"""The answer of an earlier command that would be given again: same words, same files, same machine, same pages.

A lock that is made again mostly says the same. What it rests on is kept beside it: the words of the command, the
variables that steer it, every file that was read, as what the machine shows, and until when the pages of the indexes
count. As long as all of that stands, the answer does, and none of the work is done. This module loads little, since it
runs before anything else does.
"""

from __future__ import annotations

import marshal
import os
import sys
import time
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from envsolve import __version__
from envsolve.boundary.secrets import without_secrets
from envsolve.host.fingerprint import fingerprint
from envsolve.index.store import Store, store_at

_BUCKET = "answers"
_PREFIXES = (
    "ENVSOLVE_",
    "UV_",
    "PIP_",
    "CONDA_OVERRIDE_",
    "CONDA_CHANNEL_",
    "CONDA_PREFIX",
    "CUDA_",
    "NVIDIA_",
    "XDG_",
    "LC_",
)
_NAMES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "NO_COLOR", "FORCE_COLOR", "LANG", "NETRC", "CONDARC")
_ALWAYS_ASKS = ("--refresh", "--no-cache", "--offline", "-U", "--upgrade")
"""Options that are about asking again, or about asking nobody."""
_STEERS_LIKE_THEM = ("ENVSOLVE_REFRESH", "ENVSOLVE_NO_CACHE", "ENVSOLVE_OFFLINE", "ENVSOLVE_UPGRADE")

Sign = tuple[str, int, int] | tuple[str]
"""A file by its name, the time it was changed and its size; the name alone where there is no such file."""


class Answer(NamedTuple):
    """What the command wrote: ``output`` is the file of -o, None for standard output; ``notes`` went to stderr.

    ``keeps_pins`` says that it is near to what that file held before, and no answer to the same words without it.
    """

    text: str
    output: str | None
    notes: tuple[str, ...]
    keeps_pins: bool = False


class Grounds(NamedTuple):
    """What an answer rests on: the files that were read or looked for, and until when what the indexes said counts.

    ``since`` is when the first of the files was read, ``expires`` when the pages no longer count, both in seconds since
    the epoch. ``detected`` says that this machine was looked at.
    """

    files: tuple[str, ...]
    since: float
    expires: float
    detected: bool


def recalled(arguments: Sequence[str], place: str | None = None) -> Answer | None:
    """The answer to the same command, where everything it rests on still stands; else None.

    ``place`` is the directory that the command is about, where that is not the one it is typed in.
    """
    store = _store(arguments)
    content = None if store is None else store.read(_BUCKET, _key(arguments, place))
    if content is None:
        return None
    try:
        kept: Any = marshal.loads(content)  # noqa: S302 - a file of this user whose checksum was right
        signs, expires, machine, *answer = kept
        found = Answer._make(answer)
    except (EOFError, ValueError, TypeError):
        return None
    if expires <= time.time() or (machine is not None and machine != _machine()):
        return None
    if any(_sign(sign[0]) != sign for sign in signs):
        return None
    return found if _may_stand(found) else None


def remember(
    arguments: Sequence[str],
    answer: Answer,
    grounds: Grounds,
    written: Sequence[str] = (),
    place: str | None = None,
) -> None:
    """Keep ``answer`` for the next time; not where it rests on what cannot be looked at again so cheaply.

    ``written`` are files of the grounds that this command wrote itself.
    """
    store = _store(arguments)
    machine = _machine() if grounds.detected else None
    if store is None or grounds.expires <= time.time():
        return
    if any(_changed_since(path, grounds.since) for path in grounds.files if path not in written):
        return  # what was read is no longer what lies there
    signs = tuple(map(_sign, sorted({*grounds.files, *_own_files()})))
    bare = answer._replace(text=without_secrets(answer.text), notes=tuple(map(without_secrets, answer.notes)))
    content: Any = (signs, grounds.expires, machine, *bare)
    store.write(_BUCKET, _key(arguments, place), marshal.dumps(content))


def _machine() -> tuple[str, ...]:
    """What says that this is still the same machine: cheap signs, or else what its driver answers now."""
    signs = fingerprint()
    if signs is not None:
        return signs
    from envsolve.host.detection import detect

    host = detect(thorough=False, environ=os.environ)
    gpus = (f"{gpu.name} {gpu.compute_capability} {gpu.count}" for gpu in host.gpus)
    return ("detected", host.platform.value, str(host.driver), str(host.glibc), host.status.value, *gpus)


def _store(arguments: Sequence[str]) -> Store | None:
    """The cache of the command; None where it asks for something that an earlier answer cannot give."""
    words = [word.partition("=")[0] for word in arguments]
    if any(word in _ALWAYS_ASKS for word in words) or any(os.environ.get(name) for name in _STEERS_LIKE_THEM):
        return None
    try:
        return store_at(_cache_directory(arguments), os.environ)
    except Exception:  # noqa: BLE001 - what is wrong with the cache is told by the command itself
        return None


def _cache_directory(arguments: Sequence[str]) -> str | None:
    for position, word in enumerate(arguments):
        if word == "--cache-dir":
            return arguments[position + 1] if position + 1 < len(arguments) else None
        if word.startswith("--cache-dir="):
            return word.partition("=")[2]
    return None


def _key(arguments: Sequence[str], place: str | None) -> str:
    steering = sorted(
        (name, value) for name, value in os.environ.items() if name.startswith(_PREFIXES) or name in _NAMES
    )
    told = repr((__version__, sys.version, sys.prefix, place or os.getcwd(), tuple(arguments), steering))
    return blake2b(told.encode("utf-8", "surrogatepass")).hexdigest()  # words and variables may hold passwords


def _sign(path: str) -> Sign:
    try:
        found = os.stat(path)
    except OSError:
        return (path,)
    return (path, found.st_mtime_ns, found.st_size)


def _changed_since(path: str, moment: float) -> bool:
    """Whether a file was written, or put in the place of another, after ``moment``."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return max(found.st_mtime, found.st_ctime) > moment


def _own_files() -> Iterable[str]:
    """Envsolve itself: folders change when files in them are replaced."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder, below, _ in os.walk(package):
        below[:] = [name for name in below if name != "__pycache__"]
        yield folder


def _may_stand(answer: Answer) -> bool:
    """Whether the file of -o is not there yet, or is this answer: pins of another one would be kept."""
    if answer.output is None:
        return True
    try:
        with open(answer.output, encoding="utf-8", newline="") as file:
            return file.read() == answer.text
    except FileNotFoundError:
        return not answer.keeps_pins and os.path.isdir(os.path.dirname(answer.output) or ".")
    except (OSError, UnicodeDecodeError):
        return False
