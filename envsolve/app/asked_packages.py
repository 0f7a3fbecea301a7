"""The Python requirements of a request: what people typed and what their files hold, as needs with their origin."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from packaging.version import Version

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.index.fitting import Interpreter
from envsolve.index.page import version_of
from envsolve.index.requirement_file import Asked as AskedByFiles
from envsolve.index.requirement_file import Line, read_requirement_file
from envsolve.lockfile.options import BUILD_CONSTRAINTS, CONSTRAINTS, Options
from envsolve.model.asker import COMMAND_LINE
from envsolve.model.host import Platform
from envsolve.model.need import Markers, Need, check_marker, check_specifier, joined, parse_need
from envsolve.model.package import Hashes, PackageFile
from envsolve.model.request import Packages
from envsolve.model.version_order import key_of

_PLACE = re.compile(r"\.{0,2}[/\\]|\.{1,2}$|[a-z+]+://|git\+|[A-Za-z]:\\|\S+\.(whl|tar\.gz|zip)$")
"""A path or an address without a name."""
_ONE_VERSION = re.compile(r"===?[^,*]+")
_DIGESTS = ("sha256", "sha384", "sha512")
OVERRIDE = "an override"
"""Where a limit comes from that replaces requirements."""
_MOST_ORIGINS = 8
"""Places that are told of one requirement, however many ask for it."""


class Given(NamedTuple):
    """What is asked for by name, with where it was asked; constraints likewise; indexes that files name.

    Each requirement stands once for each place, of which a few count. ``direct`` are the files that direct references
    name. ``hashed`` are the requirements and constraints that name the hashes a file may have. ``overrides`` are all
    of them, and those that hold on the target are constraints too.
    """

    needs: tuple[tuple[Need, str], ...]
    constraints: tuple[tuple[Need, str], ...]
    direct: Mapping[str, PackageFile]
    index_url: str | None
    extra_index_urls: tuple[str, ...]
    hashed: tuple[tuple[Need, Hashes], ...] = ()
    overrides: tuple[Need, ...] = ()
    replaced: tuple[tuple[Need, str], ...] = ()
    """The requirements that an override replaces."""
    build_constraints: tuple[str, ...] = ()

    @property
    def overridden(self) -> Mapping[str, tuple[str, ...] | None]:
        """The extras that overrides add, by the project that they are about; None where no override holds here."""
        holding = {need for need, _ in self.constraints}
        found: dict[str, tuple[str, ...] | None] = dict.fromkeys(it.name for it in self.overrides)
        for need in filter(holding.__contains__, self.overrides):
            found[need.name] = joined(found[need.name] or (), need.extras)
        return found

    @property
    def hashes(self) -> Mapping[str, frozenset[tuple[str, str]]]:
        """The hashes that alone the files of a project may have, by its name: those that all lines on it name."""
        found: dict[str, frozenset[tuple[str, str]]] = {}
        for need, hashes in self.hashed:
            found[need.name] = found.get(need.name, frozenset(hashes)) & frozenset(hashes)
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
        """A digest of all that is asked for, as ``sha256:0a...``, without logins and wherever it was asked."""
        asked = [
            sorted({str(need) for need, _ in self.needs}),
            sorted({str(need) for need, _ in self.constraints}),
            sorted({f"{need} {hashes}" for need, hashes in self.hashed}),
            [self.index_url, *self.extra_index_urls],
            *([sorted({f"{it}; {it.marker}" for it in self.overrides})] if self.overrides else []),
        ]
        text = without_secrets(json.dumps(asked, separators=(",", ":")))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def given(packages: Packages, lines: Sequence[Line] = ()) -> Given:
    """Everything that ``packages`` asks for, and ``lines`` out of other files.

    Raises UsageError where it cannot be read, or no lock can hold it.
    """
    places = chain(packages.places, repeat(COMMAND_LINE))
    asked = AskedByFiles((*map(Line, packages.requirements, places), *lines))
    for name in packages.files:
        asked += read_requirement_file(name)
    for name in packages.constraints:
        asked += read_requirement_file(name, constraint=True)
    read = [(_need(line), line) for line in (*asked.requirements, *asked.constraints)]
    count = len(asked.requirements)
    overrides = [(_need(line), line) for line in (Line(text, OVERRIDE) for text in packages.overrides)]
    needs, replaced = _overridden(read[:count], [need for need, _ in overrides])
    hashed = [*(it for it in read[:count] if it not in replaced), *read[count:]]
    found = Given(
        tuple(_distinct(needs)),
        tuple(_distinct([*read[count:], *overrides])),
        {},
        asked.index_url,
        asked.extra_index_urls,
        tuple(dict.fromkeys((need, line.hashes) for need, line in hashed if line.hashes)),
        tuple(dict.fromkeys(need for need, _ in overrides)),
        tuple(_distinct(replaced)),
        build_constraints_in(packages.build_constraints),
    )
    return found._replace(direct=_files(found))


def build_constraints_in(files: Iterable[str]) -> tuple[str, ...]:
    """What files say of the versions of what builds require, each once. Raises UsageError where one cannot be read."""
    lines = [line for name in files for line in read_requirement_file(name, constraint=True).constraints]
    for line in lines:
        _need(line._replace(hashes=()))
    return tuple(dict.fromkeys(without_secrets(line.text) for line in lines))


def _overridden(
    lines: Sequence[tuple[Need, Line]], overrides: Sequence[Need]
) -> tuple[list[tuple[Need, Line]], list[tuple[Need, Line]]]:
    """``lines`` with what overrides leave of them, and those that are replaced.

    As in uv an override replaces a requirement whatever its marker is, and holds where its own marker does.
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
    """Every requirement once for each place that asks for it, of which the first few count."""
    places: dict[Need, dict[str, None]] = {}
    for need, line in lines:
        known = places.setdefault(need, {})
        if len(known) < _MOST_ORIGINS:
            known[line.origin] = None
    yield from ((need, origin) for need, known in places.items() for origin in known)


