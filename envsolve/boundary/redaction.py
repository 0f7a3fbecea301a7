"""Remove user names, home directories, host names and tokens from a text.

For texts that are pasted in public. What is not secret, such as the path of a system library, stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from envsolve.boundary.secrets import masked

_USERS = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOMES = ("HOME", "USERPROFILE")
_HOSTS = ("HOSTNAME", "HOST", "COMPUTERNAME")
_COMMON = {
    *("root", "user", "users", "home", "admin", "localhost", "localdomain", "linux", "ubuntu", "debian", "docker"),
    *("server", "host", "node", "gpu", "cuda", "python", "torch", "pytorch", "tensorflow", "nvidia", "conda"),
    *("envsolve", "local", "runner", "jovyan", "dev", "usr", "etc", "var", "tmp", "bin", "lib", "opt", "app", "data"),
    *("mnt", "proc", "sys", "srv", "test", "work"),
}
"""Names of users and machines that identify no one, and that texts contain for other reasons."""
_LEAST = 2
"""Characters of the shortest name that is removed."""
_ANY_HOME = re.compile(r"(?i)((?:/var)?/(?:home|users)/)(?!\*)[^\\/\s:;,'\"]+")
_WINDOWS_HOME = re.compile(
    r"(?i)((?:[a-z]:|/mnt/[a-z])[\\/]users[\\/])(?!\*)(?:[^\\/:;,'\"\n]{1,64}(?=[\\/])|[^\\/\s:;,'\"]+)"
)
"""On Windows, names may contain blanks."""
_UUID = re.compile(r"(?i)\b(GPU-|MIG-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS = re.compile(r"(?<=://)[^\s/'\"`?#,;)\]]+")


def redaction(environ: Mapping[str, str], hosts: Iterable[str], places: Mapping[str, str]) -> Callable[[str], str]:
    """A function that removes the names of a machine and its user from a text.

    ``hosts`` are names of the machine in addition to those in ``environ``; ``places`` maps directories to their
    replacements.
    """
    homes = {environ[name]: "~" for name in _HOMES if environ.get(name) and len(environ[name]) > len("/")}
    paths = {path.rstrip("/\\"): word for path, word in {**homes, **places}.items() if path.strip("/\\")}
    users = {environ[name] for name in _USERS if environ.get(name)}
    users |= {re.split(r"[\\/]", home.rstrip("/\\"))[-1] for home in homes}
    machines = {name for name in (*hosts, *(environ.get(it, "") for it in _HOSTS)) if name}
    machines |= {name.partition(".")[0] for name in machines}
    patterns = [
        *((_of_path(path), word) for path, word in sorted(paths.items(), key=lambda it: -len(it[0]))),
        (_WINDOWS_HOME, r"\1***"),
        (_ANY_HOME, r"\1***"),
        *((_of_name(name), "USER") for name in _longest_first(users)),
        *((_of_name(name), "HOST") for name in _longest_first(machines)),
        (_UUID, r"\1UUID"),
        (_MAIL, "MAIL"),
        (_ADDRESS, "HOST"),
    ]

    def redacted(text: str) -> str:
        text = masked(text)
        for pattern, word in patterns:
            text = pattern.sub(word, text)
        return text

    return redacted


def _longest_first(names: Iterable[str]) -> list[str]:
    known = (name for name in names if len(name) >= _LEAST and name.casefold() not in _COMMON)
    return sorted(known, key=lambda it: (-len(it), it))


def _of_path(path: str) -> re.Pattern[str]:
    """A pattern for a directory, but not for one whose name only begins the same way."""
    return re.compile(rf"{re.escape(path)}(?![\w.-])")


def _of_name(name: str) -> re.Pattern[str]:
    """A pattern for a name by itself, or as part of a path or of another name."""
    return re.compile(rf"(?i)(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])")
