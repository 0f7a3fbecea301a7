"""The GPU that a failure is about, in the fields of explanations that are not in the catalogue yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.facts.gpu_code import capability_told, first_told
from envsolve.diagnose.rules.code_reach import TOO_NEW, names_of
from envsolve.model.capability import ComputeCapability

_KNOWN = ((5, 0), (6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))


class Gpu(NamedTuple):
    """The GPU that a failure is about, as far as it is known: its name, its capability, its generation."""

    name: str | None = None
    capability: ComputeCapability | None = None
    generation: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """Its name as a field."""
        return {} if self.name is None else {"gpu": self.name}


def gpu_of(case: Case, sightings: Sequence[Sighting]) -> Gpu:
    """The GPU that the failing lines name, else the first that the case tells."""
    name = first_told(sightings, "gpu") or (case.gpus[0] if case.gpus else None)
    return Gpu(name, capability_told(case, tuple(sightings)), first_told(sightings, "generation"))


def unknown_fields(case: Case, way: str) -> dict[str, str]:
    """For want of a GPU, which ones it would be, and what these need."""
    spans = [(it, case.knowledge.cuda_for(it)) for it in map(ComputeCapability._make, _KNOWN)]
    torch = case.framework in {None, "pytorch"}
    if way == TOO_NEW:
        firsts = [f"{it} ({names_of(case, it)}) CUDA {span[0]}" for it, span in spans if span and it >= (7, 5)]
        found = {
            "unknown_gpu": "The text does not name the GPU. It is this where the GPU came after the build: RTX 30 "
            "(8.6), RTX 40 (8.9), H100 (9.0), B200 (10.0) or RTX 50 (12.0). The first CUDA that compiles for each: "
            "{firsts}. A Jetson up to Orin (Nano sm_53, Xavier sm_72, Orin sm_87) is in no ordinary build for aarch64: "
            "it needs NVIDIA's wheels for its JetPack; Thor (sm_110) is in builds for CUDA 13 (cu130) only.".replace(
                "{firsts}", "; ".join(firsts)
            )
        }
        take = "For Blackwell (RTX 50, B200) that is PyTorch 2.7 or newer for CUDA 12.8 (cu128): upgrade torch."
        return found | ({"take": take} if torch else {"take": "Upgrade it to a build that came after the GPU."})
    lasts = [f"{it} ({names_of(case, it)}) CUDA {span[1]}" for it, span in spans if span and span[1]]
    found = {
        "unknown_gpu": "The text does not name the GPU. It is this where the GPU is an old one that the build has "
        "dropped: Kepler (3.x: K80), Maxwell (5.x: GTX 9xx, M60), Pascal (6.x: GTX 10xx, P100) or Volta (7.0: V100). "
        f"The last CUDA that compiles for each: 3.7 (sm_37, Kepler) CUDA 11.8; {'; '.join(lasts)}."
    }
    take = (
        "PyTorch's cu126 builds keep sm_50 to sm_70 (Maxwell to Volta) up to 2.14; the newer ones for CUDA 12.8 and "
        "13 have dropped them."
    )
    return found | ({"take": take} if torch else {})
