"""What a project asks for that a file of it was not made for, or does not hold: no index is read, nothing is solved.

A Python lock records its requests, so that each can be compared. Of any lock, each request has to be met by a pin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envsolve.app.asked_packages import Given, for_target, given
from envsolve.app.conda_asked import asked_on
from envsolve.app.held_stack import HeldStack, Installed, framework_of
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.names import conda_names
from envsolve.conda.specs import specifier_of
from envsolve.frameworks import FRAMEWORK_OF_WHEEL
from envsolve.index.fitting import Interpreter
from envsolve.lockfile.formats import CONDA_FORMATS, PYTHON_FORMATS
from envsolve.model.asker import COMMAND_LINE
from envsolve.model.host import Platform
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.need import Markers, Need, parse_need
from envsolve.model.request import Request


def asked_since(request: Request, held: HeldStack, platform: Platform, *, same_command: bool) -> Iterator[str]:
    """What of ``request`` the file was not made for, or does not hold, each as a sentence.

    ``same_command`` says that the words of the command are those it was made with, so that only what stands in files
    can differ. Raises UsageError where what the project names cannot be read.
    """
    if request.format in PYTHON_FORMATS:
        asked = given(request.packages) if same_command else _in_files(given(request.packages), request)
        unmet = dict(_unmet(asked, request, held, platform))
        yield from unmet.values()
        yield from _changed(request, asked, held, frozenset(unmet), same_command=same_command)
    elif request.format in CONDA_FORMATS:
        yield from _of_conda(request, held, platform, same_command=same_command)


def _in_files(asked: Given, request: Request) -> Given:
    """``asked`` without the requirements of the project, of which the command tells."""
    return asked._replace(needs=tuple(it for it in asked.needs if not _is_in_command(it[1], request)))


def _is_in_command(origin: str, request: Request) -> bool:
    return origin in (COMMAND_LINE, *request.packages.places)


def _changed(
    request: Request, asked: Given, held: HeldStack, told: frozenset[str], *, same_command: bool
) -> Iterator[str]:
    """How the requests differ from those that a Python lock records; with another command some are not in ``asked``."""
    recorded = (held.recorded or {}).get("request")
    if not isinstance(recorded, list):
        return
    now = {without_secrets(str(need)): (need, origin) for need, origin in asked.needs}
    frameworks = {str(it) for it in request.frameworks}
    gone = {name: it for it in map(str, recorded) if it not in now and it not in frameworks and (name := _name(it))}
    for text, (need, origin) in now.items():
        if text in recorded:
            continue
        before = gone.pop(need.name, None)
        if text in told:
            continue
        news = "which is new" if before is None else f"and it was made for {before}"
        yield f"{_who(origin, request)} asks for {text}, {news}"
    if same_command:
        yield from (f"{text} is not asked for any more" for text in gone.values())


def _unmet(asked: Given, request: Request, held: HeldStack, platform: Platform) -> Iterator[tuple[str, str]]:
    """Requirements and constraints that no pin meets, each with a sentence; those whose markers hold."""
    python = _python(held)
    if python is not None:
        asked = for_target(asked, Markers(Interpreter(python, platform).marker_values()))
    for need, origin in asked.needs:
        if python is not None or not need.marker:
            why = _against(need, held.packages, required=True)
            if why is not None:
                yield without_secrets(str(need)), f"{_who(origin, request)} asks for {need}, {why}"
    for need, origin in asked.constraints:
        why = _against(need, held.packages, required=False) if python is not None or not need.marker else None
        if why is not None:
            yield f"constraint {need}", f"{_who(origin, request)} says {need}, {why}"


def _against(need: Need, packages: Iterable[Installed], *, required: bool) -> str | None:
    """What no pin of ``packages`` meets of ``need``; a file by its address is not looked at."""
    if need.url:
        return None
    of_framework = FRAMEWORK_OF_WHEEL.get(need.name)
    found = [it for it in packages if _is(it, need.name) or (of_framework and framework_of(it) == of_framework)]
    if not found:
        return "which it does not hold" if required else None
    return None if any(_admits(need.specifier, it.version) for it in found) else f"and it holds {_pinned(found)}"


def _is(package: Installed, project: str) -> bool:
    return package.name == project if package.build is None else package.name in conda_names(project)


def _of_conda(request: Request, held: HeldStack, platform: Platform, *, same_command: bool) -> Iterator[str]:
    """Match specs and requirements that nothing in a file of conda packages meets."""
    asked = asked_on(request.packages, platform)
    for it in asked.conda:
        spec = parse_match_spec(it.spec)
        found = [package for package in held.packages if package.build is not None and package.name == spec.name]
        if spec.name.startswith("__"):
            continue
        if not found:
            yield f"the project asks for {it.spec}, which it does not hold"
        elif not any(_lies_in(specifier_of(spec.version), package.version) for package in found):
            yield f"the project asks for {it.spec}, and it holds {_pinned(found)}"
    if asked.python is not None:
        python = asked.python if same_command else _in_files(asked.python, request)
        yield from dict(_unmet(python, request, held, platform)).values()


def _admits(specifier: str, version: str) -> bool:
    try:
        return _lies_in(SpecifierSet(specifier), version)
    except InvalidSpecifier:
        return True


def _lies_in(specifier: SpecifierSet | None, version: str) -> bool:
    """Whether ``specifier`` admits ``version``; what has no order of Python's is not judged."""
    try:
        return specifier is None or not version or specifier.contains(Version(version), prereleases=True)
    except ValueError:
        return True


def _pinned(found: Iterable[Installed]) -> str:
    return " and ".join(f"{it.name} {it.version}" for it in found)


def _python(held: HeldStack) -> tuple[int, int, int] | None:
    """The Python that the file was made for; None where it does not say."""
    facts: Mapping[str, object] = held.recorded or {}
    for text in (facts.get("python"), held.python):
        try:
            release = Version(str(text)).release
        except ValueError:
            continue
        return (*release, 0, 0)[:3]  # type: ignore[return-value]  # three of at least three
    return None


def _name(requirement: str) -> str | None:
    try:
        return parse_need(requirement).name
    except ValueError:
        return None


def _who(origin: str, request: Request) -> str:
    return "the project" if _is_in_command(origin, request) else origin.removeprefix("-r ").removeprefix("-c ")
