"""Rules on what compiles or carries kernels of its own: XLA, Numba, PTX, bitsandbytes, RAPIDS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.facts.library_names import Owner, owner_of
from envsolve.diagnose.rules.named import known, version_of_package
from envsolve.model.host import Platform


def libdevice(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Libdevice and NVVM: for XLA and for Numba the remedies differ."""
    numba = tuple(it for it in sightings if {"numba", "numba_error", "numba_table"} & {*it.fields})
    others = tuple(it for it in sightings if it not in numba)
    if numba:
        if any(it.get("numba_table") for it in numba):
            yield Diagnosis((Cause("numba-toolkit-unknown"),), numba)
            return
        missing = next((it.get("numba") for it in numba if it.get("numba")), None)
        yield Diagnosis((Cause("numba-without-nvvm", known(numba=missing)),), numba)
    if others:
        searched = "XLA looks in the current directory, in /usr/local/cuda and in the environment's packages."
        yield Diagnosis((Cause("libdevice-missing", {"searched": searched}),), others)


def ptxas(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Ptxas that is not found: fatal where the program says so, else the driver compiles."""
    if case.saw("ptxas-too-old"):
        return
    harmless = case.saw("harmless-ptxas") and not any(it.get("fatal") for it in sightings)
    yield Diagnosis((Cause("ptxas-missing-harmless" if harmless else "ptxas-missing"),), sightings)


_BEHIND_A_REMARK = 20
"""The lines of the traceback that xFormers writes behind its remark that Triton is optional."""


def no_triton(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Triton that an import misses, unless the package says itself that it goes on without."""
    remarks = [it.number for it in case.of("harmless-optional") if "triton" in it.line.lower()]
    fatal = tuple(it for it in sightings if not any(0 <= it.number - at <= _BEHIND_A_REMARK for at in remarks))
    if fatal:
        yield Diagnosis((Cause("triton-missing"),), fatal)


def bitsandbytes(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The library that bitsandbytes lacks, with the CUDA in its name; what that needs in turn is told by its name."""
    fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    looked = tuple(it for it in case.of("cuda-libraries-not-found") if "libcudart" in it.line)
    version = version_of_package(case, "bitsandbytes")
    if fields.get("of_linux"):
        words = known(of_linux=fields["of_linux"], bnb_version=version)
        yield Diagnosis((Cause("bitsandbytes-of-linux", words),), (*sightings, *looked))
        return
    if fields.get("elf") or (case.platform in _MACS and not case.gpus and case.driver is None):
        words = known(elf=fields.get("elf"), bnb_version=version)
        yield Diagnosis((Cause("bitsandbytes-on-mac", words),), (*sightings, *looked))
        return
    library = fields.get("library") or fields.get("missing")
    number = re.search(r"cuda(\d{2})(\d)", library or "")
    cuda = f"{number[1]}.{number[2]}" if number else None
    if cuda is None and any(owner_of(it.get("library") or "") is Owner.CUDA for it in case.of("library-missing")):
        return
    words = known(
        library=library if cuda else None,
        bitsandbytes=None if cuda or looked else "bitsandbytes",
        looked=None if cuda or not looked else "bitsandbytes",
        cuda_words=cuda and f"CUDA {cuda}",
        version_words=f" (bitsandbytes {version})" if version else "; bitsandbytes is too old or was built without it",
        function=fields.get("function"),
        other_cuda={"13": "130", "12": "126", "11": "118"}.get(cuda.partition(".")[0]) if cuda else None,
    )
    yield Diagnosis((Cause("bitsandbytes-without-cuda", words),), (*sightings, *looked))


_MACS = (Platform.OSX_64, Platform.OSX_ARM64)


def rapids(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The GPU that RAPIDS wants, and the one that is there."""
    fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    if "gpu_found" not in fields and case.gpus and case.capability is not None:
        fields |= {"gpu_found": case.gpus[0], "capability_found": str(case.capability)}
    yield Diagnosis((Cause("rapids-gpu-too-old", fields),), sightings)


RULES: Mapping[str, Rule] = {
    "libdevice-missing": libdevice,
    "ptxas-missing": ptxas,
    "triton-not-installed": no_triton,
    "bitsandbytes-binary": bitsandbytes,
    "rapids-gpu": rapids,
}
