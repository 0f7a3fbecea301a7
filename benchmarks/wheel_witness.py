"""What a wheel holds of CUDA, read in another way than envsolve does: the second opinion of benchmarks.locked_wheels.

A wheel is downloaded and its libraries are unpacked. ``readelf`` says what each needs and where its sections are, fat
binaries are walked in the sections that the linker put them into, each with its entries, and names of libraries that
may be given to dlopen are texts of the file. Nothing here is shared with envsolve, and where NVIDIA's cuobjdump is
there (package nvidia-cuda-cuobjdump) it lists the same.
"""

from __future__ import annotations

import io
import json
import mmap
import re
import shutil
import struct
import subprocess
import tempfile
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Capability = tuple[int, int]
"""A compute capability, or the version of a PTX language: major and minor."""

_LIBRARY = re.compile(r".*\.so(?:\.\d+)*")
_LOOSE = (".cubin", ".fatbin", ".ptx")
_SECTION = re.compile(r"^\s*\[\s*\d+\]\s+(\S*fatbin\S*)\s+\S+\s+[0-9a-f]+\s+([0-9a-f]+)\s+([0-9a-f]+)", re.MULTILINE)
_NEEDED = re.compile(r"\(NEEDED\).*\[(.*)\]")
_TEXT = re.compile(rb"lib(?:cu|nv|npp|nccl)[A-Za-z_]*(?:-builtins)?\.so\.\d[\d.]*(?=\0)")
_RUNTIME = b"CUDA driver version is insufficient for CUDA runtime version"
_MAGIC, _HEADER = 0xBA55ED50.to_bytes(4, "little"), struct.Struct("<4sHHQ")
_ENTRY = struct.Struct("<HHIQIIHHI")
"""Kind, version, bytes of this header and of the content, those packed, -, minor and major of the code's form, SM."""
_FLAGS_AT, _ONLY_THIS = 40, 0x100000
"""Where the flags of an entry stand, and that of an architecture with a letter, such as 90a."""
_PTX, _SASS = 1, 2
_LISTED = re.compile(r"^(ELF|PTX) file +\d+: .*\.sm_(\d+)([af]?)\.(?:cubin|ptx)$", re.MULTILINE)
_NEW_FORM = (10, 0)
FAILS = "it fails"
"""What is kept of libraries that cuobjdump does not read: that of CUDA 13 ends at the first code for an old GPU."""
_PIECE, _END = 1 << 20, 1 << 18


class Code(NamedTuple):
    """One image of a fat binary: for which GPU, and whether it is PTX. ``is_only`` where its architecture has a letter.

    ``form`` is the version of the PTX language, or that of the machine code's ABI: 1.8 from CUDA 13 on, and always
    for Blackwell.
    """

    is_ptx: bool
    target: Capability
    is_only: bool
    form: Capability

    def runs_on(self, gpu: Capability, newest_ptx: Capability | None) -> bool:
        """Whether a GPU runs it, or its driver compiles it, which reads PTX up to ``newest_ptx`` (None: any)."""
        if self.is_only:
            return self.target == gpu
        if self.is_ptx:
            return self.target <= gpu and (newest_ptx is None or self.form <= newest_ptx)
        return self.target[0] == gpu[0] and self.target[1] <= gpu[1]


class Library(NamedTuple):
    """One library: the libraries that it needs, those of CUDA that its texts name, and its fat binaries.

    ``modules`` has the images of each fat binary, and how many fat binaries have the same. ``has_runtime`` is whether a
    CUDA runtime is linked in. ``disagrees`` is what cuobjdump says otherwise, or FAILS.
    """

    name: str
    needs: tuple[str, ...]
    opens: tuple[str, ...]
    modules: tuple[tuple[tuple[Code, ...], int], ...]
    has_runtime: bool
    disagrees: str

    def share(self, gpu: Capability, newest_ptx: Capability | None) -> tuple[int, int]:
        """How many of its fat binaries have an image for a GPU, and how many there are."""
        runs = sum(n for codes, n in self.modules if any(it.runs_on(gpu, newest_ptx) for it in codes))
        return runs, sum(n for _, n in self.modules)

    @property
    def targets(self) -> str:
        """Its architectures, in words."""
        found = {(it.is_ptx, it.target, it.is_only) for codes, _ in self.modules for it in codes}
        shown = (f"{'PTX ' if ptx else ''}{of[0]}.{of[1]}{'a' if only else ''}" for ptx, of, only in sorted(found))
        return ", ".join(shown)

    @property
    def runtime(self) -> int | None:
        """The CUDA major of the runtime that is linked in, by the code beside it; None where nothing says so."""
        if not self.has_runtime:
            return None
        codes = [it for images, _ in self.modules for it in images]
        majors = [it.form[0] + 4 for it in codes if it.is_ptx and it.form >= (7, 0)]
        if any(not it.is_ptx and it.target < _NEW_FORM and it.form >= (1, 8) for it in codes):
            majors.append(13)
        return max(majors, default=None)


