"""The errors if packages were found that fit, and some of them cannot be locked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.specifiers import SpecifierSet

from envsolve.app.lock.lock_refusal import NOT_ON_INDEX, build_hint, index_hint, refusal
from envsolve.app.lock.lock_worlds import Unbuilt
from envsolve.app.packages.requirements import Requirements
from envsolve.app.packages.stack_wheels import index_of, strangers
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, Refused, UnsolvableError
from envsolve.index.fitting import Interpreter
from envsolve.index.requirement_file import place_of
from envsolve.model.package import Pin
from envsolve.model.release import Release
from envsolve.model.request import Request
from envsolve.model.solution import Solution

_FEW_NAMES = 3


def stranger_refusal(release: Release, stranger: Pin, request: Request) -> UnsolvableError:
    """The error if no index has a build of ``stranger`` that works with ``release``, a build of PyTorch.

    See envsolve.app.packages.stack_wheels.strangers.
    """
    folder = without_secrets(index_of(release, request.packages) or "").rstrip("/")
    build = release.full_version.local
    named = request.requester.name_of("pytorch-index-url")
    error = refusal(
        NOT_ON_INDEX,
        f"no package index has a {stranger.name} that works with torch {release.full_version}",
        (
            f"{folder} does not have {stranger.name}",
            f"{stranger.index_url} has {stranger.name} {stranger.version}, which is not built for {build}",
        ),
        (Hint(f"name a PyTorch index or mirror that has {stranger.name} for {build} with {named}"),),
    )
    error.reasons = error.cause[:1]
    return error


def refuse_strangers(solution: Solution | None, pins: Iterable[Pin], request: Request) -> None:
    """Raise UnsolvableError if one of ``pins`` does not work with a PyTorch build of the stack."""
    for release, stranger in strangers(solution, pins, request.packages):
        raise stranger_refusal(release, stranger, request)


def unbuilt_refusal(
    unbuilt: Sequence[Unbuilt], interpreter: Interpreter, request: Request, wanted: Requirements
) -> UnsolvableError:
    """The error if packages must be built to read their requirements. Lists all of them."""
    origins = {need.name: origin for need, origin in wanted.needs}
    why = "must be built to read its requirements"
    refused = (Refused(it.name, place_of(origins[it.name], it.name), why) for it in unbuilt if it.name in origins)
    names = [f"{it.name} {it.version}".strip() for it in unbuilt]
    more = f" and {len(names) - _FEW_NAMES} more" if len(names) > _FEW_NAMES else ""
    message = (
        f"{', '.join(names[:_FEW_NAMES])}{more} must be built to read their requirements"
        if len(names) > 1
        else f"{names[0]} must be built to read its requirements"
    )
    causes = tuple(
        (f"{it.address} has no static metadata" if it.address else f"{named} has only a source distribution")
        + f" (required by {', '.join(it.askers)})"
        + (f", which leads to the index {it.leads_to}" if it.leads_to else "")
        for named, it in zip(names, unbuilt, strict=True)
    )
    python = None
    if request.python is None and not any(it.address for it in unbuilt):  # these may require other Pythons
        python = SpecifierSet(f"=={interpreter.minor_version}.*")
    hint = build_hint(request, python)
    others = dict.fromkeys(it.leads_to for it in unbuilt if it.leads_to)
    hints = (*(index_hint(it, request) for it in others), hint)
    return UnsolvableError("needs-build", message, causes, hints, refused=tuple(refused))
