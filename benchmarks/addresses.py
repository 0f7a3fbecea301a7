"""Locks of real requirements with repositories, archives and folders.

    .venv-test/bin/python -m benchmarks.addresses DIRECTORY --mirrors DIRECTORY [--projects alpaca-lora]

``DIRECTORY`` has a folder for each project with ``requirements.in``, whose first line is ``# FRAMEWORK, where it is
from``, and beside it what ``-e .`` needs. The mirrors are bare repositories ``OWNER/NAME.git``, which a loopback server
gives for those of github.com; everything else is on the default package index. Each is locked three times for one GPU:
without builds, with them, and once more. Times are of whole processes; the first begins with an empty cache.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tomli

from benchmarks.lock_tables import row
from benchmarks.lock_tools import Run, run
from tests.index.repositories import GitServer

MACHINE = ("--gpu", "RTX 4090", "--driver", "580.95.05", "--source", "pypi")
HEAD = ("project", "without builds", "with builds", "Python", "by address", "source only", "s", "s", "again s")
_SECONDS = 400.0
_SETTINGS = """[url "{url}/"]
insteadOf = https://github.com/
[safe]
directory = *
[uploadpack]
allowAnySHA1InWant = true
allowFilter = true
"""


class Answer(NamedTuple):
    """What one run of envsolve cost, and the lock that it wrote; of a refusal there are no packages."""

    run: Run
    lock: dict[str, Any]

    @property
    def packages(self) -> list[dict[str, Any]]:
        """The packages of the lock."""
        packages: list[dict[str, Any]] = self.lock.get("packages", [])
        return packages

    def __str__(self) -> str:
        error, _, _ = self.run.complaint.partition("\n")
        return str(len(self.packages)) if self.packages else error.removeprefix("error: ")


def answer(project: Path, home: Path, *options: str) -> Answer:
    """One run of envsolve for a project."""
    framework = (project / "requirements.in").read_text("utf-8").split()[1].rstrip(",")
    lock = home / "pylock.toml"
    lock.unlink(missing_ok=True)
    command = [str(Path(sys.executable).with_name("envsolve")), "-f", framework, "-r", "requirements.in", *MACHINE]
    command += ["--cache-dir", str(home / project.name), "-o", str(lock), *options]
    done = run(command, project, _SECONDS, {"GIT_CONFIG_GLOBAL": str(home / "gitconfig")})
    return Answer(done, tomli.loads(lock.read_text("utf-8")) if lock.exists() else {})


def table(projects: Sequence[Path], home: Path) -> Iterator[str]:
    """The rows of Markdown; what envsolve said of a refusal goes to standard error."""
    yield row(HEAD)
    yield "|---" * len(HEAD) + "|"
    for project in projects:
        answers = [answer(project, home, *it) for it in ((), ("--allow-builds",), ("--allow-builds",))]
        plain, built, _ = answers
        by_address = sum(not it.keys().isdisjoint(("vcs", "archive", "directory")) for it in built.packages)
        source = sum("sdist" in it and "wheels" not in it for it in built.packages)
        python = str(built.lock.get("requires-python", "")).rpartition("==")[2].removesuffix(".*")
        seconds = (f"{it.run.seconds:.1f}" for it in answers)
        yield row([project.name, plain, built, python, by_address, source, *seconds])
        for it in dict.fromkeys(it.run.complaint for it in (plain, built) if not it.packages):
            print(f"{project.name}:\n{it}\n", file=sys.stderr)


def main() -> None:
    """Print the table, and what envsolve said where it refused on standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--projects", nargs="*", default=[])
    arguments = parser.parse_args()
    projects = [it.parent for it in sorted(arguments.directory.glob("*/requirements.in"))]
    with tempfile.TemporaryDirectory() as home, GitServer(arguments.mirrors.resolve()) as server:
        Path(home, "gitconfig").write_text(_SETTINGS.format(url=server.url), encoding="utf-8")
        chosen = [it.resolve() for it in projects if not arguments.projects or it.name in arguments.projects]
        for line in table(chosen, Path(home)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
