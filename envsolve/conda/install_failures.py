"""Errors for rattler's failures to install a package. Imported only if something went wrong.

rattler 0.28 raises one class, InstallerError, with a chain of causes as its text; the package is in its first line.
"""

from __future__ import annotations

from collections.abc import Sequence

from envsolve.boundary.secrets import without_secrets
from envsolve.conda.failures import Kind, kind_of, outside
from envsolve.errors import EnvsolveError, Hint, OutsideError
from envsolve.model.conda import CondaPackage

_KINDS = (
    Kind(
        ("hash mismatch",),
        "checksum-mismatch",
        "{package} does not match the checksum in the lock",
        "do not use the downloaded file; if the channel replaced it, lock again",
    ),
    Kind(
        ("No space left", "os error 28", "os error 112", "Disk quota"),
        "disk-failed",
        "not enough disk space for {package}",
        "free disk space and run the same command again; completed downloads are reused",
    ),
    Kind(
        ("Permission denied", "os error 13", "Read-only file system", "os error 30"),
        "disk-failed",
        "{package} cannot be written",
        "check the write permissions of the environment and the package cache (--cache-dir)",
    ),
    Kind(
        ("cannot replace", "exceeds the length", "too long", "TargetPrefixIsTooLong", "longer than the placeholder"),
        "prefix-too-long",
        "{package} cannot store the path of this environment: it is too long",
        "choose a shorter path for PREFIX",
    ),
    Kind(
        (
            "failed to extract",
            "unexpected end",
            "unexpected EOF",
            "Unknown frame",
            "invalid Zip",
            "corrupt",
            "decoding",
            "Invalid checksum",
        ),
        "package-corrupt",
        "the download of {package} is incomplete or damaged",
        "try again; completed downloads are reused. If you use a proxy, check its response",
    ),
)


def failed(kind: str, text: str, packages: Sequence[CondaPackage]) -> EnvsolveError:
    """The error for an exception of rattler, by the name of its class and its text."""
    if kind == "MissingError":
        message = f"{text}, and --offline is set"
        return OutsideError("offline", message, hints=(Hint("run it once without --offline"),))
    if kind == "EscapeError":
        hint = Hint("do not use this package, and report it to the maintainers of the channel")
        return OutsideError("package-unsound", "a package would write outside of its environment", (text,), (hint,))
    package = next((it.file_name for it in packages if it.file_name in text), None)
    found = kind_of(text, _KINDS)
    if found is None or kind != "InstallerError":
        channels = tuple(dict.fromkeys(it.channel or it.url.rpartition("/")[0] for it in packages))
        return outside(kind, text, {"channels": channels}, offline=False)
    cause = tuple(
        without_secrets(line.strip().removeprefix("Caused by: ")) for line in text.splitlines() if line.strip()
    )
    return OutsideError(found.code, found.message.format(package=package or "a package"), cause, (Hint(found.hint),))


def died(lines: Sequence[str]) -> OutsideError:
    """The error if the process ends before it reports how the installation ended."""
    return OutsideError(
        "conda-installer-failed",
        "py-rattler, which installs conda packages, ended without a result",
        tuple(map(without_secrets, lines)),
        (Hint("run it again; if that does not help, reinstall py-rattler"),),
    )
