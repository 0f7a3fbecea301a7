"""uv's settings for package indexes: UV_* variables, uv.toml and [tool.uv] in pyproject.toml.

Source: uv's documentation (concepts/configuration-files, concepts/indexes and reference/environment). In a file, [pip]
takes precedence over the other settings, as in `uv pip compile`, because a lock is most similar to that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

from envsolve.boundary.files import FileError, toml_document
from envsolve.errors import UsageError
from envsolve.index.configured import Configured, Machine, first, malformed, read_file, text_of
from envsolve.model.names import normalized
from envsolve.model.own_lines import without_own_lines

_Table = dict[str, object]
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_OFF = frozenset(("", "0", "false", "no", "n", "f", "off"))


class _Index(NamedTuple):
    """One entry of ``[[index]]``."""

    name: str
    url: str
    default: bool
    explicit: bool
    flat: bool


def from_variables(environ: Mapping[str, str]) -> Iterator[Configured]:
    """The settings in UV_* variables."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if environ.get(name, "").strip():
            yield Configured(name, index_url=_unnamed(environ[name].strip(), environ))
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        urls = environ.get(name, "").split()
        if urls:
            yield Configured(name, extra_index_urls=tuple(_unnamed(url, environ) for url in urls))
    links = [link.strip() for link in environ.get("UV_FIND_LINKS", "").split(",")]
    if any(links):
        yield Configured("UV_FIND_LINKS", find_links=tuple(filter(None, links)))
    hosts = environ.get("UV_INSECURE_HOST", "").split()
    if hosts:
        yield Configured("UV_INSECURE_HOST", trusted_hosts=tuple(hosts))


def of_the_project(environ: Mapping[str, str], cwd: Path) -> Configured:
    """The settings in the nearest uv.toml, or pyproject.toml with a [tool.uv], in ``cwd`` or above.

    A file in UV_CONFIG_FILE replaces all other files.
    """
    given = environ.get("UV_CONFIG_FILE")
    if given:
        found = _of_file(cwd / given, environ)
        if found is None:
            raise malformed("UV_CONFIG_FILE", "names a file that does not exist")
        return found
    if _is_off(environ, "UV_NO_CONFIG"):
        for folder in (cwd, *cwd.parents):
            found = _of_file(folder / "uv.toml", environ) or _of_pyproject(folder / "pyproject.toml", environ)
            if found is not None:
                return found
    return Configured("")


def of_the_user(machine: Machine) -> Configured:
    """The settings in the user's uv.toml."""
    if machine.home is None or not _reads_shared(machine.environ):
        return Configured("")
    if machine.platform == "win32":
        folder = Path(machine.environ.get("APPDATA") or machine.home / "AppData" / "Roaming")
    else:
        folder = Path(machine.environ.get("XDG_CONFIG_HOME") or machine.home / ".config")
    return _of_file(folder / "uv" / "uv.toml", machine.environ) or Configured("")


def of_the_system(machine: Machine) -> Configured:
    """The settings in the first uv.toml of the system."""
    if not _reads_shared(machine.environ):
        return Configured("")
    environ = machine.environ
    if machine.platform == "win32":
        folders = [Path(environ.get("PROGRAMDATA") or r"C:\ProgramData")]
    else:
        named = [Path(place) for place in environ.get("XDG_CONFIG_DIRS", "").split(os.pathsep) if place]
        folders = [*(named or [machine.root / "etc" / "xdg"]), machine.root / "etc"]
    found = (_of_file(folder / "uv" / "uv.toml", environ) for folder in folders)
    return next((it for it in found if it is not None), Configured(""))


