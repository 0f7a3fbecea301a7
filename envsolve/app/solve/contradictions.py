"""Suggestions that a requirement contradicts: it must be changed first, and no option can do that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envsolve.app.packages.conda_requirements import CondaRequirements, is_environment_file, requirements_on
from envsolve.app.request.refusal import OTHER_VERSIONS
from envsolve.app.request.targets import Target
from envsolve.errors import Hint
from envsolve.frameworks import FRAMEWORK_OF_CONDA, FRAMEWORK_OF_WHEEL
from envsolve.model.cuda_packages import CUDA_PACKAGES, CUDATOOLKIT
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.prose import sentence_list
from envsolve.model.request import Request

_BOUNDED: dict[str, tuple[str, ...]] = {
    "python": ("other-python",),
    **dict.fromkeys(CUDA_PACKAGES, ("other-cuda",)),
    **dict.fromkeys(FRAMEWORK_OF_CONDA, OTHER_VERSIONS),
}
"""The kinds of hints that the version of a conda package contradicts."""


def without_contradictions(hints: Iterable[Hint], target: Target) -> Iterator[Hint]:
    """Yield ``hints``; one that a requirement of ``target`` contradicts says to change that, instead of its command."""
    bounds = list(_bounds(requirements_on(target.request.packages, target.problem.platform), target.request))
    for hint in hints:
        limiting = dict.fromkeys(text for kinds, text in bounds if hint.kind in kinds)
        yield Hint(f"{hint.text}: change {sentence_list(limiting)}", kind=hint.kind) if limiting else hint


def _bounds(requirements: CondaRequirements, request: Request) -> Iterator[tuple[tuple[str, ...], str]]:
    """The requirements that limit the stack, each with the kinds of hints that it contradicts."""
    files = sentence_list(filter(is_environment_file, request.packages.files))
    for it in requirements.conda:
        spec = parse_match_spec(it.spec)
        if spec.version or spec.name == CUDATOOLKIT:
            yield _BOUNDED.get(spec.name, ()), f"{it.spec} in {files}"
    for need, origin in requirements.python.needs if requirements.python else ():
        if need.specifier and need.name in FRAMEWORK_OF_WHEEL:
            yield OTHER_VERSIONS, f"{need} ({origin})"
