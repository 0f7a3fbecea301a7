"""The subject of the checks: one environment on one machine. What several checks need is computed once."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from envsolve.binary.library_code import read_device_code
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.boundary.reading import real
from envsolve.diagnose.environment.altered import Altered, altered_files
from envsolve.diagnose.environment.builds import Build, builds_of, facts_of_installed
from envsolve.diagnose.environment.commands import Shell, shell_of
from envsolve.diagnose.environment.conda_meta import CondaMeta
from envsolve.diagnose.environment.loads import Loads
from envsolve.diagnose.environment.owners import Owners
from envsolve.diagnose.environment.wanted import Wanted, wanted_of
from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import frameworks_among
from envsolve.matrix import Matrix
from envsolve.matrix.library_names import LibraryNames
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import ComputeCapability, DeviceCode
from envsolve.model.finding import Finding
from envsolve.model.host import GpuStatus, Host
from envsolve.resolve.closure.unknown_builds import is_unknown
from envsolve.validation.installed import Files
from envsolve.validation.inventory import Inventory
from envsolve.validation.metadata import Package, Packages
from envsolve.validation.own_libraries import is_for_gpus
from envsolve.validation.report import StaticReport

_SHOWN = 12
"""Lines of evidence in a finding that could have one for every file."""


class Scene:
    """An environment and its machine.

    ``environ`` are the variables of the environment's programs, ``shell`` those of the user's shell if they differ;
    ``directory`` defaults to the current one. ``frameworks`` are the names of those to examine, None for all.
    ``for_gpu`` says whether libraries that only a GPU needs are required; None means: if there is a GPU or the
    environment is made for one.
    """

    def __init__(
        self,
        inventory: Inventory,
        host: Host,
        environ: Mapping[str, str],
        matrix: Matrix,
        *,
        shell: Mapping[str, str] | None = None,
        directory: Path | None = None,
        frameworks: Collection[str] | None = None,
        for_gpu: bool | None = None,
    ) -> None:
        self.inventory = inventory
        self.host = host
        self.environ = environ
        self.platform = host.platform
        self.matrix = matrix
        self.shell = environ if shell is None else shell
        self.directory = directory or Path.cwd()
        self._frameworks = frameworks
        self._for_gpu = for_gpu
        self.packages = Packages(inventory.search_path)
        self._codes: dict[str, DeviceCode] = {}
        self._build_facts: dict[str, tuple[BuildFacts, ...]] = {}
        self.conda = CondaMeta(inventory.prefix)

    def build_facts(self, package: Package) -> tuple[BuildFacts, ...]:
        """The facts about the builds of ``package``; from its libraries if the matrix does not know the build."""
        if package.name not in self._build_facts:
            known = self.matrix.build_facts(package.name, self.platform)
            if is_unknown(package.name, package.version, known):
                read = facts_of_installed(package, self.packages, self.platform, self.matrix)
                known = (*known, *([] if read is None else [read]))
            self._build_facts[package.name] = known
        return self._build_facts[package.name]

    @property
    def has_gpu(self) -> bool:
        """Whether the machine has an NVIDIA GPU, working or not."""
        return self.host.status is not GpuStatus.NO_HARDWARE

    @property
    def capabilities(self) -> tuple[ComputeCapability, ...]:
        """The known compute capabilities of its GPUs."""
        return self.host.capabilities if self.has_gpu else ()

    @cached_property
    def for_gpu(self) -> bool:
        """Whether libraries that only a GPU needs are required."""
        return self.has_gpu or is_for_gpus(self.loadable) if self._for_gpu is None else self._for_gpu

    @property
    def windows_driver(self) -> bool:
        """Whether the driver version is one of Windows, as on WSL."""
        return self.platform.is_windows or self.host.wsl

    @property
    def shell_kind(self) -> Shell:
        """The kind of the user's shell."""
        return shell_of(self.shell, windows=self.platform.is_windows)

    @cached_property
    def facts(self) -> dict[str, object]:
        """The facts of every check of this environment."""
        return {
            "windows": self.platform.is_windows,
            "in_conda": self.inventory.is_conda,
            "plan": self.fix_plan,
            "prefix": str(self.inventory.prefix),
            "prefix_typed": shlex.quote(str(self.inventory.prefix)),
        }

    def finding(self, identifier: str, evidence: Iterable[str] = (), **facts: Any) -> Finding:
        """The finding of a check with the facts of all checks and the first lines of ``evidence``."""
        return make_finding(identifier, islice(evidence, _SHOWN), **{**self.facts, **facts})

    @cached_property
    def loadable(self) -> Inventory:
        """The inventory with a readable program: this process's program replaces a broken one."""
        if os.path.isfile(self.inventory.executable):  # noqa: PTH113 - never raises
            return self.inventory
        return self.inventory._replace(executable=Path(sys.executable))

    @cached_property
    def files(self) -> Files:
        """The environment's frameworks and CUDA libraries."""
        return Files(self.loadable, self._frameworks)

    @cached_property
    def static(self) -> StaticReport:
        """The findings about libraries in frameworks and libraries that they load."""
        from envsolve.diagnose.environment.examination import examine_libraries

        return examine_libraries(self)

    @cached_property
    def altered(self) -> tuple[Altered, ...]:
        """The libraries of the GPU stack that differ from those that were installed."""
        return tuple(altered_files(self.packages))

    @cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        """The requirements between installed packages."""
        return wanted_of(self.packages, self.inventory.python, self.platform)

    @cached_property
    def builds(self) -> tuple[Build, ...]:
        """The frameworks as builds."""
        return builds_of(self.files, self.packages, self.conda, self.matrix, self.platform)

    @cached_property
    def owners(self) -> Owners:
        """The owner of each library of the environment."""
        return Owners(self.packages, self.conda, self.inventory.prefix)

    @cached_property
    def names(self) -> LibraryNames:
        """The names of the files of CUDA libraries."""
        return LibraryNames(self.matrix.document("libraries"))

    @cached_property
    def loads(self) -> Loads:
        """The libraries that the frameworks would load."""
        return Loads(self.files, self.names, self.environ, windows=self.platform.is_windows)

    def code_of(self, path: Path | str) -> DeviceCode:
        """The device code in a file, which is read once; empty for an unreadable file, which has another finding."""
        place = real(path)
        if place not in self._codes:
            try:
                self._codes[place] = read_device_code(Path(place))
            except UnreadableLibraryError:
                self._codes[place] = DeviceCode(())
        return self._codes[place]

    def code_in(self, paths: Iterable[Path]) -> dict[Path, DeviceCode]:
        """Those of ``paths`` that contain device code, with it."""
        return {path: code for path in paths if (code := self.code_of(path)) != DeviceCode(())}

    def installer_of(self, package: Package) -> str:
        """``conda`` or ``pip``: the installer of a package can install another version of it."""
        return "conda" if package.is_of_conda and package.name in self.conda.by_name else "pip"

    @property
    def fix_plan(self) -> str | None:
        """The command that plans a fixed environment for this machine; None if there is no framework.

        It keeps the versions and the Python of the environment if they run here.
        """
        known = {build.name for build in self.builds} | {it.name for it in frameworks_among(self.packages.by_name)}
        if not known.intersection(self.matrix.framework_names):
            return None
        return self.shell_kind.joined(["envsolve", "doctor", *self.inventory.option, "--fix-plan"])
