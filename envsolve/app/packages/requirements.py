"""The Python requirements of a request, typed or in files, as parsed needs with their origin."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from envsolve.boundary.files import FileError, read_bytes
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, Refused, UsageError
from envsolve.index.fitting import Interpreter
from envsolve.index.requirement_file import FileRequirements, Line, place_of, read_requirement_file, refuse_all
from envsolve.lockfile.options import BUILD_CONSTRAINTS, CONSTRAINTS, Options
from envsolve.model.host import Platform
from envsolve.model.names import is_name, normalized
from envsolve.model.need import Markers, Need, admits_nothing, joined, parse_need, with_open_marker
from envsolve.model.note import Note
from envsolve.model.package import Hashes
from envsolve.model.prose import sentence_list
from envsolve.model.reference import (
    EDITABLE,
    AddressKind,
    Reference,
    as_typed,
    editable_folder,
    gives_address,
    is_path,
    kind_of,
    named,
    parse_reference,
    quoted_path,
    unnamed,
)
from envsolve.model.request import Packages
from envsolve.model.requester import COMMAND_LINE
from envsolve.model.versions import parsed_version

if TYPE_CHECKING:
    from envsolve.index.client import Direct

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WITH_EXTRAS = re.compile(r"(?P<address>[^\[#]+)(?P<extras>\[[A-Za-z0-9._, -]*\])(?P<rest>#.*)?\Z")
"""A path or an address followed by extras, as pip accepts it: ``.[dev]``."""
_OF_COMMIT = re.compile(r"/([^/]+)(?:/-)?/archive/")
"""The repository in the address of an archive that GitHub or GitLab makes of a commit."""
_LONGEST = 10_000_000
_ADDRESSES = "write 'NAME @ https://...whl', 'NAME @ git+https://...', or the path of a folder such as ./NAME"
_ONE_VERSION = re.compile(r"===?[^,*]+")
OVERRIDE = "an override"
"""The origin of a constraint that comes from an override."""
_MOST_ORIGINS = 8
"""The most origins that are shown for one requirement."""


class Requirements(NamedTuple):
    """The requirements and constraints of a request, each with its origin, and the indexes that files name.

    A requirement is listed once for each origin, up to a limit. ``direct`` has what was read at the addresses of
    requirements, by address (direct_packages). ``hashed`` are the requirements and constraints with hashes of their
    files. ``overrides`` are all overrides; those that apply to the target are also constraints.
    """

    needs: tuple[tuple[Need, str], ...]
    constraints: tuple[tuple[Need, str], ...]
    direct: Mapping[str, Direct]
    index_url: str | None
    extra_index_urls: tuple[str, ...]
    hashed: tuple[tuple[Need, Hashes], ...] = ()
    overrides: tuple[Need, ...] = ()
    replaced: tuple[tuple[Need, str], ...] = ()
    """The requirements that an override replaces."""
    build_constraints: tuple[str, ...] = ()
    excluded: tuple[tuple[str, str], ...] = ()
    """The requirements that are left out: the name under which each is excluded, and its origin."""
    empty: tuple[str, ...] = ()
    """The requirement files that have nothing but comments."""
    ignored: tuple[str, ...] = ()
    """The places of ``--find-links`` in files."""

    @property
    def notes(self) -> Iterator[Note]:
        """Notes on empty files, where most likely another was meant (uv warns, too), and on options without effect."""
        for name in self.empty:
            yield Note("requirements-empty", f"{name} has no requirements").about(file=name)
        if self.ignored:
            yield Note("find-links-not-read", f"--find-links in {sentence_list(self.ignored)} is ignored")

    @property
    def overridden(self) -> Mapping[str, tuple[str, ...] | None]:
        """The extras that overrides add, by project; None for a project whose overrides do not apply here."""
        holding = {need for need, _ in self.constraints}
        found: dict[str, tuple[str, ...] | None] = dict.fromkeys(it.name for it in self.overrides)
        for need in filter(holding.__contains__, self.overrides):
            found[need.name] = joined(found[need.name] or (), need.extras)
        return found

    @property
    def hashes(self) -> Mapping[str, frozenset[tuple[str, str]]]:
        """The only allowed hashes of a project's files, by name: those that all lines on it list."""
        found: dict[str, frozenset[tuple[str, str]]] = {}
        for need, hashes in self.hashed:
            found[need.name] = found.get(need.name, frozenset(hashes)) & frozenset(hashes)
        return found

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each project that a requirement gives by address."""
        return {need.name: need.url for need, _ in (*self.needs, *self.constraints) if need.url}

    @property
    def by_name(self) -> Mapping[str, Direct]:
        """What was read at the addresses of the requirements and constraints, and of their dependencies, by project."""
        found: dict[str, Direct] = {}
        waiting = [need for need, _ in (*self.needs, *self.constraints)]
        while waiting:
            need = waiting.pop()
            if need.url and need.name not in found and need.url in self.direct:
                read = found[need.name] = self.direct[need.url]
                waiting += () if read.metadata is None else read.metadata.requires or ()
        return found

    @property
    def as_recorded(self) -> tuple[tuple[str, ...], Options]:
        """The requirements as a lock records them, and the constraints, without logins."""
        limits = [it for it in self.constraints if it[0] not in self.overrides]
        needs, constraints = (
            tuple(dict.fromkeys(without_secrets(str(need)) for need, _ in it)) for it in (self.needs, limits)
        )
        options = ((CONSTRAINTS, tuple(sorted(constraints))), (BUILD_CONSTRAINTS, self.build_constraints))
        return needs, tuple(it for it in options if it[1])

    @property
    def digest(self) -> str:
        """A digest of all requirements, such as ``sha256:0a...``, without logins and origins."""
        parts = [
            sorted({str(need) for need, _ in self.needs}),
            sorted({str(need) for need, _ in self.constraints}),
            sorted({f"{need} {hashes}" for need, hashes in self.hashed}),
            [self.index_url, *self.extra_index_urls],
            *([sorted({f"{it}; {it.marker}" for it in self.overrides})] if self.overrides else []),
        ]
        text = without_secrets(json.dumps(parts, separators=(",", ":")))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read_requirements(packages: Packages, beside: FileRequirements | None = None) -> Requirements:
    """Read all requirements of ``packages``, and ``beside`` them those of other kinds of files.

    Raises UsageError if a file cannot be read, or if no lock can contain a requirement.
    """
    places = chain(packages.places, repeat(COMMAND_LINE))
    found = FileRequirements(tuple(map(Line, packages.requirements, places))) + (beside or FileRequirements())
    read = {name: read_requirement_file(name) for name in packages.files}
    found = sum(read.values(), found)
    for name in packages.constraints:
        found += read_requirement_file(name, constraint=True)
    mistakes = list(found.mistakes)
    named = ((line, _excluded_as(line.text, packages.exclude)) for line in found.requirements)
    excluded = {line: name for line, name in named if name is not None}
    requirements = list(_read((it for it in found.requirements if it not in excluded), mistakes, packages.exclude))
    mistakes += (_contradictory(need, line) for need, line in requirements if admits_nothing(need.specifier))
    constraints = list(_read(found.constraints, mistakes))
    refuse_all(mistakes)
    overrides = [(_need(line), line) for line in (Line(text, OVERRIDE) for text in packages.overrides)]
    needs, replaced = _overridden(requirements, [need for need, _ in overrides])
    hashed = [*(it for it in requirements if it not in replaced), *constraints]
    return Requirements(
        tuple(_distinct(needs)),
        tuple(_distinct([*constraints, *overrides])),
        {},
        found.index_url,
        found.extra_index_urls,
        tuple(dict.fromkeys((need, line.hashes) for need, line in hashed if line.hashes)),
        tuple(dict.fromkeys(need for need, _ in overrides)),
        tuple(_distinct(replaced)),
        build_constraints_in(packages.build_constraints),
        tuple((name, place_of(line.origin, line.text)) for line, name in excluded.items()),
        tuple(name for name, content in read.items() if content == FileRequirements()),
        found.ignored,
    )


def build_constraints_in(files: Iterable[str]) -> tuple[str, ...]:
    """The constraints on build requirements in ``files``, each once. Raises UsageError if a file cannot be read."""
    found = FileRequirements()
    for name in files:
        found += read_requirement_file(name, constraint=True)
    mistakes = list(found.mistakes)
    list(_read((it._replace(hashes=()) for it in found.constraints), mistakes))
    refuse_all(mistakes)
    return tuple(dict.fromkeys(without_secrets(it.text) for it in found.constraints))


def _overridden(
    lines: Sequence[tuple[Need, Line]], overrides: Sequence[Need]
) -> tuple[list[tuple[Need, Line]], list[tuple[Need, Line]]]:
    """``lines`` with overrides applied, and the lines that overrides replace.

    As in uv, an override replaces a requirement whatever its marker, and applies where its own marker holds.
    """
    left, replaced = [], []
    for need, line in lines:
        instead = [it for it in overrides if it.name == need.name]
        if instead:
            replaced.append((need, line))
            left += [(Need(need.name, joined(need.extras, it.extras), "", it.marker), line) for it in instead]
        else:
            left.append((need, line))
    return left, replaced


def _distinct(lines: Iterable[tuple[Need, Line]]) -> Iterator[tuple[Need, str]]:
    """Each requirement once for each of its first few origins."""
    places: dict[Need, dict[str, None]] = {}
    for need, line in lines:
        known = places.setdefault(need, {})
        if len(known) < _MOST_ORIGINS:
            known[line.origin] = None
    yield from ((need, origin) for need, known in places.items() for origin in known)


def for_target(requirements: Requirements, markers: Markers) -> Requirements:
    """The requirements and constraints that apply to a target.

    Raises UsageError if a project has two addresses.
    """
    found = requirements._replace(
        needs=tuple(it for it in requirements.needs if markers.holds(it[0].marker)),
        constraints=tuple(it for it in requirements.constraints if markers.holds(it[0].marker)),
        hashed=tuple(it for it in requirements.hashed if markers.holds(it[0].marker)),
        replaced=tuple(it for it in requirements.replaced if markers.holds(it[0].marker)),
    )
    addresses: dict[str, Reference] = {}
    for need, origin in (*found.needs, *found.constraints):
        if need.url:
            reference = parse_reference(need.url)
            if addresses.setdefault(need.name, reference).url != reference.url:
                raise _refused(need, origin, "the requirements name two different addresses for it")
    return found


def for_interpreter(requirements: Requirements, interpreter: Interpreter) -> Requirements:
    """The requirements and constraints that apply to an interpreter."""
    return for_target(requirements, Markers(interpreter.marker_values()))


def with_names(requirements: Requirements, names: Callable[[Need], str]) -> Requirements:
    """``requirements`` with the names that ``names`` returns for projects given only by address."""

    def named_needs(needs: Iterable[tuple[Need, str]]) -> tuple[tuple[Need, str], ...]:
        return tuple(
            (need._replace(name=names(need), url=named(need.url)) if is_unnamed(need) else need, origin)
            for need, origin in needs
        )

    return requirements._replace(
        needs=named_needs(requirements.needs), constraints=named_needs(requirements.constraints)
    )


def as_in_lock(requirements: Requirements, addresses: Mapping[str, str]) -> Requirements:
    """``requirements`` with the names of repositories in a lock, whose ``addresses`` are by package."""
    known = {_place(url): name for name, url in addresses.items() if kind_of(url) is AddressKind.REPOSITORY}
    return with_names(requirements, lambda need: known.get(_place(need.url), need.name))


def is_unnamed(need: Need) -> bool:
    """Whether a requirement gives only an address, so that its name is a guess."""
    return need.url != named(need.url)


def _place(url: str) -> tuple[str, str]:
    reference = parse_reference(without_secrets(url))
    return reference.address, reference.subdirectory


def on_python(requirements: Requirements, python: str, platform: Platform) -> Requirements:
    """The requirements that apply to a Python such as ``3.11.7``; all if ``python`` is not a version."""
    try:
        major, minor, patch = (*Version(python).release, 0, 0)[:3]
    except ValueError:
        return requirements
    return for_interpreter(requirements, Interpreter((major, minor, patch), platform))


def require_sources_in(requirements: Requirements, format_name: str, *, beside_conda: bool = False) -> None:
    """Raise UsageError if a requirement is a repository or a folder, which files in ``format_name`` cannot have."""
    from envsolve.lockfile.restriction import require_sources

    try:
        require_sources(requirements.addresses, format_name, beside_conda=beside_conda)
    except UsageError as error:
        origins = {need.name: (origin, as_typed(named(need.url))) for need, origin in requirements.needs if need.url}
        known = [it for it in error.refused if it.name in origins]
        error.refused = tuple(
            it._replace(where=place_of(origins[it.name][0], it.name, origins[it.name][1])) for it in known
        )
        raise


def _excluded_as(requirement: str, exclude: Collection[str]) -> str | None:
    """The entry of ``exclude`` that is the name of a requirement, or its address; None if there is none."""
    if not exclude:
        return None
    name, address = map(without_secrets, _called(requirement))
    return next((it for it in exclude if it == address or (name and normalized(it) == normalized(name))), None)


def _called(requirement: str) -> tuple[str, str]:
    """The name of a requirement, "" if it has none, and its address as written."""
    if not gives_address(requirement):
        name, _, address = with_open_marker(requirement).partition(";")[0].partition("@")
        found = _NAME.match(name)
        return found[0] if found else requirement, address.strip()
    address = (editable_folder(requirement) or requirement).partition(" ;")[0].strip()
    try:
        return parse_need(_named(requirement)).name, address
    except ValueError:
        return "", address


def _read(
    lines: Iterable[Line], mistakes: list[UsageError], exclude: Collection[str] = ()
) -> Iterator[tuple[Need, Line]]:
    """The requirement in each line; after a folder also those of its project, which count as the user's own.

    Lines that cannot be read are added to ``mistakes``. Of a project in a folder, requirements in ``exclude`` are left
    out.
    """
    for line in lines:
        try:
            need = _need(line)
        except UsageError as mistake:
            mistakes.append(mistake)
            continue
        yield need, line
        if not need.url:
            continue
        reference = parse_reference(need.url)
        if reference.kind is AddressKind.FOLDER:
            from envsolve.index.source_archive import project_lines

            place = f"{reference.address}/pyproject.toml"
            for text in project_lines(_in_folder(reference, "pyproject.toml"), need.extras):
                own = Line(_and_marker(text, need.marker), place)
                if _excluded_as(own.text, exclude) is None:
                    yield _need(own), own


def _and_marker(text: str, marker: str) -> str:
    """``text`` with ``marker`` as an additional condition."""
    if not marker:
        return text
    need, _, own = text.partition(";")
    return f"{need} ; ({own}) and ({marker})" if own.strip() else f"{need} ; {marker}"


def _need(line: Line) -> Need:
    try:
        need = parse_need(_named(line.text) if gives_address(line.text) else line.text)
        if need.url and parse_reference(need.url).kind is AddressKind.FOLDER:
            _in_folder(parse_reference(need.url), "pyproject.toml")
    except ValueError as error:
        reason = str(error) if repr(line.text) in str(error) else f"{without_secrets(line.text)!r}: {error}"
        code, hint = "requirement-invalid", "write a name with versions, such as 'pandas>=2'"
        if gives_address(line.text) or " @ " in line.text:
            code, hint = "direct-reference-invalid", _ADDRESSES
        name, address = _called(line.text)
        refused = Refused(without_secrets(name or address), place_of(line.origin, line.text), reason)
        raise UsageError(code, f"{_where(line)}{reason}", hints=(Hint(hint),), refused=(refused,)) from None
    return _hashed(need, line) if line.hashes else need


def _named(text: str) -> str:
    """A requirement that gives only an address, with its name added. Raises ValueError.

    The name of a folder is that in its pyproject.toml. The name of a repository is checked when it is read.
    """
    folder = editable_folder(text)
    address, semicolon, marker = with_open_marker(text if folder is None else folder).partition(" ;")
    address = address.strip()
    found = _WITH_EXTRAS.match(address)
    extras = ""
    if found is not None:
        address, extras = found["address"] + (found["rest"] or ""), found["extras"]
    if "://" not in address and not is_path(address):
        address = f"./{address}"  # a file in the current directory
    if is_path(address):
        address = quoted_path(address)
    reference = parse_reference(address)
    if reference.kind is AddressKind.FOLDER:
        name = _name_in_folder(reference)
        address += "" if folder is None else EDITABLE
    elif reference.kind is AddressKind.REPOSITORY:
        place = (reference.subdirectory or reference.address).rstrip("/").rpartition("/")[2]
        name = (reference.egg or place).removesuffix(".git")
        address = address if reference.egg else unnamed(address)
    elif reference.file_name.endswith(".whl"):
        name, _, _ = reference.file_name.partition("-")
    else:
        stem, _, version = reference.file_name.removesuffix(".zip").removesuffix(".tar.gz").rpartition("-")
        of_commit = _OF_COMMIT.search(reference.address)
        name = reference.egg or (stem if parsed_version(version) is not None else of_commit[1] if of_commit else "")
    if not is_name(name.partition("[")[0]):
        shown = without_secrets(named(address))
        raise ValueError(f"{without_secrets(text)!r} has no package name: write 'NAME @ {shown}'")
    if any(map(str.isspace, address)):
        raise ValueError("a path with tabs or line breaks cannot be locked: rename the folder")
    return f"{name}{extras} @ {address}{semicolon}{marker}"


def _name_in_folder(reference: Reference) -> str:
    """The name of the project in a folder. Raises ValueError if its files do not state one."""
    from envsolve.index.project_name import stated_name

    if not Path(reference.address).is_dir():
        raise ValueError(f"there is no folder {reference.address}")
    name = stated_name(lambda file: _in_folder(reference, file))
    if not name:
        raise ValueError(f"no pyproject.toml, setup.cfg or setup.py in {reference.address} states the package name")
    return name


def _in_folder(reference: Reference, name: str) -> bytes:
    try:
        return read_bytes(Path(reference.address, name), _LONGEST) or b""
    except FileError as error:
        raise ValueError(f"cannot read {reference.address}/{name}: {error.reason}") from None


def _hashed(need: Need, line: Line) -> Need:
    """Limit the files of ``need`` to the hashes of ``line``, for a direct reference as a part of its address.

    Like pip, this refuses hashes unless the version is exact
    (https://pip.pypa.io/en/stable/topics/secure-installs/#hash-checking-mode).
    """
    if need.url and not parse_reference(need.url).hashes:
        if len(line.hashes) > 1:
            raise _refused(need, line.origin, "several hashes are given for one file: keep only the hash of that file")
        ((algorithm, digest),) = line.hashes
        address, _, fragment = need.url.partition("#")
        return need._replace(url=f"{address}#{'&'.join(filter(None, (fragment, f'{algorithm}={digest}')))}")
    if not (need.url or _ONE_VERSION.fullmatch(need.specifier)):
        message = f"{_where(line)}{str(need)!r} has hashes but is not pinned to one version"
        hint = Hint(f"pin it with ==, as in '{need.name}==1.0 --hash=sha256:...', or remove the hashes")
        raise UsageError("requirement-invalid", message, hints=(hint,))
    return need


def _contradictory(need: Need, line: Line) -> UsageError:
    """The error for a requirement such as ``pandas>2,<1``. In a constraint this is a way to exclude a package."""
    hint = Hint(f"change its limits, as in '{need.name}>=1,<2'")
    message = f"{_where(line)}{str(need)!r} contradicts itself: no version meets it"
    return UsageError("requirement-invalid", message, hints=(hint,))


def _where(line: Line) -> str:
    place = place_of(line.origin, line.text)
    return f"{place}: " if place else ""


def _refused(need: Need, origin: str, reason: str) -> UsageError:
    hint = Hint(f"keep one of them, or use a version from an index: {need.name}==...")
    return UsageError("direct-reference-invalid", f"{need.name} ({origin}): {reason}", hints=(hint,))
