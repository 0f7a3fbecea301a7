"""Facts from all libraries of a package: of a remote wheel, or of an installed package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.binary.streamed_library import StreamedLibrary, read_stream
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import CodeTarget, DeviceCode
from envsolve.model.fact import Evidence
from envsolve.model.need import Need, parse_need
from envsolve.model.versions import CudaVersion

_LIBRARY = re.compile(r".*\.(?:so(?:\.\d+)*|pyd|dll)", re.IGNORECASE)
_SAYS_CUDA = re.compile(r"(?<!libi)cuda|cublas|cudnn|cufft|nvrtc|nccl|gpu|_cu1\d|-cu1\d", re.IGNORECASE)
"""The large libicudata belongs to ICU."""
_OF_NVIDIA = re.compile(
    r"(?:^|/)(?:lib)?(?:cudart|cublas(?:Lt)?|cudnn\w*?|cufft|curand|cusolver\w*?|cusparse\w*?|npp\w*?|nvjpeg|nvJitLink"
    r"|nvrtc(?:-builtins)?|nccl|cupti|nvToolsExt)(?:64_|[-.])[^/]*\Z"
)
"""A library of NVIDIA's that is part of the package: it has code for more GPUs than the package's own libraries."""
_BUNDLED = re.compile(r"(?:^|/)(?:lib)?(?:cudart|cublas|cublasLt|nvrtc)(?:64_|[-.])[^/]*\Z")
"""Libraries whose number is the major version of CUDA."""
_RUNTIME = re.compile(r"(?:^|/)(?:libcudart[-.](?:[^/]*\.)?so\.|cudart64_)(\d\d)[^/]*\Z")
_OF_SEVERAL = re.compile(r"torch[-_]?\d+\.?\d[^/]*\Z", re.IGNORECASE)
"""A library for one PyTorch, next to libraries for others, as in dgl and torch-c-dlpack-ext."""
_BRINGS_CUDA = re.compile(r"nvidia-(?:cuda-runtime|cuda-nvrtc|cublas|cudnn|npp|cufft)(?:-cu\d\d)?\Z|cuda-toolkit\Z")
_OLDER_NUMPY = parse_need("numpy<2")


class PackageFacts(NamedTuple):
    """Facts from all libraries of a package.

    ``sass`` and ``ptx`` are the targets of their kernels. ``cuda`` are the majors of the CUDA libraries that they load
    from outside of the package, ``linked_cuda`` that of a runtime that is part of them or of the package. ``numpy`` is
    the oldest major of NumPy that one of them was compiled with. ``unread`` are the bytes of skipped libraries,
    compressed. ``torch`` are the symbols of PyTorch's C++ interface that they need. ``modules`` are the Python packages
    that the package installs, each with a checksum.
    """

    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    cuda: tuple[int, ...] = ()
    linked_cuda: int | None = None
    numpy: int | None = None
    unread: int = 0
    ptx_cuda: str | None = None
    torch: tuple[str, ...] = ()
    modules: tuple[tuple[str, int], ...] = ()

    @property
    def code(self) -> DeviceCode | None:
        """The kernels; None if it has none."""
        if not self.sass and not self.ptx:
            return None
        return DeviceCode(tuple(map(CodeTarget.parse, self.sass)), tuple(map(CodeTarget.parse, self.ptx)))

    def build_facts(
        self, name: str, version: str, requires: Iterable[str], evidence: Evidence, torch: Need | None = None
    ) -> BuildFacts | None:
        """The facts about the builds of one version, whose metadata require the packages ``requires``.

        ``torch`` is the PyTorch that has all the symbols that they need; if the metadata do not require PyTorch, these
        libraries are optional. None if the package may be installed beside anything. A package that requires packages
        of NVIDIA's needs no other CUDA, and one that loads the libraries of several uses the one that is there. If
        libraries were skipped, these may have the code that the others lack.
        """
        names = set(requires)
        majors = () if any(map(brings_cuda, names)) else self.cuda
        cuda = SpecifierSet(f"=={majors[0]}.*") if len(majors) == 1 else None
        needed = (_OLDER_NUMPY,) if self.numpy == 1 else ()
        if torch is not None and torch.name in names:
            needed = (*needed, torch)
        code = None if self.unread else self.code
        if cuda is None and code is None and self.linked_cuda is None and not needed:
            return None
        versions = SpecifierSet(f"=={Version(version)}")
        return BuildFacts(
            *(name, versions, cuda, needed, (), "", (evidence,)),
            code=code,
            linked_cuda=self.linked_cuda,
            ptx_cuda=None if self.ptx_cuda is None else CudaVersion.parse(self.ptx_cuda),
        )


def facts_in(
    members: Mapping[str, int], chunks: Callable[[str], Iterator[bytes]], budget: int, *, named: bool = False
) -> PackageFacts:
    """The facts from the libraries among ``members``, up to ``budget`` bytes of them, the smallest first.

    With ``named`` only libraries are read whose path mentions CUDA or a GPU. Raises what ``chunks`` raises, and
    ValueError for damaged code.
    """
    chosen: set[str] = set()
    left, unread = budget, 0
    for name in sorted(libraries_in(members), key=lambda it: (members[it], it)):
        if named and not _SAYS_CUDA.search(name):
            continue
        if members[name] > left:
            unread += members[name]
            continue
        left -= members[name]
        chosen.add(name)
    in_order = [name for name in members if name in chosen]  # adjacent members are fetched in one request
    return together({name: read_stream(chunks(name)) for name in in_order}, members, unread)


def libraries_in(members: Iterable[str]) -> Iterator[str]:
    """The files of a package that are libraries by their names, without those of NVIDIA."""
    return (it for it in members if _LIBRARY.fullmatch(it) and not _OF_NVIDIA.search(it))


def brings_cuda(package: str) -> bool:
    """Whether ``package``, a normalized name, installs CUDA libraries; a package that requires it needs no others."""
    return _BRINGS_CUDA.match(package) is not None


def together(libraries: Mapping[str, StreamedLibrary], members: Iterable[str], unread: int = 0) -> PackageFacts:
    """The facts from the ``libraries`` of a package, by their paths; ``members`` are all of its files."""
    names, found = tuple(members), libraries.values()
    targets = [it.code for it in found]
    runtimes = [int(name[1]) for it in names if (name := _RUNTIME.search(it)) is not None]
    linked = [*runtimes, *(it.linked_cuda for it in found if it.linked_cuda is not None)]
    newest = max((it.ptx_cuda for it in found if it.ptx_cuda is not None), default=None)
    bundled = any(_BUNDLED.search(it) for it in names)
    return PackageFacts(
        tuple(str(it) for it in sorted({target for code in targets for target in code.sass})),
        tuple(str(it) for it in sorted({target for code in targets for target in code.ptx})),
        () if bundled else tuple(sorted({major for it in found for major in it.cuda})),
        max(linked, default=None),
        min((it.numpy for it in found if it.numpy is not None), default=None),
        unread,
        None if newest is None else f"{newest[0]}.{newest[1]}",
        tuple(
            sorted({it for path, library in libraries.items() if not _OF_SEVERAL.search(path) for it in library.torch})
        ),
    )
