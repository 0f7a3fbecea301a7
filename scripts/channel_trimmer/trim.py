"""Choose the records to keep: all that solve a case, some alternatives, and more until nothing differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rattler import Version
from rattler.exceptions import InvalidVersionError

from scripts.channel_trimmer.cases import Outcome, Roots
from scripts.channel_trimmer.channels import Channels, Place, Record
from scripts.channel_trimmer.solving import outcomes

_ROUNDS = 10


class Trimmed(NamedTuple):
    """A subset of channels, the outcome of every case on the whole and on the subset, and how many records it took.

    ``taken`` counts the records that solve the cases, ``grown`` those that were needed beyond the requested
    alternatives.
    """

    channels: Channels
    outcomes: Mapping[str, Outcome]
    taken: int
    grown: int


def trimmed(whole: Channels, roots: Roots) -> Trimmed:
    """The subset on which every case has the outcome that it has on the whole."""
    wanted = outcomes(whole, roots.cases)
    taken = {file for outcome in wanted.values() for file in outcome.files}
    names = {_record(whole, file)["name"] for file in taken} | set(roots.alternatives)
    included = taken | {file for name in names for file in _others(whole, name, taken, roots.count_of(name))}
    minimum = len(included)
    for _ in range(_ROUNDS):
        subset = _subset(whole, included)
        differing = set(_differing(whole, wanted, outcomes(subset, roots.cases)))
        if not differing:
            return Trimmed(subset, wanted, len(taken), len(included) - minimum)
        included |= {file for name in differing for file in _others(whole, name, included)}
    raise AssertionError(f"no end to what must be kept: {sorted(differing)}")


def sifted(channels: Channels) -> Channels:
    """Without the records that no solver reads, or that are about another package than their file's name says."""
    return {
        place: {name: it for name, it in records.items() if is_fit(name, it)} for place, records in channels.items()
    }


def is_fit(file_name: str, record: Record) -> bool:
    """Whether version and file name are valid: one invalid record fails the whole solve."""
    try:
        Version(record["version"])
    except InvalidVersionError:
        return False
    stem = file_name.removesuffix(".conda").removesuffix(".tar.bz2")
    return stem == f"{record['name']}-{record['version']}-{record['build']}"


def _others(whole: Channels, name: str, included: set[str], count: int | None = None) -> Iterator[str]:
    """The newest ``count`` records of a package in each place, or all, in addition to those that are included."""
    for place, records in whole.items():
        others = {file: it for file, it in records.items() if it["name"] == name and f"{place}/{file}" not in included}
        for file in sorted(others, key=lambda it: _age(others[it]), reverse=True)[:count]:
            yield f"{place}/{file}"


def _age(record: Record) -> tuple[Version, int, str]:
    return Version(record["version"]), record["build_number"], record["build"]


def _differing(whole: Channels, wanted: Mapping[str, Outcome], found: Mapping[str, Outcome]) -> Iterator[str]:
    """The names of packages that differ between two solutions of a case."""
    for name, outcome in wanted.items():
        yield from (_record(whole, file)["name"] for file in {*outcome.files} ^ {*found[name].files})


def _subset(whole: Channels, included: Iterable[str]) -> Channels:
    parts: dict[Place, dict[str, Record]] = {place: {} for place in whole}
    for file in included:
        place, name = _split(file)
        parts[place][name] = whole[place][name]
    return parts


def _record(whole: Channels, file: str) -> Record:
    place, name = _split(file)
    return whole[place][name]


def _split(file: str) -> tuple[Place, str]:
    channel, subdir, name = file.split("/")
    return Place(channel, subdir), name
