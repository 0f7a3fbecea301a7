"""``[tool.uv]`` of a pyproject.toml: what makes uv lock the versions that envsolve locked, from the same indexes.

Every version has the marker of its machine, so that uv is free on other platforms and Pythons. If all targets for a
machine have a version, it is in ``constraint-dependencies``, which limits every requirement on the package. Else it is
in the extra of each target that has it, which limits nothing outside of it; ``conflicts`` keeps extras apart. An index
other than the default is ``explicit`` and assigned to its packages in ``sources``, which uv applies to constraints too.
There is no ``required-environments``: each version has a file for its machine, and uv would also require one for
everything in extras that are not locked.

Sources: uv's documentation (concepts/projects/dependencies, concepts/projects/config, concepts/indexes,
reference/settings).

Each line that is written ends with :data:`~envsolve.model.own_lines.OWN`. All other lines are the user's and stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement

from envsolve.boundary.files import FileError, toml_document
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.checked_pins import checked_address, checked_url
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.marker_ways import NOWHERE, Ways, both, either, marker_of, ways_of
from envsolve.lockfile.toml import Value, quoted_key, string, value
from envsolve.model.names import normalized
from envsolve.model.own_lines import OWN, without_own_lines
from envsolve.model.package import Pin
from envsolve.model.release import Source

_UV = ("tool", "uv")
_EXTRAS = ("project", "optional-dependencies")
_CONSTRAINTS, _OVERRIDES = "constraint-dependencies", "override-dependencies"
_CONFLICTS = "conflicts"
_BUILD = re.compile(r"/whl/([a-z]+[0-9.]*)\Z")
"""The end of the address of an index of PyTorch, or of a mirror: the build."""


class LockedTarget(NamedTuple):
    """What one target of a project locked, with a lock for each of its platforms.

    ``extra`` is the name of the target and of the extra that installs it, "" for what is installed without an extra.
    ``requires`` are the requirements that uv has to find in the project, without a version: ``jax[cuda13]``.
    ``overrides`` are requirements that replace those of packages.
    """

    extra: str
    locks: tuple[Lock, ...]
    requires: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()


class DefaultIndex(NamedTuple):
    """The index of packages without another one. ``is_named`` is true if the project names it."""

    url: str
    is_named: bool = False


class _Place(NamedTuple):
    """One version of a package: the specifier after its name, and its source.

    ``index`` is the address of its index, "" for the default one, ``url`` that of a package without an index.
    """

    version: str
    index: str = ""  # type: ignore[assignment]  # the key of uv; tuple.index is not used
    url: str = ""


class _Found(NamedTuple):
    """One version of a package in the lock of one target, on the machines of that lock or, with ``ways``, on some."""

    extra: str
    machine: str
    place: _Place
    ways: Ways


_Places = dict[_Place, Ways]


def with_settings(text: str, targets: Sequence[LockedTarget], default: DefaultIndex) -> str:
    """Return ``text``, the content of a pyproject.toml, with the settings that make uv lock the same as ``targets``.

    Raises UsageError ``uv-settings-refused`` if an entry of the user or the project conflicts with it.
    """
    bare = without_own_lines(text)
    settings = _Settings(_parsed(bare), targets, default)
    settings.take()
    page = _Page(bare)
    page.add_indexes(settings.indexes)
    page.add_sources(settings.sources)
    for key, entries in settings.lists.items():
        page.add_to_list(_UV, key, entries)
    for extra, entries in settings.extras.items():
        page.add_to_list(_EXTRAS, extra, entries, is_needed=True)
    _require_whole(page.text, bare)
    return page.text


class _Settings:
    """The entries for uv, in addition to those of the user in ``document``."""

    def __init__(self, document: Mapping[str, Any], targets: Sequence[LockedTarget], default: DefaultIndex) -> None:
        self._targets, self._default = targets, default
        self._uv = _table(_table(document.get("tool")).get("uv"))
        project = _table(document.get("project"))
        if not project:
            raise _refused("it has no table [project], which uv needs", Hint("write one", "uv init --bare"))
        own_extras = _table(project.get("optional-dependencies"))
        self._extra_names = {normalized(name): name for name in own_extras}
        groups = (texts for texts in _table(document.get("dependency-groups")).values())
        dependencies = list(_requirements(project.get("dependencies")))
        self._of_extra = {normalized(name): [*dependencies, *_requirements(it)] for name, it in own_extras.items()}
        self._dependencies = dependencies
        self._required = [*dependencies, *(it for of in (*own_extras.values(), *groups) for it in _requirements(of))]
        self.indexes: list[dict[str, Value]] = []
        self.sources: dict[str, list[Value]] = {}
        self.extras: dict[str, list[str]] = {self._extra_name(it.extra): [] for it in targets if it.extra}
        self.lists: dict[str, list[str]] = {}
        self._index_names = {_address(it): str(it.get("name", "")) for it in _tables(self._uv.get("index"))}
        sources = _table(self._uv.get("sources"))
        self._own_sources = {normalized(name): _tables(sources[name]) for name in sources}

    def take(self) -> None:
        """Add everything. Raises UsageError."""
        by_name: dict[str, list[_Found]] = {}
        for target in self._targets:
            for name, it in (it for lock in target.locks for it in self._placed(lock, target.extra)):
                by_name.setdefault(name, []).append(it)
        missing = {(target.extra, name): text for target in self._targets for name, text in self._missing(target)}
        constraints = [it for name in sorted(by_name) for it in self._take_package(name, by_name[name], missing)]
        self.lists[_OVERRIDES] = list(map(string, self._new_overrides()))
        self.lists[_CONSTRAINTS] = list(map(string, constraints))
        extras = list(self.extras)
        if len(extras) > 1 and not any(set(extras) <= names for names in self._own_conflicts()):
            self.lists[_CONFLICTS] = [_array({"extra": it} for it in extras)]
        if self._default.is_named and self._default.url not in self._index_names:
            self.indexes.insert(0, {"url": self._default.url, "default": True})

    def _take_package(
        self, name: str, found: Sequence[_Found], missing: Mapping[tuple[str, str], str]
    ) -> Iterator[str]:
        """Add a package that was ``found`` in these places. Yield the constraints on it, if they are all the same.

        ``missing`` are requirements that the project lacks, by target and name.
        """
        extras = tuple(dict.fromkeys(it.extra for it in found))
        on_machines = _by_machine(found)
        if "" in extras and not all(_is_same(of.values()) for of in on_machines.values()):
            others = " and ".join(filter(None, extras))
            message = f"{name} is locked in other versions for {others} than for the targets that share their outputs"
            raise _refused(message, Hint("give each target its own `outputs`"))
        is_shared = all(_is_same(of.values()) and of.keys() == self._targets_on(it) for it, of in on_machines.items())
        if "" in extras or (is_shared and not any((extra, name) in missing for extra in extras)):
            places = _by_place(found)
            self._add_sources(name, places, "")
            yield from (_requirement(name, place, ways) for place, ways in places.items() if place.version)
            return
        for extra in extras:
            requirement, places = missing.get((extra, name), name), _by_place(it for it in found if it.extra == extra)
            own = self._extra_name(extra)
            self.extras[own] += [string(_requirement(requirement, place, ways)) for place, ways in places.items()]
            self._add_sources(name, places, own)

    def _targets_on(self, machine: str) -> set[str]:
        """The targets with a lock for this machine."""
        return {target.extra for target in self._targets if machine in map(_machine, target.locks)}

    def _placed(self, lock: Lock, extra: str) -> Iterator[tuple[str, _Found]]:
        """The settings of uv for the pins of a lock, by name. Raises UsageError if the user's own settings differ."""
        machine, values = _machine(lock), lock.interpreter.marker_values() if lock.interpreter else {}
        for pin in lock.pins:
            if pin.index_url is not None:
                index = checked_url(pin.index_url).rstrip("/")
                place = _Place(f"=={pin.version}", "" if index in ("", self._default.url) else index)
            elif pin.files[0].is_archive and not any(it.url for it in _named(pin.name, self._required)):
                place = _Place("", url=checked_address(pin.files[0].url))
            else:
                continue  # uv reads it from the project's requirement
            self._require_admitted(pin, values)
            self._require_same_source(pin.name, place, values, extra)
            yield pin.name, _Found(extra, machine, place, both(ways_of(machine), ways_of(pin.marker)))

    def _missing(self, target: LockedTarget) -> Iterator[tuple[str, str]]:
        """The requirements of ``target`` that uv would not find in the project, by the names of their packages.

        Without a separate extra, the project's extras count: the user knows with which of them it is installed.
        """
        extra = normalized(target.extra)
        required = self._of_extra.get(extra, self._dependencies) if extra else self._required
        for text in target.requires:
            requested = Requirement(text)
            name = normalized(requested.name)
            if any(requested.extras <= it.extras for it in _named(name, required)):
                continue
            if not target.extra:
                message = f"the lock has {text}, which [project] dependencies do not require, so that uv leaves it out"
                raise _refused(message, Hint("add it", f"uv add --frozen '{text}'"))
            yield name, text

    def _add_sources(self, name: str, places: _Places, extra: str) -> None:
        for place, ways in places.items():
            if (place.index or place.url) and name not in self._own_sources:
                where = {"index": self._index_name(place.index)} if place.index else {"url": place.url}
                only = {"marker": marker_of(ways), **({"extra": extra} if extra else {})}
                self.sources.setdefault(name, []).append(where | only)

    def _require_same_source(self, name: str, place: _Place, values: Mapping[str, str], extra: str) -> None:
        """Raise UsageError if [tool.uv.sources] of the user has another source for a package than the lock."""
        own = self._own_sources.get(name)
        if own is None:
            return
        addresses = {index: url for url, index in self._index_names.items() if index}
        holding = [
            addresses.get(str(it.get("index")), "elsewhere")
            for it in own
            if it.get("extra", extra) == extra and "group" not in it and _holds(it.get("marker"), values)
        ]
        there, here = holding[0] if holding else self._default.url, place.url or place.index or self._default.url
        if there != here:
            hint = Hint(f"remove {name} there, so that envsolve writes it")
            raise _refused(f"[tool.uv.sources] takes {name} from another place than the lock: {here}", hint)

    def _index_name(self, url: str) -> str:
        name = self._index_names.get(url)
        if not name:
            build = _BUILD.search(url)
            parts = urlsplit(url)
            slug = re.sub(r"[^A-Za-z0-9.]+", "-", f"{parts.hostname}{parts.path.removesuffix('/simple')}")
            name = f"{Source.PYTORCH}-{build[1]}" if build else slug.strip("-")
            if name in self._index_names.values():
                raise _refused(f"[[tool.uv.index]] already has another index {name}", Hint("rename that index"))
            self.indexes.append({"name": name, "url": url, "explicit": True})
            self._index_names[url] = name
        return name

    def _require_admitted(self, pin: Pin, values: Mapping[str, str]) -> None:
        """Raise UsageError if a constraint of the user excludes a version."""
        for it in _requirements(self._uv.get(_CONSTRAINTS)):
            if normalized(it.name) != pin.name or it.specifier.contains(pin.version, prereleases=True):
                continue
            if it.marker is None or _holds(str(it.marker), values):
                message = f"constraint-dependencies in [tool.uv] has {str(it)!r}, but the lock has {pin.version}"
                raise _refused(message, Hint("put it into a file and lock with it: constraint-files = [...]"))

    def _new_overrides(self) -> Iterator[str]:
        own = self._uv.get(_OVERRIDES)
        overrides = dict.fromkeys(it for target in self._targets for it in target.overrides)
        return (it for it in overrides if not isinstance(own, list) or it not in own)

    def _extra_name(self, extra: str) -> str:
        return self._extra_names.get(normalized(extra), extra)

    def _own_conflicts(self) -> Iterator[set[str]]:
        found = self._uv.get(_CONFLICTS)
        for entries in found if isinstance(found, list) else ():
            yield {str(_table(it).get("extra")) for it in entries} if isinstance(entries, list) else set()


