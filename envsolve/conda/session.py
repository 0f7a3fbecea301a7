"""The client of the process that runs py-rattler: queries in, answers or errors out.

The process loads py-rattler while the stack is being solved. After its answer, a crash of it does not matter.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from envsolve import __version__
from envsolve.boundary.programs import command_to_install
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.condarc import Condarc
from envsolve.conda.logins import logins_of
from envsolve.conda.process import ENGINE, is_installed, started
from envsolve.errors import Hint, OutsideError
from envsolve.model.conda import CondaPackage, VirtualPackage
from envsolve.model.installing_envsolve import CONDA_EXTRA

if TYPE_CHECKING:
    from subprocess import Popen

_GRACE = 2.0
"""Seconds that the process may take to end by itself."""
_TIMEOUT = 60
"""Seconds without data from a server after which it counts as dead."""
_RETRIES = 3
_TIMEOUT_VARIABLES = ("UV_HTTP_TIMEOUT", "PIP_DEFAULT_TIMEOUT")
_RETRIES_VARIABLES = ("UV_HTTP_RETRIES", "PIP_RETRIES")
"""Variables that also apply to package indexes (envsolve.index.http)."""
_LAST_LINES = 3


class Settings(NamedTuple):
    """Settings for channels. ``mode`` is ``""``, ``offline`` (no network) or ``refresh`` (no cached data).

    ``condarc`` has the addresses of channels by name; other settings are left to rattler.
    """

    cache_directory: str
    mode: str = ""
    condarc: Condarc = Condarc()


class Question(NamedTuple):
    """What to solve for a platform: match specs to install, and constraints on their dependencies.

    ``locked`` are name, version and build of packages that stay if they fit; ``exclude_newer`` is a moment in RFC 3339
    after which packages are ignored.
    """

    channels: tuple[str, ...]
    platform: str
    specs: tuple[str, ...]
    virtual_packages: tuple[VirtualPackage, ...]
    constraints: tuple[str, ...] = ()
    locked: tuple[tuple[str, str, str], ...] = ()
    exclude_newer: str | None = None


class Listed(NamedTuple):
    """A package in a channel: version, build, and the match specs it depends on."""

    version: str
    build: str
    depends: tuple[str, ...]


class CondaConflict(Exception):  # noqa: N818  # an answer, and no fault of the program
    """The channels have no set of packages for a query; ``text`` is the message of rattler's solver."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Session:
    """One process for the queries of one command. Use it as a context manager, or close it.

    Every query raises OutsideError if channels cannot be read, or if py-rattler is not installed. ``engine`` is the
    program that answers.
    """

    def __init__(self, settings: Settings, engine: Path = ENGINE) -> None:
        if not is_installed():
            raise not_installed()
        self._settings, self._engine = settings, engine
        self._opening = dict.fromkeys(filter(None, (settings.condarc.alias,)))
        self._process = self._ready(started(engine))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def prepare(self, channels: Sequence[str], platform: str) -> None:
        """Start reading channels before they are needed. Errors are reported when they are requested."""
        assert self._process.stdin is not None
        with suppress(OSError):
            job = {
                "kind": "prepare",
                **self._channel_query(channels, platform),
                "names": ["python"],
            }
            send(job, self._process.stdin)

    def packages(
        self, channels: Sequence[str], platform: str, names: Iterable[str]
    ) -> Mapping[str, tuple[Listed, ...]]:
        """The packages of each name in the first channel that has it, for a platform or for all.

        Unknown names are left out.
        """
        job = {
            "kind": "list",
            **self._channel_query(channels, platform),
            "names": sorted(set(names)),
        }
        found = self._answer(job)["packages"]
        return {
            name: tuple(Listed(version, build, tuple(depends)) for version, build, depends in packages)
            for name, packages in found.items()
        }

    def solve(self, question: Question) -> tuple[CondaPackage, ...]:
        """Everything to install, sorted by name. Raises CondaConflict if nothing fits together."""
        query = self._channel_query(question.channels, question.platform)
        answer = self._answer({"kind": "solve", **question._asdict(), **query})
        return tuple(sorted(map(_package, answer["records"])))

    def _channel_query(self, channels: Sequence[str], platform: str) -> dict[str, Any]:
        """The channels by their bare addresses, in order, with their logins, and the platform."""
        addresses = self._settings.condarc.addresses_of(channels, platform)
        self._opening |= dict.fromkeys(addresses)
        return {
            "channels": list(dict.fromkeys(map(without_secrets, addresses))),
            "logins": logins_of(self._opening)._asdict(),
            "platform": platform,
        }

    def close(self) -> None:
        """End the process."""
        self._end()

    def _end(self) -> bytes:
        """End the process, and return its standard error if that was captured."""
        import subprocess

        try:
            _, output = self._process.communicate(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, output = self._process.communicate()
        return output or b""

    def _answer(self, job: Mapping[str, Any]) -> Any:
        answer = self._exchange(job)
        if answer is None:
            self._end()
            self._process = self._ready(started(self._engine, listening=True))
            answer = self._exchange(job)
        if answer is None:
            raise self._died()
        if "error" not in answer:
            return answer
        if answer["error"] == "SolverError":
            raise CondaConflict(answer["text"])
        from envsolve.conda.failures import outside

        raise outside(answer["error"], answer["text"], job, offline=self._settings.mode == "offline")

    def _exchange(self, job: Mapping[str, Any]) -> Any:
        """Send a job and wait for its answer; None if the process dies before."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            send(job, stdin)
            return receive(stdout)
        except (OSError, ValueError):
            return None

    def _ready(self, process: Popen[bytes]) -> Popen[bytes]:
        """``process`` with its settings sent."""
        assert process.stdin is not None
        alias = self._settings.condarc.alias
        settings = {
            "cache_directory": self._settings.cache_directory,
            "mode": self._settings.mode,
            "channel_alias": None if alias is None else without_secrets(alias),
            "user_agent": f"envsolve/{__version__}",
            "timeout": timeout(),
            "retries": retries(),
        }
        with suppress(OSError):  # the first job reports it
            send(settings, process.stdin)
        return process

    def _died(self) -> OutsideError:

        output = self._end().decode("utf-8", "replace").strip().splitlines()
        return OutsideError(
            "conda-solver-failed",
            "py-rattler, which solves conda packages, ended without a result",
            tuple(map(without_secrets, output[-_LAST_LINES:])),
            (Hint("reinstall it", f"{Path(sys.executable).name} -m pip install --force-reinstall py-rattler"),),
        )


def timeout() -> int:
    """Seconds without data from a server after which it counts as dead."""
    return _number(_TIMEOUT_VARIABLES, _TIMEOUT)


def retries() -> int:
    """How often a request is repeated if a server does not answer."""
    return _number(_RETRIES_VARIABLES, _RETRIES)


def _number(variables: Sequence[str], usual: int) -> int:
    """The number in the first of some variables that people set for package indexes."""
    output = next((os.environ[name] for name in variables if os.environ.get(name)), "")
    return int(output) if output.isdecimal() else usual


def receive(stream: IO[bytes]) -> Any:
    """The next message of the process; None if it ends before. Raises ValueError for an invalid one."""
    length = stream.readline()
    content = stream.read(int(length)) if length.strip() else b""
    return json.loads(content) if length.strip() and len(content) == int(length) else None


def send(message: Mapping[str, Any], stream: IO[bytes]) -> None:
    """Send a message to the process."""
    content = json.dumps(message).encode()
    stream.write(b"%d\n" % len(content) + content)
    stream.flush()


def _package(record: Mapping[str, Any]) -> CondaPackage:
    return CondaPackage(
        name=record["name"],
        version=record["version"],
        build=record["build"],
        subdir=record["subdir"],
        url=without_secrets(record["url"]),
        md5=record.get("md5"),
        sha256=record.get("sha256"),
        size=record.get("size"),
        build_number=record["build_number"],
        depends=tuple(record["depends"]),
        constrains=tuple(record.get("constrains", ())),
        channel=without_secrets(record.get("channel") or ""),
    )


def not_installed() -> OutsideError:
    """The error if py-rattler is missing."""
    return OutsideError(
        "conda-extra-missing",
        "conda packages need py-rattler, which is not installed",
        hints=(
            Hint("install the packages of the extra `conda`", command_to_install(*CONDA_EXTRA)),
            Hint("or write an environment.yml or a Python lock, which do not need it"),
        ),
    )
