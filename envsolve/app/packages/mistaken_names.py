"""Requirements with a name that people use for a framework and that is not its package, such as ``pytorch``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from packaging.specifiers import SpecifierSet

from envsolve.app.packages.requirements import Requirements
from envsolve.app.request.command import command_of
from envsolve.errors import Hint, Refused, UnsolvableError
from envsolve.frameworks import FRAMEWORKS
from envsolve.index.requirement_file import place_of
from envsolve.model.need import Need, parse_need
from envsolve.model.reference import gives_address
from envsolve.model.request import FrameworkRequest, Request

_MEANT = {name: it for it in FRAMEWORKS.values() for name in it.mistaken}


def require_names_of_packages(wanted: Requirements, request: Request, holds: Callable[[str], bool]) -> None:
    """Raise UnsolvableError for a name of a framework that is not, or no longer, its package.

    ``pytorch`` on the index belongs to others, and ``tensorflow-gpu`` ends with 2.11, whose CUDA no wheel has.
    """
    named = [(need, origin) for need, origin in wanted.needs if need.name in _MEANT and not need.url]
    mistaken = [(need, origin) for need, origin in named if holds(need.marker)]
    if not mistaken:
        return
    meant = [_MEANT[need.name] for need, _ in mistaken]
    texts = [
        f"{need.name} is not the package of {it.title}, which is {it.wheels[0]}"
        for (need, _), it in zip(mistaken, meant, strict=True)
    ]
    causes = tuple(f"{need} was requested by {origin}" for need, origin in mistaken)
    refused = tuple(
        Refused(need.name, place_of(origin, need.name), text)
        for (need, origin), text in zip(mistaken, texts, strict=True)
    )
    settings = " and ".join(dict.fromkeys(request.requester.setting("frameworks", it.name) for it in meant))
    hint = Hint(f"request the framework with {settings}", _command_for([need for need, _ in mistaken], request))
    raise UnsolvableError("package-not-found", "; ".join(dict.fromkeys(texts)), causes, (hint,), refused=refused)


def _command_for(mistaken: Sequence[Need], request: Request) -> str | None:
    """The command with frameworks instead of requirements with their names; None if these cannot say the same.

    A name that a framework had shares its versions, and ``pytorch-cuda`` has those of CUDA.
    """
    packages = request.packages
    typed = [(it, parse_need(it)) for it in packages.requirements if not gives_address(it)]
    has_versions = [it for it in mistaken if it.specifier]
    if (
        request.requester.file
        or {*mistaken} - {need for _, need in typed}
        or any(it.marker for it in mistaken)
        or any(it.name not in (_MEANT[it.name].name, *_MEANT[it.name].rivals) for it in has_versions)
    ):
        return None
    meant = {it.framework: it.specifier for it in request.frameworks}
    for need in mistaken:
        name = _MEANT[need.name].name
        meant[name] = meant.get(name, SpecifierSet()) & SpecifierSet(need.specifier)
    rest = tuple(it for it in packages.requirements if gives_address(it) or parse_need(it) not in mistaken)
    frameworks = tuple(FrameworkRequest(*it) for it in meant.items())
    return command_of(request._replace(frameworks=frameworks, packages=packages._replace(requirements=rest)))