class _Page:
    """The text, with methods to add lines that end with the mark."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def add_to_list(self, table: tuple[str, ...], key: str, entries: Sequence[str], *, is_needed: bool = False) -> None:
        """Add to the list at ``key`` of ``table``. A missing table is created if it has entries or is needed."""
        lines = [f"    {it}," for it in entries]
        begin = self._end_of((*table, key), of_list=True)
        if begin is not None and lines:
            self._insert(begin, lines, after_line=False)
        elif begin is None and (lines or is_needed):
            self._add_below(table, [f"{quoted_key(key)} = [", *lines, "]"])

    def add_sources(self, sources: Mapping[str, Sequence[Value]]) -> None:
        """Add the sources of each package."""
        lines = [f"{quoted_key(name)} = {_array(found)}" for name, found in sources.items()]
        if lines:
            self._add_below((*_UV, "sources"), lines)

    def add_indexes(self, indexes: Iterable[Mapping[str, Value]]) -> None:
        """Add an entry for each index, in this order."""
        for table in indexes:
            fields = [f"{key} = {value(it)}" for key, it in table.items()]
            self._append([f"[[{'.'.join((*_UV, 'index'))}]]", *fields])

    def _add_below(self, table: tuple[str, ...], lines: Sequence[str]) -> None:
        end = self._end_of(table)
        if end is None:
            self._append([f"[{'.'.join(table)}]", *lines])
        else:
            self._insert(end, lines)

    def _append(self, lines: Sequence[str]) -> None:
        if self.text and not self.text.endswith("\n"):
            self.text += self._newline
        if not self.text.endswith((self._newline * 2, f"{OWN}{self._newline}")):
            self.text += self._newline
        self._insert(len(self.text), lines)

    def _insert(self, place: int, lines: Sequence[str], *, after_line: bool = True) -> None:
        """Insert whole lines at ``place``, the start of a line, or without ``after_line`` its end."""
        own = "".join(f"{line}  {OWN}{self._newline}" for line in lines)
        rest = self.text[place:]
        if not after_line and not re.match(r"[ \t]*(?:#[^\n]*)?\r?\n", rest):
            own = self._newline + own
        elif not after_line:
            line, end, rest = rest.partition("\n")
            own = line + end + own
        self.text = self.text[:place] + own + rest

    def _end_of(self, path: tuple[str, ...], *, of_list: bool = False) -> int | None:
        """The end of the header of the table ``path``, or of the opening bracket of the list there."""
        from envsolve.project.lines import statements_of

        for it in statements_of(self.text):
            if it.path == path and it.is_header is not of_list:
                return self.text.index("[", self.text.index("=", it.start)) + 1 if of_list else it.end
        return None


def _require_whole(text: str, bare: str) -> None:
    """Raise UsageError if ``text`` is not the intended document: some forms of tables cannot be extended."""
    try:
        toml_document(text)
        is_whole = toml_document(without_own_lines(text)) == toml_document(bare)
    except FileError:
        is_whole = False
    if not is_whole:
        message = "its tables are written in a way that leaves no room for lines of envsolve"
        raise _refused(message, Hint("write [tool.uv], [tool.uv.sources] and [[tool.uv.index]] as headers"))


def _machine(lock: Lock) -> str:
    """The marker of the machines that a lock is for: their platform and Python minor."""
    interpreter = lock.interpreter
    if interpreter is None:
        raise _refused("the lock does not record its platform and its Python", Hint("lock again", "envsolve lock -U"))
    values = interpreter.marker_values()
    names = ("sys_platform", "platform_machine", "python_version")
    return " and ".join(f"{name} == '{values[name]}'" for name in names)


def _by_machine(found: Iterable[_Found]) -> dict[str, dict[str, set[tuple[_Place, Ways]]]]:
    """What targets have of a package, by machine and target."""
    by_machine: dict[str, dict[str, set[tuple[_Place, Ways]]]] = {}
    for it in found:
        by_machine.setdefault(it.machine, {}).setdefault(it.extra, set()).add((it.place, it.ways))
    return by_machine


def _is_same(values: Iterable[object]) -> bool:
    first, *others = values
    return all(it == first for it in others)


def _by_place(found: Iterable[_Found]) -> _Places:
    places: _Places = {}
    for it in found:
        places[it.place] = either(places.get(it.place, NOWHERE), it.ways)
    return places


def _array(entries: Iterable[Value]) -> str:
    return f"[{', '.join(map(value, entries))}]"


def _requirement(requirement: str, place: _Place, ways: Ways) -> str:
    return f"{requirement}{place.version} ; {marker_of(ways)}"


def _requirements(texts: object) -> Iterator[Requirement]:
    """The requirements in a list. Invalid ones are left to uv."""
    for text in texts if isinstance(texts, list) else ():
        try:
            yield Requirement(text)
        except (InvalidRequirement, TypeError):
            continue


def _named(name: str, requirements: Iterable[Requirement]) -> Iterator[Requirement]:
    return (it for it in requirements if normalized(it.name) == name)


def _address(index: Mapping[str, Any]) -> str:
    return str(index.get("url", "")).rstrip("/")


def _holds(marker: object, values: Mapping[str, str]) -> bool:
    """Whether a marker, if any, holds on a machine. An invalid one is left to uv."""
    try:
        return not isinstance(marker, str) or Marker(marker).evaluate(dict(values))
    except ValueError:
        return True


def _tables(found: object) -> list[Mapping[str, Any]]:
    """The tables in a list, or a single one in place of a list."""
    return [_table(it) for it in (found if isinstance(found, list) else [found] if found else [])]


def _table(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        return toml_document(text)
    except FileError as error:
        raise _refused(error.reason, Hint("fix the file")) from None


def _refused(why: str, hint: Hint) -> UsageError:
    return UsageError("uv-settings-refused", f"cannot write [tool.uv] of pyproject.toml: {why}", hints=(hint,))
