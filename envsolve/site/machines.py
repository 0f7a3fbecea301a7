"""The machines that a request can be for, as far as a rule of the solver distinguishes them.

For a GPU its compute capability matters, and whether NVIDIA's forward compatibility supports it. For a driver it
matters which limits it meets. So hundreds of products and all drivers become some dozens of kinds of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from envsolve.errors import UsageError
from envsolve.matrix.load import Matrix
from envsolve.matrix.names import gpu_rows
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.resolve.fleet import driver_limits

PLATFORMS = (Platform.LINUX_64, Platform.LINUX_AARCH64, Platform.WIN_64)
"""The platforms with GPU builds."""
DRIVER = "@driver@"
"""The placeholder for a driver in the texts of an answer; a shell word that needs no quotes."""
_PARTS = 3


class GpuKind(NamedTuple):
    """Products that no rule distinguishes; with ``forward`` a data-centre GPU, which can use the packages cuda-compat.

    A GPU that is only named by its compute capability belongs to the kind without. That kind may have no products.
    """

    capability: ComputeCapability
    forward: bool
    products: tuple[str, ...]

    @property
    def example(self) -> str:
        """The longest name, which no other text contains by chance, or the compute capability."""
        return max(self.products, key=len, default=str(self.capability))


def gpu_kinds(matrix: Matrix) -> tuple[tuple[GpuKind, ...], Mapping[str, UsageError]]:
    """Every kind of GPU, the newest first, and the ambiguous product names, each with its error."""
    kinds: dict[tuple[ComputeCapability, bool], list[str]] = {
        (it.capability, False): [] for it in matrix.cuda.architectures
    }
    ambiguous: dict[str, UsageError] = {}
    for name in sorted({str(row["name"]) for row in gpu_rows(matrix.document("gpus"))}):
        try:
            (capability,) = matrix.gpus.find(name).capabilities
        except UsageError as error:
            ambiguous[name] = error
            continue
        forward = any(it.serves(name) for it in matrix.cuda.forward)
        kinds.setdefault((capability, forward), []).append(name)
    return tuple(GpuKind(*key, tuple(kinds[key])) for key in sorted(kinds, reverse=True)), ambiguous


def driver_steps(kind: GpuKind, matrix: Matrix, platform: Platform) -> tuple[tuple[int, ...], ...]:
    """The first driver of each range in which all rules give a GPU the same answer; the first one is older than all."""
    life = matrix.cuda.life_of(kind.capability)
    limits = driver_limits(matrix.cuda, [] if life is None else [life], windows=platform.is_windows)
    named = {it.parts for it in limits}
    if kind.forward and platform.is_linux:
        branches = {branch for it in matrix.cuda.forward for _, of_one in it.branches for branch in of_one}
        named |= {(number,) for branch in branches for number in (branch, branch + 1)}
    whole = {(*parts, *(0,) * (_PARTS - len(parts))) for parts in named}
    return (0,) * _PARTS, *sorted(whole)


def all_driver_steps(kinds: Iterable[GpuKind], matrix: Matrix, platform: Platform) -> tuple[tuple[int, ...], ...]:
    """The steps of every kind of GPU."""
    return tuple(sorted({step for kind in kinds for step in driver_steps(kind, matrix, platform)}))
