"""The metadata in a source distribution, without a build, as in uv.

In this order: PKG-INFO if it is valid for every wheel (PEP 643); the table ``[project]`` of pyproject.toml if it has
version and requirements (PEP 621); PKG-INFO and requires.txt in the directory ``.egg-info`` that setuptools leaves in
an archive. The last comes from a run of setup.py on the author's machine, so it can depend on that machine.
"""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from envsolve.boundary.files import FileError, toml_document
from envsolve.frameworks import FRAMEWORKS
from envsolve.index.checks import checked_metadata, invalid, project_and_version
from envsolve.index.fetch import METADATA_LIMIT
from envsolve.index.metadata import Metadata, needs_in
from envsolve.model.names import normalized
from envsolve.model.package import PackageFile

_SECTION = re.compile(r"\[(?P<extra>[^:\]]*)(?::(?P<marker>.*))?\]\Z")
_IMPORT = re.compile(r"^(?:import|from)[ \t]+(\w+)", re.MULTILINE)
"""An unconditional import in a script: it is not indented."""
_NAME = re.compile(r"[\w.-]+")
_EGG_INFO = ".egg-info"
_TOP = 2
"""The number of parts in the path of a file at the top of an archive, which has one top directory."""
_BELOW_SRC = 4
NVIDIA_INDEX = "https://pypi.nvidia.com"
_LARGEST_STUB = 100_000
"""The size limit of a stub in bytes; real archives that only point to another index have 1 to 17 kB."""
_STUB_BACKEND = "wheel_stub.buildapi"
_PLAIN_ADDRESS = re.compile(r"https://[\w.-]+(?:/[\w./-]*)?")
_LEADS_TO_NVIDIA = {
    "setup.py": re.compile(rb"https://pypi\.(?:ngc\.)?nvidia\.com"),
    "PKG-INFO": re.compile(rb"placeholder from NVIDIA"),
}
"""Texts in archives that make pip fetch the package from NVIDIA's index, or say that it is there."""


def stated_metadata(content: bytes, file: PackageFile) -> Metadata:
    """The requirements in the archive, or the fact that they need a build.

    Also the imports of its build, and the index that a stub points to. Raises OutsideError if the archive is damaged,
    or is for another project or version than in its name.
    """
    members = dict(_members(content, file))
    pyproject = pyproject_in(members.get("pyproject.toml", b""))
    name, version = project_and_version(file.name)
    found = _stated_in(members, pyproject, file) or Metadata(name, version, None, needs_build=True)
    return found._replace(
        leads_to=_index_of_stub(name, members, pyproject) if len(content) <= _LARGEST_STUB else "",
        build_imports=build_imports(members.get("setup.py", b""), pyproject),
    )


def _index_of_stub(name: str, members: Mapping[str, bytes], pyproject: Mapping[str, object]) -> str:
    """The index with the files of a package, if its archive is a stub that points there; "" for any other archive.

    Stubs are the projects of NVIDIA's wheel-stub (cuml-cu11, tensorrt-cu12-libs), the placeholders 0.0.1.dev5 of
    nvidia-*, tensorrt 8.6.1, which runs pip to install its parts, and nvidia-pyindex, which changes pip's settings.
    """
    if name == "nvidia-pyindex":
        return NVIDIA_INDEX
    backend, stub = pyproject.get("build-system"), pyproject.get("tool", {})
    if isinstance(backend, dict) and backend.get("build-backend") == _STUB_BACKEND and isinstance(stub, dict):
        options = stub.get("wheel_stub")
        index = str(options.get("index_url", "")) if isinstance(options, dict) else ""
        return index.rstrip("/") if _PLAIN_ADDRESS.fullmatch(index) else ""
    leads_there = any(pattern.search(members.get(name, b"")) for name, pattern in _LEADS_TO_NVIDIA.items())
    return NVIDIA_INDEX if leads_there else ""


def _stated_in(members: Mapping[str, bytes], pyproject: Mapping[str, object], file: PackageFile) -> Metadata | None:
    info = members.get("PKG-INFO")
    if info is None:
        return None
    found = checked_metadata(info, file)
    if found.is_static:
        return found
    return _of_project(pyproject, found) or _of_egg_info(members, file)


def build_imports(script: bytes, pyproject: Mapping[str, object]) -> tuple[str, ...]:
    """The packages of frameworks that a setup.py imports but the build does not require."""
    return tuple(_build_imports(script, pyproject))


def _build_imports(script: bytes, pyproject: Mapping[str, object]) -> Iterator[str]:
    build = pyproject.get("build-system", {})
    if not isinstance(build, dict) or not str(build.get("build-backend", "setuptools")).startswith("setuptools"):
        return
    requires = build.get("requires")
    named = (_NAME.match(str(it)) for it in (requires if isinstance(requires, list) else ()))
    there = {normalized(it[0]) for it in named if it is not None}
    imported = set(_IMPORT.findall(script.decode("utf-8", "replace")))
    for it in FRAMEWORKS.values():
        if it.libraries.package in imported and there.isdisjoint(it.wheels):
            yield it.wheels[0]


