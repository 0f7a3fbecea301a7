"""pip's settings for package indexes: PIP_* variables and pip.conf, read like in pip.

As in pip/_internal/configuration.py and cli/parser.py of pip 26: files in the order global, user (the old place
before the new), site, PIP_CONFIG_FILE; a key of a later file replaces that of an earlier, then [install] replaces
[global], and a variable replaces both. An empty value in a later file unsets an earlier one; an empty variable has no
effect. Lists are split at white space; ``${VARIABLE}`` and ``%`` are not replaced.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from envsolve.index.configured import Configured, Machine, malformed, read_file, text_of

_KEYS = ("index-url", "extra-index-url", "find-links", "no-index", "cert", "client-cert", "trusted-host")
_SECTIONS = ("global", "install")
_YES = frozenset(("y", "yes", "t", "true", "on", "1"))
_NO = frozenset(("n", "no", "f", "false", "off", "0"))
_Values = dict[str, tuple[str, str]]
"""By key: the place of the setting, and its value."""


def from_variables(machine: Machine) -> _Values:
    """The settings in PIP_* variables."""
    names = {key: f"PIP_{key.upper().replace('-', '_')}" for key in _KEYS}
    return {key: (name, value) for key, name in names.items() if (value := machine.environ.get(name))}


def from_files(machine: Machine) -> _Values:
    """The merged settings of the configuration files. Raises UsageError for an unreadable or invalid one."""
    sections: dict[str, _Values] = {section: {} for section in _SECTIONS}
    for path in _paths(machine):
        content = read_file(path)
        if content is not None:
            _add(sections, path, content)
    merged: _Values = {}
    for section in _SECTIONS:
        merged |= {key: value for key, value in sections[section].items() if value[1]}
    return merged


def configured(values: _Values) -> Configured:
    """The values as settings. Their place is that of the index, else that of the first value."""
    if not values:
        return Configured("")
    origin = (values.get("index-url") or next(iter(values.values())))[0]
    return Configured(
        origin,
        index_url=_one(values, "index-url"),
        extra_index_urls=_several(values, "extra-index-url"),
        find_links=_several(values, "find-links"),
        no_index=_yes_or_no(values, "no-index"),
        cert=_one(values, "cert"),
        client_cert=_one(values, "client-cert"),
        trusted_hosts=_several(values, "trusted-host"),
        find_links_origin=values["find-links"][0] if "find-links" in values else "",
    )


def _one(values: _Values, key: str) -> str | None:
    return values[key][1].strip() if key in values else None


def _several(values: _Values, key: str) -> tuple[str, ...]:
    return tuple(values[key][1].split()) if key in values else ()


def _yes_or_no(values: _Values, key: str) -> bool | None:
    if key not in values:
        return None
    origin, value = values[key]
    if value.lower() not in _YES | _NO:
        raise malformed(f"{key} of {origin}", "is neither yes nor no")
    return value.lower() in _YES


def _paths(machine: Machine) -> Iterator[Path]:
    """The files in order; later ones override earlier ones."""
    given = machine.environ.get("PIP_CONFIG_FILE")
    if given == os.devnull:
        return
    yield from _of_the_system(machine)
    if not (given and os.path.exists(given)):  # noqa: PTH110 - the name may be of another system
        yield from _of_the_user(machine)
    if machine.prefix is not None:
        yield machine.prefix / _base(machine)
    if given:
        yield Path(given)


def _base(machine: Machine) -> str:
    return "pip.ini" if machine.platform == "win32" else "pip.conf"


def _of_the_system(machine: Machine) -> Iterator[Path]:
    environ = machine.environ
    if machine.platform == "win32":
        yield Path(environ.get("PROGRAMDATA") or r"C:\ProgramData") / "pip" / "pip.ini"
    elif machine.platform == "darwin":
        yield machine.root / "Library" / "Application Support" / "pip" / "pip.conf"
    else:
        named = [Path(place) for place in environ.get("XDG_CONFIG_DIRS", "").split(os.pathsep) if place]
        for folder in named or [machine.root / "etc" / "xdg"]:
            yield folder / "pip" / "pip.conf"
        yield machine.root / "etc" / "pip.conf"


def _of_the_user(machine: Machine) -> Iterator[Path]:
    home, environ = machine.home, machine.environ
    if home is None:
        return
    if machine.platform == "win32":
        yield home / "pip" / "pip.ini"
        yield Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "pip" / "pip.ini"
        return
    yield home / ".pip" / "pip.conf"
    support = home / "Library" / "Application Support" / "pip"
    if machine.platform == "darwin":
        yield (support if support.is_dir() else home / ".config" / "pip") / "pip.conf"
    else:
        yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"


def _add(sections: dict[str, _Values], path: Path, content: bytes) -> None:
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text_of(path, content))
    except (configparser.MissingSectionHeaderError, configparser.DuplicateSectionError) as error:
        raise malformed(f"{path}, line {error.lineno}", _problem(error)) from None
    except configparser.DuplicateOptionError as error:
        raise malformed(f"{path}, line {error.lineno}", "sets a key for the second time") from None
    except configparser.ParsingError as error:
        line = error.errors[0][0] if error.errors else 1
        raise malformed(f"{path}, line {line}", "is not a section, a key or a comment") from None
    for section in _SECTIONS:
        if parser.has_section(section):
            for name, value in parser.items(section):
                key = name.lower().replace("_", "-").removeprefix("--")
                if key in _KEYS:
                    sections[section][key] = (str(path), value)


def _problem(error: Exception) -> str:
    twice = "opens a section for the second time"
    return twice if "Duplicate" in type(error).__name__ else "is before any section, such as [global]"
