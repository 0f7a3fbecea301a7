"""The metadata of a source distribution: what its archive states, else from a build of it.

A build runs code of the package, so it happens only where the user allows it and the hash of the archive is known.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from envsolve.errors import Hint, OutsideError
from envsolve.index.build_bounds import bound_for
from envsolve.index.checks import (
    BUILD_FAILED,
    check_hash,
    checked_metadata,
    invalid,
    not_had,
    project_and_version,
    require_hash,
)
from envsolve.index.fetch import Fetcher
from envsolve.index.metadata import Metadata
from envsolve.index.source_archive import index_of_stub, stated_metadata
from envsolve.model.package import PackageFile

_OK = 200
_SOURCE_LIMIT = 500_000_000
"""Bytes of a source distribution; the largest real ones have 300 MB."""


def of_source(
    fetcher: Fetcher, file: PackageFile, build_constraints: Sequence[str] = (), *, allow_builds: bool
) -> Metadata:
    """What a source distribution requires; what only a build tells is left open where none is allowed.

    ``build_constraints`` bound the versions of what a build requires.

    Raises OutsideError: ``metadata-invalid``, ``no-hash`` where nothing proves what is to be built, ``build-failed``.
    """
    response = fetcher.fetch(file.url, limit=_SOURCE_LIMIT)
    if response.status != _OK:
        raise not_had(file, response)
    check_hash(response.body, file.hashes, file.name)
    found = stated_metadata(response.body, file)
    index = index_of_stub(response.body, file)
    if found is None and allow_builds:
        require_hash(file)
        found = _built(response.body, file, build_constraints, index)
    if found is None:
        name, version = project_and_version(file.name)
        found = Metadata(name, version, None, needs_build=True)
    return found._replace(leads_to=index)


def _built(content: bytes, file: PackageFile, constraints: Sequence[str], index: str) -> Metadata:
    """The metadata as a build makes them. Raises OutsideError."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="envsolve-build-") as directory:
        built = built_metadata(extracted(content, file, Path(directory)), file.name, constraints, index)
    return checked_metadata(built.content, file)._replace(built_with=built.built_with)


def extracted(content: bytes, file: PackageFile, directory: Path) -> Path:
    """The one directory at the top of an archive, unpacked into ``directory``. Raises OutsideError."""
    try:
        if file.name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                archive.extractall(directory)  # noqa: S202 - zipfile leaves out what would lead out of the directory
        else:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive_of_tape:
                archive_of_tape.extractall(directory, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise invalid(file, f"the archive cannot be unpacked: {error}") from None
    top = list(directory.iterdir())
    if len(top) != 1 or not top[0].is_dir():
        raise invalid(file, "the archive contains more than one directory")
    return top[0]


class Built(NamedTuple):
    """The metadata that a build made, and the older build tools that it needed, "" where it needed none."""

    content: bytes
    built_with: str = ""


class _BuildFailedError(Exception):
    """A build failed; ``output`` is what it said."""

    def __init__(self, output: str) -> None:
        super().__init__(output)
        self.output = output

    @property
    def last_words(self) -> str:
        """The last line that says anything."""
        lines = [line.strip() for line in self.output.splitlines()]
        return next((line for line in reversed(lines) if any(map(str.isalnum, line))), self.output)


def built_metadata(source: Path, what: str, constraints: Sequence[str], index: str = "") -> Built:
    """The metadata of the project in the directory ``source``, which runs its code.

    It is built with the older build tools that it is known to need if it fails without. Raises OutsideError, which
    names the ``index`` that an archive without files leads to.
    """
    try:
        return Built(_metadata_of_build(source, constraints))
    except _BuildFailedError as error:
        causes = [error.last_words]
        bound = bound_for(error.output)
    if bound is not None:
        try:
            return Built(_metadata_of_build(source, (*constraints, bound.constraint)), str(bound))
        except _BuildFailedError as error:
            causes.append(f"with {bound.constraint}: {error.last_words}")
    hint = Hint("try another version with a wheel, or build a wheel and serve it from a local index")
    if index:
        causes.append(f"it only leads to the index {index}")
        hint = Hint(f"add that index: --extra-index-url {index}")
    raise OutsideError(BUILD_FAILED, f"{what} could not be built to read its requirements", tuple(causes), (hint,))


def _metadata_of_build(source: Path, constraints: Sequence[str]) -> bytes:
    import subprocess
    import warnings

    from build import BuildBackendException, BuildException, ProjectBuilder
    from build.env import DefaultIsolatedEnv
    from pyproject_hooks import quiet_subprocess_runner

    try:
        with warnings.catch_warnings(), DefaultIsolatedEnv() as environment:
            warnings.simplefilter("ignore")  # build passes on what a backend warns of, which its project is to read
            builder = ProjectBuilder.from_isolated_env(environment, source, runner=quiet_subprocess_runner)
            environment.install(builder.build_system_requires, constraints)
            environment.install(builder.get_requires_for_build("wheel"), constraints)
            directory = builder.metadata_path(source / f".envsolve-metadata-{len(constraints)}")
        return (Path(directory) / "METADATA").read_bytes()
    except (BuildException, BuildBackendException, subprocess.CalledProcessError, OSError) as error:
        raise _BuildFailedError(_output_of(error)) from None


def _output_of(error: Exception) -> str:
    error = getattr(error, "exception", error)  # what a backend failed with comes wrapped
    output = getattr(error, "output", None) or getattr(error, "stderr", None)
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else str(output or error)
