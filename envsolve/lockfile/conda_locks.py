"""Common parts of reading files of conda packages as locks, and names of channels.

Nothing is fetched from a channel to complete what a file lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.conda_header import UNNAMED, Comments, stack_name
from envsolve.lockfile.facts import with_facts
from envsolve.lockfile.lock import Lock, Made, Open, sorted_pins
from envsolve.lockfile.yaml_document import mapping, text
from envsolve.model.conda import CondaPackage
from envsolve.model.package import Pin

_ALIAS = "https://conda.anaconda.org/"
"""The default location of a channel given by name, for conda, mamba and pixi."""
_CONDA_FORGE = "conda-forge"


def assembled(
    lock: Lock,
    platform: str,
    conda: Iterable[CondaPackage],
    facts: Mapping[str, object] | None,
    comments: Comments,
) -> Lock:
    """Return ``lock`` with conda packages, and with the contents of facts and comments."""
    machines = comments.machines.get(platform, "")
    packages = tuple(sorted(conda, key=lambda it: it.name))
    known = with_facts(lock, facts, machines=machines)
    virtual = {it.name: it.version for it in known.virtual_packages}
    python = next((it.version for it in packages if it.name == "python"), "")
    return known._replace(
        platform=platform,
        conda=packages,
        python=python,
        glibc=virtual.get("__glibc"),
        environment=named(stack_name(known.stack) or comments.environment),
        variables=known.variables or comments.variables,
        remarks=comments.remarks,
        exported_from=comments.exported_from,
    )


def with_wheels(lock: Lock, found: Iterable[Pin | Open]) -> Lock:
    """Return ``lock`` with the packages that pip installs, and with open entries for pip."""
    found = list(found)
    return lock._replace(
        pins=tuple(sorted_pins(it for it in found if isinstance(it, Pin))),
        open=(*lock.open, *(it for it in found if isinstance(it, Open))),
    )


def named(environment: str) -> str:
    """Return the name of an environment, or "" for the default name."""
    return "" if environment == UNNAMED else environment


def read_channel(entry: object) -> str:
    """Return a channel from its address, or from conda-lock's mapping with variables. Raises FileError."""
    url = mapping(entry, "a channel").get("url") if isinstance(entry, dict) else entry
    return named_channel(without_secrets(text(url, "the address of a channel")))


def named_channel(channel: str) -> str:
    """Return the name of ``channel`` that every conda tool knows, else its address."""
    address = channel.rstrip("/")
    name = address.removeprefix(_ALIAS)
    return name if name and name != address else address


def channels_of(packages: Iterable[CondaPackage], made: Made | None = None) -> tuple[str, ...]:
    """Return the channels of ``packages``: in the requested order, then by name, conda-forge last."""
    used = sorted({named_channel(it.channel) for it in packages if it.channel})
    given = [it for it in map(named_channel, made.option("channels") if made else ()) if it in used]
    others = sorted((it for it in used if it not in given), key=lambda it: it == _CONDA_FORGE)
    return tuple(dict.fromkeys((*given, *others)))
