"""Environments on disk for the doctor: those of the static checks, with the metadata that installers write."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from envsolve.diagnose.environment.examination import examine_environment
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.report import Report
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Gpu, GpuStatus, Host, Platform
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion
from tests.diagnose.environment.static_environment import AMPERE, NVIDIA, Environment

VERSIONS = {
    "nvidia/cuda_runtime/lib": ("nvidia-cuda-runtime-cu12", "12.8.90"),
    "nvidia/cublas/lib": ("nvidia-cublas-cu12", "12.8.4.1"),
    "nvidia/cudnn/lib": ("nvidia-cudnn-cu12", "9.10.2.21"),
}
"""What PyTorch 2.8.0 of PyPI requires (its METADATA)."""


def host(
    *gpus: ComputeCapability, driver: str | None = "580.65.06", cuda: str | None = "13.0", wsl: bool = False
) -> Host:
    """A machine with these GPUs; without any, one that has no NVIDIA hardware."""
    if not gpus:
        return Host(Platform.LINUX_64, status=GpuStatus.NO_HARDWARE)
    return Host(
        Platform.LINUX_64,
        None if driver is None else DriverVersion.parse(driver),
        None if cuda is None else CudaVersion.parse(cuda),
        LibcVersion(2, 35),
        tuple(Gpu("NVIDIA GPU", gpu) for gpu in gpus),
        wsl=wsl,
    )


def record_line(path: str, content: bytes) -> str:
    """A line of RECORD for a file of this content."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode("ascii").rstrip("=")
    return f"{path},sha256={digest},{len(content)}\n"


class Patient(Environment):
    """An environment whose distributions have METADATA, INSTALLER and a RECORD with digests."""

    def install(
        self,
        name: str,
        version: str,
        *files: str,
        requires: Sequence[str] = (),
        installer: str | None = "pip",
        editable: bool = False,
    ) -> None:
        """The metadata of a distribution with ``files``; missing ones are made."""
        super().install(name, version)
        folder = self.folder(name, version)
        for file in files:
            if not (self.site / file).exists():
                self.write(file, f"# {file} of {name}\n")
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(head + "".join(f"Requires-Dist: {it}\n" for it in requires) + "\nA package.\n")
        if installer is not None:
            (folder / "INSTALLER").write_text(f"{installer}\n")
        if editable:
            (folder / "direct_url.json").write_text(json.dumps({"url": "file:///x", "dir_info": {"editable": True}}))
        lines = [record_line(file, (self.site / file).read_bytes()) for file in files]
        (folder / "RECORD").write_text("".join(lines) + f"{folder.name}/METADATA,,\n")

    def copied(self, root: Path) -> Patient:
        """The same environment in ``root``."""
        copy = Patient(root)
        shutil.copytree(self.root, root, symlinks=True, dirs_exist_ok=True)
        copy._distributions = [it._replace(location=copy.site) for it in self._distributions]
        return copy

    def folder(self, name: str, version: str) -> Path:
        """Where the metadata of a distribution is."""
        return self.site / f"{name.replace('-', '_')}-{version}.dist-info"

    def uninstall(self, name: str) -> None:
        """Remove the metadata of a distribution; its files stay."""
        self._distributions = [it for it in self._distributions if it.name != name]
        for folder in self.site.glob(f"{name.replace('-', '_')}-*.dist-info"):
            shutil.rmtree(folder)

    def stack(self) -> None:
        """PyTorch 2.8.0 with NVIDIA's packages, as pip installs them from PyPI."""
        self.nvidia()
        self.torch()
        self.uninstall("torch")
        for place, (name, version) in VERSIONS.items():
            self.install(name, version, *(f"{place}/{library}" for library, of in NVIDIA.items() if of == place))
        requires = [f'{name}=={version}; platform_system == "Linux"' for name, version in VERSIONS.values()]
        files = ("torch/__init__.py", "torch/version.py", "torch/lib/libtorch_cuda.so")
        self.install("torch", "2.8.0", *files, requires=requires)

    def conda(
        self,
        name: str,
        version: str,
        build: str,
        *files: str,
        depends: Sequence[str] = (),
        channel: str = "conda-forge",
    ) -> None:
        """A conda package with ``files``, below the prefix; missing ones are made."""
        meta = self.root / "conda-meta"
        meta.mkdir(exist_ok=True)
        for file in files:
            if not (self.root / file).exists():
                (self.root / file).parent.mkdir(parents=True, exist_ok=True)
                (self.root / file).write_text(f"{file} of {name}\n")
        record = {
            "name": name,
            "version": version,
            "build": build,
            "channel": f"https://conda.anaconda.org/{channel}/linux-64",
            "depends": list(depends),
            "files": list(files),
        }
        (meta / f"{name}-{version}-{build}.json").write_text(json.dumps(record))

    def report(
        self,
        machine: Host | None = None,
        variables: Mapping[str, str] | None = None,
        *,
        shell: Mapping[str, str] | None = None,
        directory: Path | None = None,
        platform: Platform = Platform.LINUX_64,
        matrix: Matrix | None = None,
        executable: Path | None = None,
        before: Sequence[Path] = (),
    ) -> Report:
        """What the doctor says; the machine has a GPU of compute capability 8.0 unless another is given.

        ``before`` are directories whose modules come before the environment's own.
        """
        inventory = self.inventory(is_conda=(self.root / "conda-meta").is_dir())
        inventory = inventory._replace(search_path=(*before, *inventory.search_path))
        scene = Scene(
            inventory if executable is None else inventory._replace(executable=executable),
            (machine or host(AMPERE))._replace(platform=platform),
            variables or {},
            matrix or Matrix(),
            shell=shell,
            directory=directory or self.root,
        )
        return examine_environment(scene)

    @property
    def planned(self) -> str:
        """The command that plans it again."""
        return f"envsolve doctor --prefix {self.root} --fix-plan"

    def only(
        self,
        identifier: str,
        severity: Severity,
        machine: Host | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Finding:
        """The only finding; fails if there is another one, or none."""
        findings = self.report(machine, variables).findings
        assert [(it.id, it.severity) for it in findings] == [(identifier, severity)], findings
        return findings[0]


def pip(verb: str, rest: str) -> str:
    """A pip command for an environment without its own pip; the interpreter is that of the tests."""
    return f"uv pip {verb} --python {sys.executable} {rest}"


def names(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Identifiers and severities, in order."""
    return [(finding.id, finding.severity.value) for finding in findings]
