"""What was requested, in the user's own terms; every remedy is such a request again."""

import re
from enum import StrEnum
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envsolve.model.host import Host, Platform
from envsolve.model.release import Source
from envsolve.model.requester import Requester
from envsolve.model.versions import DriverVersion, LibcVersion

_PATCH_DOTS = 2
_CUDA_PATCH = re.compile(r"(\d+\.\d+)(?:\.\d+)+")
_BARE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_BARE_VERSION = re.compile(r"\d+(\.\d+)*(\.\*)?\Z")
_ONE_EQUALS_SIGN = re.compile(r"(?<![=<>~!])=(\d[\d.]*)\Z")
"""As conda writes a version, which means all that begin with it."""
_PYTHON_TAG = re.compile(r"(?:python|py|cp)[ -]?(3)\.?(\d{1,2})\Z", re.IGNORECASE)
_CUDA_TAG = re.compile(r"(?:cuda|cu)[ -]?(\d{1,2})\.?(\d)\Z", re.IGNORECASE)
"""A version as names of programs, wheels and indexes have it: python3.11, cp311, cu126."""
_ORDER = (">=", ">", "~=", "==", "===", "!=", "<", "<=")


class Policy(StrEnum):
    """Which of several stacks that all run is the better one; the README tells them as a person chooses one."""

    NEWEST_FRAMEWORK = "newest-framework"
    """The newest release of each framework, in the order asked."""
    NEWEST_CUDA = "newest-cuda"
    """The newest CUDA toolkit that some stack has, then the newest frameworks."""
    WIDEST_GPU = "widest-gpu"
    """The longest life: the most compute capabilities, then the lowest driver, then the newest frameworks."""
    LOCKED = "locked"
    """The least change against an answer that is there already, then the newest frameworks."""


class Audit(StrEnum):
    """How far CUDA code of wheels that the matrix says nothing of is read before they are locked."""

    AUTO = "auto"
    """Of wheels that go with CUDA, up to 64 MB each."""
    FULL = "full"
    """Every library of every wheel."""
    OFF = "off"
    """Nothing."""


class LockedVersions(NamedTuple):
    """What an answer holds that is there already: for each package its version and build, the Python and the CUDA.

    ``commits`` are the addresses of repositories, each after the requirement that it was locked for.
    """

    packages: tuple[tuple[str, str, str], ...] = ()
    python: str | None = None
    cuda: str | None = None
    commits: tuple[tuple[str, str], ...] = ()


class Packages(NamedTuple):
    """What is to be locked beside the frameworks, and how.

    ``requirements`` and ``files`` are as typed, ``constraints`` are files that bound versions without asking for
    anything, ``build_constraints`` files that bound what builds require. ``overrides`` are requirements that replace
    all others on the same package, those of metadata too. ``exclude`` are names or addresses of requirements that do
    not count, while what packages require does. ``exclude_newer`` is a moment in RFC 3339 after which uploads
    and framework versions do not count; with ``pre`` pre-releases do. ``upgrade`` lets go of all pins of an existing
    lock, ``upgraded`` of those named. ``pytorch_index_url`` stands for PyTorch's own index. ``exact`` asks for an
    environment file that names every conda package with its build. ``places`` are the files that the requirements
    stand in, in their order; those beyond are typed. ``audit`` says how far wheels are read, and
    ``extensions`` allows wheels that others than their projects publish (envsolve.extension_sources).
    """

    requirements: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    build_constraints: tuple[str, ...] = ()
    exclude_newer: str | None = None
    allow_builds: bool = False
    pre: bool = False
    upgrade: bool = False
    upgraded: tuple[str, ...] = ()
    pytorch_index_url: str | None = None
    exact: bool = False
    places: tuple[str, ...] = ()
    audit: Audit = Audit.AUTO
    extensions: bool = False

    @property
    def are_named(self) -> bool:
        """Whether a request names packages, or bounds any, besides the frameworks."""
        return bool(self.requirements or self.files or self.constraints or self.overrides)


class FrameworkRequest(NamedTuple):
    """One framework as requested; ``framework`` is the matrix's name, not an alias."""

    framework: str
    specifier: SpecifierSet

    def __str__(self) -> str:
        return f"{self.framework}{self.specifier}"


class NamedHost(NamedTuple):
    """A machine that a project names: the host, and what the project says of it, as typed."""

    name: str
    host: Host
    typed: str


