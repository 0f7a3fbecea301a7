"""Rules on what a container image asks of the host's driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.driver_ability import (
    FIRST_WITH_MINOR_COMPATIBILITY,
    ability,
    cuda_in,
    driver_is,
    full_of,
    runs,
    windows_numbers,
)
from envsolve.diagnose.rules.roots import Fields
from envsolve.model.versions import CudaVersion


def too_old_for_image(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What a container image asks of the host's driver: in full, though minor-version compatibility would do."""
    fields: Fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    if "what" not in fields and "wanted_driver" not in fields:
        return
    text = fields.pop("wanted", "") if fields.get("what") != "cuda" else fields.get("wanted", "")
    wanted = cuda_in(fields.get("image") or (text if fields.get("what") == "cuda" else ""))
    if fields.get("what") not in (None, "cuda"):
        fields["condition"] = f"{fields['what']} {fields.get('operator', '')} {text}".strip()
    can = ability(case)
    fields["driver_is"] = driver_is(case, can)
    if wanted is not None:
        fields |= {
            "wanted": str(wanted),
            "full": full_of(case, wanted),
            "full_windows": _windows_full(case, wanted),
            "minor": _minor_words(case, wanted),
        }
        if not windows_numbers(case):
            fields["full"] = str(case.knowledge.full_driver(wanted) or "")
        fields["full_linux"] = str(case.knowledge.full_driver(wanted) or "")
    elif "wanted_driver" in fields:
        fields["full"] = fields["wanted_driver"]
    if can is not None:
        fields["older_image"] = f" (CUDA {can.full} or older)"
    yield Diagnosis((Cause("driver-too-old-for-image", fields),), sightings)


def _windows_full(case: Case, cuda: CudaVersion) -> str:
    full = case.knowledge.full_driver(cuda, windows=True)
    return "" if full is None else str(full)


def _minor_words(case: Case, wanted: CudaVersion) -> str:
    """That the check can be switched off, where the driver would run the image all the same."""
    floor = case.knowledge.driver_floor(wanted, windows=windows_numbers(case))
    if floor is None or wanted.major < FIRST_WITH_MINOR_COMPATIBILITY:
        return ""
    can = ability(case)
    if can is not None and not runs(can.full, wanted):
        return ""
    return (
        f"A driver of {floor} or newer runs machine code for every CUDA {wanted.major} (minor-version compatibility): "
        "then `docker run -e NVIDIA_DISABLE_REQUIRE=1` skips the check; only PTX needs the newer driver."
    )


RULES: Mapping[str, Rule] = {
    "driver-too-old-for-image": too_old_for_image,
}
