"""What was requested, in the user's own terms. Every suggested fix is such a request as well."""

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
"""Conda's form of a version, which means all versions with that prefix."""
_FREE_THREADED = re.compile(r"\D*3\.?\d{1,2}t\Z")
_PYTHON_TAG = re.compile(r"(?:python|py|cp)[ -]?(3)\.?(\d{1,2})\Z", re.IGNORECASE)
_CUDA_TAG = re.compile(r"(?:cuda|cu)[ -]?(\d{1,2})\.?(\d)\Z", re.IGNORECASE)
"""A version in names of programs, wheels and indexes: python3.11, cp311, cu126."""
_ORDER = (">=", ">", "~=", "==", "===", "!=", "<", "<=")


class Policy(StrEnum):
    """How to choose between several working stacks. The README describes the choices for users."""

    NEWEST_FRAMEWORK = "newest-framework"
    """The newest release of each framework, in the order requested."""
    NEWEST_CUDA = "newest-cuda"
    """The newest CUDA toolkit of any stack, then the newest frameworks."""
    WIDEST_GPU = "widest-gpu"
    """The longest life: the most compute capabilities, then the lowest driver, then the newest frameworks."""
    LOCKED = "locked"
    """The smallest change to an existing answer, then the newest frameworks."""


class Audit(StrEnum):
    """How far CUDA code of wheels outside the matrix is read before they are locked."""

    AUTO = "auto"
    """Of wheels for CUDA, up to 64 MB each."""
    FULL = "full"
    """Every library of every wheel."""
    OFF = "off"
    """Nothing."""


class LockedVersions(NamedTuple):
    """The locked versions in an existing answer: version and build of each package, the Python and the CUDA.

    ``commits`` are the addresses of repositories, each after the requirement that it was locked for.
    """

    packages: tuple[tuple[str, str, str], ...] = ()
    python: str | None = None
    cuda: str | None = None
    commits: tuple[tuple[str, str], ...] = ()


class Packages(NamedTuple):
    """What to lock besides the frameworks, and how.

    ``requirements`` and ``files`` are as typed. ``constraints`` are files that limit versions without requiring
    anything, ``build_constraints`` files that limit the requirements of builds. ``overrides`` are requirements that
    replace all others on the same package, including those in metadata. ``exclude`` are names or addresses of
    requirements of the user to ignore; those of packages still count. ``exclude_newer`` is a time in RFC 3339 after
    which uploads and framework versions do not count. ``pre`` allows pre-releases. ``upgrade`` ignores all pins of an
    existing lock, ``upgraded`` those of the named packages. ``pytorch_index_url`` replaces PyTorch's own index.
    ``exact`` requests an environment file that names every conda package with its build. ``places`` are the files with
    the requirements, in their order; further requirements were typed. ``audit`` is how far wheels are read.
    ``extensions`` allows wheels of third parties (envsolve.extension_sources).
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
        """Whether a request names or limits packages besides the frameworks."""
        return bool(self.requirements or self.files or self.constraints or self.overrides)


class FrameworkRequest(NamedTuple):
    """A framework as requested. ``framework`` is the matrix's name, not an alias."""

    framework: str
    specifier: SpecifierSet

    def __str__(self) -> str:
        return f"{self.framework}{self.specifier}"


class NamedHost(NamedTuple):
    """A machine that a project names: the host, and the project's description as typed."""

    name: str
    host: Host
    typed: str


class Request(NamedTuple):
    """A request as typed. ``gpus`` are ``auto``, ``none``, product names or capabilities; empty means ``auto``.

    ``hosts`` are host files, or names of ``named_hosts``, which are already read.

    ``locked`` are versions that the policy ``locked`` prefers. ``also`` are sources in addition to the usual ones, used
    if no source is named: removing a named source must never remove a source. ``requester`` is the origin of the
    request.
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
        """The platform if exactly one was named, else None."""
        return self.platforms[0] if len(self.platforms) == 1 else None

    @property
    def wants_cpu(self) -> bool:
        """Whether CPU builds were requested explicitly."""
        return self.gpus == ("none",)


def parse_cuda_versions(text: str) -> SpecifierSet:
    """Read versions of CUDA like :func:`parse_versions`, with only major and minor: 12.6.3 means 12.6."""
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
    return in_usual_order(versions)


def in_usual_order(specifier: SpecifierSet) -> str:
    """Return ``specifier`` with its clauses in the usual order: ``>=3.11,<3.13``."""
    return ",".join(map(str, sorted(specifier, key=lambda it: (_ORDER.index(it.operator), _sorted_by(it.version)))))


def _sorted_by(text: str) -> tuple[Version, str]:
    try:
        return Version(text.removesuffix(".*")), text
    except ValueError:
        return Version("0"), text  # of ``===`` alone, which takes any text


def parse_framework(text: str) -> tuple[str, SpecifierSet]:
    """Split ``pytorch>=2.5`` into name and versions. Raises ValueError for anything but a name with versions."""
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
        instead = f"{requirement.name}{requirement.specifier}"
        is_extra = requirement.extras and not (requirement.url or requirement.marker)
        meant = f"; did you mean '{instead}'? Its build is chosen for the GPU" if is_extra else ""
        raise ValueError(f"{text!r}: a framework takes a name and versions only, no URL, extra or marker{meant}")
    if requirement.specifier.is_unsatisfiable():
        raise ValueError(f"{text!r} contradicts itself: no version meets it")
    return requirement.name, requirement.specifier


def parse_versions(text: str) -> SpecifierSet:
    """Read ``3.11``, ``12.*``, ``<13`` or ``>=3.10,<3.13``. A bare version is a prefix.

    Raises ValueError for anything else.
    """
    if _FREE_THREADED.match(text.strip()):
        raise ValueError(f"{text!r} is a free-threaded Python, which envsolve does not support")
    return _versions(text, "'3.11' or '>=3.10,<3.13'", _PYTHON_TAG)


def _versions(text: str, examples: str, tag: re.Pattern[str]) -> SpecifierSet:
    """The same. An error has ``examples``, and the version in a text that looks like a ``tag``."""
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
