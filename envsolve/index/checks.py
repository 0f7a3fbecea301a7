"""Checks of files from an index: their digests, and that their content matches their name."""

from __future__ import annotations

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError
from envsolve.index.fetch import Response
from envsolve.index.metadata import Metadata, read_metadata
from envsolve.model.names import normalized
from envsolve.model.package import Hashes, PackageFile
from envsolve.model.versions import parsed_version

NOT_THERE = "file-not-there"
"""The error code for a file that an index lists but does not serve."""
BUILD_FAILED = "build-failed"
"""The error code for a source distribution that could not be built."""
_STRONG = ("sha512", "sha384", "sha256")


def checked_metadata(content: bytes, file: PackageFile) -> Metadata:
    """The metadata in ``content``. Raises OutsideError if it is not for the project and the version of ``file``."""
    try:
        found = read_metadata(content)
    except ValueError as error:
        raise invalid(file, str(error)) from None
    name, version = project_and_version(file.name)
    if normalized(found.name) != name or parsed_version(found.version) != parsed_version(version):
        raise invalid(file, f"it is about {found.name} {found.version}")
    return found


def project_and_version(file_name: str) -> tuple[str, str]:
    """The normalized name and the version in the name of a file, as far as it is unambiguous."""
    if file_name.endswith(".whl"):
        parts = file_name.split("-")
        return normalized(parts[0]), parts[1].replace("_", "-")
    stem = file_name.removesuffix(".zip").removesuffix(".tar.gz")
    name, _, version = stem.rpartition("-")
    return normalized(name), version


def require_hash(file: PackageFile) -> None:
    """Raise OutsideError if the index states no strong hash of ``file``: its code must not run then."""
    if not any(algorithm in _STRONG for algorithm, _ in file.hashes):
        message = f"{file.name!r} has no sha256, sha384 or sha512, and envsolve builds only verified files"
        hint = Hint("use an index that has hashes, or a version with a wheel")
        raise OutsideError("no-hash", message, hints=(hint,))


def check_hash(content: bytes, hashes: Hashes, what: str) -> None:
    """Raise OutsideError if ``content`` does not match the strongest supported one of ``hashes``."""
    import hashlib

    stated = dict(hashes)
    algorithm = next((it for it in _STRONG if it in stated), None)
    if algorithm is None:
        return
    found = hashlib.new(algorithm, content).hexdigest()
    if found != stated[algorithm].lower():
        raise OutsideError(
            "hash-mismatch",
            f"{what} does not match its hash on the index",
            (f"{algorithm} on the page: {stated[algorithm]}", f"{algorithm} of the download: {found}"),
            (Hint("try again; if it fails again, the index or a proxy changes files"),),
        )


def not_served(file: PackageFile, response: Response) -> OutsideError:
    """Return the error for a file that an index lists but does not serve."""
    address = without_secrets(file.url)
    return OutsideError(
        NOT_THERE,
        f"the index lists {file.name}, but {address} returned status {response.status}",
        hints=(Hint("the index or its mirror is incomplete: try another one with --index-url"),),
    )


def invalid(file: PackageFile, reason: str) -> OutsideError:
    """The error for metadata that cannot be used."""
    return OutsideError("metadata-invalid", f"the metadata of {file.name} cannot be used: {reason}")