def _members(content: bytes, file: PackageFile) -> Iterator[tuple[str, bytes]]:
    """The files that can have metadata, by their :func:`_path`."""
    try:
        if file.name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for entry in archive.infolist():
                    path = _path(entry.filename)
                    if path is not None and entry.file_size <= METADATA_LIMIT:
                        yield path, archive.read(entry)
        else:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive_of_tape:
                for member in archive_of_tape:
                    path = _path(member.name)
                    if path is not None and member.isfile() and member.size <= METADATA_LIMIT:
                        opened = archive_of_tape.extractfile(member)
                        yield path, b"" if opened is None else opened.read()
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise invalid(file, f"the archive is damaged: {error}") from None


def _path(name: str) -> str | None:
    """The path below the top directory of a file that can have requirements, else None."""
    parts = PurePosixPath(name).parts
    if len(parts) == _TOP and parts[1] in ("PKG-INFO", "pyproject.toml", "setup.py"):
        return parts[1]
    inside = parts[2:] if parts[1:2] == ("src",) and len(parts) == _BELOW_SRC else parts[1:]
    if len(inside) == _TOP and inside[0].endswith(_EGG_INFO) and inside[1] in ("PKG-INFO", "requires.txt"):
        return "/".join((_EGG_INFO, inside[1]))
    return None


def project_metadata(content: bytes) -> Metadata | None:
    """The metadata in the table ``[project]`` of a pyproject.toml; the version is "" if it is dynamic.

    None if the requirements are dynamic, or there is no such table.
    """
    return _stated_by(pyproject_in(content))


def _stated_by(pyproject: Mapping[str, object]) -> Metadata | None:
    """See :func:`project_metadata`."""
    project = _table(pyproject)
    if project is None:
        return None
    dynamic = project.get("dynamic", [])
    extras = project.get("optional-dependencies", {})
    if {"dependencies", "optional-dependencies", "requires-python"} & set(map(str, dynamic)):
        return None
    lines = [str(it) for it in project["dependencies"]]
    lines += [_for_extra(str(it), extra, "") for extra, needs in extras.items() for it in needs]
    python = project.get("requires-python")
    return Metadata(
        str(project.get("name", "")),
        "" if "version" in dynamic else str(project.get("version", "")),
        needs_in(lines),
        python if isinstance(python, str) else None,
        tuple(extras),
    )


def project_lines(content: bytes, extras: Collection[str]) -> tuple[str, ...]:
    """The requirements in a pyproject.toml and in some of its ``extras``, as written there."""
    project = _table(pyproject_in(content)) or {}
    optional = project.get("optional-dependencies", {}).items()
    lines = [*project.get("dependencies", ()), *(it for extra, needs in optional if extra in extras for it in needs)]
    return tuple(map(str, lines))


def pyproject_in(content: bytes) -> Mapping[str, object]:
    """The content of a pyproject.toml; empty if it is invalid."""
    try:
        return toml_document(content.decode())
    except (UnicodeDecodeError, FileError):
        return {}


def _table(pyproject: Mapping[str, object]) -> dict[str, Any] | None:
    """The table ``[project]``; None if there is none, or its requirements have the wrong form."""
    project = pyproject.get("project")
    if not isinstance(project, dict):
        return None
    needs, extras = project.setdefault("dependencies", []), project.get("optional-dependencies", {})
    lists = [needs, project.get("dynamic", []), *(extras.values() if isinstance(extras, dict) else (None,))]
    return project if all(isinstance(it, list) for it in lists) else None


def _of_project(pyproject: Mapping[str, object], info: Metadata) -> Metadata | None:
    """The metadata in the table ``[project]``, with the name and the version of ``info``."""
    found = _stated_by(pyproject)
    if found is None or not found.version:
        return None
    return found._replace(name=info.name, version=info.version)


def _of_egg_info(members: Mapping[str, bytes], file: PackageFile) -> Metadata | None:
    info, requires = (members.get(f"{_EGG_INFO}/{it}") for it in ("PKG-INFO", "requires.txt"))
    if info is None or requires is None:
        return None
    found = checked_metadata(info, file)
    lines, extras = [], dict[str, None]()
    extra = marker = ""
    for line in map(str.strip, requires.decode("utf-8", "replace").splitlines()):
        section = _SECTION.match(line)
        if section is not None:
            extra, marker = section["extra"].strip(), (section["marker"] or "").strip()
            extras |= {extra: None} if extra else {}
        elif line and not line.startswith("#"):
            lines.append(_for_extra(line, extra, marker))
    return found._replace(requires=needs_in(lines), extras=tuple(extras), is_static=True)


def _for_extra(line: str, extra: str, marker: str) -> str:
    """A requirement limited to an extra and a marker."""
    need, _, own = line.partition(";")
    parts = [f"({it.strip()})" for it in (own, marker) if it.strip()]
    parts += [f'extra == "{extra}"'] if extra else []
    return f"{need.strip()} ; {' and '.join(parts)}" if parts else need.strip()
