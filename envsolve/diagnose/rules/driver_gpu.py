"""Rules on drivers and GPUs, or programs, that do not go together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.driver_ability import (
    ability_for,
    cuda_in,
    floor_of,
    gpu_fields,
    too_new_for_gpu,
    too_old_for_gpu,
)
from envsolve.diagnose.rules.driver_too_old import Wanted, cause_of
from envsolve.diagnose.rules.roots import Fields
from envsolve.model.versions import CudaVersion

_FIRST_NUMBER = re.compile(r"\d+")


def branch_ended(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The kernel module's own words: this GPU is left to an older branch."""
    told: Fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    if "gpu" in told:
        told["gpu"] = told["gpu"].removeprefix("NVIDIA ").strip()
    if not told.get("legacy") and not too_new_for_gpu(case):
        return
    yield Diagnosis((Cause("driver-too-new-for-gpu", {**gpu_fields(case), **told}),), sightings)


def not_supported_by_module(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The wrong variant of the kernel modules, or a driver release that does not know the GPU."""
    fields: Fields = {**gpu_fields(case), **{name: value for it in sightings for name, value in it.fields.items()}}
    known = case.knowledge.matrix.pci_ids.get(fields.get("pci", "").casefold())
    if known is not None:
        name, capability = known
        fields |= {"gpu": name, "gpu_words": f": it is a {name}, compute capability {capability}"}
    if "needs_open" in fields:
        yield Diagnosis((Cause("open-modules-needed", fields),), sightings)
    elif "driver" not in fields:
        yield Diagnosis((Cause("open-modules-on-old-gpu", fields),), sightings)
    elif too_new_for_gpu(case):
        yield Diagnosis((Cause("driver-too-new-for-gpu", fields),), sightings)
    elif too_old_for_gpu(case):
        yield Diagnosis((Cause("driver-too-old-for-gpu", fields),), sightings)
    else:
        yield Diagnosis((Cause("driver-too-old-for-gpu", fields), Cause("driver-too-new-for-gpu", fields)), sightings)


def newer_than_program(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A program that refuses drivers newer than itself, or older than it wants."""
    fields: Fields = {**sightings[0].fields}
    found, wants = cuda_in(fields.get("found")), _FIRST_NUMBER.search(fields.get("wants", ""))
    if found is not None and wants is not None and found.major < int(wants[0]):
        least = CudaVersion(int(wants[0]), 0)
        can = ability_for(case, found)
        needs = f"{fields['program']} wants a driver for {fields['wants']}: {floor_of(case, least)} or newer."
        yield Diagnosis((cause_of(case, can, Wanted(least, needs), None),), sightings)
        return
    if found is not None:
        fields["major"] = str(found.major)
        span = None if case.capability is None else case.knowledge.cuda_for(case.capability)
        if span is not None and span[1] is not None and span[1] < found:
            fields["gpu_needs"] = (
                f"The GPU has compute capability {case.capability}, for which CUDA {span[1]} is the last: it cannot "
                f"use a CUDA {found.major} toolkit."
            )
    yield Diagnosis((Cause("driver-newer-than-program", fields),), sightings)


RULES: Mapping[str, Rule] = {
    "driver-branch-ended": branch_ended,
    "gpu-not-supported-by-module": not_supported_by_module,
    "driver-newer-than-program": newer_than_program,
}
