"""Install wheels into an existing environment with uv or the pip in it; each must have a matching hash."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.answers import PATIENCE
from envsolve.boundary.meter import packages_text
from envsolve.boundary.programs import run_program
from envsolve.create.child import Ran, run
from envsolve.create.failures import KNOWN, no_installer, tool_failed
from envsolve.create.tools import InstallerNetwork, has_own_pip, tool_environ
from envsolve.errors import Hint, UsageError
from envsolve.index.build_bounds import BuildBound, bound_for, build_bounds
from envsolve.lockfile.lock import Lock
from envsolve.model.note import Note
from envsolve.model.requirement_line import as_lines, contents_of

_INTERPRETER = re.compile(r"pythonw?[\d.]*(?:\.exe)?", re.IGNORECASE)
_WITH_TOKEN = re.compile(r"(?P<scheme>https?://)(?:[^/?#]*@)?(?P<folder>[^?#]*?)(?P<token>/t/[^/?#]+)")


class WheelFile(NamedTuple):
    """A file that uv and pip install from: ``pylock.toml`` or ``requirements.txt``, with the hash of every file in it.

    ``names_index`` says that it has the places of packages; otherwise the user's indexes are used.
    """

    name: str
    text: str
    names_index: bool = True


def wheel_file(lock: Lock, *, reads_pylock: bool) -> WheelFile:
    """The wheels of ``lock`` for an installer, by their addresses if possible and ``reads_pylock``, else by name."""
    has_addresses = all(file.url for pin in lock.pins for file in pin.files)
    indexes = tuple(dict.fromkeys(url for pin in lock.pins if (url := pin.index_url)))
    if has_addresses and reads_pylock and any(pin.index_url is not None for pin in lock.pins):
        from envsolve.lockfile import pylock_toml

        return WheelFile("pylock.toml", pylock_toml.write(lock))
    from envsolve.lockfile.requirements_txt import lines_of_pins

    if has_addresses and indexes:
        lock = lock._replace(default_index=indexes[0], default_is_plain=False, indexes=indexes[1:])
    lines = (" ".join(line.split()) for line in contents_of("\n".join(lines_of_pins(lock))))
    text = as_lines(lines).replace("$", "%24")  # in an address, and not a variable of this machine
    return WheelFile("requirements.txt", text, has_addresses or not lock.default_is_plain)


class Wheels(NamedTuple):
    """What is installed, and the installer; ``uv`` is None if pip has to do it.

    ``alone`` says that the environment contains nothing else: uv would remove conda's packages as extraneous.
    ``builds`` allows building packages that have no wheel, which runs their code, and ``build_constraints`` limit the
    versions of their build requirements.
    """

    lock: Lock
    uv: str | None
    alone: bool
    builds: bool = False
    build_constraints: tuple[str, ...] = ()


def install_wheels(
    python: Path,
    wheels: Wheels,
    network: InstallerNetwork,
    environ: Mapping[str, str],
    scratch: Path,
    progress: Callable[[str], None],
) -> list[Note]:
    """Install into the environment of ``python``; the lock is in ``scratch``, with its logins. Returns notes.

    If a build fails that is known to need older build tools, it is repeated once with these. Raises OutsideError if
    that fails, UsageError ``interpreter-replaced`` if a wheel replaced the interpreter.
    """
    before = _interpreters(python.parent)
    notes = [it for part in _parts(wheels) for it in _install(python, part, network, environ, scratch, progress)]
    after = _interpreters(python.parent)
    replaced = next((name for name, facts in before.items() if after.get(name) != facts), None)
    if replaced is not None:
        message = f"a wheel of the lock installs a script called {replaced} over the interpreter of the environment"
        raise UsageError("interpreter-replaced", message, hints=(Hint("leave that package out of the lock"),))
    return notes


def uninstall(
    python: Path,
    names: Sequence[str],
    uv: str | None,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
) -> None:
    """Remove the wheels with these names from the environment of ``python``. Raises OutsideError if that fails."""
    if uv is not None:
        options = ["--python", str(python), "--break-system-packages", "--no-config", "--color", "never"]
        command = [uv, "pip", "uninstall", *options, *names]
    else:
        command = [*_pip(python), "uninstall", "--yes", *names]
    ran = run(command, environ, progress)
    if ran.code != 0:
        raise tool_failed("wheels-failed", "uv" if uv is not None else "pip", ran)


def _parts(wheels: Wheels) -> Iterator[Wheels]:
    """The wheels for each run of an installer: pip allows no repository or directory beside files with hashes."""
    archives = tuple(it for it in wheels.lock.pins if all(file.is_archive for file in it.files))
    if wheels.uv is not None or len(archives) == len(wheels.lock.pins):
        yield wheels
        return
    for pins in (archives, tuple(it for it in wheels.lock.pins if it not in archives)):
        if pins:
            yield wheels._replace(lock=wheels.lock._replace(pins=pins))


def _install(
    python: Path,
    wheels: Wheels,
    network: InstallerNetwork,
    environ: Mapping[str, str],
    scratch: Path,
    progress: Callable[[str], None],
) -> list[Note]:
    lock_file = wheel_file(wheels.lock, reads_pylock=wheels.uv is not None)
    leaves_builds_open = wheels.builds and lock_file.name == "pylock.toml"  # it names no index for them
    names_index = lock_file.names_index and not leaves_builds_open
    with tool_environ(environ, network, scratch, names_index=names_index) as variables:
        file = scratch / lock_file.name
        text = _opened(lock_file.text, network)
        file.write_text(text, "utf-8", newline="\n")
        network = network._replace(no_cache=not network.keeps(text))
        ran = _run(python, file, wheels, network, variables, progress)
        notes: list[Note] = []
        while ran.code != 0 and wheels.builds and (bound := _new_bound(ran, wheels)) is not None:
            notes.append(Note("built-with", f"a package failed to build, and everything was built with {bound}"))
            wheels = wheels._replace(build_constraints=(*wheels.build_constraints, bound.constraint))
            ran = _run(python, file, wheels, network, variables, progress)
    if ran.code != 0:
        raise tool_failed("wheels-failed", "uv" if wheels.uv is not None else "pip", ran, keeps=not network.no_cache)
    return notes


def _run(
    python: Path,
    file: Path,
    wheels: Wheels,
    network: InstallerNetwork,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
) -> Ran:
    """Run the installer, with the bounds on builds beside the lock in ``file``."""
    bounds = file.with_name("build-constraints.txt") if wheels.builds and wheels.build_constraints else None
    if bounds is not None:
        bounds.write_text(as_lines(wheels.build_constraints), "utf-8", newline="\n")
    if wheels.uv is not None:
        command = _of_uv(wheels.uv, python, file, wheels, network)
        command += [] if bounds is None else ["--build-constraints", str(bounds)]
    else:
        command = _of_pip(python, file, wheels, network, environ)
        if bounds is not None and "--build-constraint" in run_program([*command, "--help"], environ, PATIENCE).output:
            command += ["--build-constraint", str(bounds)]
        elif bounds is not None:
            environ = {**environ, "PIP_CONSTRAINT": str(bounds)}  # pip before 25.3 applies these to builds as well
    doing = packages_text([pin.files[0].size for pin in wheels.lock.pins])
    return run(command, environ, progress, words=(*KNOWN, *(it.text for it in build_bounds())), doing=doing)


def _new_bound(ran: Ran, wheels: Wheels) -> BuildBound | None:
    """The known bound for a failed build, if it was not tried yet."""
    bound = bound_for("\n".join((*ran.marked, *ran.lines)))
    return None if bound is None or bound.constraint in wheels.build_constraints else bound


def _interpreters(folder: Path) -> dict[str, tuple[int, int, int]]:
    """The Python programs in ``folder``, each with values that distinguish it from another file of its name."""
    found = (it for it in list(os.scandir(folder)) if _INTERPRETER.fullmatch(it.name))
    facts = {it.name: it.stat(follow_symlinks=False) for it in found}
    return {name: (it.st_ino, it.st_mtime_ns, it.st_size) for name, it in facts.items()}


def _opened(text: str, network: InstallerNetwork) -> str:
    """``text`` with the tokens in the paths of indexes, which a lock does not have and a netrc file cannot contain."""
    matched = filter(None, map(_WITH_TOKEN.match, network.addresses))
    for bare, token in {f"{it['scheme']}{it['folder']}": it["token"] for it in matched}.items():
        text = text.replace(f"{bare}/", f"{bare}{token}/")
    return text


def _hashes(wheels: Wheels) -> list[str]:
    """Options that require a hash for every file; a repository has its commit, a directory is the user's own."""
    return ["--require-hashes"] if all(file.is_archive for pin in wheels.lock.pins for file in pin.files) else []


