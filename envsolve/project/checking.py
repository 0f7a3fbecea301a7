"""Check the keys of a project and parse every string in them."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from envsolve.model.lock_format import SOLVED_FORMATS
from envsolve.model.prose import sentence_list
from envsolve.model.request import Policy
from envsolve.project.keys import (
    ALIASES,
    KEYS,
    MACHINE_KEYS,
    OUTPUT_KEYS,
    TARGET_KEYS,
    Key,
    Kind,
    requirement,
)
from envsolve.project.standard_tables import TABLE_KEYS, Mistake, requires_python, standard_requirements

Values = dict[str, Any]
_TARGET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
_MISSING = object()
_MOST_MISTAKES = 20
"""The maximum number of reported mistakes. A file that is not for envsolve may have any number."""
_CLOSE = 0.75
"""The similarity that a typo must have with a key: cudnn and cuda are different things."""
_MINORS, _PATCHES = range(6, 30), range(30)


def checked(table: Mapping[str, Any], document: Mapping[str, Any], directory: Path) -> tuple[Values, list[Mistake]]:
    """Return the parsed values of ``table`` by the names in the list of keys, and every mistake.

    ``document`` is the pyproject.toml with the standard tables that some keys refer to. File names are relative to
    ``directory``. The values are complete only if there is no mistake.
    """
    check = _Check(directory)
    values = check.table(table, KEYS, ())
    targets = values.get("targets", {})
    check.machine(values, ())
    for name, target in targets.items():
        check.machine(target, ("targets", name))
    if any(key in values for key in TABLE_KEYS):
        values["of-project"] = check.of_standard_tables(values, document)
    check.whole(values, targets)
    check.pythons(values, targets, document)
    return values, check.mistakes


class _Check:
    """One check of a project, which collects ``mistakes``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mistakes: list[Mistake] = []

    def table(self, table: Mapping[str, Any], known: Mapping[str, Key], path: tuple[str, ...]) -> Values:
        """Return the values of a table whose keys are ``known``."""
        found: Values = {}
        for name, value in table.items():
            if len(self.mistakes) >= _MOST_MISTAKES:
                break
            key = known.get(ALIASES.get(name, name))
            if key is None:
                self._add((*path, name), _unknown(name, known))
                continue
            if key.name in found:
                alias = next(alias for alias, it in ALIASES.items() if it == key.name)
                self._add((*path, name), f"{alias} and {key.name} are the same key: give only one")
                continue
            read = self._value(key, value, (*path, name))
            if read is not _MISSING:
                found[key.name] = read
        return found

    def machine(self, values: Values, path: tuple[str, ...]) -> None:
        """Check that the keys about one machine can be combined."""
        gpus = values.get("gpus", ())
        for word, meaning in (("none", "requests the CPU"), ("auto", "uses this machine's GPUs")):
            if word in gpus and len(gpus) > 1:
                self._add((*path, "gpus"), f"{word!r} {meaning} and cannot be combined with other GPUs")
        if values.get("hosts") and (gpus or "driver" in values):
            self._add((*path, "hosts"), "host files contain the GPUs and the driver: remove gpus and driver")
        for key in ("driver", "cuda"):
            if gpus == ("none",) and key in values:
                self._add((*path, key), f"gpus is 'none', which requests the CPU, but {key} is for a GPU")

    def of_standard_tables(self, values: Values, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the requirements from [project] and [dependency-groups] that the keys request."""
        requirements, wrong = standard_requirements(values, document)
        self.mistakes += wrong
        for it in requirements:
            try:
                requirement(it.requirement)
            except ValueError as error:
                self.mistakes.append(Mistake(it.path, str(error), it.entry))
        return tuple(it.requirement for it in requirements)

    def pythons(self, values: Values, targets: Mapping[str, Values], document: Mapping[str, Any]) -> None:
        """Limit every Python to ``requires-python`` of [project], which is installed with the locked packages.

        ``names-python`` says whether the user named a Python, which ``requires-python`` does not.
        """
        required = requires_python(document, self.mistakes)
        for name, table in (("", values), *targets.items()):
            own = table.get("python")
            if own is not None:
                table["names-python"] = True
            if required is None or (name and own is None):
                continue
            both = required if own is None else required & own
            if not any(both.contains(f"3.{minor}.{patch}") for minor in _MINORS for patch in _PATCHES):
                path = ("targets", name, "python") if name else ("python",)
                self._add(path, f"no Python {own} is in the project's requires-python, which is {required}")
            table["python"] = both

    def whole(self, values: Values, targets: Mapping[str, Values]) -> None:
        """Check what depends on several keys."""
        shared = {name: it for name, it in targets.items() if "outputs" not in it}
        reported = any(it.path == ("outputs",) for it in self.mistakes)
        if (shared or not targets) and not values.get("outputs") and not reported:
            self._add(("outputs",), 'no output file is given: outputs = ["pylock.toml"]')
        if targets and not shared and values.get("outputs"):
            self._add(("outputs",), "every target has its own outputs, so these are unused")
        for name, target in shared.items():
            for key in (key for key in target if key not in MACHINE_KEYS):
                why = (
                    f"{key} is part of the request, and {name} shares the project's outputs: give it its own `outputs`"
                )
                self._add(("targets", name, key), why)
        self._require_packages(values, targets)
        self._written_once(values, targets)

    def _require_packages(self, values: Values, targets: Mapping[str, Values]) -> None:
        keys = ("frameworks", "requirements", "requirement-files", "of-project")
        owning = [it for it in targets.values() if "outputs" in it]
        if any(values.get(key) for key in keys) or (owning and all(any(map(it.get, keys)) for it in owning)):
            return
        if not self.mistakes:
            self._add(("frameworks",), 'the project requests no packages: frameworks = ["pytorch"]')

    def _written_once(self, values: Values, targets: Mapping[str, Values]) -> None:
        written: dict[str, str] = {}
        for name, table in (("", values), *targets.items()):
            path = ("targets", name, "outputs") if name else ("outputs",)
            for output in table.get("outputs", ()):
                folded = PurePosixPath(output["file"]).as_posix().casefold()
                if folded in written:
                    self._add(
                        path, f"{output['file']} is written twice, here and for {written[folded] or 'the project'}"
                    )
                written.setdefault(folded, name)

    def _value(self, key: Key, value: object, path: tuple[str, ...]) -> object:
        """The parsed value of ``key``, or _MISSING if it is invalid, which is reported."""
        if key.kind is Kind.TEXT and isinstance(value, str):
            return self._read(key, value, path)
        if key.kind is Kind.FLAG and isinstance(value, bool):
            return value
        if key.kind is Kind.TARGETS and isinstance(value, dict):
            return self._targets(value, path)
        listed = [value] if isinstance(value, str) and key.kind is Kind.TEXT_OR_TEXTS else value
        if not isinstance(listed, list) or key.kind in (Kind.TEXT, Kind.FLAG, Kind.TARGETS):
            return self._wrong(key, path)
        if not listed:
            self._add(path, f"the list is empty: remove {key.name}, or set a value such as {key.example}")
            return _MISSING
        return (self._outputs if key.kind is Kind.OUTPUTS else self._all)(key, listed, path)

    def _all(self, key: Key, texts: Sequence[object], path: tuple[str, ...]) -> object:
        if not all(isinstance(it, str) for it in texts):
            return self._wrong(key, path)
        read = [self._read(key, str(it), path) for it in texts]
        return _MISSING if _MISSING in read else tuple(dict.fromkeys(read) if key.name == "platforms" else read)

    def _read(self, key: Key, text: str, path: tuple[str, ...]) -> object:
        try:
            value = key.parse(text)
        except ValueError as error:
            self._add(path, str(error))
            return _MISSING
        if value is Policy.LOCKED:
            self._add(path, "locked versions always stay, unless -U or -P upgrades them")
            return _MISSING
        if key.is_file and (why := _unreadable(self.directory, text)) is not None:
            self._add(path, why)
            return _MISSING
        return value

    def _targets(self, value: Mapping[str, Any], path: tuple[str, ...]) -> object:
        found: dict[str, Values] = {}
        for name, table in value.items():
            if not _TARGET_NAME.match(name):
                self._add((*path, name), "a target name consists of letters, digits, - and _")
            elif not isinstance(table, dict):
                self._add((*path, name), "a target is a table: [tool.envsolve.targets.NAME]")
            else:
                found[name] = self.table(table, TARGET_KEYS, (*path, name))
        return found

    def _outputs(self, key: Key, listed: Sequence[object], path: tuple[str, ...]) -> object:
        found = []
        for entry in listed:
            table = {"file": entry} if isinstance(entry, str) else entry
            if not isinstance(table, dict) or not isinstance(table.get("file"), str):
                return self._wrong(key, path)
            for name in (name for name in table if name not in OUTPUT_KEYS):
                self._add(path, f"an output has the keys file and format, not {name!r}")
            if not isinstance(table.get("format", ""), str):
                return self._wrong(key, path)
            why = _unfit(table["file"])
            if why is not None:
                self._add(path, why)
            if table.get("format", SOLVED_FORMATS[0]) not in SOLVED_FORMATS:
                self._add(path, f"unknown format {table['format']!r}; known: {', '.join(SOLVED_FORMATS)}")
            file = table["file"]
            kept = {name: table[name] for name in OUTPUT_KEYS if name in table}
            found.append(kept | {"file": posixpath.normpath(file) if ".." in PurePosixPath(file).parts else file})
        return tuple(found)

    def _wrong(self, key: Key, path: tuple[str, ...]) -> object:
        self._add(path, f"{key.name} is {key.kind.value}, such as {key.example}")
        return _MISSING

    def _add(self, path: tuple[str, ...], text: str) -> None:
        self.mistakes.append(Mistake(path, text))


def _unknown(name: str, known: Mapping[str, Key]) -> str:
    if name in KEYS:
        return f"{name} is a key of the project, not of a target"
    meant = _meant(name.replace("_", "-").lower(), known)
    return f"unknown key {name!r}; " + (f"did you mean {meant}?" if meant else f"known: {', '.join(known)}")


def _meant(name: str, known: Mapping[str, Key]) -> str:
    """The key most similar to ``name``, else keys that share a word with it: ``groups``, ``cuda-version``."""
    import difflib

    words = [*known, *(alias for alias, key in ALIASES.items() if key in known)]
    close = [ALIASES.get(it, it) for it in difflib.get_close_matches(name, words, n=1, cutoff=_CLOSE)]
    return sentence_list(close or [it for it in known if name in it.split("-") or it in name.split("-")], "or")


def _unreadable(directory: Path, file: str) -> str | None:
    """Why ``file``, which a project names, cannot be read, or None."""
    if file == "-":
        return "- is standard input, but a project needs files"
    path = directory / file
    if (why := _unnamed(file)) is not None or path.is_file():
        return why
    return f"{file} is not a regular file" if path.exists() else f"{file} does not exist"


def _unnamed(file: str) -> str | None:
    """Why this Python cannot name ``file``, or None. In the locale C it may only support ASCII."""
    try:
        file.encode("utf-8")  # a command line may have bytes that a project file cannot
        os.fsencode(file)
    except UnicodeEncodeError:
        encoding = sys.getfilesystemencoding()
        way_out = "" if encoding == "utf-8" else ": set PYTHONUTF8=1"
        return f"a file with that name cannot be opened here, because file names are {encoding}{way_out}"
    return None


def _unfit(file: str) -> str | None:
    """Why ``file`` cannot be written for a project, or None."""
    if _unnamed(file) is not None:
        return f"{file!a}: {_unnamed(file)}"
    if not file.strip() or not file.isprintable():
        return f"{file!r} is not a file name"
    windows = PureWindowsPath(file)
    if PurePosixPath(file).is_absolute() or windows.is_absolute() or windows.drive:
        return f"{file} is an absolute path: use a path relative to the project"
    depth = 0
    for part in windows.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return f"{file} leads out of the project"
    return f"{file} is the directory of the project" if depth == 0 else None
