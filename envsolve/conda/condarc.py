"""The places of channels in conda's own settings: ``channel_alias``, ``custom_channels``, ``default_channels``.

Read in order: 1. CONDA_CHANNEL_ALIAS 2. the file of CONDARC 3. ``.condarc`` in the home directory and its conda
directories 4. in CONDA_PREFIX 5. of the system. The first that has a setting wins, as in conda
(https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/settings.html). Nothing else is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError

_MENTIONED = re.compile(r"^\s*(channel_alias|custom_channels|default_channels)\s*:", re.MULTILINE)
_NAMES = (".condarc", "condarc")
_DEFAULTS = "defaults"
_OF_DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")
_OF_DEFAULTS_ON_WINDOWS = "https://repo.anaconda.com/pkgs/msys2"
"""Not one channel but several, in this order (DEFAULT_CHANNELS in conda/base/constants.py)."""

_LONGEST = 1024 * 1024
"""Bytes of a .condarc."""


class Condarc(NamedTuple):
    """The addresses of channels by name: ``alias`` for all, ``custom`` for some; the name is appended to either.

    ``defaults`` are the channels that the name ``defaults`` means; None if that is not configured.
    """

    alias: str | None = None
    custom: tuple[tuple[str, str], ...] = ()
    defaults: tuple[str, ...] | None = None

    def addresses_of(self, channels: Iterable[str], platform: str) -> list[str]:
        """The addresses of ``channels`` on a platform, in their order, without duplicates."""
        found: list[str] = []
        for channel in channels:
            if channel == _DEFAULTS:
                found += map(self.address_of, self._defaults_on(platform))
            else:
                found.append(self.address_of(channel))
        return list(dict.fromkeys(found))

    def _defaults_on(self, platform: str) -> tuple[str, ...]:
        if self.defaults is not None:
            return self.defaults
        return (*_OF_DEFAULTS, _OF_DEFAULTS_ON_WINDOWS) if platform.startswith("win-") else _OF_DEFAULTS

    def address_of(self, channel: str) -> str:
        """The address of a channel that has its own one in the settings, otherwise ``channel`` unchanged."""
        for name, base in self.custom:
            if channel == name or channel.startswith(f"{name}/"):
                return f"{base.rstrip('/')}/{channel}"
        return channel


def read_condarc(environ: Mapping[str, str], home: Path | None) -> Condarc:
    """The settings of this user. Raises UsageError ``conda-settings-invalid`` if a file cannot be read."""
    found = [_read(path) for path in condarc_places(environ, home)]
    aliases = [environ.get("CONDA_CHANNEL_ALIAS"), *(it.alias for it in found)]
    custom = {name: base for it in reversed(found) for name, base in it.custom}
    defaults = next((it.defaults for it in found if it.defaults is not None), None)
    return Condarc(next(filter(None, aliases), None), tuple(custom.items()), defaults)


def condarc_places(environ: Mapping[str, str], home: Path | None) -> Iterator[Path]:
    """Every file that may have settings, whether or not it exists, in order of precedence."""
    if environ.get("CONDARC"):
        yield Path(environ["CONDARC"])
    folders = [] if home is None else [home, home / ".conda", home / ".config" / "conda"]
    if environ.get("XDG_CONFIG_HOME"):
        folders.append(Path(environ["XDG_CONFIG_HOME"]) / "conda")
    if environ.get("CONDA_PREFIX"):
        folders.append(Path(environ["CONDA_PREFIX"]))
    folders += [Path("/etc/conda"), Path("/opt/conda"), Path("/var/lib/conda")]
    for folder in folders:
        yield from (folder / name for name in _NAMES)


def _read(path: Path) -> Condarc:
    try:
        text = read_text(path, _LONGEST) if path.is_file() else None
    except FileError as error:
        raise _unreadable(path, error.reason) from None
    if text is None or not _MENTIONED.search(text):
        return Condarc()
    import yaml

    try:
        document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe loaders
    except (yaml.YAMLError, RecursionError) as error:
        raise _unreadable(path, " ".join(str(error).split())) from None
    document = document if isinstance(document, dict) else {}
    alias, custom = document.get("channel_alias"), document.get("custom_channels") or {}
    if not isinstance(alias, str | None) or not isinstance(custom, dict) or not _are_texts((*custom, *custom.values())):
        raise _unreadable(path, "channel_alias must be a URL, and custom_channels a table of URLs")
    defaults = document.get("default_channels")
    if not isinstance(defaults, list | None) or not _are_texts(defaults or ()):
        raise _unreadable(path, "default_channels must be a list of channels")
    return Condarc(alias or None, tuple(custom.items()), None if defaults is None else tuple(defaults))


def _are_texts(values: Iterable[object]) -> bool:
    """Whether all are strings. YAML references could expand anything else into a text without end."""
    return all(isinstance(it, str) for it in values)


def _unreadable(path: Path, reason: str) -> UsageError:
    hint = Hint("fix the file, or give channels by their full URLs")
    return UsageError("conda-settings-invalid", f"{path} cannot be read", (reason,), (hint,))