def _is_off(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() in _OFF


def _reads_shared(environ: Mapping[str, str]) -> bool:
    return _is_off(environ, "UV_NO_CONFIG") and not environ.get("UV_CONFIG_FILE")


def _unnamed(text: str, environ: Mapping[str, str]) -> str:
    """The URL in ``NAME=URL``, or the whole text if it has no name."""
    name, equals, url = text.partition("=")
    if not equals or not name or not _NAME.issuperset(name):
        return text
    return _with_credentials(name, url, environ)


def _with_credentials(name: str, url: str, environ: Mapping[str, str]) -> str:
    """``url`` with the login in UV_INDEX_<NAME>_USERNAME and _PASSWORD, for a named index."""
    variable = "".join(letter if letter.isalnum() else "_" for letter in name.upper())
    user, password = (environ.get(f"UV_INDEX_{variable}_{what}", "") for what in ("USERNAME", "PASSWORD"))
    scheme, separator, rest = url.partition("://")
    if not (user or password) or not separator or "@" in rest.partition("/")[0]:
        return url
    from urllib.parse import quote

    secret = f":{quote(password, safe='')}" if password else ""
    return f"{scheme}://{quote(user, safe='')}{secret}@{rest}"


def _of_file(path: Path, environ: Mapping[str, str]) -> Configured | None:
    content = read_file(path)
    return None if content is None else _Reader(path, environ).settings(_parsed(path, text_of(path, content)))


def _of_pyproject(path: Path, environ: Mapping[str, str]) -> Configured | None:
    content = read_file(path)
    if content is None or b"uv" not in content:  # most files have no such table and need not be parsed
        return None
    tool = _parsed(path, without_own_lines(text_of(path, content))).get("tool")
    table = tool.get("uv") if isinstance(tool, dict) else None
    return None if table is None else _Reader(path, environ, "tool.uv.").settings(table)


def _parsed(path: Path, text: str) -> _Table:
    try:
        return toml_document(text)
    except FileError as error:
        raise malformed(
            str(path) if error.line is None else f"{path}, line {error.line}", "is not TOML", detail=error.reason
        ) from None


class _Reader:
    """One file. Its path and the keys above the settings are part of every error."""

    def __init__(self, path: Path, environ: Mapping[str, str], above: str = "") -> None:
        self._path = path
        self._environ = environ
        self._above = above

    def settings(self, found: object) -> Configured:
        """The settings in the file. Raises UsageError for a setting of the wrong form."""
        table = self._table(found, "")
        pip = self._table(table.get("pip", {}), "pip")
        indexes = [*self._indexes(pip, "pip.index"), *self._indexes(table, "index")]
        shared = [it for it in indexes if not it.explicit and not it.default]
        defaults = [it.url for it in indexes if it.default]
        parts = ((pip, "pip."), (table, ""))
        extra = [self._located(url) for part, above in parts for url in self._strings(part, "extra-index-url", above)]
        links = [self._located(url) for part, above in parts for url in self._strings(part, "find-links", above)]
        pinned, where = self._sources(table, {it.name: it.url for it in indexes if it.name})
        return Configured(
            str(self._path),
            index_url=first([*defaults, *(self._url(part, above) for part, above in parts)]),
            extra_index_urls=(*(it.url for it in shared if not it.flat), *extra),
            find_links=(*(it.url for it in shared if it.flat), *links),
            no_index=next((self._flag(part, "no-index", above) for part, above in parts if "no-index" in part), None),
            trusted_hosts=self._strings(table, "allow-insecure-host", ""),
            package_indexes=pinned,
            package_indexes_where=where,
        )

    def _indexes(self, table: _Table, key: str) -> Iterator[_Index]:
        for entry in self._list(table.get("index", []), key):
            fields = self._table(entry, key)
            name, url, form = (self._string(fields, field, f"{key}.") for field in ("name", "url", "format"))
            if not url:
                raise self._wrong(f"{key}.url", "is missing")
            url = self._located(_with_credentials(name, url, self._environ) if name else url)
            default, explicit = (self._flag(fields, field, f"{key}.") for field in ("default", "explicit"))
            # An index with both keys comes last: so, like in uv, there is no other default index.
            yield _Index(name, url, default, explicit, form == "flat")

    def _sources(
        self, table: _Table, urls: Mapping[str, str]
    ) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str, str], ...]]:
        """The packages that [sources] assigns to an index, always or under a marker, without extras and groups."""
        pinned, where = [], []
        for package, name, marker in self._named_sources(table):
            if name not in urls:
                raise self._wrong(f"sources.{package}", "names an index that the file does not define")
            if marker:
                where.append((package, urls[name], marker))
            else:
                pinned.append((package, urls[name]))
        return tuple(pinned), tuple(where)

    def _named_sources(self, table: _Table) -> Iterator[tuple[str, str, str]]:
        """The package, the name of its index and the marker of each source that is an index."""
        if not table.get("sources") or not _is_off(self._environ, "UV_NO_SOURCES"):
            return
        for package, given in self._table(table["sources"], "sources").items():
            key = f"sources.{package}"
            for source in given if isinstance(given, list) else [given]:
                fields = self._table(source, key)
                name = self._string(fields, "index", f"{key}.")
                if name and "extra" not in fields and "group" not in fields:
                    yield normalized(package), name, self._string(fields, "marker", f"{key}.")

    def _url(self, table: _Table, above: str) -> str | None:
        url = self._string(table, "index-url", above)
        return self._located(url) if url else None

    def _located(self, url: str) -> str:
        """``url``; a path is relative to the file."""
        return url if "://" in url or url.startswith("file:") else str(self._path.parent / url)

    def _wrong(self, key: str, problem: str) -> UsageError:
        return malformed(f"{self._above}{key} in {self._path}", problem)

    def _table(self, found: object, key: str) -> _Table:
        if not isinstance(found, dict):
            raise self._wrong(key, "is not a table")
        return cast("_Table", found)

    def _list(self, found: object, key: str) -> list[object]:
        if not isinstance(found, list):
            raise self._wrong(key, "is not a list")
        return found

    def _string(self, table: _Table, key: str, above: str) -> str:
        found = table.get(key, "")
        if not isinstance(found, str):
            raise self._wrong(f"{above}{key}", "is not a string")
        return found

    def _flag(self, table: _Table, key: str, above: str) -> bool:
        found = table.get(key, False)
        if not isinstance(found, bool):
            raise self._wrong(f"{above}{key}", "is neither true nor false")
        return found

    def _strings(self, table: _Table, key: str, above: str) -> tuple[str, ...]:
        found: Iterable[object] = self._list(table.get(key, []), f"{above}{key}")
        if not all(isinstance(each, str) for each in found):
            raise self._wrong(f"{above}{key}", "is not a list of strings")
        return tuple(str(each) for each in found)
