"""uv's settings for package indexes: UV_* variables, uv.toml and [tool.uv] in pyproject.toml.

Source: uv's documentation (concepts/configuration-files, concepts/indexes and reference/environment). In a file, [pip]
takes precedence over the other settings, as in `uv pip compile`, because a lock is most similar to that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, ValidationError, convert, field

from envsolve.boundary.files import FileError, toml_document
from envsolve.index.configured import Configured, Machine, first, malformed, read_file, text_of
from envsolve.model.names import normalized
from envsolve.model.own_lines import without_own_lines

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_OFF = frozenset(("", "0", "false", "no", "n", "f", "off"))


class _Index(Struct, rename="kebab"):
    """One entry of ``[[index]]``."""

    url: Annotated[str, Meta(min_length=1)]
    name: str = ""
    default: bool = False
    explicit: bool = False
    format: str = ""


class _Source(Struct):
    """One entry of ``[sources]``."""

    index: str = ""
    marker: str = ""
    extra: object = None
    group: object = None


class _Indexes(Struct, rename="kebab"):
    """The settings that a file may have itself and in ``[pip]``."""

    index: tuple[_Index, ...] = ()
    index_url: str = ""
    extra_index_url: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool | None = None


class _Settings(_Indexes, rename="kebab"):
    """The settings of a file. Others are of no concern here."""

    pip: _Indexes = field(default_factory=_Indexes)
    allow_insecure_host: tuple[str, ...] = ()
    sources: dict[str, _Source | tuple[_Source, ...]] = {}


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
    if not _is_set(environ, "UV_NO_CONFIG"):
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


def _is_set(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() not in _OFF


def _reads_shared(environ: Mapping[str, str]) -> bool:
    return not _is_set(environ, "UV_NO_CONFIG") and not environ.get("UV_CONFIG_FILE")


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
    return None if content is None else _configured(path, environ, _parsed(path, text_of(path, content)))


def _of_pyproject(path: Path, environ: Mapping[str, str]) -> Configured | None:
    content = read_file(path)
    if content is None or b"uv" not in content:  # most files have no such table and need not be parsed
        return None
    tool = _parsed(path, without_own_lines(text_of(path, content))).get("tool")
    table = tool.get("uv") if isinstance(tool, dict) else None
    return None if table is None else _configured(path, environ, table, "tool.uv.")


def _parsed(path: Path, text: str) -> dict[str, object]:
    try:
        return toml_document(text)
    except FileError as error:
        raise malformed(
            str(path) if error.line is None else f"{path}, line {error.line}", "is not TOML", detail=error.reason
        ) from None


def _configured(path: Path, environ: Mapping[str, str], found: object, above: str = "") -> Configured:
    """The settings in a file. Raises UsageError for one of the wrong form, with the keys ``above`` them."""
    try:
        table = convert(found, _Settings)
    except ValidationError as error:
        problem, _, key = str(error).partition(" - at `$.")
        place = f"{above}{key}".rstrip(".`")
        raise malformed(f"{place} in {path}", "is invalid", detail=problem) from None

    def located(url: str) -> str:
        return url if "://" in url or url.startswith("file:") else str(path.parent / url)

    def address(it: _Index) -> str:
        return located(_with_credentials(it.name, it.url, environ) if it.name else it.url)

    parts = (table.pip, table)
    indexes = [(it, address(it)) for part in parts for it in part.index]
    # An index that is both default and explicit counts as the default: so, like in uv, there is no other one.
    defaults = [url for it, url in indexes if it.default]
    shared = [(it.format == "flat", url) for it, url in indexes if not it.explicit and not it.default]
    named = {it.name: url for it, url in indexes if it.name}
    sources = [] if _is_set(environ, "UV_NO_SOURCES") else list(_of_indexes(table.sources))
    unknown = next((package for package, it in sources if it.index not in named), None)
    if unknown is not None:
        raise malformed(f"{above}sources.{unknown} in {path}", "names an index that the file does not define")
    return Configured(
        str(path),
        index_url=first([*defaults, *(located(part.index_url) for part in parts if part.index_url)]),
        extra_index_urls=(
            *(url for is_flat, url in shared if not is_flat),
            *(located(url) for part in parts for url in part.extra_index_url),
        ),
        find_links=(
            *(url for is_flat, url in shared if is_flat),
            *(located(url) for part in parts for url in part.find_links),
        ),
        no_index=next((it.no_index for it in parts if it.no_index is not None), None),
        trusted_hosts=table.allow_insecure_host,
        package_indexes=tuple((name, named[it.index]) for name, it in sources if not it.marker),
        package_indexes_where=tuple((name, named[it.index], it.marker) for name, it in sources if it.marker),
    )


def _of_indexes(sources: Mapping[str, _Source | tuple[_Source, ...]]) -> Iterator[tuple[str, _Source]]:
    """The packages with their sources that are an index, always or under a marker, without extras and groups."""
    for package, given in sources.items():
        for it in given if isinstance(given, tuple) else (given,):
            if it.index and it.extra is None and it.group is None:
                yield normalized(package), it
