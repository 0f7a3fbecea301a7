"""Rules on packages that choose a compiled library by the GPU: that it does not load is seldom the GPU's fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.code_coverage import Gpu, capability_from, first_told
from envsolve.diagnose.rules.code_reach import names_of

_OF_IT = re.compile(r"common_ops|sgl_kernel|libnvrtc|libcudart", re.IGNORECASE)


def binary_not_loaded(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Sgl-kernel without its operators; where the loader's own words are in the text, these are told instead."""
    if any(_OF_IT.search(it.line) for it in case.of("undefined-symbol", "library-missing")):
        return
    tried = case.of("binary-of-gpu")
    undefined = first_told(tried, "undefined")
    gpu = Gpu(None, capability_from(first_told(tried, "number")) or case.capability)
    fields = {**case.fields_of("pytorch"), **_gpu_words(case, gpu)}
    fields["undefined" if undefined else "why"] = (
        "lacks a function of PyTorch (undefined symbol)" if undefined else 'the lines after "Error details" tell which'
    )
    lines = tuple(it.line for it in tried)
    yield Diagnosis((Cause("sgl-kernel-not-loaded", fields, evidence=lines),), sightings)


def _gpu_words(case: Case, gpu: Gpu) -> dict[str, str]:
    if gpu.capability is None:
        return {}
    names = names_of(case, gpu.capability)
    return {"gpu_words": f", {gpu.capability} ({names}) among them", "sm": names.partition(",")[0]}


RULES: Mapping[str, Rule] = {
    "binary-of-gpu-not-loaded": binary_not_loaded,
}
