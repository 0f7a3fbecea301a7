"""Packages by address: their version, their digest or commit, and their requirements.

A file gets its current digest, and a branch or a tag its current commit, so that a lock installs the same later. The
requirements of a project come from its pyproject.toml, or from a build if the user allows builds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import unquote

from envsolve.boundary.files import FileError, read_bytes
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.index.build_environments import BuildEnvironments
from envsolve.index.checks import NOT_THERE, check_hash
from envsolve.index.client import Direct
from envsolve.index.failures import ANOTHER_INDEX
from envsolve.index.fetch import METADATA_LIMIT, Fetcher
from envsolve.index.metadata import Metadata, read_metadata
from envsolve.index.one_index import Shelf
from envsolve.index.page import version_of
from envsolve.index.project_name import FILES, stated_name
from envsolve.index.repository import add_submodules, check_out, commit_of
from envsolve.index.source_archive import build_imports, project_metadata, pyproject_in, stated_metadata
from envsolve.index.source_metadata import built_metadata, extracted
from envsolve.index.store import decoded, encoded
from envsolve.model.names import normalized
from envsolve.model.package import PackageFile
from envsolve.model.reference import EDITABLE, AddressKind, Reference, file_name_in, is_path

_OK = 200
_LARGEST = 2_000_000_000
"""The size limit, in bytes, of a file that is downloaded to compute its digest."""
_BUCKET = "results"


class _Stated(NamedTuple):
    """A file with the requirements of a project: a pyproject.toml, or metadata from a build."""

    content: bytes
    is_built: bool = False
    built_with: str = ""
    build_imports: tuple[str, ...] = ()

    def metadata(self) -> Metadata | None:
        """Its metadata; None for a pyproject.toml without static requirements, or an invalid one."""
        if self.is_built:
            return read_metadata(self.content)._replace(built_with=self.built_with)
        found = project_metadata(self.content)
        return None if found is None else found._replace(build_imports=self.build_imports)


class DirectReader:
    """Reads packages by address. Relative paths start at the current directory.

    ``builds`` has the environments for builds, if they are allowed.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        shelf: Shelf,
        environ: Mapping[str, str],
        builds: BuildEnvironments | None,
        *,
        offline: bool,
    ) -> None:
        self._fetcher, self._shelf, self._environ, self._offline = fetcher, shelf, environ, offline
        self._builds = builds

    def read(self, name: str, reference: Reference) -> Direct:
        """The package at ``reference``. It must be the project ``name``, unless that name is a guess.

        Raises UsageError ``direct-reference-invalid`` if it is another project or none, and OutsideError if it cannot
        be read.
        """
        readers = {AddressKind.FILE: self._file, AddressKind.REPOSITORY: self._repository}
        found = readers.get(reference.kind, self._folder)(name, reference)
        return found._replace(requested=without_secrets(reference.url))

    def _folder(self, name: str, reference: Reference) -> Direct:
        root = Path(reference.address)
        if not root.is_dir():
            raise _invalid(name, reference, "there is no such folder")
        name = _called(name, reference, root)
        return _direct(name, reference, self._stated(name, reference, root), _file_at(reference))

    def _file(self, name: str, reference: Reference) -> Direct:
        reference = reference._replace(address=_absolute(reference.address))
        file = PackageFile(reference.file_name, reference.url, reference.hashes)
        version = version_of(name, file.name)
        if file.is_wheel and version is None:
            raise _invalid(name, reference, f"{file.name} is not the file name of a wheel of {name}")
        if file.is_wheel and file.hashes:
            return Direct(file, version or "")
        try:
            response = self._fetcher.fetch(reference.address, limit=_LARGEST)
        except OutsideError as error:
            error.hints = tuple(it for it in error.hints if it != ANOTHER_INDEX)
            raise
        if response.status != _OK:
            shown = without_secrets(reference.url)
            is_here = reference.address.startswith("file:")
            reason = "there is no such file" if is_here else f"it returned status {response.status}"
            raise OutsideError(NOT_THERE, f"{name} @ {shown} cannot be fetched: {reason}")
        check_hash(response.body, file.hashes, file.name)
        digest = hashlib.sha256(response.body).hexdigest()
        file = file._replace(hashes=file.hashes or (("sha256", digest),), size=len(response.body))
        if file.is_wheel:
            return Direct(file, version or "")
        if version is not None and not reference.subdirectory:
            found = stated_metadata(response.body, file)
            if not found.needs_build:
                return Direct(file._replace(requires_python=found.requires_python), version, found)
        with TemporaryDirectory(prefix="envsolve-source-", ignore_cleanup_errors=True) as directory:
            root = extracted(response.body, file, Path(directory))
            name = _called(name, reference, root)
            return _direct(name, reference, self._stated(name, reference, root), file)

    def _repository(self, name: str, reference: Reference) -> Direct:
        stored = self._stored(reference) if reference.has_commit else None
        if stored is not None:
            return _direct(name, reference, stored, _file_at(reference))
        if self._offline:
            hint = Hint("run the same command once without --offline to fill the cache")
            message = f"{without_secrets(reference.url)} is not cached, and --offline is set"
            raise OutsideError("not-cached", message, hints=(hint,))
        with TemporaryDirectory(prefix="envsolve-source-", ignore_cleanup_errors=True) as directory:
            root = Path(directory)
            if not reference.has_commit:
                now = reference._replace(revision=commit_of(reference, root, self._environ))
                stored = self._stored(now) if now.revision else None
                if stored is not None:
                    return _direct(name, reference, stored, _file_at(now))
            locked = reference._replace(revision=check_out(reference, root, self._environ))
            if self._builds is not None:
                add_submodules(root, self._environ)
            name = _called(name, reference, root)
            stated = self._stated(name, reference, root)
        if stated is not None:
            self._shelf.write(_BUCKET, _key(locked), encoded(stated))
        return _direct(name, reference, stated, _file_at(locked))

    def _stored(self, reference: Reference) -> _Stated | None:
        return decoded(self._shelf.read(_BUCKET, _key(reference)), _Stated)

    def _stated(self, name: str, reference: Reference, root: Path) -> _Stated | None:
        """The requirements of a source tree; None if they need a build and builds are not allowed."""
        top = root / reference.subdirectory
        if not any((top / it).exists() for it in FILES):
            raise _invalid(name, reference, "it has no pyproject.toml and no setup.py")
        found = _Stated(_read_inside(top / "pyproject.toml", root))
        if found.metadata() is not None:
            script = _read_inside(top / "setup.py", root)
            return found._replace(build_imports=build_imports(script, pyproject_in(found.content)))
        if self._builds is None:
            return None
        url = without_secrets(reference.url)
        built = built_metadata(top, url, url.removesuffix(EDITABLE), self._builds)
        return _Stated(built.content, is_built=True, built_with=built.built_with)


