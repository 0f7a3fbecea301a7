"""Machine types of clouds, ``aws:p4d.24xlarge``: their GPUs, read from data/clouds. Their driver is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from envsolve.boundary.document import TomlFile
from envsolve.errors import Hint, UsageError
from envsolve.fleet.node import Node
from envsolve.model.host import Gpu, Host, Platform
from envsolve.model.prose import sentence_list

CLOUDS = ("aws", "azure", "gcp")


class MachineType(NamedTuple):
    """One type: ``count`` of the product ``gpu``, from the page at ``source``."""

    name: str
    platform: Platform
    gpu: str
    count: int  # type: ignore[assignment]
    source: str


def machine_of(argument: str) -> Node | None:
    """The machine that CLOUD:TYPE names; None for anything else. Raises UsageError for an unknown type."""
    cloud, colon, name = argument.partition(":")
    if not colon or cloud not in CLOUDS:
        return None
    types = machine_types(cloud)
    found = types.get(name.lower())
    if found is None:
        import difflib

        close = difflib.get_close_matches(name.lower(), types, n=3)
        names = sentence_list((f"{cloud}:{types[it].name}" for it in close), "or")
        meant = (Hint(f"did you mean {names}?"),) if close else ()
        other = Hint("give its GPU and platform instead: --gpu and --platform")
        raise UsageError(
            "unknown-machine-type", f"no GPU machine of {cloud} is known as {name!r}", hints=(*meant, other)
        )
    gpu = Gpu(found.gpu, None, count=found.count)
    origin = dict.fromkeys(("platform", "gpus"), found.source)
    return Node(f"{cloud}:{found.name}", Host(found.platform, gpus=(gpu,), origin=origin))


@cache
def machine_types(cloud: str) -> Mapping[str, MachineType]:
    """The types of a cloud by their names in lower case."""
    path = _directory() / f"{cloud}.toml"
    document: Any = TomlFile(path, cached=True).content()
    return {
        name.lower(): MachineType(name, Platform(it["platform"]), it["gpu"], count, it["source"])
        for it in document["series"]
        for name, count in it["machines"].items()
    }


def _directory() -> Path:
    package = Path(__file__).parent.parent
    shipped = package / "_clouds"
    return shipped if shipped.is_dir() else package.parent / "data" / "clouds"