def for_target(asked: Given, markers: Markers) -> Given:
    """What of ``asked`` holds on a target: requirements, constraints and files by their address.

    Raises UsageError where two files are for one project.
    """
    found = asked._replace(
        needs=tuple(it for it in asked.needs if markers.holds(it[0].marker)),
        constraints=tuple(it for it in asked.constraints if markers.holds(it[0].marker)),
        hashed=tuple(it for it in asked.hashed if markers.holds(it[0].marker)),
        replaced=tuple(it for it in asked.replaced if markers.holds(it[0].marker)),
    )
    files = _files(found)
    for need, origin in (*found.needs, *found.constraints):
        if need.url and _direct(need, origin).url != files[need.name].url:
            raise _refused(need, origin, "the requirements name two different files for it")
    return found._replace(direct=files)


def on_python(asked: Given, python: str, platform: Platform) -> Given:
    """What of ``asked`` holds on a Python, as ``3.11.7``; all of it where ``python`` is no version."""
    try:
        major, minor, patch = (*Version(python).release, 0, 0)[:3]
    except ValueError:
        return asked
    return for_target(asked, Markers(Interpreter((major, minor, patch), platform).marker_values()))


def _files(asked: Given) -> dict[str, PackageFile]:
    return {need.name: _direct(need, origin) for need, origin in (*asked.needs, *asked.constraints) if need.url}


def _need(line: Line) -> Need:
    if _PLACE.match(line.text):
        raise _nameless(line)
    try:
        need = parse_need(line.text)
        check_specifier(need.specifier)
        check_marker(need.marker)
    except ValueError as error:
        said = str(error) if repr(line.text) in str(error) else f"{line.text!r}: {error}"
        hints = (Hint("write a name with versions, such as 'pandas>=2'"),)
        raise UsageError("requirement-invalid", f"{_where(line)}{said}", hints=hints) from None
    return _hashed(need, line) if line.hashes else need


def _hashed(need: Need, line: Line) -> Need:
    """``need`` whose files may have the hashes of ``line`` alone; that of a direct reference is its file's digest.

    pip refuses hashes beside anything but one version, too
    (https://pip.pypa.io/en/stable/topics/secure-installs/#hash-checking-mode).
    """
    if need.url and not any(f"{it}=" in need.url.partition("#")[2] for it in _DIGESTS):
        if len(line.hashes) > 1:
            raise _refused(need, line.origin, "several hashes are given for one file: keep only the hash of that file")
        ((algorithm, digest),) = line.hashes
        return need._replace(url=f"{need.url.rstrip('#')}#{algorithm}={digest}")
    if not (need.url or _ONE_VERSION.fullmatch(need.specifier)):
        message = f"{_where(line)}{str(need)!r} has hashes but is not pinned to one version"
        hint = Hint(f"pin it with ==, as in '{need.name}==1.0 --hash=sha256:...', or remove the hashes")
        raise UsageError("requirement-invalid", message, hints=(hint,))
    return need


def _nameless(line: Line) -> UsageError:
    message = f"{_where(line)}{without_secrets(line.text)!r} is a path or URL without a package name"
    hints = (
        Hint("give a package name, such as 'pandas>=2'"),
        Hint("or a wheel with its hash: 'NAME @ https://...whl#sha256=...'"),
    )
    return UsageError("direct-reference-not-supported", message, hints=hints)


def _where(line: Line) -> str:
    return "" if line.origin == COMMAND_LINE else f"{line.origin}: "


def _direct(need: Need, origin: str) -> PackageFile:
    """The one file that ``name @ URL#sha256=...`` names, at the address that opens it."""
    address, _, fragment = need.url.partition("#")
    scheme, path = urlsplit(address).scheme, urlsplit(address).path
    shown, _, _ = without_secrets(need.url).partition("#")
    if scheme not in ("http", "https"):
        raise _refused(need, origin, f"{shown} is not an http or https URL")
    digests = tuple(
        (algorithm, digest.lower())
        for part in fragment.split("&")
        for algorithm, _, digest in [part.partition("=")]
        if algorithm in _DIGESTS
    )
    name = unquote(path.rpartition("/")[2])
    if not name.endswith(".whl"):
        raise _refused(need, origin, f"{shown} is not a wheel: the result of a build has no fixed hash")
    if version_of(need.name, name) is None or key_of(name.split("-")[1]) is None:
        raise _refused(need, origin, f"{name} is not the file name of a wheel of {need.name}")
    if not digests:
        raise _refused(need, origin, f"{shown} has no hash: add #sha256=... to the URL")
    return PackageFile(name, address, digests)


def _refused(need: Need, origin: str, reason: str) -> UsageError:
    hint = Hint(f"give a wheel with its hash, or a version from an index: {need.name}==...")
    return UsageError("direct-reference-not-supported", f"{need.name} ({origin}): {reason}", hints=(hint,))