def _file_at(reference: Reference) -> PackageFile:
    return PackageFile(file_name_in(reference.url), reference.url)


def _called(name: str, reference: Reference, root: Path) -> str:
    """The project's name in the files of a tree, else ``name``. Raises UsageError if a requirement names another."""
    called = stated_name(lambda it: _read_inside(root / reference.subdirectory / it, root))
    if called and normalized(called) != name and reference.is_named:
        raise _misnamed(name, reference, called)
    return normalized(called) or name


def _direct(name: str, reference: Reference, stated: _Stated | None, file: PackageFile) -> Direct:
    """A source tree with the requirements ``stated``. Raises UsageError if it is another project."""
    found = None if stated is None else stated.metadata()
    if found is None:
        found = Metadata(name, "", None, needs_build=True)
    elif not found.name:
        raise _invalid(name, reference, "its pyproject.toml names no project", Hint("name it there"))
    elif normalized(found.name) != name and reference.is_named:
        raise _misnamed(name, reference, found.name)
    return Direct(file._replace(requires_python=found.requires_python), found.version, found)


def _read_inside(path: Path, root: Path) -> bytes:
    """A file of an untrusted tree; b"" if it does not exist, or a link leads out of the tree."""
    if not path.resolve().is_relative_to(root.resolve()):
        return b""
    try:
        return read_bytes(path, METADATA_LIMIT) or b""
    except FileError:
        return b""


def _absolute(address: str) -> str:
    return Path(unquote(address)).resolve().as_uri() if is_path(address) else address


def _key(reference: Reference) -> str:
    return f"requirements of {without_secrets(reference.url)}"


def _misnamed(name: str, reference: Reference, called: str) -> UsageError:
    hint = Hint(f"write '{called} @ {without_secrets(reference.url)}'")
    return _invalid(name, reference, f"it is called {called!r}", hint)


def _invalid(name: str, reference: Reference, reason: str, *hints: Hint) -> UsageError:
    return UsageError("direct-reference-invalid", f"{name} @ {without_secrets(reference.url)}: {reason}", hints=hints)