def _of_uv(uv: str, python: Path, file: Path, wheels: Wheels, network: InstallerNetwork) -> list[str]:
    does = (
        ["sync", "--allow-empty-requirements", str(file)] if wheels.alone else ["install", "--no-deps", "-r", str(file)]
    )
    command = [uv, "pip", *does, "--python", str(python), *_hashes(wheels), "--break-system-packages"]
    command += ["--index-strategy", "unsafe-best-match", "--no-config", "--color", "never", "--no-progress"]
    command += [] if wheels.builds else ["--no-build"]
    command += ["--offline"] if network.offline else []
    if network.no_cache:
        return [*command, "--no-cache"]
    return [*command, "--cache-dir", str(network.cache_directory / "uv")] if network.cache_directory else command


def _pip(python: Path) -> list[str]:
    """The pip beside envsolve, or else the one in the environment of ``python``."""
    if has_own_pip():
        return [sys.executable, "-I", "-m", "pip", "--python", str(python)]
    return [str(python), "-I", "-m", "pip"]


def _of_pip(
    python: Path, file: Path, wheels: Wheels, network: InstallerNetwork, environ: Mapping[str, str]
) -> list[str]:
    pip = _pip(python)
    if run_program([*pip, "--version"], environ, PATIENCE).exit_code != 0:
        raise no_installer(python)
    if network.offline:
        raise no_installer(python, offline=True)
    command = [*pip, "install", "--no-deps", *_hashes(wheels), "--progress-bar", "off", "--no-color", "-r", str(file)]
    command += [] if wheels.builds else ["--only-binary", ":all:"]
    if network.no_cache:
        return [*command, "--no-cache-dir"]
    return [*command, "--cache-dir", str(network.cache_directory / "pip")] if network.cache_directory else command
