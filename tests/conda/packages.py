"""Small real conda packages that can be installed, including a Python, the one that runs the tests."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import zstandard

from scripts.channel_trimmer.channels import Record
from tests.conda.records import MadePackage, record

PLACEHOLDER = "/opt/anaconda1anaconda2anaconda3"
"""The prefix that conda's own packages are built for; an installer puts the real one in its place."""
_OF_INDEX = ("name", "version", "build", "build_number", "depends", "constrains", "subdir")
_LONG_AGO = (2020, 2, 2, 0, 0, 0)
MINOR = ".".join(map(str, sys.version_info[:2]))
PATCH = ".".join(map(str, sys.version_info[:3]))

Files = Mapping[str, bytes | Path]
"""The content by the path below the prefix; a Path is what a symbolic link names."""


def package(
    name: str,
    version: str = "1.0",
    files: Files | None = None,
    depends: Iterable[str] = (),
    *,
    noarch: str | None = None,
    build: str = "0",
    lies: bool = False,
) -> MadePackage:
    """A package in the format ``.conda``, with its record; one that ``lies`` does not match its record."""
    files = {f"share/{name}.txt": name.encode()} if files is None else files
    made = record(name, version, depends, build=build, noarch=noarch)
    content = _packed(made.file_name.removesuffix(".conda"), made.fields, files, noarch)
    digests = {
        "md5": md5(content, usedforsecurity=False).hexdigest(),
        "sha256": sha256(content).hexdigest(),
        "size": len(content),
    }
    fields: dict[str, Any] = {**made.fields, **digests}
    return made._replace(content=content + b" " if lies else content, fields=fields)  # type: ignore[arg-type]


def python_package() -> MadePackage:
    """CPython as conda would install it: a link to the interpreter that runs the tests, and a prefix of its own."""
    program = Path(sys.executable).resolve()
    home = f"home = {program.parent}\ninclude-system-site-packages = false\nversion = {PATCH}\n"
    files: Files = {
        f"bin/python{MINOR}": program,
        "bin/python": Path(f"python{MINOR}"),
        "pyvenv.cfg": home.encode(),
        f"lib/python{MINOR}/site-packages/README.txt": b"packages lie here\n",
    }
    return package("python", PATCH, files, build="0_cpython")


def _packed(stem: str, fields: Record, files: Files, noarch: str | None) -> bytes:
    index: dict[str, Any] = {key: value for key, value in fields.items() if key in _OF_INDEX}
    index |= {"license": "BSD-3-Clause"} | ({"noarch": noarch} if noarch else {})
    info: dict[str, bytes | Path] = {
        "info/index.json": json.dumps(index).encode(),
        "info/paths.json": json.dumps({"paths": [_path(*it) for it in files.items()], "paths_version": 1}).encode(),
    }
    if noarch == "python":
        linked = {"noarch": {"type": "python", "entry_points": []}, "package_metadata_version": 1}
        info["info/link.json"] = json.dumps(linked).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in (
            ("metadata.json", json.dumps({"conda_pkg_format_version": 2}).encode()),
            (f"pkg-{stem}.tar.zst", _tarred(files)),
            (f"info-{stem}.tar.zst", _tarred(info)),
        ):
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content)
    return buffer.getvalue()


def _path(name: str, content: bytes | Path) -> dict[str, object]:
    if isinstance(content, Path):
        return {"_path": name, "path_type": "softlink", "sha256": sha256(b"").hexdigest(), "size_in_bytes": 0}
    entry = {"_path": name, "path_type": "hardlink", "size_in_bytes": len(content)}
    if PLACEHOLDER.encode() in content:
        entry |= {"prefix_placeholder": PLACEHOLDER, "file_mode": "text"}
    return entry | {"sha256": sha256(content).hexdigest()}


def _tarred(files: Files) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, Path):
                member.type, member.linkname = tarfile.SYMTYPE, str(content)
                archive.addfile(member)
            else:
                member.size, member.mode = len(content), 0o755 if name.startswith("bin/") else 0o644
                archive.addfile(member, io.BytesIO(content))
    return zstandard.compress(buffer.getvalue())
