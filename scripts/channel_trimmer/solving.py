"""Solve cases with rattler, on channels in a directory or on a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time
from pathlib import Path
from tempfile import TemporaryDirectory

from rattler import (
    Channel,
    ChannelPriority,
    Gateway,
    GenericVirtualPackage,
    MatchSpec,
    PackageName,
    SourceConfig,
    Subdir,
    Version,
    solve,
)
from rattler.exceptions import SolverError
from rattler.package import BuildString

from scripts.channel_trimmer.cases import Case, Outcome
from scripts.channel_trimmer.channels import Channels, repodata


def outcomes(channels: Channels, cases: Iterable[Case]) -> Mapping[str, Outcome]:
    """The outcome of each case, by its name."""
    with TemporaryDirectory() as directory:
        _lay_out(Path(directory), channels)
        return asyncio.run(_solve_all(Path(directory), tuple(cases)))


async def solve_case(gateway: Gateway, base: str, case: Case) -> Outcome:
    """Solve one case on the channels whose addresses begin with ``base``, which has no slash at its end."""
    newest = None if case.exclude_newer is None else datetime.combine(case.exclude_newer, time(), UTC)
    try:
        records = await solve(
            [Channel(f"{base}/{channel}") for channel in case.channels],
            [MatchSpec(spec) for spec in case.specs],
            gateway,
            [Subdir(case.platform), Subdir("noarch")],
            virtual_packages=[virtual_package(it) for it in case.virtual],
            channel_priority=ChannelPriority.Strict if case.strict else ChannelPriority.Disabled,
            exclude_newer=newest,
        )
    except SolverError as error:
        return Outcome(problem=str(error))
    return Outcome(tuple(sorted(str(record.url).removeprefix(f"{base}/") for record in records)))


def virtual_package(text: str) -> GenericVirtualPackage:
    """``__archspec 1 x86_64_v3`` as rattler takes it."""
    name, version, build = [*text.split(), "0"][:3]
    return GenericVirtualPackage(PackageName(name), Version(version), BuildString(build))


def _lay_out(directory: Path, channels: Channels) -> None:
    """Write the channels uncompressed, since rattler reads nothing else from a directory."""
    for place, records in channels.items():
        path = directory / "channels" / place.channel / place.subdir / "repodata.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(repodata(place.subdir, records))


async def _solve_all(directory: Path, cases: tuple[Case, ...]) -> dict[str, Outcome]:
    gateway = Gateway(directory / "cache", default_config=SourceConfig(sharded_enabled=False, bz2_enabled=False))
    base = (directory / "channels").as_uri()
    return {case.name: await solve_case(gateway, base, case) for case in cases}
