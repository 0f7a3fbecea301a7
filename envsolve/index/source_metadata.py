"""The metadata of a source distribution: from its PKG-INFO where that is for every wheel, else from a build of it.

A build runs code of the package, so it happens only where the user allows it and the hash of the archive is known.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from pathlib import Path

from envsolve.errors import Hint, OutsideError
from envsolve.index.checks import check_hash, checked_metadata, invalid, not_had, require_hash
from envsolve.index.fetch import METADATA_LIMIT, Fetcher
from envsolve.index.metadata import Metadata
from envsolve.model.package import PackageFile

_OK = 200
_SOURCE_LIMIT = 500_000_000
"""Bytes of a source distribution; the largest real ones have 300 MB."""
_PARTS = 2


def of_source(fetcher: Fetcher, file: PackageFile, *, allow_builds: bool) -> Metadata:
    """What a source distribution requires.

    Raises OutsideError: ``needs-build`` where only a build could tell, ``no-hash`` where nothing proves what is built.
    """
    response = fetcher.fetch(file.url, limit=_SOURCE_LIMIT)
    if response.status != _OK:
        raise not_had(file, response)
    check_hash(response.body, file.hashes, file.name)
    found = checked_metadata(_package_info(response.body, file), file)
    if found.is_static:
        return found
    if not allow_builds:
        raise needs_build(file.name)
    require_hash(file)
    return _built(response.body, file)


def needs_build(file_name: str) -> OutsideError:
    """The error for a source distribution whose requirements only a build tells."""
    return OutsideError(
        "needs-build",
        f"{file_name} has to be built to know what it requires",
        hints=(Hint("--allow-builds builds it here, which runs code of the package"),),
    )


def _package_info(content: bytes, file: PackageFile) -> bytes:
    """The PKG-INFO at the top of the archive."""
    try:
        if file.name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                names = [it for it in archive.namelist() if _is_package_info(it)]
                if names and archive.getinfo(names[0]).file_size <= METADATA_LIMIT:
                    return archive.read(names[0])
        else:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive_of_tape:
                for member in archive_of_tape:
                    if _is_package_info(member.name) and member.isfile() and member.size <= METADATA_LIMIT:
                        opened = archive_of_tape.extractfile(member)
                        return b"" if opened is None else opened.read()
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise invalid(file, f"the archive is damaged: {error}") from None
    raise invalid(file, "the archive holds no PKG-INFO")


def _is_package_info(name: str) -> bool:
    return name.endswith("/PKG-INFO") and len(name.split("/")) == _PARTS


def _built(content: bytes, file: PackageFile) -> Metadata:
    """The metadata as a build makes them, in an environment of its own (PEP 517, through pypa/build)."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="envsolve-build-") as directory:
        source = _extracted(content, file, Path(directory))
        return checked_metadata(_metadata_of_build(source, file), file)


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
        raise invalid(file, "the archive holds more than one directory")
    return top[0]


def _metadata_of_build(source: Path, file: PackageFile) -> bytes:
    import subprocess

    from build import BuildBackendException, BuildException, ProjectBuilder
    from build.env import DefaultIsolatedEnv
    from pyproject_hooks import quiet_subprocess_runner

    try:
        with DefaultIsolatedEnv() as environment:
            builder = ProjectBuilder.from_isolated_env(environment, source, runner=quiet_subprocess_runner)
            environment.install(builder.build_system_requires)
            environment.install(builder.get_requires_for_build("wheel"))
            directory = builder.metadata_path(source / ".envsolve-metadata")
        return (Path(directory) / "METADATA").read_bytes()
    except (BuildException, BuildBackendException, subprocess.CalledProcessError, OSError) as error:
        raise OutsideError(
            "build-failed",
            f"{file.name} could not be built to know what it requires",
            (_last_words(error),),
            (Hint("another version may have a wheel; or build it apart and give its wheel by a local index"),),
        ) from None


def _last_words(error: Exception) -> str:
    error = getattr(error, "exception", error)  # what a backend failed with comes wrapped
    output = getattr(error, "output", None) or getattr(error, "stderr", None)
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else str(output or error)
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), str(error))
