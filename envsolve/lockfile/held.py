"""What an answer that was written earlier holds, read back so that a new one can stay near it.

Only entries that pin one version are read, plain or quoted: people edit these files by hand, and a range, or a line
that is not understood, holds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.own_file import LONGEST
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.request import Held

_CONDA_PIN = re.compile(r"(?:\S+::)?([A-Za-z0-9._-]+) ?=([0-9][\w.!]*)(?:=(\S+))?\Z")
_PIP_PIN = re.compile(r"([A-Za-z0-9._-]+)(?:\[[\w,.-]*\])? ?== ?([0-9][\w.!+]*)(?: --hash=\S+)*\Z")
_ENTRY = re.compile(r"""\s*-\s+(["']?)(.*?)\1\s*(?:\s#.*)?\Z""")


def read_held(path: Path, platform: str = "") -> Held:
    """What the environment.yml or JSON answer at ``path`` pins; nothing where there is no file yet.

    Of a JSON answer for several platforms it is the part for ``platform``.

    Raises UsageError where there is one that cannot be read.
    """
    try:
        text = read_text(path, LONGEST)
    except FileError as error:
        hint = Hint("give -o the file of an earlier answer, or another policy than locked")
        raise UsageError("held-unreadable", f"cannot read {path}: {error.reason}", hints=(hint,)) from error
    if text is None:
        return Held()
    return _from_json(text, platform) if text.lstrip().startswith("{") else _from_lines(text)


def _from_lines(text: str) -> Held:
    pins = {name: (version, build) for name, version, build in _pins(text)}
    toolkit = next((_minor(pins[name][0]) for name in (*CUDA_PACKAGES, "cuda-toolkit") if name in pins), None)
    python = _minor(pins["python"][0]) if "python" in pins else None
    packages = tuple((name, *pin) for name, pin in pins.items() if name != "python")
    return Held(packages, python, toolkit)


def _minor(version: str) -> str:
    """The part that a stack decides; an exact environment has 3.12.11 of Python and 11.8.0 of cudatoolkit."""
    return ".".join(version.split(".")[:2])


def _pins(text: str) -> Iterator[tuple[str, str, str]]:
    for found in filter(None, map(_ENTRY.match, text.splitlines())):
        entry: str = found[2]
        pin = _CONDA_PIN.match(entry)
        wheel = _PIP_PIN.match(entry)
        if pin is not None:
            yield pin[1], pin[2], pin[3] or ""
        elif wheel is not None:
            yield wheel[1], wheel[2], ""


def _from_json(text: str, platform: str) -> Held:
    import json

    try:
        answer = json.loads(text)
        parts = {part["host"]["platform"]: part for part in answer.get("platforms", ())}
        part = parts.get(platform, answer)
        packages = tuple((it["package"], it["version"], f"{it['build']}*") for it in part["frameworks"])
        held = Held(packages, part["python"], part["cuda"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _no_answer() from None
    texts = [held.python, *([] if held.cuda is None else [held.cuda]), *(word for pin in packages for word in pin)]
    if not all(isinstance(word, str) for word in texts):
        raise _no_answer()
    return held


def _no_answer() -> UsageError:
    hint = Hint("give -o the file of an earlier answer, or another policy than locked")
    return UsageError("held-unreadable", "the file of -o is JSON, but no answer of envsolve", hints=(hint,))
