"""The metadata of a source distribution: what its archive states, else from a build of it.

A build runs code of the package, so it happens only where the user allows it and the hash of the archive is known.
"""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
import zlib
from pathlib import Path

from envsolve.errors import Hint, OutsideError
from envsolve.index.build_environments import BuildEnvironments
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
_NO_MODULE = re.compile(r"No module named '(\w+)")
_SOURCE_LIMIT = 500_000_000
"""Bytes of a source distribution; the largest real ones have 300 MB."""


def of_source(fetcher: Fetcher, file: PackageFile) -> Metadata:
    """What a source distribution states that it requires; it may leave that to a build.

    Raises OutsideError ``metadata-invalid``.
    """
    return stated_metadata(_content(fetcher, file), file)


def built(fetcher: Fetcher, file: PackageFile, environments: BuildEnvironments) -> Metadata:
    """What a source distribution requires as a build says, in one of ``environments`` (PEP 517, through pypa/build).

    Raises OutsideError: ``metadata-invalid``, ``no-hash`` where nothing proves what is to be built, ``build-failed``.
    """
    from tempfile import TemporaryDirectory

    require_hash(file)
    content = _content(fetcher, file)
    with TemporaryDirectory(prefix="envsolve-build-") as directory:
        source = _extracted(content, file, Path(directory))
        return checked_metadata(_metadata_of_build(source, file, environments), file)


def _content(fetcher: Fetcher, file: PackageFile) -> bytes:
    response = fetcher.fetch(file.url, limit=_SOURCE_LIMIT)
    if response.status != _OK:
        raise not_had(file, response)
    check_hash(response.body, file.hashes, file.name)
    return response.body


def _extracted(content: bytes, file: PackageFile, directory: Path) -> Path:
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


def _metadata_of_build(source: Path, file: PackageFile, environments: BuildEnvironments) -> bytes:
    import subprocess
    import warnings

    from build import BuildBackendException, BuildException, ProjectBuilder
    from pyproject_hooks import quiet_subprocess_runner

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # build passes on what a backend warns of, which its project is to read
            requires = ProjectBuilder(source).build_system_requires
            builder = ProjectBuilder.from_isolated_env(environments.of(requires), source, quiet_subprocess_runner)
            more = builder.get_requires_for_build("wheel")
            if not more <= requires:
                environment = environments.of(requires | more)
                builder = ProjectBuilder.from_isolated_env(environment, source, quiet_subprocess_runner)
            directory = builder.metadata_path(source / ".envsolve-metadata")
        return (Path(directory) / "METADATA").read_bytes()
    except (BuildException, BuildBackendException, subprocess.CalledProcessError, OSError) as error:
        said = _last_words(error)
        hints = [Hint("try another version with a wheel, or build a wheel and serve it from a local index")]
        missing = _NO_MODULE.search(said)
        if missing is not None:
            text = f"a build has an environment of its own: build the wheel where {missing[1]} is installed"
            name, version = project_and_version(file.name)
            hints.append(Hint(text, f"pip wheel --no-build-isolation --no-deps {name}=={version}"))
        message = f"{file.name} could not be built to read its requirements"
        raise OutsideError(BUILD_FAILED, message, (said,), tuple(hints)) from None


def _last_words(error: Exception) -> str:
    error = getattr(error, "exception", error)  # what a backend failed with comes wrapped
    output = getattr(error, "output", None) or getattr(error, "stderr", None)
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else str(output or error)
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), str(error))
