"""Suggestions that a requirement contradicts: it must be changed first, and no option can do that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envsolve.app.packages.conda_requirements import is_environment_file, requirements_on
from envsolve.app.packages.lock_frameworks import cuda_majors_in
from envsolve.app.packages.requirements import Requirements
from envsolve.app.request.refusal import OTHER_VERSIONS
from envsolve.app.request.targets import Target
from envsolve.errors import Hint
from envsolve.frameworks import FRAMEWORK_OF_CONDA, FRAMEWORK_OF_WHEEL
from envsolve.model.cuda_packages import CUDA_PACKAGES, CUDATOOLKIT
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.prose import sentence_list

_OTHER_CUDA = ("other-cuda", "any-release")
_BOUNDED: dict[str, tuple[str, ...]] = {
    "python": ("other-python",),
    **dict.fromkeys(CUDA_PACKAGES, ("other-cuda",)),
    **dict.fromkeys(FRAMEWORK_OF_CONDA, OTHER_VERSIONS),
}
"""The kinds of hints that the version of a conda package contradicts."""


Bound = tuple[tuple[str, ...], str]
"""A requirement that limits the stack: the kinds of hints that it contradicts, and its text."""


def without_contradictions(hints: Iterable[Hint], bounds: Iterable[Bound]) -> Iterator[Hint]:
    """Yield ``hints``; one that a requirement contradicts says to change that, instead of its command."""
    bounds = tuple(bounds)
    for hint in hints:
        limiting = dict.fromkeys(text for kinds, text in bounds if hint.kind in kinds)
        yield Hint(f"{hint.text}: change {sentence_list(limiting)}", kind=hint.kind) if limiting else hint


def bounds_on_frameworks(requirements: Requirements) -> Iterator[Bound]:
    """The requirements that limit frameworks, or their CUDA, by the names and extras of their wheels."""
    for need, origin in requirements.needs:
        if need.specifier and need.name in FRAMEWORK_OF_WHEEL:
            yield OTHER_VERSIONS, f"{need} ({origin})"
        majors = [*cuda_majors_in(need)] if need.name in FRAMEWORK_OF_WHEEL else []
        if majors:  # None is any CUDA
            yield ("cpu", *(_OTHER_CUDA if any(majors) else ())), f"{need} ({origin})"


def bounds_on_stack(target: Target) -> Iterator[Bound]:
    """The requirements of ``target``, also on conda packages, that limit its stack."""
    packages = target.request.packages
    requirements = requirements_on(packages, target.problem.platform)
    files = sentence_list(filter(is_environment_file, packages.files))
    for it in requirements.conda:
        spec = parse_match_spec(it.spec)
        if spec.version or spec.name == CUDATOOLKIT:
            yield _BOUNDED.get(spec.name, ()), f"{it.spec} in {files}"
    if requirements.python:
        yield from bounds_on_frameworks(requirements.python)