class Wheel(NamedTuple):
    """A wheel: the names of its libraries, what was read of them, and its kernels in files of their own."""

    provides: tuple[str, ...]
    libraries: tuple[Library, ...]
    loose: int = 0


class Store:
    """Wheels in ``directory``, by their digest, up to ``limit`` bytes in all; ``cuobjdump`` is used if it is there."""

    def __init__(self, directory: Path, limit: float, cuobjdump: Path | None) -> None:
        self._directory, self._limit, self._cuobjdump = directory, limit, cuobjdump
        self.left_out: dict[str, int] = {}
        """The wheels that did not fit, with their bytes."""
        (directory / "facts").mkdir(parents=True, exist_ok=True)
        self.taken = sum(it.stat().st_size for it in directory.glob("*.whl"))

    def names(self, file: Mapping[str, Any]) -> Wheel:
        """The names of the libraries in a wheel, from its list of members alone."""
        return self._kept(f"names-{file['hashes']['sha256']}", lambda: self._listed(file))

    def _listed(self, file: Mapping[str, Any]) -> Wheel:
        wheel = self._directory / f"{file['hashes']['sha256']}.whl"
        with zipfile.ZipFile(wheel) if wheel.exists() else _remote(file) as archive:
            return _names(archive)

    def text(self, file: Mapping[str, Any], member: str) -> str:
        """A small file of a wheel."""
        with _remote(file) as archive:
            return archive.read(member).decode()

    def read(self, file: Mapping[str, Any]) -> Wheel | None:
        """A wheel of a pylock.toml, read to its end; None where it does not fit any more."""
        digest, size = file["hashes"]["sha256"], file["size"]
        wheel = self._directory / f"{digest}.whl"
        if not (self._directory / "facts" / f"{digest}.json").exists() and not wheel.exists():
            if self.taken + size > self._limit:
                self.left_out[file["name"]] = size
                return None
            self.taken += size
            part = wheel.with_suffix(".part")
            with _opened(file["url"], {}) as answer, part.open("wb") as content:
                shutil.copyfileobj(answer, content, _PIECE)
            part.replace(wheel)
        return self._kept(digest, lambda: read_wheel(wheel, self._cuobjdump))

    def _kept(self, name: str, make: Any) -> Wheel:
        kept = self._directory / "facts" / f"{name}.json"
        if not kept.exists():
            kept.write_text(json.dumps(make()), encoding="utf-8")
        provides, libraries, loose = json.loads(kept.read_text("utf-8"))
        return Wheel(tuple(provides), tuple(map(_library, libraries)), loose)


def _library(kept: Sequence[Any]) -> Library:
    name, needs, opens, modules, has_runtime, disagrees = kept
    images = tuple((tuple(Code(a, tuple(b), c, tuple(d)) for a, b, c, d in codes), n) for codes, n in modules)
    return Library(name, tuple(needs), tuple(opens), images, has_runtime, disagrees)


def read_wheel(path: Path, cuobjdump: Path | None) -> Wheel:
    """What the libraries of a wheel hold."""
    found = []
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as scratch:
        listed = _names(archive)
        for name in archive.namelist():
            if _LIBRARY.fullmatch(name):
                unpacked = Path(scratch) / "library.so"
                with archive.open(name) as content, unpacked.open("wb") as target:
                    shutil.copyfileobj(content, target, _PIECE)
                library = read_library(unpacked, name, cuobjdump)
                if library is not None:
                    found.append(library)
    return listed._replace(libraries=tuple(found))


