"""The conda packages of a prefix as in a lock, from the records that conda wrote to conda-meta when linking.

A record includes the channel's data on the package, such as address and digests (conda's PrefixRecord,
https://docs.conda.io/projects/conda/en/stable/dev-guide/api/conda/models/records).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError
from envsolve.boundary.reading import names_of
from envsolve.diagnose.environment.conda_meta import record_at
from envsolve.lockfile.package_address import package_of
from envsolve.model.conda import CondaPackage
from envsolve.resolve.closure.releases import Unfit

_NO_REQUEST = ("", "None")
"""The values for packages that were installed as dependencies."""


class Missing(NamedTuple):
    """An installed package that no lock can contain, and why. ``unfit`` is the reason if an index could have it."""

    name: str
    version: str
    reason: str
    unfit: Unfit | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.version}: {self.reason}" if self.version else f"{self.name}: {self.reason}"


class InstalledConda(NamedTuple):
    """The packages by name, the requested ones by name, and those that a lock cannot contain."""

    packages: tuple[CondaPackage, ...]
    requested: tuple[str, ...]
    missing: tuple[Missing, ...]


def installed_conda(prefix: Path) -> InstalledConda:
    """The packages in the conda prefix; none if it is not one."""
    packages: list[CondaPackage] = []
    requested: list[str] = []
    missing: list[Missing] = []
    directory = prefix / "conda-meta"
    for name in (it for it in names_of(directory) if it.endswith(".json")):
        try:
            record = record_at(directory / name)
        except FileError as error:
            missing.append(Missing(str(directory / name), "", error.reason))
            continue
        found = _package(record)
        if isinstance(found, CondaPackage):
            packages.append(found)
            requested += _requested(record)
        else:
            missing.append(found)
    return InstalledConda(tuple(sorted(packages)), tuple(requested), tuple(missing))


def _package(record: Mapping[str, object]) -> CondaPackage | Missing:
    url = _text(record, "url")
    label = Missing(_text(record, "name"), _text(record, "version"), "")
    if not url.startswith(("http://", "https://")):
        where = "from a local folder" if url else "from an unknown channel: its record has no URL"
        return label._replace(reason=f"it is {where}")
    try:
        package = package_of(
            CondaPackage(
                label.name,
                label.version,
                _text(record, "build"),
                _text(record, "subdir"),
                url,
                _text(record, "md5") or None,
                _text(record, "sha256") or None,
                _number(record, "size"),
                _number(record, "build_number") or 0,
                _texts(record, "depends"),
                _texts(record, "constrains"),
            )
        )
    except FileError as error:
        return label._replace(reason=error.reason)
    if package.md5 is None and package.sha256 is None:
        return label._replace(reason="its record has no digest")
    return package


def _requested(record: Mapping[str, object]) -> tuple[str, ...]:
    """The match specs that were typed for it: a string before conda 25.7, a list since."""
    stated = (*_texts(record, "requested_specs"), _text(record, "requested_spec"))
    return tuple(dict.fromkeys(it for it in stated if it not in _NO_REQUEST))


def _text(record: Mapping[str, object], key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _texts(record: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = record.get(key)
    return tuple(it for it in value if isinstance(it, str)) if isinstance(value, list) else ()


def _number(record: Mapping[str, object], key: str) -> int | None:
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
