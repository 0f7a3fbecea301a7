"""Rules on PTX and calls that are newer than the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.driver_ability import ability, ability_for, cuda_in, driver_is, full_of
from envsolve.diagnose.rules.roots import Fields
from envsolve.model.versions import CudaVersion

_PTX = {
    "6.0": "9.0",
    "6.1": "9.1",
    "6.2": "9.2",
    "6.3": "10.0",
    "6.4": "10.1",
    "6.5": "10.2",
    **{f"7.{minor}": f"11.{minor}" for minor in range(9)},
    **{f"8.{minor}": f"12.{minor}" for minor in range(6)},
    "8.6": "12.7",
    "8.7": "12.8",
    "8.8": "12.9",
    **{f"9.{minor}": f"13.{minor}" for minor in range(5)},
}
"""The CUDA that came with each version of PTX: docs.nvidia.com/cuda/parallel-thread-execution, release notes."""


def ptx_too_new(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """PTX that the driver's compiler does not read, by the versions of PTX where they are told."""
    fields: Fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    made, reads = _PTX.get(fields.get("made", "")), _PTX.get(fields.get("reads", ""))
    can = ability(case)
    if can is None and reads is not None:
        can = ability_for(case, CudaVersion.parse(reads))
    source = cuda_in(made) or next(
        (it for it in (case.built_cuda, case.toolkit) if it is not None and (can is None or it > can.full)), None
    )
    if made is not None and reads is not None:
        fields |= {"ptx": fields["made"], "made": f"CUDA {made}", "reads_cuda": f"CUDA {reads}"}
    else:
        fields.pop("reads", None)
    fields |= {"driver_is": driver_is(case, can), "toolkits": "cudatoolkit or cuda-version"}
    if case.driver is None and fields.get("reads"):
        fields["driver_is"] = ""
    if source is not None:
        fields |= {"from": str(source), "full": full_of(case, source), "or_newer": " or newer"}
        fields["full_words"] = f"CUDA {source} is supported in full from driver {full_of(case, source)} on."
    elif can is not None:
        fields["full_words"] = f"So it is of a CUDA newer than {can.full}."
    if can is not None:
        fields["limit"] = f"CUDA {can.full}"
    if case.capability is not None:
        fields["sm"] = f" (sm_{case.capability.major}{case.capability.minor})"
    remedy = None if can is None or case.driver is not None else Remedy(cuda=f"<={can.full}")
    yield Diagnosis((Cause("ptx-too-new", fields, remedy),), sightings)


def older_than_ptx_compiler(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """XLA compiles one by one where the driver is older than its compiler: slower, nothing else."""
    fields: Fields = {**sightings[0].fields}
    made = cuda_in(fields.get("made"))
    if made is not None:
        fields["full"] = full_of(case, made)
    yield Diagnosis((Cause("driver-older-than-ptx-compiler", fields),), sightings)


def too_old_for_call(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A call that the kernel module does not know."""
    yield Diagnosis((Cause("driver-too-old-for-call", {"driver_is": driver_is(case, ability(case))}),), sightings)


RULES: Mapping[str, Rule] = {
    "ptx-too-new": ptx_too_new,
    "driver-older-than-ptx-compiler": older_than_ptx_compiler,
    "driver-too-old-for-call": too_old_for_call,
}
