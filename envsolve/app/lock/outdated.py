"""The refusal of an answer in which a requested package is long out of date."""

from __future__ import annotations

from envsolve.app.lock.lock_notes import Resolved
from envsolve.app.lock.lock_refusal import refusal, requiring
from envsolve.app.lock.target_search import TargetSearch
from envsolve.errors import UnsolvableError
from envsolve.model.need import is_limited
from envsolve.model.request import Request
from envsolve.resolve.closure.behind import Behind

OUTDATED = "outdated"
"""The error code for an answer in which a requested package is long out of date."""
_MANY_MONTHS = 18


def _outdated(
    old: Behind, refused: UnsolvableError | None, request: Request, *, source: bool = False
) -> UnsolvableError:
    """The error if the newest version that fits is long out of date. ``refused`` says why newer ones do not fit.

    ``source`` means that this version has only a source distribution.
    """
    assert old.months is not None
    causes = () if refused is None else (refused.message, *(step.requirement for step in refused.conflict))
    causes = (*old.limited_by, f"{old.name} {old.version} has only a source distribution") if source else causes
    why = requiring(old.name, f">={old.newest}", "show why the newest does not fit", request)
    return refusal(
        OUTDATED,
        f"the newest {old.name} that fits this request is {old.version}, {old.months:.0f} months older than "
        f"{old.newest}",
        causes,
        (
            *(() if source else (why,) if refused is None else refused.hints),
            requiring(old.name, f"=={old.version}", "use it anyway", request),
        ),
    )


def require_recent(made: Resolved, search: TargetSearch) -> None:
    """Raise UnsolvableError if the newest version of a requested package that fits is long out of date.

    An old version is accepted if another package requires it, if the request limits versions, if the machine runs only
    old releases of its framework, or if the existing lock has it. Two cases are refused anyway, as the old version was
    not made for this stack: a version from before the package began to limit its framework, next to a framework of
    years later; and source of years ago instead of wheels that do not suit the GPU or the stack.
    """
    request, wanted, existing = search.lock_request.request, search.wanted, search.versions
    of_stack = {it.package for it in made.attempt.releases}
    behind = (it for it in made.found.behind if not it.limited_by and it.name not in of_stack)
    old = [it for it in behind if (it.months or 0) > _MANY_MONTHS and it.version != existing.get(it.name)]
    typed = [need for need, _ in (*wanted.needs, *wanted.constraints)]
    limited = {need.name for need in typed if is_limited(need.specifier)}
    is_old_stack = any(made.found.months.get(it, 0) > _MANY_MONTHS for it in of_stack)
    source = {it.name for it in made.found.pins if not it.files[0].is_wheel}
    if not request.packages.allow_builds and not is_old_stack:
        for it in made.found.behind:
            is_far = (it.months or 0) > _MANY_MONTHS and it.version != existing.get(it.name)
            if is_far and it.is_of_stack and it.name in source - limited:
                raise _outdated(it, None, request, source=True)
    of_request = (request.python, request.cuda, request.packages.exclude_newer)
    is_bounded = (
        bool(limited)
        or any(it is not None for it in of_request)
        or any(is_limited(str(it.specifier)) for it in request.frameworks)
        or is_old_stack
    )
    outgrown = {it.name for it in made.found.unlimited if it.is_outgrown} - limited
    if outgrown or is_bounded:
        old = [it for it in made.found.behind if it.name in outgrown and it.months is not None]
    if old:
        raise _outdated(old[0], search.refusal_of(made.attempt, {old[0].name: old[0].newest}), request)
