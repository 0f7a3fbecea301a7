"""Packages of a Python index: files of a release, pins of a lock, and packages installed by others."""

from typing import NamedTuple

from envsolve.model.need import Need
from envsolve.model.reference import AddressKind, kind_of

Hashes = tuple[tuple[str, str], ...]
"""Digests by algorithm: ``(("sha256", "0a..."),)``, hexadecimal and in lower case."""


class PackageFile(NamedTuple):
    """A file of an index, or at the address of a requirement. Fields that an index leaves out are None.

    ``url`` is absolute and without credentials; it may be that of a repository, or the path of a directory. ``size`` is
    in bytes, ``upload_time`` in RFC 3339. ``yanked`` is the reason, "" if none was given, None if the file is not
    yanked (PEP 592). ``metadata`` has the digests of the file with its core metadata, possibly none; None if there is
    no such file (PEP 658).
    """

    name: str
    url: str
    hashes: Hashes = ()
    size: int | None = None
    upload_time: str | None = None
    requires_python: str | None = None
    yanked: str | None = None
    metadata: Hashes | None = None

    @property
    def is_archive(self) -> bool:
        """Whether it is a single file, which a digest verifies, and not a repository or a directory."""
        return kind_of(self.url) is AddressKind.FILE

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel and not a source distribution."""
        return self.name.endswith(".whl")


class Present(NamedTuple):
    """A project that an environment already has: its version as conda or its metadata writes it, and the package.

    Python may not be able to parse the version (``9e``). ``requires`` are the requirements of a wheel, including those
    of its extras. They are None for a conda package, because conda has no extras.
    """

    version: str
    package: str
    requires: tuple[Need, ...] | None = None

    def __str__(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def sentence(self) -> str:
        """Why the project stays at this version."""
        return f"conda installs {self}" if self.requires is None else f"{self} is installed"


class Pin(NamedTuple):
    """A package of a lock.

    ``name`` is normalized (PEP 503), ``version`` as the index writes it. ``files`` are all that the target can install,
    with the one that installers prefer first. ``index_url`` is their index, without credentials; None for a direct
    reference, whose only file has the address. ``via`` are its requesters: packages, and files as ``-r
    requirements.in``. ``because`` are sentences about limits on its version other than metadata. ``requires`` are the
    names of its requirements on the target, pinned or not. ``unknown_extras`` are requested extras that it does not
    have. ``marker`` is where it is installed, "" for everywhere, and ``categories`` its groups (``dev`` and so on),
    none for everyone.
    """

    name: str
    version: str
    files: tuple[PackageFile, ...]
    index_url: str | None
    via: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    unknown_extras: tuple[str, ...] = ()
    marker: str = ""
    categories: tuple[str, ...] = ()
