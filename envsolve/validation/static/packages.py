"""Packages that do not go with the machine or with one another: CPU builds beside a GPU, two owners of one module."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from envsolve.frameworks import FRAMEWORKS
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inventory import Distribution, Inventory
from envsolve.validation.static.builds import tensorflow_build
from envsolve.validation.static.installed import Files, Installed
from envsolve.validation.static.records import conda_build

_CUDA_SUFFIX = re.compile(r"-cu\d+$")
_LIBRARY = re.compile(r"\.(?:so(?:\.\d+)*|dll)$")


def cpu_builds(files: Files) -> Iterator[Finding]:
    """Frameworks without CUDA, for a machine that has a GPU."""
    for framework in files.frameworks:
        shows = _shows_cpu(framework, files.inventory)
        if shows is not None:
            yield _cpu_build(framework.name, framework.title, shows)
    if files.is_wanted("jax") and not any(it.name == "jax" for it in files.frameworks):
        shows = _jax_without_plugin(files.inventory)
        if shows is not None:
            yield _cpu_build("jax", "JAX", shows)


def two_owners(files: Files) -> Iterator[Finding]:
    """Distributions that have written the same module or the same library: the last one installed has won."""
    inventory = files.inventory

    def owned(distribution: Distribution) -> frozenset[str]:
        return files.records.files(distribution.location, distribution.name)

    for module, names in (it for known in FRAMEWORKS.values() for it in known.owners.items()):
        init = f"{module}/__init__.py"
        owners = [it for it in inventory.distributions if re.fullmatch(names, it.name) and init in owned(it)]
        if len(owners) > 1:
            yield _two_owners(owners, f"the module {module}", init)
    components: dict[str, list[Distribution]] = defaultdict(list)
    for distribution in inventory.distributions:
        if distribution.name.startswith("nvidia-"):
            components[_CUDA_SUFFIX.sub("", distribution.name)].append(distribution)
    for owners in components.values():
        shared = frozenset.intersection(*map(owned, owners))
        libraries = sorted(file for file in shared if _LIBRARY.search(file))
        if len(owners) > 1 and len({it.location for it in owners}) == 1 and libraries:
            yield _two_owners(owners, libraries[0].rpartition("/")[2], *libraries)


def _shows_cpu(framework: Installed, inventory: Inventory) -> str | None:
    """How it shows that this is a CPU build; None for any other."""
    name = framework.name
    if name == "paddlepaddle":
        return _paddle(framework)
    shown = {"pytorch": _pytorch, "tensorflow": _tensorflow, "onnxruntime": _onnxruntime}
    return shown[name](framework, inventory) if name in shown else None


def _pytorch(framework: Installed, inventory: Inventory) -> str | None:
    version = str(framework.assigned("torch/version.py", "__version__") or "")
    if version.endswith("+cpu"):
        return f"torch/version.py says __version__ = {version!r}"
    others = (framework.assigned("torch/version.py", name) for name in ("cuda", "hip", "xpu"))
    if version and not any(others):
        return "torch/version.py says cuda = None"
    return _conda_cpu(inventory, "pytorch")


def _tensorflow(framework: Installed, inventory: Inventory) -> str | None:
    build = tensorflow_build(framework)
    if build.get("is_cuda_build") is False and build.get("is_rocm_build") is not True:
        return "tensorflow/python/platform/build_info.py says is_cuda_build = False"
    found = inventory.distribution("tensorflow-cpu", "intel-tensorflow")
    if found is not None and inventory.distribution("tensorflow", "tensorflow-gpu") is None:
        return f"the installed package is {found.name} {found.version}"
    return _conda_cpu(inventory, "tensorflow-base", "tensorflow")


def _onnxruntime(framework: Installed, inventory: Inventory) -> str | None:
    held = framework.files("onnxruntime/capi/*onnxruntime_providers_cuda.*")
    found = inventory.distribution("onnxruntime", "ort-nightly")
    if held or found is None:
        return None
    others = [it for it in inventory.distributions if it.name.startswith(("onnxruntime-", "ort-nightly-"))]
    return None if others else f"onnxruntime {found.version} holds no provider for CUDA; onnxruntime-gpu does"


def _paddle(framework: Installed) -> str | None:
    told = framework.assigned("paddle/version/__init__.py", "cuda_version")
    return "paddle/version/__init__.py says cuda_version = 'False'" if told in ("False", False) else None


def _jax_without_plugin(inventory: Inventory) -> str | None:
    jax, jaxlib = inventory.distribution("jax"), inventory.distribution("jaxlib")
    if jax is None or (jaxlib is not None and "+cuda" in jaxlib.version):
        return None
    build = conda_build(inventory.prefix, "jaxlib") if inventory.is_conda else None
    if build is not None and "cuda" in build:
        return None
    if any(re.fullmatch(r"jax-(cuda|rocm).*", it.name) for it in inventory.distributions):
        return None
    return f"jax {jax.version} is installed without a plugin for CUDA"


def _conda_cpu(inventory: Inventory, *names: str) -> str | None:
    build = conda_build(inventory.prefix, *names) if inventory.is_conda else None
    return f"the build of the conda package is {build}" if build is not None and re.match(r"(cpu|mkl)", build) else None


def _cpu_build(name: str, title: str, shows: str) -> Finding:
    return Finding(
        "cpu-build",
        f"{title} is installed without CUDA",
        Severity.ERROR,
        f"this machine has an NVIDIA GPU and {title} cannot use it: {shows}",
        f"install a build of {title} for CUDA; envsolve says which one fits this machine",
        (f"envsolve --framework {name} --gpu auto",),
        (shows,),
        about=name,
    )


def _two_owners(owners: list[Distribution], what: str, *files: str) -> Finding:
    names = [f"{it.name} {it.version}" for it in owners]
    return Finding(
        "two-distributions",
        f"{' and '.join(it.name for it in owners)} both own {what}",
        Severity.ERROR,
        f"{' and '.join(names)} write the same files, so that each has overwritten some of the other's; which one is "
        "there depends on the order in which they were installed",
        "uninstall both and install the one that is wanted",
        (f"pip uninstall {' '.join(it.name for it in owners)}",),
        tuple(f"both own {file}" for file in files[:4]),
    )
