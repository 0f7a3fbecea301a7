"""The metadata of a source distribution: what its archive states, else from a build of it.

A build runs code of the package, so it happens only where the user allows it and the hash of the archive is known.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from pathlib import Path

from envsolve.errors import Hint, OutsideError
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
from envsolve.index.source_archive import stated_metadata
from envsolve.model.package import PackageFile

_OK = 200
_SOURCE_LIMIT = 500_000_000
"""Bytes of a source distribution; the largest real ones have 300 MB."""


def of_source(fetcher: Fetcher, file: PackageFile, *, allow_builds: bool) -> Metadata:
    """What a source distribution requires; what only a build tells is left open where none is allowed.

    Raises OutsideError: ``metadata-invalid``, ``no-hash`` where nothing proves what is to be built, ``build-failed``.
    """
    response = fetcher.fetch(file.url, limit=_SOURCE_LIMIT)
    if response.status != _OK:
        raise not_had(file, response)
    check_hash(response.body, file.hashes, file.name)
    found = stated_metadata(response.body, file)
    if found is not None:
        return found
    if allow_builds:
        require_hash(file)
        return _built(response.body, file)
    name, version = project_and_version(file.name)
    return Metadata(name, version, None, needs_build=True)


def _built(content: bytes, file: PackageFile) -> Metadata:
    """The metadata as a build makes them, in an environment of its own (PEP 517, through pypa/build)."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="envsolve-build-") as directory:
        source = extracted(content, file, Path(directory))
        return checked_metadata(built_metadata(source, file.name), file)


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


def built_metadata(source: Path, what: str) -> bytes:
    """The metadata of the project in the directory ``source``, which runs its code. Raises OutsideError."""
    import subprocess
    import warnings

    from build import BuildBackendException, BuildException, ProjectBuilder
    from build.env import DefaultIsolatedEnv
    from pyproject_hooks import quiet_subprocess_runner

    try:
        with warnings.catch_warnings(), DefaultIsolatedEnv() as environment:
            warnings.simplefilter("ignore")  # build passes on what a backend warns of, which its project is to read
            builder = ProjectBuilder.from_isolated_env(environment, source, runner=quiet_subprocess_runner)
            environment.install(builder.build_system_requires)
            environment.install(builder.get_requires_for_build("wheel"))
            directory = builder.metadata_path(source / ".envsolve-metadata")
        return (Path(directory) / "METADATA").read_bytes()
    except (BuildException, BuildBackendException, subprocess.CalledProcessError, OSError) as error:
        raise OutsideError(
            BUILD_FAILED,
            f"{what} could not be built to read its requirements",
            (_last_words(error),),
            (Hint("try another version with a wheel, or build a wheel and serve it from a local index"),),
        ) from None


def _last_words(error: Exception) -> str:
    error = getattr(error, "exception", error)  # what a backend failed with comes wrapped
    output = getattr(error, "output", None) or getattr(error, "stderr", None)
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else str(output or error)
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), str(error))
