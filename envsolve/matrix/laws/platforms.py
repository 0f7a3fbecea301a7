"""Laws of the platform tables: toolkits, drivers, GPU generations, cuDNN, product names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from packaging.version import Version

from envsolve.matrix.laws.facts import Facts, Law, RawRow, breach, raw_rows
from envsolve.model.versions import CudaVersion, DriverVersion

_FIRST = CudaVersion(0, 0)
_LAST = CudaVersion(99, 0)


def toolkits_stand_newest_first_and_once(facts: Facts) -> Iterator[str]:
    """Rows of toolkits are listed newest first, each version once."""
    rows = [CudaVersion.parse(str(row["version"])) for row in raw_rows(facts.documents["cuda"], "toolkit")]
    for above, below in pairwise(rows):
        if below >= above:
            yield breach("cuda", f"toolkit {below}", f"is below {above}")


def components_belong_to_a_known_toolkit(facts: Facts) -> Iterator[str]:
    """Every exact release in cuda_components.toml, and every patch of a component, is of a toolkit in cuda.toml.

    Otherwise a build that requires its libraries could get a toolkit without driver floors.
    """
    named = [(str(release.version), release.cuda) for release in facts.components.releases]
    named += [(patch.package, patch.cuda) for patch in facts.components.patches]
    toolkits = facts.toolkits
    for name, cuda in named:
        if cuda not in toolkits:
            yield breach("cuda_components", name, f"CUDA {cuda} is not in cuda.toml")


def driver_floors_do_not_fall(facts: Facts) -> Iterator[str]:
    """The driver a toolkit needs is never older than the one an older toolkit needs, on Linux and on Windows.

    A driver runs what older drivers run, so a newer toolkit cannot need less. Such a row is a misread table.
    """
    yield from _falls(facts, "floor", windows=False)
    yield from _falls(facts, "floor", windows=True)


def full_drivers_do_not_fall(facts: Facts) -> Iterator[str]:
    """The driver that supports a toolkit in full is never older than the one for an older toolkit.

    Each toolkit comes with a driver of its time. Loading checks that it is not older than the toolkit's own floor.
    """
    yield from _falls(facts, "full", windows=False)
    yield from _falls(facts, "full", windows=True)


def driver_branches_ascend_with_their_cuda(facts: Facts) -> Iterator[str]:
    """Every branch of the driver is listed once, and a newer one supports at least the CUDA of an older one."""
    branches = sorted(facts.cuda.branches, key=lambda branch: branch.branch)
    for older, newer in pairwise(branches):
        where = f"driver_branch {newer.branch}"
        if newer.branch == older.branch:
            yield breach("cuda", where, "appears twice")
        if newer.cuda < older.cuda:
            yield breach(
                "cuda", where, f"supports CUDA {newer.cuda}, less than {older.cuda} of the older {older.branch}"
            )


def first_releases_belong_to_their_branch(facts: Facts) -> Iterator[str]:
    """The first release of a driver branch begins with its number, or on Windows with one before the next branch.

    R580 continues as 581 and 582 on Windows.
    """
    newest = max((branch.branch for branch in facts.cuda.branches), default=0)
    for branch in facts.cuda.branches:
        if branch.first_linux is not None and branch.first_linux.parts[0] != branch.branch:
            yield breach("cuda", f"driver_branch {branch.branch}", f"first_linux {branch.first_linux} is of another")
        windows = branch.first_windows
        if windows is None:
            continue
        too_new = branch.branch != newest and windows.parts[0] >= facts.cuda.after(branch.branch)
        if windows.parts[0] < branch.branch or too_new:
            yield breach("cuda", f"driver_branch {branch.branch}", f"first_windows {windows} is of another")


def gpu_generations_begin_before_they_end(facts: Facts) -> Iterator[str]:
    """A GPU generation is listed once, and its first toolkit and driver branch are not newer than its last."""
    seen = set()
    for row in raw_rows(facts.documents["cuda"], "architecture"):
        where = f"architecture {row['capability']}"
        if row["capability"] in seen:
            yield breach("cuda", where, "appears twice")
        seen.add(row["capability"])
        for key in ("first_cuda", "last_cuda"):
            if key in row and _toolkit(row, key) is None:
                yield breach("cuda", where, f"{key} {row[key]} is not a CUDA version such as 12.6")
        first, last = _toolkit(row, "first_cuda"), _toolkit(row, "last_cuda")
        if first is not None and last is not None and first > last:
            yield breach("cuda", where, f"first_cuda {first} is newer than last_cuda {last}")
        begins, ends = row.get("first_branch"), row.get("last_branch")
        if isinstance(begins, int) and isinstance(ends, int) and begins > ends:
            yield breach("cuda", where, f"first_branch {begins} is newer than last_branch {ends}")


def toolkits_compile_for_generations_of_their_time(facts: Facts) -> Iterator[str]:
    """A toolkit compiles for a generation exactly from its first_cuda to its last_cuda.

    Both describe the same compiler, so if they differ one of them is wrong.
    """
    for row in raw_rows(facts.documents["cuda"], "architecture"):
        first, last = _toolkit(row, "first_cuda") or _FIRST, _toolkit(row, "last_cuda") or _LAST
        for toolkit in facts.cuda.toolkits:
            compiles = str(row["capability"]) in map(str, toolkit.compiles_for)
            if compiles is not (first <= toolkit.version <= last):
                what = f"{'is' if compiles else 'is not'} in compiles_for of CUDA {toolkit.version}"
                lives = f"first_cuda {row.get('first_cuda')}, last_cuda {row.get('last_cuda', 'none')}"
                yield breach("cuda", f"architecture {row['capability']}", f"{what}, against {lives}")


def capabilities_have_a_generation(facts: Facts) -> Iterator[str]:
    """Every compute capability in gpus.toml, pci_ids.toml and compiles_for has a row among the generations.

    The generation says which drivers and toolkits support the GPU. Without it the GPU would count as unknown.
    """
    known = {life.capability for life in facts.cuda.architectures}
    for model in facts.gpus:
        for capability in set(model.capabilities) - known:
            yield breach("gpus", f"gpu {model.name!r}", f"cuda.toml has no architecture {capability}")
    for device, (name, capability) in facts.pci_ids.items():
        if capability not in known:
            yield breach("pci_ids", f"device {device} ({name})", f"cuda.toml has no architecture {capability}")
    for toolkit in facts.cuda.toolkits:
        for capability in set(toolkit.compiles_for) - known:
            yield breach("cuda", f"toolkit {toolkit.version}", f"there is no architecture {capability}")


def a_product_stands_once(facts: Facts) -> Iterator[str]:
    """A product name is listed once, and its capability is one of its capabilities if several chips had the name."""
    seen = set()
    for row in raw_rows(facts.documents["gpus"], "gpu"):
        where = f"gpu {row['name']!r}"
        if row["name"] in seen:
            yield breach("gpus", where, "appears twice")
        seen.add(row["name"])
        several = row.get("capabilities")
        if isinstance(several, list) and row["capability"] not in several:
            yield breach("gpus", where, f"capability {row['capability']} is not among capabilities")


def cudnn_rows_stand_newest_first_and_once(facts: Facts) -> Iterator[str]:
    """Rows of cuDNN are listed newest first, each version once for a CUDA major."""
    rows = raw_rows(facts.documents["cudnn"], "release")
    keys = [(Version(str(row["version"])), row["cuda_major"]) for row in rows]
    for (above, _), (below, major) in pairwise(keys):
        if below > above:
            yield breach("cudnn", f"release {below} (CUDA {major})", f"is below the older {above}")
    for key in dict.fromkeys(keys):
        if keys.count(key) > 1:
            yield breach("cudnn", f"release {key[0]} (CUDA {key[1]})", "appears twice")


def cudnn_code_lies_in_the_vendors_range(facts: Facts) -> Iterator[str]:
    """The code read from a cuDNN, for any processor, lies from the vendor's min_capability to max_capability's family.

    Code outside would mean that one of the two was misread.
    """
    for row in facts.cudnn:
        if row.oldest > row.newest:
            yield breach("cudnn", _cudnn(row.version, row.cuda_major), f"{row.oldest} is newer than {row.newest}")
        read = [code for code in (row.code, row.code_aarch64) if code is not None]
        for target in sorted({target for code in read for target in (*code.sass, *code.ptx)}):
            if target.capability < row.oldest or target.capability.major > row.newest.major:
                what = f"has code for {target}, outside of {row.oldest} to {row.newest}"
                yield breach("cudnn", _cudnn(row.version, row.cuda_major), what)


def cudnn_is_for_a_cuda_that_is_known(facts: Facts) -> Iterator[str]:
    """Every cuDNN is for a CUDA major that cuda.toml has."""
    majors = {toolkit.version.major for toolkit in facts.cuda.toolkits}
    for row in facts.cudnn:
        if row.cuda_major not in majors:
            yield breach("cudnn", _cudnn(row.version, row.cuda_major), f"there is no CUDA {row.cuda_major}")


PLATFORMS: tuple[Law, ...] = (
    toolkits_stand_newest_first_and_once,
    components_belong_to_a_known_toolkit,
    driver_floors_do_not_fall,
    full_drivers_do_not_fall,
    driver_branches_ascend_with_their_cuda,
    first_releases_belong_to_their_branch,
    gpu_generations_begin_before_they_end,
    toolkits_compile_for_generations_of_their_time,
    capabilities_have_a_generation,
    a_product_stands_once,
    cudnn_rows_stand_newest_first_and_once,
    cudnn_code_lies_in_the_vendors_range,
    cudnn_is_for_a_cuda_that_is_known,
)


def _toolkit(row: RawRow, key: str) -> CudaVersion | None:
    """The CUDA version at ``key``, or None if it is absent or invalid."""
    try:
        return CudaVersion.parse(str(row[key]))
    except (KeyError, ValueError):
        return None


def _cudnn(version: Version, cuda_major: int) -> str:
    return f"release {version} (CUDA {cuda_major})"


def _falls(facts: Facts, kind: str, *, windows: bool) -> Iterator[str]:
    older: tuple[CudaVersion, DriverVersion] | None = None
    for toolkit in reversed(facts.cuda.toolkits):
        driver = toolkit.floor(windows=windows) if kind == "floor" else toolkit.full(windows=windows)
        if driver is None:
            continue
        if older is not None and not driver.meets(older[1]):
            key = f"{'windows' if windows else 'linux'}_{kind}"
            yield breach("cuda", f"toolkit {toolkit.version}", f"{key} {driver} is older than {older[1]} of {older[0]}")
        older = (toolkit.version, driver)
