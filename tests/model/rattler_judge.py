"""How rattler reads match specs, in its own process: it takes a tenth of a second and 80 MB to import.

Reads lines of JSON, each a spec and a list of versions with builds, and prints for each how rattler writes the spec
when it is strict and when it is lenient, and which of the packages match it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_REFUSED = "refused"


class Verdict(NamedTuple):
    """How rattler writes a spec, strict and lenient, and whether it matches each of the given packages."""

    strict: str
    lenient: str
    matches: list[bool]


def judge(questions: Iterable[tuple[str, list[str]]]) -> list[Verdict]:
    """The verdicts, in order; for a spec that rattler refuses, the reason."""
    lines = "\n".join(json.dumps(question) for question in questions)
    command = [sys.executable, "-m", "tests.model.rattler_judge"]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, cwd=root)
    return [Verdict(*json.loads(line)) for line in done.stdout.splitlines()]


def _verdict(text: str, packages: list[str]) -> Verdict:
    from rattler import MatchSpec, PackageRecord
    from rattler.package.build_string import BuildString

    strict, lenient = (_written(text, strict=strict) for strict in (True, False))
    if strict.startswith(_REFUSED) or lenient.startswith(_REFUSED):
        return Verdict(strict, lenient, [])
    spec = MatchSpec(text, strict=True)
    matches = []
    for package in packages:
        version, build = package.split()
        record = PackageRecord(spec.name.normalized, version, BuildString(build), 0, "linux-64", "x86_64", "linux")
        matches.append(spec.matches(record))
    return Verdict(strict, lenient, matches)


def _written(text: str, *, strict: bool) -> str:
    from rattler import MatchSpec

    try:
        return str(MatchSpec(text, strict=strict))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the verdict
        return f"{_REFUSED}: {error}"


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_verdict(*json.loads(line))))  # noqa: T201 - the answer
