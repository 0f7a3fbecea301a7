"""Packages that do not go with the machine or with one another: CPU builds beside a GPU, two owners of one module."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import FRAMEWORKS, Framework
from envsolve.model.finding import Finding
from envsolve.validation.inventory import Distribution, Inventory
from envsolve.validation.static.builds import says_no_gpu
from envsolve.validation.static.installed import Files, Installed
from envsolve.validation.static.records import conda_build

_CUDA_SUFFIX = re.compile(r"-cu\d+$")
_LIBRARY = re.compile(r"\.(?:so(?:\.\d+)*|dll)$")


def cpu_builds(files: Files) -> Iterator[Finding]:
    """Frameworks without CUDA, for a machine that has a GPU."""
    there = {it.name: it for it in files.frameworks}
    for known in FRAMEWORKS.values():
        shows = _shows_cpu(known, there.get(known.name), files.inventory) if files.is_wanted(known.name) else None
        if shows is not None:
            yield make_finding(
                "cpu-build", [shows], about=known.name, framework=known.title, name=known.name, gpu_is_here=True
            )


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


def _shows_cpu(known: Framework, there: Installed | None, inventory: Inventory) -> str | None:
    """How it shows that this is a CPU build; None for any other. ``there`` is None where its module is not."""
    if there is not None:
        says = says_no_gpu(there)
        if says is not None:
            return says
        if any("cuda" in file.name for file in there.files(*known.libraries.code)):
            return None
    present = next((it for it in inventory.distributions if known.is_installed_as(it.name)), None)
    build = conda_build(inventory.prefix, *known.conda_builds) if inventory.is_conda and (there or present) else None
    if build is not None and re.match(r"(cpu|mkl)", build):
        return f"the build of the conda package is {build}"
    if present is None or known.gpu_packages is None or "cuda" in (build or ""):
        return None
    if any(known.has_gpu_code(it.name, it.version) for it in inventory.distributions):
        return None
    return f"{present.name} {present.version} is installed, and no package with its GPU code"


def _two_owners(owners: list[Distribution], what: str, *files: str) -> Finding:
    return make_finding(
        "two-distributions",
        (f"both own {file}" for file in files[:4]),
        owners=tuple(f"{it.name} {it.version}" for it in owners),
        owned=what,
        owners_typed=" ".join(it.name for it in owners),
    )
