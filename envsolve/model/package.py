"""Packages of a Python index: the files of a release, the pins a lock is made of, and what is there beside them."""

from typing import NamedTuple

from envsolve.model.need import Need
from envsolve.model.reference import AddressKind, kind_of

Hashes = tuple[tuple[str, str], ...]
"""Digests by algorithm: ``(("sha256", "0a..."),)``, hexadecimal and in lower case."""


class PackageFile(NamedTuple):
    """One file of an index, or what is at the address of a requirement. What an index need not tell is None.

    ``url`` is absolute and without credentials; it may be that of a repository, or the path of a folder. ``size`` is in
    bytes, ``upload_time`` as RFC 3339 writes it. ``yanked`` is the reason, "" if none was given,
    None if the file is not yanked (PEP 592). ``metadata`` holds the digests of the file with its core metadata,
    which may be none; None if there is no such file (PEP 658).
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
        """Whether it is one file, which a digest proves, and no repository or folder."""
        return kind_of(self.url) is AddressKind.FILE

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel; what is not is a source distribution."""
        return self.name.endswith(".whl")


class Present(NamedTuple):
    """A project that an environment has already: its version as conda or its metadata write it, and the package.

    The version may be none that Python knows (``9e``). ``requires`` are the requirements of a wheel with those of its
    extras; None for what conda installs, which knows no extras.
    """

    version: str
    package: str
    requires: tuple[Need, ...] | None = None

    def __str__(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def sentence(self) -> str:
        """What keeps the project in this version."""
        return f"conda installs {self}" if self.requires is None else f"{self} is installed"


class Pin(NamedTuple):
    """One package of a lock.

    ``name`` is normalized (PEP 503), ``version`` as the index writes it. ``files`` are all that the target can install,
    the one an installer picks first. ``index_url`` is the index they are from, without credentials; None for a direct
    reference, whose one file then says where it is. ``via`` names what requires it: packages, and files as
    ``-r requirements.in``. ``because`` are the sentences that bound its version beyond what metadata asks for.
    ``requires`` names the packages it needs on the target, pins or not. ``unknown_extras`` are the extras that were
    requested and that it does not have. ``marker`` says where it is installed, "" for everywhere, and ``categories``
    for whom (``dev`` and the like), none for everyone.
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