class Request(NamedTuple):
    """A request as typed. ``gpus`` holds ``auto``, ``none``, product names or capabilities; empty means ``auto``.

    ``hosts`` are host files, or names of ``named_hosts``, which are known already.

    ``locked`` is what the policy ``locked`` keeps as far as it fits. ``also`` are sources that count beside the usual
    ones where none is named: to take a name away must never take a source away. ``requester`` is whose words they are.
    """

    frameworks: tuple[FrameworkRequest, ...]
    python: SpecifierSet | None = None
    cuda: SpecifierSet | None = None
    gpus: tuple[str, ...] = ()
    driver: DriverVersion | None = None
    glibc: LibcVersion | None = None
    hosts: tuple[str, ...] = ()
    platforms: tuple[Platform, ...] = ()
    sources: tuple[Source, ...] = ()
    channels: tuple[str, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    format: str = "environment"
    prefer: Policy = Policy.NEWEST_FRAMEWORK
    locked: LockedVersions = LockedVersions()
    also: tuple[Source, ...] = ()
    packages: Packages = Packages()
    named_hosts: tuple[NamedHost, ...] = ()
    requester: Requester = Requester()

    @property
    def platform(self) -> Platform | None:
        """The one platform that was named; None if there is none, or several."""
        return self.platforms[0] if len(self.platforms) == 1 else None

    @property
    def wants_cpu(self) -> bool:
        """Whether CPU builds were requested by name."""
        return self.gpus == ("none",)


def parse_cuda_versions(text: str) -> SpecifierSet:
    """Read versions of CUDA as :func:`parse_versions` does, by major and minor alone: 12.6.3 is a 12.6."""
    return _versions(_CUDA_PATCH.sub(r"\1", text), "'12.4' or '>=12,<13'", _CUDA_TAG)


def versions_text(versions: SpecifierSet) -> str:
    """Return the short form: ``3.11`` for ``==3.11.*``, ``3.11.7`` for ``==3.11.7``, ``>=3.10,<3.13`` unchanged.

    :func:`parse_versions` reads both forms.
    """
    text = str(versions)
    bare = text.removeprefix("==").removesuffix(".*")
    names_patch = bare.count(".") >= _PATCH_DOTS
    if text == (f"=={bare}" if names_patch else f"=={bare}.*") and _BARE_VERSION.match(bare):
        return bare
    return natural(versions)


def natural(specifier: SpecifierSet) -> str:
    """``specifier`` in the order in which people write its clauses: ``>=3.11,<3.13``."""
    return ",".join(map(str, sorted(specifier, key=lambda it: (_ORDER.index(it.operator), _sorted_by(it.version)))))


def _sorted_by(text: str) -> tuple[Version, str]:
    try:
        return Version(text.removesuffix(".*")), text
    except ValueError:
        return Version("0"), text  # of ``===`` alone, which takes any text


def parse_framework(text: str) -> tuple[str, SpecifierSet]:
    """Split ``pytorch>=2.5`` into name and versions; raise ValueError for anything but a name with versions."""
    stripped = text.strip()
    if _BARE_NAME.match(stripped):
        return stripped, SpecifierSet()
    from packaging.requirements import InvalidRequirement, Requirement  # only needed here, and slow to import

    try:
        requirement = Requirement(stripped)
    except InvalidRequirement as error:
        meant = _ONE_EQUALS_SIGN.sub(r"==\1.*", stripped)
        instead = f"; did you mean '{meant}'?" if meant != stripped else ""
        raise ValueError(f"{text!r} is not a framework such as 'pytorch' or 'pytorch>=2.5'{instead}") from error
    if requirement.url or requirement.extras or requirement.marker:
        raise ValueError(f"{text!r}: a framework takes a name and versions only, no URL, extra or marker")
    return requirement.name, requirement.specifier


def parse_versions(text: str) -> SpecifierSet:
    """Read ``3.11``, ``12.*``, ``<13`` or ``>=3.10,<3.13``; a bare version means that version and what it begins.

    Raises ValueError for anything else.
    """
    return _versions(text, "'3.11' or '>=3.10,<3.13'", _PYTHON_TAG)


def _versions(text: str, examples: str, tag: re.Pattern[str]) -> SpecifierSet:
    """The same; an error has ``examples``, and the version in what is spelled as a ``tag``."""
    stripped = text.strip()
    if _BARE_VERSION.match(stripped):
        whole = stripped.endswith("*") or stripped.count(".") >= _PATCH_DOTS
        stripped = f"=={stripped}" if whole else f"=={stripped}.*"
    try:
        specifier = SpecifierSet(stripped)
        if not specifier or any(clause.operator == "===" for clause in specifier):
            raise InvalidSpecifier(text)
        return specifier
    except InvalidSpecifier as error:
        found = tag.match(stripped)
        meant = f"; did you mean {found[1]}.{found[2]}?" if found else ""
        raise ValueError(f"{text!r} is not a version or a range such as {examples}{meant}") from error
