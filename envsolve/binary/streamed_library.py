"""Read the CUDA requirements of a library as a stream: inside a wheel it is compressed and has no headers.

Names of libraries are plain text in the file: those in DT_NEEDED in .dynstr, those passed to dlopen in .rodata, those
of a DLL in its import table. The number in the name of libcudart, libcublas, libcublasLt and libnvrtc is the major
version of their CUDA (data/compat_matrix/libraries.toml). A statically linked runtime has no name: its messages show
it, and its version follows from the form of the code that was compiled with it. The symbols of PyTorch that a library
needs say which PyTorch it was compiled for, since its C++ interface changes with each release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envsolve.binary.fat_binary import CommonCode, streamed_fat_binaries
from envsolve.binary.streamed_dynamic import DynamicSegment
from envsolve.model.capability import CodeTarget, DeviceCode

_NAMED = re.compile(
    rb"\0lib(?:cudart|cublas|cublasLt|nvrtc)\.so\.(\d+)(?:\.\d+)?(?=\0)"
    rb"|\0(?:cudart|cublas|cublasLt|nvrtc)64_(\d\d)\d?(?:_\d+)?\.dll(?=\0)"
)
_RUNTIME = (b"\0CUDA driver version is insufficient for CUDA runtime version\0", b"\0nvcudart_hybrid64.dll\0")
"""Text that only the runtime contains: its message for cudaErrorInsufficientDriver and, on Windows since CUDA 13, the
name of the part of it that the driver installs (warp-lang 1.19).
"""
_NUMPY = re.compile(rb"numpy\.(_?core)\._multiarray_umath")
"""The module that an extension imports: ``numpy.core`` if it was compiled with NumPy 1 (NumPy 2.0 migration guide:
``numpy.core`` became ``numpy._core``, and code compiled with NumPy 2 tries that first).
"""
_TORCH = re.compile(rb"\0(_Z(?:T[ITV])?N?[KVr]*(?:3c10|2at|5torch)[\w.]{1,4000})(?=\0)")
"""The name of a symbol in one of PyTorch's namespaces, by the Itanium C++ ABI."""
_OVERLAP = 4096
"""Bytes at the end of a chunk that are searched again with the next one: longer than any of these texts."""


class StreamedLibrary(NamedTuple):
    """The facts from one library.

    ``code`` is its machine code and PTX, empty if it has no kernels. ``cuda`` are the majors of the CUDA libraries that
    it needs or, if there are none, that it names. ``linked_cuda`` is the major of a CUDA runtime that is part of it;
    None if there is none or it is unknown. ``numpy`` is the major that it was compiled with; None if it imports no
    NumPy. ``ptx_cuda`` is the newest toolkit that wrote its PTX. ``torch`` are the symbols of PyTorch's C++ interface
    that it needs.
    """

    code: DeviceCode
    cuda: frozenset[int] = frozenset()
    linked_cuda: int | None = None
    numpy: int | None = None
    ptx_cuda: tuple[int, int] | None = None
    torch: frozenset[str] = frozenset()


def read_stream(chunks: Iterable[bytes], *, enough: int | None = None) -> StreamedLibrary:
    """The facts from a library, read to its end or up to ``enough`` fat binaries.

    Raises ValueError for a fat binary of an impossible size.
    """
    texts = _Texts()
    common = CommonCode()
    for codes in streamed_fat_binaries(texts.passing(chunks), enough=enough):
        common.add(codes)
    targets = common.targets
    compilers = (major for it in common.every if (major := it.cuda_major) is not None)
    toolkits = (toolkit for it in common.every if (toolkit := it.ptx_cuda) is not None)
    return StreamedLibrary(
        DeviceCode(tuple(map(CodeTarget.parse, targets.sass)), tuple(map(CodeTarget.parse, targets.ptx))),
        texts.cuda,
        max(compilers, default=None) if texts.has_runtime else None,
        2 if "_core" in texts.numpy else 1 if texts.numpy else None,
        max(toolkits, default=None) if targets.ptx else None,
        texts.torch(defined=False),
    )


def torch_symbols_of(chunks: Iterable[bytes]) -> frozenset[str]:
    """The symbols of PyTorch's C++ interface that a library of PyTorch defines."""
    texts = _Texts()
    for _ in texts.passing(chunks):
        pass
    return texts.torch(defined=True)


class _Texts:
    """Collects the relevant texts from bytes that pass through it."""

    def __init__(self) -> None:
        self.numpy: set[str] = set()
        self.has_runtime = False
        self._named: dict[int, int] = {}
        """The majors in names of CUDA libraries, by the position of the name."""
        self._of_torch: dict[int, str] = {}
        self._dynamic = DynamicSegment()

    @property
    def cuda(self) -> frozenset[int]:
        """The majors of the CUDA libraries that are needed, or else of those that are named."""
        needed = self._dynamic.needed
        if needed is None:
            needed = frozenset(it for it in self._named if it < self._dynamic.code)
        return frozenset(self._named[it] for it in needed if it in self._named) or frozenset(self._named.values())

    def torch(self, *, defined: bool) -> frozenset[str]:
        """The symbols of PyTorch that are defined, or that are needed."""
        return frozenset(self._of_torch[it] for it in self._dynamic.symbols(defined=defined) if it in self._of_torch)

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """``chunks``, unchanged."""
        tail, position = b"", 0
        for chunk in chunks:
            self._dynamic.show(chunk)
            window, start = tail + chunk, position - len(tail)
            position += len(chunk)
            for found in _NAMED.finditer(window):
                self._named[start + found.start() + 1] = int(found[1] or found[2])
            for found in _TORCH.finditer(window):
                self._of_torch[start + found.start(1)] = found[1].decode()
            self.numpy.update(name.decode() for name in _NUMPY.findall(window))
            self.has_runtime = self.has_runtime or any(it in window for it in _RUNTIME)
            tail = window[-_OVERLAP:]
            yield chunk
