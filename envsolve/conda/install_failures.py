"""What rattler says when a package cannot be installed, as errors for people. Loaded only where something went wrong.

rattler 0.28 raises one class, InstallerError, whose text is a chain of causes; the package is in its first line.
"""

from __future__ import annotations

from collections.abc import Sequence

from envsolve.boundary.secrets import without_secrets
from envsolve.conda.failures import Kind, outside
from envsolve.errors import EnvsolveError, Hint, OutsideError
from envsolve.model.conda import CondaPackage

_KINDS = (
    Kind(
        ("hash mismatch",),
        "checksum-mismatch",
        "{package} is not the file that the lock names: its checksum differs",
        "do not use what came; if the channel replaced the file, make the lock anew",
    ),
    Kind(
        ("No space left", "os error 28", "os error 112", "Disk quota"),
        "disk-failed",
        "there is no room for {package}",
        "make room; what was fetched before is kept, and the same command goes on from there",
    ),
    Kind(
        ("Permission denied", "os error 13", "Read-only file system", "os error 30"),
        "disk-failed",
        "{package} cannot be written",
        "see who may write to the environment and to the cache of packages (--cache-dir)",
    ),
    Kind(
        ("cannot replace", "exceeds the length", "too long", "TargetPrefixIsTooLong", "longer than the placeholder"),
        "prefix-too-long",
        "{package} holds the path of its environment in a place that is too short for this one",
        "give a PREFIX with a shorter path",
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
        "what came for {package} is no whole package",
        "try again: what was fetched before is kept; where a proxy stands between, ask it what it sends",
    ),
)


def failed(kind: str, text: str, packages: Sequence[CondaPackage]) -> EnvsolveError:
    """The error for an exception of rattler, by the name of its class and its text."""
    if kind == "MissingError":
        message = f"{text}, and --offline asks nobody"
        return OutsideError("offline", message, hints=(Hint("run it once without --offline"),))
    if kind == "EscapeError":
        hint = Hint("do not use this package; whoever keeps the channel should know of it")
        return OutsideError("package-unsound", "a package would write outside of its environment", (text,), (hint,))
    package = next((it.file_name for it in packages if it.file_name in text), None)
    found = next((it for it in _KINDS if any(word in text for word in it.words)), None)
    if found is None or kind != "InstallerError":
        channels = tuple(dict.fromkeys(it.channel or it.url.rpartition("/")[0] for it in packages))
        return outside(kind, text, {"channels": channels}, offline=False)
    cause = tuple(
        without_secrets(line.strip().removeprefix("Caused by: ")) for line in text.splitlines() if line.strip()
    )
    return OutsideError(found.code, found.message.format(package=package or "a package"), cause, (Hint(found.hint),))


def died(said: Sequence[str]) -> OutsideError:
    """The error where the process ends before it says how the installation ended."""
    return OutsideError(
        "conda-installer-failed",
        "py-rattler, which installs conda packages, ended without an answer",
        tuple(map(without_secrets, said)),
        (Hint("run it again; if that does not help, install py-rattler anew"),),
    )
