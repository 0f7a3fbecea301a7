"""The client of the process that installs conda packages: an environment in its place, or one error.

Logins are passed separately from the addresses: so they are in no record that rattler writes into the environment, and
on no command line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

from envsolve import __version__
from envsolve.boundary.meter import metered, packages_text
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.logins import logins_of
from envsolve.conda.process import installing, is_installed
from envsolve.conda.session import not_installed, receive, retries, send, timeout
from envsolve.model.conda import CondaPackage

_BUILD_NUMBER = re.compile(r"(?<!\d)\d{1,9}\Z")
"""At the end of a build string, by the convention of recipes; an unpacked package has the number itself."""
_LAST_LINES = 3


class Installation(NamedTuple):
    """The packages of the environment at ``prefix``, and how they are fetched.

    ``cache_directory`` is where packages are cached. ``logins`` are addresses of channels, without and with their
    login. ``again`` are installed packages to reinstall.
    """

    prefix: Path
    platform: str
    packages: tuple[CondaPackage, ...]
    cache_directory: Path
    logins: tuple[tuple[str, str], ...] = ()
    offline: bool = False
    again: Collection[str] = ()


def install(
    installation: Installation, progress: Callable[[str], None], start: Callable[[], Popen[bytes]] = installing
) -> None:
    """Install the packages; each digest is checked when the package is fetched.

    Raises OutsideError if py-rattler is missing, ends without an answer, or cannot fetch or write a package. In any
    case the process has ended afterwards.
    """
    if not is_installed():
        raise not_installed()
    settings = _settings(installation)
    process = start()
    try:
        with metered(process.pid, packages_text([it.size for it in installation.packages]), progress):
            answer = _answer(process, settings, _job(installation), progress)
    finally:
        process.kill()
        errors = process.communicate()[1] or b""
    if answer is None:
        from envsolve.conda.install_failures import died

        raise died(errors.decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:])
    if "error" in answer:
        from envsolve.conda.install_failures import failed

        raise failed(answer["error"], answer["text"], installation.packages)


def package_cache(environ: Mapping[str, str]) -> Path:
    """The package cache of rattler, which pixi and other tools based on it share with envsolve."""
    named = environ.get("RATTLER_CACHE_DIR")
    if named:
        return Path(named) / "pkgs"
    if sys.platform == "win32":
        base = Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "rattler" / "cache" / "pkgs"


def _answer(
    process: Popen[bytes], settings: Mapping[str, Any], job: Mapping[str, Any], progress: Callable[[str], None]
) -> Mapping[str, Any] | None:
    """The last message, after those with progress; None if the process dies before it."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        send(settings, process.stdin)
        send(job, process.stdin)
        while (message := receive(process.stdout)) is not None:
            if "progress" not in message:
                return dict(message)
            progress(message["progress"])
    except (OSError, ValueError):
        return None
    return None


def _settings(installation: Installation) -> dict[str, Any]:
    return {
        "cache_directory": str(installation.cache_directory.absolute()),
        "logins": logins_of(opened for _, opened in installation.logins)._asdict(),
        "mode": "offline" if installation.offline else "",
        "user_agent": f"envsolve/{__version__}",
        "timeout": timeout(),
        "retries": retries(),
    }


def _job(installation: Installation) -> dict[str, Any]:
    return {
        "prefix": str(installation.prefix),
        "platform": installation.platform,
        "packages": [_described(package) for package in installation.packages],
        "again": sorted(installation.again),
    }


def _described(package: CondaPackage) -> dict[str, Any]:
    """A package for the installer. What a lock omits is in the package itself once it is fetched."""
    number = _BUILD_NUMBER.search(package.build)
    noarch = None if package.subdir != "noarch" else "python" if package.is_python_package else "generic"
    return {
        **package._asdict(),
        "build_number": package.build_number or (int(number[0]) if number else 0),
        "file_name": package.file_name,
        "url": without_secrets(package.url),
        "noarch": noarch,
    }


def missing_scripts(prefix: Path) -> tuple[str, ...]:
    """The packages in ``prefix`` with a post-link script, which rattler does not run."""
    found = (*prefix.glob("bin/.*-post-link.sh"), *prefix.glob("Scripts/.*-post-link.bat"))
    return tuple(sorted(path.stem.removeprefix(".").removesuffix("-post-link") for path in found))
