"""The frameworks and CUDA libraries in the files of an environment: their places, and what they were built for."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.frameworks import FRAMEWORKS, Framework, Libraries
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.inventory import Inventory
from envsolve.validation.report import Library, Owner

_DRIVER = re.compile(r"cuda|nvcuda|nvml|nvidia-.*", re.IGNORECASE)
"""Components that belong to the driver."""
_IN_MODULES = dict.fromkeys(
    (
        *("nvidia/*/lib/*.so*", "nvidia/*/bin/*.dll", "nvidia/*/bin/*/*.dll"),
        *(f"{directory}/*.dll" for it in FRAMEWORKS.values() for directory in it.libraries.dll_directories),
    )
)
_IN_PREFIX = ("lib/*.so*", "targets/*/lib/*.so*", "Library/bin/*.dll")
_LONGEST_MODULE = 1024 * 1024
_CUDA_IN_PATH = re.compile(r"_cuda(\d\d)")
_CUDA = re.compile(r"\d+(?:\.\d+)?")
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+){2,})\Z")
"""``libcudart.so.11.0`` is the name of every CUDA 11; three numbers or more are a version."""


class Installed(NamedTuple):
    """A framework, and the directory of the search path that contains its modules."""

    framework: Framework
    directory: Path

    @property
    def name(self) -> str:
        """The framework's name in envsolve."""
        return self.framework.name

    @property
    def title(self) -> str:
        """The framework's official name."""
        return self.framework.title

    @property
    def facts(self) -> Mapping[str, object]:
        """The facts of findings about it."""
        return {"title": self.title, "framework": self.title, "name": self.name}

    @property
    def libraries(self) -> Libraries:
        """The libraries that it loads."""
        return self.framework.libraries

    def files(self, *patterns: str) -> tuple[Path, ...]:
        """Its files that match the patterns, in their order."""
        return tuple(file for pattern in patterns for file in sorted(self.directory.glob(pattern)))

    @property
    def own_files(self) -> tuple[Path, ...]:
        """The libraries that its import loads, or that contain its kernels."""
        return self.files(*self.libraries.roots, *self.libraries.code)

    @property
    def built_cuda(self) -> str | None:
        """The CUDA it was built for: ``12.5``, ``12`` if only the major is known; None for a CPU build or unknown."""
        built = self.framework.built
        if built.cuda is None:
            paths = (str(file.relative_to(self.directory)) for file in self.files(built.file))
            named = (_CUDA_IN_PATH.search(path) for path in paths)
            return next((match[1] for match in named if match is not None), None)
        version = self._account.get(built.cuda)
        match = _CUDA.match(version) if isinstance(version, str) else None
        return None if match is None else match[0]

    @property
    def built_cuda_major(self) -> str | None:
        """The major version of the CUDA it was built for."""
        return (self.built_cuda or "").partition(".")[0] or None

    @property
    def built_cudnn(self) -> str | None:
        """The major version of the cuDNN it was built for; None if unknown."""
        return str(self._account.get(self.framework.built.cudnn or "", "")).partition(".")[0] or None

    @property
    def built_version(self) -> str | None:
        """The version in the module itself, with the build; None if there is none."""
        version = self._account.get(self.framework.built.version or "")
        return version if isinstance(version, str) else None

    @property
    def says_no_gpu(self) -> str | None:
        """The text by which it reports that it was built without GPUs; None if it does not."""
        built, account = self.framework.built, self._account
        names = [name for name in built.gpu if name in account]
        if not names or any(account[name] not in (None, False, "False") for name in names):
            return None
        return f"{built.file} says {names[0]} = {account[names[0]]!r}"

    @property
    def _account(self) -> Mapping[str, object]:
        """Its own description of its build; empty if there is none that can be read."""
        assigned = self.assigned(self.framework.built.file)
        nested = (value for value in assigned.values() if isinstance(value, dict))
        return {**assigned, **{name: value for table in nested for name, value in table.items()}}

    def assigned(self, module: str) -> Mapping[str, object]:
        """The literal values that the file ``module`` assigns, by name, without running it."""
        found: dict[str, object] = {}
        for node in _statements(self.directory / module):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None:
                with suppress(ValueError, TypeError):
                    value = _literal(node.value)
                    for it in targets:
                        if isinstance(it, ast.Name):
                            found.setdefault(it.id, value)
        return found


class Files:
    """The libraries of an environment, and those of its frameworks that are ``wanted`` (None: all)."""

    def __init__(self, inventory: Inventory, wanted: Collection[str] | None = None) -> None:
        self.inventory = inventory
        self._wanted = wanted

    def is_wanted(self, framework: str) -> bool:
        """Whether the framework is one of those to examine."""
        return self._wanted is None or framework in self._wanted

    @cached_property
    def frameworks(self) -> tuple[Installed, ...]:
        """Every framework whose modules are there; of two copies the one that an import loads."""
        found = []
        for known in FRAMEWORKS.values():
            if not self.is_wanted(known.name):
                continue
            holders = (
                it for it in self.inventory.search_path if next(it.glob(f"{known.libraries.package}/__init__.py"), None)
            )
            directory = next(holders, None)
            if directory is not None:
                found.append(Installed(known, directory))
        return tuple(found)

    @cached_property
    def libraries(self) -> tuple[Path, ...]:
        """The files and links of CUDA libraries, first those of NVIDIA's packages, then those of the prefix."""
        found = [
            file for it in self.inventory.search_path for pattern in _IN_MODULES for file in sorted(it.glob(pattern))
        ]
        if self.inventory.owns_prefix:
            found += [file for pattern in _IN_PREFIX for file in sorted(self.inventory.prefix.glob(pattern))]
        return tuple(dict.fromkeys(file for file in found if component_of(file.name) is not None))

    @cached_property
    def own(self) -> Mapping[str, Path]:
        """The first of them for each file name."""
        found: dict[str, Path] = {}
        for file in self.libraries:
            found.setdefault(file.name, file)
        return found

    def located(self, soname: str, path: str) -> Library:
        """The library found for ``soname``: its owner, and its version if the name of the real file has it."""
        place = Path(os.path.realpath(path))
        version = version_in(place.name) if place.name != soname else None
        return Library(soname, place, owner_of(Path(path), self.inventory), version)


def owner_of(path: Path, inventory: Inventory) -> Owner:
    """The owner of a library, by its own path or by the file that it leads to."""
    if is_of_driver(path.name):
        return Owner.DRIVER
    owned = any(map(inventory.owns, (Path(os.path.realpath(path)), Path(os.path.normpath(path)))))
    return Owner.ENVIRONMENT if owned else Owner.SYSTEM


def is_of_driver(name: str) -> bool:
    """Whether a file of this name belongs to the driver, and never to an environment."""
    component = component_of(name)
    return component is not None and _DRIVER.fullmatch(component) is not None


def version_in(name: str) -> str | None:
    """``12.8.90`` for libcudart.so.12.8.90; a name with fewer numbers is used for many versions."""
    match = _VERSION.search(name)
    return None if match is None else match[1]


def _statements(path: Path) -> Iterator[ast.Assign | ast.AnnAssign]:
    try:
        tree = ast.parse(read_text(path, _LONGEST_MODULE) or "")
    except (FileError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from (node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign))


def _literal(node: ast.expr) -> object:
    """The value; for a call such as OrderedDict([...]) a dictionary.

    Raises ValueError or TypeError if it is no literal.
    """
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return dict(ast.literal_eval(node.args[0]))
    return ast.literal_eval(node)
