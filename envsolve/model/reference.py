"""Packages given by address: a file, a repository or a directory.

``NAME @ https://host/x.whl#sha256=...``, ``NAME @ git+https://host/x.git@v1#subdirectory=python``, ``-e ./x``: the
direct references of PEP 508, and other forms that pip reads (https://pip.pypa.io/en/stable/topics/vcs-support and
.../reference/requirements-file-format).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from envsolve.boundary.secrets import without_secrets

if TYPE_CHECKING:
    from envsolve.model.package import Hashes

EDITABLE = "#editable"
"""Marks the path of a directory that is installed in place."""
_UNNAMED = "unnamed"
"""Marks, in the fragment of an address, that the name before the address is a guess."""
_EDITABLE_LINE = "-e "
_GIT = "git+"
_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z"
"""SHA-1, or SHA-256 in newer repositories."""
_ADDRESS = r"-e |\.{1,2}(?:$|[\[# ])|[\w.-]*[/\\]|[a-z+]+://|git\+|[A-Za-z]:\\|[^\s@]+\.(?:whl|tar\.gz|zip)(?:$|#|;\s)"
_GIT_SCHEMES = ("https", "http", "ssh", "git", "file")
_DIGESTS = ("sha256", "sha384", "sha512")
_DRIVE = r"[A-Za-z]:[\\/]"
ARCHIVES = (".whl", ".tar.gz", ".zip")


class AddressKind(Enum):
    """What an address leads to."""

    FILE = "file"
    REPOSITORY = "repository"
    FOLDER = "folder"


class Reference(NamedTuple):
    """The parts of an address.

    ``address`` is that of the file, the repository or the directory. ``revision`` is a branch, a tag or a commit, ""
    for the default branch. ``subdirectory`` is the directory in it with the project. ``egg`` is the name in the
    address, with extras. ``is_named`` is False for an address without a name, whose project may have any name.
    """

    kind: AddressKind
    address: str
    revision: str = ""
    subdirectory: str = ""
    hashes: Hashes = ()
    egg: str = ""
    is_editable: bool = False
    is_named: bool = True

    @property
    def has_commit(self) -> bool:
        """Whether the revision is a commit, whose content never changes."""
        return re.match(_COMMIT, self.revision) is not None

    @property
    def file_name(self) -> str:
        """The last part of the path, decoded."""
        return unquote(urlsplit(self.address).path.rstrip("/").rpartition("/")[2])

    @property
    def url(self) -> str:
        """The address as in a lock: without hashes, which are separate there."""
        if self.kind is AddressKind.FOLDER:
            return f"{self.address}{EDITABLE if self.is_editable else ''}"
        below = f"#subdirectory={self.subdirectory}" if self.subdirectory else ""
        if self.kind is AddressKind.FILE:
            return f"{self.address}{below}"
        return f"{_GIT}{self.address}{f'@{self.revision}' if self.revision else ''}{below}"


def unnamed(url: str) -> str:
    """Return ``url`` marked as that of a requirement without a name."""
    return f"{url}{'&' if '#' in url else '#'}{_UNNAMED}"


def named(url: str) -> str:
    """Return ``url`` without the mark of :func:`unnamed`."""
    return url.removesuffix(_UNNAMED).rstrip("&#") if url.endswith(_UNNAMED) else url


def gives_address(requirement: str) -> bool:
    """Whether a requirement is a path or an address without a name, as pip accepts them."""
    return re.match(_ADDRESS, requirement) is not None


def editable(folder: str) -> str:
    """Return the requirement for a project that is installed in place from a directory, as in pip's files."""
    return f"{_EDITABLE_LINE}{folder}"


def editable_folder(requirement: str) -> str | None:
    """Return the directory in such a requirement, or None for others."""
    return requirement.removeprefix(_EDITABLE_LINE).strip() if requirement.startswith(_EDITABLE_LINE) else None


def quoted_path(path: str) -> str:
    """Return a path as in a requirement, where PEP 508 has no spaces: ``./my%20project``."""
    return path.replace("%", "%25").replace(" ", "%20")


def as_typed(url: str) -> str:
    """Return an address as shown to users: ``-e ./x`` for a directory that is installed in place."""
    url = unquote(url) if kind_of(url) is AddressKind.FOLDER else url
    return editable(url.removesuffix(EDITABLE)) if url.endswith(EDITABLE) else url


def kind_of(url: str) -> AddressKind:
    """Return what the address of a lock's file or of a requirement leads to."""
    if url.startswith(_GIT):
        return AddressKind.REPOSITORY
    return AddressKind.FOLDER if is_path(url) and not url.partition("#")[0].endswith(ARCHIVES) else AddressKind.FILE


def is_path(text: str) -> bool:
    """Whether ``text`` is a path and not a name, by pip's rule: it starts with a dot or a slash."""
    return text.startswith((".", "/", "\\")) or re.match(_DRIVE, text) is not None


def parse_reference(url: str) -> Reference:
    """Split an address into its parts. Raises ValueError with the reason if nothing can be installed from it."""
    address, _, fragment = url.partition("#")
    shown, _, _ = without_secrets(url).partition("#")
    stated = dict(part.partition("=")[::2] for part in fragment.split("&") if part)
    below, egg = stated.get("subdirectory", "").strip("/"), stated.get("egg", "")
    if ".." in below.split("/"):
        raise ValueError(f"the subdirectory {below!r} leads out of the project")
    kind = kind_of(url)
    if kind is AddressKind.FOLDER:
        return Reference(kind, unquote(address).rstrip("/") or "/", is_editable="editable" in stated)
    if kind is AddressKind.REPOSITORY:
        repository, revision = _repository(address.removeprefix(_GIT), shown)
        return Reference(kind, repository, revision, below, egg=egg, is_named=_UNNAMED not in stated)
    if not is_path(address) and urlsplit(address).scheme not in ("http", "https", "file"):
        raise ValueError(f"{shown} is not an http, https, file or git+https URL")
    hashes = tuple((algorithm, stated[algorithm].lower()) for algorithm in _DIGESTS if stated.get(algorithm))
    found = Reference(kind, address, "", below, hashes, egg)
    if not found.file_name.endswith(ARCHIVES):
        raise ValueError(f"{shown} is neither a wheel nor a .tar.gz or .zip archive")
    return found


def _repository(address: str, shown: str) -> tuple[str, str]:
    """The address of a repository, and the revision after the last ``@`` of its path."""
    split = urlsplit(address)
    if split.scheme not in _GIT_SCHEMES or (split.scheme != "file" and not split.hostname):
        raise ValueError(f"{shown} is not the URL of a git repository, such as git+https://...")
    if not split.path.strip("/"):
        raise ValueError(f"{shown} names no repository")
    path, _, revision = split.path.partition("@")
    if revision.startswith("-") or re.search(r"[\s\x00-\x1f\x7f~^:?*\\\[]|\.\.", revision):
        raise ValueError(f"{revision!r} is not the name of a branch, a tag or a commit")
    return split._replace(path=path, query="", fragment="").geturl(), revision


def file_name_in(url: str) -> str:
    """Return the last part of the path of an address."""
    return url.partition("#")[0].partition("?")[0].rpartition("/")[2]
