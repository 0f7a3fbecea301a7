"""The metadata of a source distribution, from its archive, else from a build.

A build runs code of the package, so it needs the user's permission and a known hash of the archive.
"""

from __future__ import annotations

import io
import re
import shlex
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

from envsolve.errors import Hint, OutsideError
from envsolve.index.build_bounds import bound_for
from envsolve.index.build_environments import BuildEnvironments
from envsolve.index.checks import (
    BUILD_FAILED,
    check_hash,
    checked_metadata,
    invalid,
    not_served,
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
"""The size limit of a source distribution in bytes; the largest real ones have 300 MB."""


def of_source(fetcher: Fetcher, file: PackageFile) -> Metadata:
    """The metadata in the archive of a source distribution; its requirements may need a build.

    Raises OutsideError ``metadata-invalid``.
    """
    return stated_metadata(_content(fetcher, file), file)


def built(fetcher: Fetcher, file: PackageFile, environments: BuildEnvironments) -> Metadata:
    """The metadata from a build of a source distribution, in one of ``environments`` (PEP 517, with pypa/build).

    Raises OutsideError ``metadata-invalid``, ``no-hash`` (the archive has no strong digest) or ``build-failed``.
    """
    from tempfile import TemporaryDirectory

    require_hash(file)
    content = _content(fetcher, file)
    index = stated_metadata(content, file).leads_to
    requirement = "==".join(project_and_version(file.name))
    with TemporaryDirectory(prefix="envsolve-build-") as directory:
        root = extracted(content, file, Path(directory))
        made = built_metadata(root, file.name, requirement, environments, index)
    return checked_metadata(made.content, file)._replace(leads_to=index, built_with=made.built_with)


def _content(fetcher: Fetcher, file: PackageFile) -> bytes:
    response = fetcher.fetch(file.url, limit=_SOURCE_LIMIT)
    if response.status != _OK:
        raise not_served(file, response)
    check_hash(response.body, file.hashes, file.name)
    return response.body


def extracted(content: bytes, file: PackageFile, directory: Path) -> Path:
    """Unpack an archive into ``directory``, and return its top directory. Raises OutsideError."""
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
    """The metadata from a build, and the older build tools that it needed, "" if none."""

    content: bytes
    built_with: str = ""


class _BuildFailedError(Exception):
    """A build failed; ``output`` is what it printed."""

    def __init__(self, output: str) -> None:
        super().__init__(output)
        self.output = output

    @property
    def last_words(self) -> str:
        """The last line that is not empty."""
        lines = [line.strip() for line in self.output.splitlines()]
        return next((line for line in reversed(lines) if any(map(str.isalnum, line))), self.output)


def built_metadata(
    source: Path, what: str, requirement: str, environments: BuildEnvironments, index: str = ""
) -> Built:
    """Build the metadata of the project in ``source``. This runs its code in one of ``environments``.

    If the build fails for a known reason, it is repeated with older build tools. Raises OutsideError. If a module is
    missing, the error says how to install ``requirement`` with pip; for a stub it names the ``index`` with its files.
    """
    try:
        return Built(_metadata_of_build(source, environments))
    except _BuildFailedError as error:
        failure, causes = error, [error.last_words]
    bound = bound_for(failure.output)
    if bound is not None:
        try:
            return Built(_metadata_of_build(source, environments, bound.constraint), str(bound))
        except _BuildFailedError as error:
            failure = error
            causes.append(f"with {bound.constraint}: {error.last_words}")
    missing = _NO_MODULE.search(failure.last_words)
    hints = [Hint("try another version with a wheel, or build a wheel and serve it from a local index")]
    if index:
        causes.append(f"it only leads to the index {index}")
        hints = [Hint(f"add that index: --extra-index-url {index}")]
    elif missing is not None and bound_for(failure.output) is None:
        text = f"a build has an environment of its own: build the wheel where {missing[1]} is installed"
        hints.append(Hint(text, shlex.join(["pip", "wheel", "--no-build-isolation", "--no-deps", requirement])))
    raise OutsideError(BUILD_FAILED, f"{what} could not be built to read its requirements", tuple(causes), tuple(hints))


def _metadata_of_build(source: Path, environments: BuildEnvironments, constraint: str = "") -> bytes:
    import subprocess
    import warnings

    from build import BuildBackendException, BuildException, ProjectBuilder
    from pyproject_hooks import quiet_subprocess_runner

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of a backend are for the authors of the project
            requires = ProjectBuilder(source).build_system_requires
            environment = environments.of(requires, constraint)
            builder = ProjectBuilder.from_isolated_env(environment, source, quiet_subprocess_runner)
            more = builder.get_requires_for_build("wheel")
            if not more <= requires:
                environment = environments.of(requires | more, constraint)
                builder = ProjectBuilder.from_isolated_env(environment, source, quiet_subprocess_runner)
            directory = builder.metadata_path(source / f".envsolve-metadata{constraint and '-again'}")
        return (Path(directory) / "METADATA").read_bytes()
    except (BuildException, BuildBackendException, subprocess.CalledProcessError, OSError) as error:
        raise _BuildFailedError(_output_of(error)) from None


def _output_of(error: Exception) -> str:
    error = getattr(error, "exception", error)  # pypa/build wraps the error of a backend
    output = getattr(error, "output", None) or getattr(error, "stderr", None)
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else str(output or error)
