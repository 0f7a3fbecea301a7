"""Rules on conda's virtual package of the driver, __cuda."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.driver_ability import ability, cuda_in, floor_of
from envsolve.diagnose.rules.roots import Fields


def conda_cuda(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What conda says of its virtual package of the driver: lower than asked, missing, or only mentioned."""
    wanted = max((it for it in map(cuda_in, _values(sightings, "wanted")) if it is not None), default=None)
    found = next((it for it in map(cuda_in, _values(sightings, "found")) if it is not None), None)
    if found is None and (can := ability(case)) is not None:
        found = can.full
    fields: Fields = {}
    if wanted is not None:
        floor = floor_of(case, wanted)
        fields |= {
            "wanted": str(wanted),
            "wanted_words": f" {wanted} or higher",
            "floor": floor,
            "floor_windows": str(case.knowledge.driver_floor(wanted, windows=True) or ""),
            "floor_words": f"CUDA {wanted} needs driver {floor} or newer.",
        }
    if found is not None:
        fields["found"] = str(found)
    too_low = Cause("conda-cuda-too-low", fields, Remedy(cuda=None if found is None else f"<={found}"))
    if found is None:
        yield Diagnosis((Cause("conda-cuda-missing", fields),), sightings)
    elif wanted is None:
        yield Diagnosis((Cause("conda-conflict-not-driver", fields), too_low), sightings)
    elif wanted > found:
        yield Diagnosis((too_low,), sightings)
    else:
        yield Diagnosis((Cause("conda-conflict-not-driver", fields),), sightings)


def _values(sightings: tuple[Sighting, ...], name: str) -> Iterator[str]:
    yield from (value for it in sightings if (value := it.get(name)) is not None)


RULES: Mapping[str, Rule] = {
    "conda-cuda": conda_cuda,
}
