"""pylock.toml for a pip that does not read it, which is any before 26.1: the same files as hashed requirements.

What stands in the lock becomes words of one line, or it is refused: a line of its own could be an option of pip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from envsolve.boundary.answers import ask_python, not_usable
from envsolve.boundary.files import FileError, toml_document
from envsolve.errors import Hint, UsageError

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s$]+", re.IGNORECASE)
"""Without white space, and without what pip could take for a variable of the machine."""
_FOLDER = re.compile(r"[^\s$&-][^\s$&]*")
_ALGORITHM = re.compile(r"[a-z0-9_]+")
_DIGEST = re.compile(r"[0-9a-f]+")

_VERSION = "'.'.join(map(str, sys.version_info[:3]))"
_MARKERS = (
    f"{{'implementation_name': sys.implementation.name, 'implementation_version': {_VERSION}, "
    "'os_name': os.name, 'platform_machine': platform.machine(), 'platform_release': platform.release(), "
    "'platform_system': platform.system(), 'platform_version': platform.version(), "
    f"'python_full_version': {_VERSION}, 'platform_python_implementation': platform.python_implementation(), "
    "'python_version': '.'.join(map(str, sys.version_info[:2])), 'sys_platform': sys.platform}"
)


def requirements_of(text: str, python: Path, environ: Mapping[str, str]) -> str:
    """The packages of the lock ``text`` that the interpreter ``python`` gets, as a requirements file.

    Raises UsageError ``lock-unreadable`` for an entry of another shape than the specification has, OutsideError
    ``python-not-usable`` where the interpreter does not say what markers are compared with.
    """
    values = _marker_values(python, environ)
    try:
        packages = [it for it in toml_document(text)["packages"] if _applies(it.get("marker"), values)]
        indexes = dict.fromkeys(_word(_ADDRESS, it["index"]) for it in packages if "index" in it)
        lines = [line for package in packages for line in _lines(package)]
    except (FileError, KeyError, TypeError, AttributeError, ValueError):
        hint = Hint("install uv, which reads it by itself", "pip install uv")
        raise UsageError(
            "lock-unreadable", "the pylock.toml has an entry that pip cannot be told", hints=(hint,)
        ) from None
    options = [f"--{'extra-' if number else ''}index-url {it}" for number, it in enumerate(indexes)]
    return "".join(f"{line}\n" for line in (*options, *lines))


def _marker_values(python: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    found = ask_python(python, _MARKERS, environ)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise not_usable(python, "gave an answer that makes no sense", ("it was asked for the values of markers",))
    return found


def _applies(marker: str | None, values: Mapping[str, str]) -> bool:
    from packaging.markers import Marker

    extra: dict[str, str | frozenset[str]] = {**values, "extras": frozenset(), "dependency_groups": frozenset()}
    return marker is None or Marker(marker).evaluate(extra, context="lock_file")


def _lines(package: Mapping[str, Any]) -> Iterator[str]:
    """A package as pip is told it: an archive by its address, else a version with the hashes of its files."""
    name = canonicalize_name(package["name"], validate=True)
    archive = package.get("archive")
    if archive is not None:
        folder = f"#subdirectory={_word(_FOLDER, archive['subdirectory'])}" if "subdirectory" in archive else ""
        yield f"{name} @ {_word(_ADDRESS, archive['url'])}{folder} {_hashes([archive])}"
        return
    files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
    if not files:
        raise ValueError(name)
    yield f"{name}=={Version(package['version'])} {_hashes(files)}"


def _hashes(files: list[Mapping[str, Any]]) -> str:
    found = {
        f"{_word(_ALGORITHM, algorithm)}:{_word(_DIGEST, digest)}"
        for file in files
        for algorithm, digest in file["hashes"].items()
    }
    return " ".join(f"--hash={digest}" for digest in sorted(found))


def _word(pattern: re.Pattern[str], value: str) -> str:
    """``value`` where it is what ``pattern`` says; ValueError where it is not."""
    if pattern.fullmatch(value) is None:
        raise ValueError(value)
    return value
