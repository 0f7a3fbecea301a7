"""Facts in the bytes of a library: architecture lists, and the C library and CUDA libraries that it requires.

Fat binaries are read by :mod:`envsolve.binary.fat_binary`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from envsolve.binary.fat_binary import DeviceTargets, device_code, targets_of_code
from envsolve.releases.reader import Observation

_FLAG = rb"(?:sm|compute)_\d{2,3}[af]?"
_FLAGS = re.compile(_FLAG + rb"(?:[ ;,]" + _FLAG + rb"){0,40}(?=\0)")
"""Flags up to the end of the string. The start may touch another string, because linkers merge common endings."""
_GLIBC = re.compile(rb"\0GLIBC_(2\.\d+)(?:\.\d+)?(?=\0)")
_LIBRARY = re.compile(rb"cu(blas|dnn)(?:64_(\d+)\.dll|\.so\.(\d+))\0")
"""The fixed letters at the start make the search ten times as fast as an alternative, in hundreds of MB."""
_LONGEST_NAME = 64
_TARGET = re.compile(r"(sm|compute)_(\d{1,2})(\d)([af]?)")


def targets_of_flags(flags: Iterable[str], *, compute_is_both: bool = False) -> DeviceTargets:
    """Return the targets of ``sm_80``, ``compute_90`` and so on.

    With ``compute_is_both`` (TensorFlow, XLA) ``compute_90`` means machine code and PTX, else only PTX. Raises
    ValueError for a flag of another form.
    """
    sass: set[str] = set()
    ptx: set[str] = set()
    for flag in flags:
        match = _TARGET.fullmatch(flag)
        if match is None:
            raise ValueError(f"{flag!r} is not an architecture flag")
        target = f"{match[2]}.{match[3]}{match[4]}"
        if match[1] == "compute":
            ptx.add(target)
        if match[1] == "sm" or compute_is_both:
            sass.add(target)
    return DeviceTargets.of(sass, ptx)


def find_flags(chunks: Iterable[bytes]) -> list[str] | None:
    """Return the first list of architecture flags (``sm_70 sm_80 ...``) in a stream of bytes, or None."""
    tail = b""
    for chunk in chunks:
        window = tail + chunk
        match = _FLAGS.search(window)
        if match is not None:
            return re.split(r"[ ;,]", match[0].decode())
        tail = window[-1024:]
    return None


def observed_code(chunks: Iterable[bytes]) -> Observation:
    """Return the kernels of a library, the toolkit that compiled them if their PTX has it, and the required glibc."""
    glibc = GlibcWatch()
    code = device_code(glibc.passing(chunks))
    targets = targets_of_code(code)
    toolkit = max((it.ptx_cuda for it in code if it.ptx_cuda is not None), default=None)
    seen: Observation = {"sass": list(targets.sass), "ptx": list(targets.ptx)}
    if toolkit is not None:
        seen["cuda"] = [f"{toolkit[0]}.{toolkit[1]}"]
    if glibc.newest is not None:
        seen["glibc"] = [glibc.newest]
    return seen


class GlibcWatch:
    """Records the newest glibc symbol version (``GLIBC_2.17``) in a stream of bytes."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield ``chunks`` unchanged. The names may be anywhere: some tools move them to the end of a library."""
        tail = b""
        for chunk in chunks:
            window = tail + chunk
            self._found.update(version.decode() for version in _GLIBC.findall(window))
            tail = window[-32:]
            yield chunk

    @property
    def newest(self) -> str | None:
        """The newest version, or None if there was none."""
        return max(self._found, key=lambda version: [int(part) for part in version.split(".")], default=None)


class LibraryWatch:
    """Records the majors of cuBLAS and cuDNN in the names of libraries in a stream of bytes."""

    def __init__(self) -> None:
        self._found: set[tuple[str, str]] = set()

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield ``chunks`` unchanged."""
        tail = b""
        for chunk in chunks:
            window = tail + chunk
            for library, windows, linux in _LIBRARY.findall(window):
                self._found.add((f"cu{library.decode()}", (windows or linux).decode()))
            tail = window[-_LONGEST_NAME:]
            yield chunk

    @property
    def majors(self) -> Observation:
        """The majors by name, ``cublas`` and ``cudnn``."""
        names = sorted({library for library, _ in self._found})
        return {name: sorted({major for library, major in self._found if library == name}) for name in names}
