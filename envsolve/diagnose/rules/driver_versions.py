"""Rules on a driver of two versions, and on forward compatibility."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.driver_ability import ability, driver_is, full_of, gpu_fields, life
from envsolve.diagnose.rules.roots import Fields, seen_in
from envsolve.model.versions import DriverVersion


def version_mismatch(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Kernel module and libraries of two versions: an update without a restart, or a library from elsewhere."""
    told = merged(sightings)
    if "by_driver" not in told and "forward-compatibility-unsupported" in seen_in(case):
        return
    fields = _versions(case, told)
    mismatch = Cause("driver-version-mismatch", fields, evidence=tuple(it.line for it in case.of("driver-packages")))
    compat = Cause("stale-compat-library", {**fields, **_limits(case, fields), **gpu_fields(case)})
    if "by_driver" in told:
        own = (Cause("driver-in-container", fields),) if _inside_container(case, sightings) else ()
        causes: tuple[Cause, ...] = (*own, mismatch)
    elif case.container or _library_is_of_newer_branch(fields):
        causes = (compat, mismatch)
    else:
        causes = (mismatch, compat)
    yield Diagnosis(causes, sightings)


_ON_THE_HOST = re.compile(r"nvidia-container|runc|OCI runtime|hook #", re.IGNORECASE)
"""What starts containers, and runs on the host."""


def _inside_container(case: Case, sightings: tuple[Sighting, ...]) -> bool:
    """Whether it was said inside a container, not by what starts one, nor by a kernel."""
    plain = (it for it in sightings if it.get("by_driver"))
    return case.container and all(not (_ON_THE_HOST.search(it.line) or it.get("kernel")) for it in plain)


def _versions(case: Case, told: Mapping[str, str]) -> Fields:
    """The versions of kernel module and libraries, as far as they are told."""
    parts = merged(case.of("driver-packages"))
    fields: Fields = {name: it for name in ("kernel", "library") if (it := told.get(name) or parts.get(name))}
    if "library" not in fields and "package" in parts:
        fields["library"] = parts["package"]
    others = [it for it in case.every("driver") if not _is_of(it, fields.get("library", ""))]
    if "library" in fields and "kernel" not in fields and others:
        fields["kernel"] = others[0]
    if "kernel" not in fields and "library" in fields:
        fields["versions"] = f"The driver's libraries are {fields['library']}."
    elif "kernel" in fields and "library" not in fields:
        fields["versions"] = f"The kernel module is {fields['kernel']}."
    elif "kernel" in fields:
        if _older(fields["library"], fields["kernel"]):
            fields["how"] = (
                "Here the library is the older of the two: the driver was updated, and a library of the former one is "
                "still found first (left by a runfile installation, another package, an image, or on LD_LIBRARY_PATH)."
            )
            fields["mend"] = (
                f"Remove the libraries of {fields['library']} (ldconfig -p | grep libcuda shows where they lie; a "
                "runfile installation goes with nvidia-uninstall); a restart alone does not help."
            )
        fields["versions"] = f"The kernel module is {fields['kernel']}, the driver's libraries are {fields['library']}."
    return fields


def _is_of(version: str, library: str) -> bool:
    """Whether a version is that of the library, of which NVML leaves the third number out: 535.129 of 535.129.03."""
    return f"{version}.".startswith(f"{library}.")


def _older(one: str, other: str) -> bool:
    """Whether a driver version is of an older branch than another one."""
    return int(one.partition(".")[0]) < int(other.partition(".")[0])


def _library_is_of_newer_branch(fields: Mapping[str, str]) -> bool:
    """Whether the library is of a newer branch than the module: the way of a forward-compatibility package."""
    kernel, library = fields.get("kernel", ""), fields.get("library", "")
    return bool(kernel and library) and int(library.partition(".")[0]) > int(kernel.partition(".")[0])


def _limits(case: Case, fields: Mapping[str, str]) -> Fields:
    """The CUDA that the kernel module's own driver supports, and that no newer one may be for the GPU."""
    found: Fields = {}
    try:
        kernel = DriverVersion.parse(fields.get("kernel", ""))
    except ValueError:
        return found
    cuda = case.knowledge.cuda_of(kernel)
    if cuda is not None:
        found["limit"] = f" (CUDA {cuda} or older)"
        found["kernel_words"] = f" {kernel}"
    last = life(case, case.capability)[2]
    found["ends"] = "" if last is None else f" (R{last} is the last branch for this GPU)"
    return found


def compat_unsupported(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 804: a forward-compatibility library on a GPU that has none; or a driver updated without a restart."""
    if any(it.get("by_driver") for it in case.of("driver-version-mismatch")):
        return
    can = ability(case)
    fields: Fields = {"driver_is": driver_is(case, can), **gpu_fields(case)}
    shown = case.driver_cuda
    asked = next((it for it in (case.built_cuda, case.toolkit) if it is not None and can and it > can.full), None)
    if can is not None and case.driver is not None:
        fields["native"] = str(can.full)
        if shown is not None and shown > can.full:
            fields["shown"] = str(shown)
            asked = shown
    if asked is not None:
        fields |= {"image": f"The image is for CUDA {asked}.", "full": f" to {full_of(case, asked)} or newer"}
    versions = _versions(case, merged(case.of("driver-version-mismatch")))
    causes = [Cause("forward-compatibility-unsupported", fields)]
    if not case.container and "shown" not in fields:
        causes.insert(0 if case.saw("bare-metal") else 1, Cause("driver-version-mismatch", versions))
    yield Diagnosis(tuple(causes), (*sightings, *case.of("driver-version-mismatch")))


RULES: Mapping[str, Rule] = {
    "driver-version-mismatch": version_mismatch,
    "forward-compatibility-unsupported": compat_unsupported,
}