def _names(archive: zipfile.ZipFile) -> Wheel:
    names = archive.namelist()
    provides = {it.rpartition("/")[2] for it in names if _LIBRARY.fullmatch(it)}
    return Wheel(tuple(sorted(provides)), (), sum(it.endswith(_LOOSE) for it in names))


def read_library(path: Path, name: str, cuobjdump: Path | None) -> Library | None:
    """One library; None for what is not ELF, or empty."""
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            said = subprocess.run(
                ["readelf", "-W", "-S", "-d", path], capture_output=True, text=True, check=False
            ).stdout
            sections = [(it, int(start, 16), int(size, 16)) for it, start, size in _SECTION.findall(said)]
            sections = [it for it in sections if "Segment" not in it[0]]
            codes = Counter(it for _, start, size in sections for it in _fat_binaries(content, start, start + size))
            linked = [it for it in sections if "relfatbin" not in it[0]]
            listed = {
                it
                for _, start, size in linked
                for images in _fat_binaries(content, start, start + size)
                for it in images
            }
            needs = _NEEDED.findall(said)
            texts = _without(content, [(start, start + size) for _, start, size in sections])
            opens = {it.decode() for text in texts for it in _TEXT.findall(text)} - set(needs)
            has_runtime = any(_RUNTIME in text for text in texts)
    disagrees = _disagrees(path, listed, cuobjdump) if sections and cuobjdump is not None else ""
    return Library(name, tuple(needs), tuple(sorted(opens)), tuple(codes.items()), has_runtime, disagrees)


def _without(content: mmap.mmap, sections: Sequence[tuple[int, int]]) -> list[bytes]:
    """What is not fat binaries, in which texts would be chance."""
    places = [0, *(it for section in sorted(sections) for it in section), len(content)]
    return [content[start:end] for start, end in zip(places[::2], places[1::2], strict=True)]


def _fat_binaries(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[Code, ...]]:
    """The images of each fat binary of a section."""
    position = content.find(_MAGIC, start, end)
    while position >= 0:
        _, _, header, size = _HEADER.unpack_from(content, position)
        yield tuple(_images(content, position + header, position + header + size))
        position = content.find(_MAGIC, position + header + size, end)


def _images(content: mmap.mmap, position: int, end: int) -> Iterator[Code]:
    while position < end:
        kind, _, header, size, _, _, minor, major, architecture = _ENTRY.unpack_from(content, position)
        (flags,) = struct.unpack_from("<Q", content, position + _FLAGS_AT)
        if kind in (_PTX, _SASS):
            yield Code(kind == _PTX, divmod(architecture, 10), bool(flags & _ONLY_THIS), (major, minor))
        position += header + size


def _disagrees(path: Path, listed: set[Code], cuobjdump: Path) -> str:
    """NVIDIA's cuobjdump lists what is linked, and not the objects that a driver may link as well."""
    command = [cuobjdump, "--list-elf", "--list-ptx", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return FAILS
    theirs = {(kind == "PTX", divmod(int(of), 10), letter == "a") for kind, of, letter in _LISTED.findall(done.stdout)}
    ours = {(it.is_ptx, it.target, it.is_only) for it in listed}
    return "" if ours == theirs else f"here {sorted(ours - theirs)}, there {sorted(theirs - ours)}"


def _opened(url: str, headers: dict[str, str]) -> Any:
    """Addresses are those of a lock from the default index."""
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=120)  # noqa: S310


def _remote(file: Mapping[str, Any]) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BufferedReader(_Remote(file["url"], file["size"]), _END))


class _Remote(io.RawIOBase):
    """A wheel of which only what zipfile reads is fetched."""

    def __init__(self, url: str, size: int) -> None:
        super().__init__()
        self._url, self._size, self._position = url, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        headers = {"Range": f"bytes={self._position}-{end - 1}"}
        with _opened(self._url, headers) as answer:
            content = answer.read()
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)
