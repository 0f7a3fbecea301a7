"""Whether a lock meets a request. Only the lock is read: no index or channel is queried and nothing is solved.

The request that a lock was made for is recorded in it (:class:`envsolve.lockfile.lock.Made`). In addition, a package of
the lock must meet each requirement. Whether the stack runs on a machine is checked in
:mod:`envsolve.app.status.status`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.packages.conda_requirements import CondaRequirements, requirements_of
from envsolve.app.packages.requirements import Requirements, as_in_lock
from envsolve.app.request.targets import Target
from envsolve.app.status.locked_stack import Installed, framework_of, packages_in
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.names import conda_names
from envsolve.conda.specs import specifier_of
from envsolve.frameworks import FRAMEWORK_OF_CONDA, FRAMEWORK_OF_WHEEL
from envsolve.lockfile.lock import Lock, Made, RequestedSpec
from envsolve.lockfile.options import AROUND, CONSTRAINTS, OVERRIDES
from envsolve.model.host import Platform
from envsolve.model.lock_format import CONDA_FORMATS, PYTHON_FORMATS
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.need import Need, parse_need
from envsolve.model.note import Note
from envsolve.model.prose import sentence_list
from envsolve.model.request import Request
from envsolve.model.requester import COMMAND_LINE, Requester

_OF_FILES: Mapping[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("index-url", "extra-index-urls", "pytorch-index-url", "channels")),
    "exclude-newer": (),
    **dict.fromkeys(("allow-builds", "extensions", "pre"), ("true",)),
}
"""Options that limit the available files, with the value that does not exclude any file of the lock, if any."""


class Difference(NamedTuple):
    """A difference between a request and the request recorded in a lock.

    ``is_met`` says whether the packages in the lock meet the request anyway; None if the lock does not say.
    """

    note: Note
    is_met: bool | None = True


class _Wanted(NamedTuple):
    """A requirement as recorded, its origin, and the packages of that name in the lock."""

    text: str
    name: str
    origin: str
    found: tuple[Installed, ...]
    is_met: bool | None


def differences(lock: Lock, request: Request, target: Target) -> tuple[Difference, ...]:
    """The differences between ``request``, which has no logins, and ``lock`` for the platform of ``target``.

    The order of requirements, the driver and the names of GPUs do not count. Raises UsageError if a file that the
    request names cannot be read.
    """
    if lock.made is None:
        return (Difference(Note("not-recorded", "envsolve did not write it, or it does not record its request"), None),)
    platform = target.problem.platform
    if lock.platform != platform:
        return (Difference(Note("not-recorded", f"it does not record {platform} as its platform"), None),)
    requirements = CondaRequirements()
    if request.format in (*PYTHON_FORMATS, *CONDA_FORMATS):
        requirements = requirements_of(request, platform, lock.python)
        if requirements.python is not None:
            requirements = requirements._replace(python=as_in_lock(requirements.python, lock.addresses))
    return (
        *_of_packages(lock, lock.made),
        *_of_frameworks(lock, lock.made, request, requirements),
        *_of_requirements(lock, lock.made, request, requirements),
        *_of_options(lock, lock.made, request, requirements),
        *_of_machines(lock, target),
    )


def holds(lock: Lock, wanted: Iterable[RequestedSpec]) -> bool:
    """Whether packages in ``lock`` meet all ``wanted`` requirements, including those of the stack."""
    installed = packages_in(lock, Platform(lock.platform))
    conda = _of_conda((it for it in wanted if not it.by_pip), installed)
    needs = (parse_need(it.spec) for it in wanted if it.by_pip)
    return all(it.is_met for it in (*conda, *(_of_python(need, "", lock, installed, {}) for need in needs)))


def _installed(lock: Lock) -> list[Installed]:
    """The packages after installing ``lock``, including those of the environment that it was made around."""
    around = (it.partition("==") for it in (lock.made.option(AROUND) if lock.made else ()))
    return [*packages_in(lock, Platform(lock.platform)), *(Installed(name, it, None) for name, _, it in around)]


def _of_packages(lock: Lock, made: Made) -> Iterator[Difference]:
    if made.packages_digest not in (None, lock.packages_digest):
        text = "packages or digests were changed after envsolve wrote the file"
        yield Difference(Note("packages-changed", text), is_met=False)


def _of_frameworks(lock: Lock, made: Made, request: Request, requirements: CondaRequirements) -> Iterator[Difference]:
    installed = _installed(lock)
    replaced = {
        FRAMEWORK_OF_WHEEL.get(it.name) for it in (requirements.python.overrides if requirements.python else ())
    }
    wanted = []
    for it in request.frameworks:
        found = tuple(package for package in installed if framework_of(package) == it.framework)
        is_met = any(it.framework in replaced or _admits(it.specifier, package.version) for package in found)
        wanted.append(_Wanted(str(it), it.framework, "", found, is_met))
    yield from _compared("framework", wanted, made.option("frameworks"))


def _of_requirements(lock: Lock, made: Made, request: Request, requirements: CondaRequirements) -> Iterator[Difference]:
    python = requirements.python or Requirements((), (), {}, None, ())
    installed = _installed(lock)
    recorded = made.request or ()
    extras = {need.name: need.extras for need in filter(None, map(_need, recorded))}

    def wanted(needs: Iterable[tuple[Need, str]]) -> Iterator[_Wanted]:
        yield from (_of_python(need, origin, lock, installed, extras) for need, origin in needs)

    own = {COMMAND_LINE, *request.packages.places}
    named = [it._replace(origin="" if it.origin in own else it.origin) for it in wanted(python.needs)]
    frameworks = {str(it) for it in request.frameworks}.union(made.option("frameworks"))
    rest = [it for it in recorded if it not in frameworks]
    found = [*_compared("requirement", [*_of_conda(requirements.conda, installed), *named], rest)]
    bounds = (it for it in python.constraints if it[0] not in python.overrides)
    limits = [it._replace(is_met=it.is_met is not False or not it.found) for it in wanted(bounds)]
    found += _compared("constraint", limits, made.option(CONSTRAINTS))
    found += _compared("override", [*_of_overrides(request, python, wanted)], made.option(OVERRIDES))
    yield from found
    digest = python.digest if request.format in PYTHON_FORMATS else requirements.digest
    beside = any((requirements.categories, python.hashed, python.index_url, python.extra_index_urls))
    is_other = request.format in CONDA_FORMATS and dict(requirements.variables) != dict(lock.variables)
    if made.request_digest not in (None, digest) and (beside or is_other or not found):
        text = "requirement files have other hashes, indexes, variables or categories"
        yield Difference(Note("files-changed", text), is_met=None)


def _of_overrides(
    request: Request, python: Requirements, wanted: Callable[[Iterable[tuple[Need, str]]], Iterator[_Wanted]]
) -> Iterator[_Wanted]:
    """The overrides as recorded. If the marker of one does not hold, it is unknown whether the lock meets it."""
    holding = {need for need, _ in python.constraints}
    for text in request.packages.overrides if python.overrides else ():
        need = parse_need(text)
        (found,) = wanted([(need, "")])
        is_met = found.is_met if found.found and need in holding else None
        yield found._replace(text=without_secrets(text), is_met=is_met)


def _compared(kind: str, wanted: Sequence[_Wanted], recorded: Sequence[str]) -> Iterator[Difference]:
    """The requirements that are not recorded or not met, and the recorded ones that are no longer required."""
    now = {it.text for it in wanted}
    gone = {_name(it): it for it in recorded if it not in now}
    named = f"{kind} " if kind in ("constraint", "override") else ""
    for it in dict.fromkeys(wanted):
        before = it.text if it.text in recorded else None
        place = f"{it.origin.removeprefix('-r ').removeprefix('-c ')}: " if it.origin else ""
        if before is not None:
            text, code = f"{named}{it.text} is required", f"{kind}-not-met"
            if it.is_met is not False:
                continue
        elif (before := gone.pop(it.name, None)) is not None:
            text, code = f"{named}{it.text} instead of {before}", f"{kind}-changed"
        else:
            text, code = f"{named}{it.text} is new", f"{kind}-new"
        locked = sentence_list(f"{package.name} {package.version}".strip() for package in it.found) or None
        but = ""
        if it.is_met is False:
            is_missing = code == f"{kind}-new" and locked is None
            but = " and not in the lock file" if is_missing else f", but the lock file has {locked or f'no {it.name}'}"
        note = Note(code, f"{place}{text}{but}").about(name=it.name, wanted=it.text, recorded=before, locked=locked)
        yield Difference(note, it.is_met)
    for name, text in gone.items():  # a lock does not say which packages were required only by this
        note = Note(f"{kind}-removed", f"{named}{text} was removed").about(name=name, recorded=text)
        yield Difference(note, True if kind == "constraint" else None)


def _of_conda(entries: Iterable[RequestedSpec], installed: Iterable[Installed]) -> Iterator[_Wanted]:
    for it in entries:
        spec = parse_match_spec(it.spec)
        found = tuple(package for package in installed if package.build is not None and package.name == spec.name)
        of_framework = FRAMEWORK_OF_CONDA.get(spec.name)
        if not found and of_framework is not None:  # a wheel
            found = tuple(package for package in installed if framework_of(package) == of_framework)
        versions, build = specifier_of(spec.version), spec.build or "*"
        fits = any(_admits(versions, package.version) and fnmatchcase(package.build or "*", build) for package in found)
        yield _Wanted(it.spec, spec.name, "", found, fits or spec.name.startswith("__"))


def _of_python(
    need: Need, origin: str, lock: Lock, installed: Iterable[Installed], known: Mapping[str, tuple[str, ...]]
) -> _Wanted:
    """A Python requirement. ``known`` are the recorded extras by project; the lock does not say what others add."""
    of_framework = FRAMEWORK_OF_WHEEL.get(need.name)
    found = tuple(it for it in installed if _is(it, need.name) or (of_framework and framework_of(it) == of_framework))
    is_met: bool | None = any(_admits(need.specifier, it.version) for it in found)
    if need.url:
        address = without_secrets(need.url).partition("#")[0]
        files = {file.url.partition("#")[0] for pin in lock.pins if pin.name == need.name for file in pin.files[:1]}
        is_met = True if address in files else None
    elif is_met and known.get(need.name, ()) != need.extras:
        is_met = None
    return _Wanted(without_secrets(str(need)), need.name, origin, found, is_met)


def _of_options(lock: Lock, made: Made, request: Request, requirements: CondaRequirements) -> Iterator[Difference]:
    before, now = dict(made.options), dict(requirements.as_recorded(request)[1])
    for key in dict.fromkeys((*now, *before)):
        old, new = before.get(key, ()), now.get(key, ())
        if key in ("frameworks", CONSTRAINTS, OVERRIDES, AROUND) or old == new:
            continue
        was, value = (" ".join((*it, "")) if it != ("true",) else "" for it in (old, new))
        if old and new:
            code, text = "option-changed", f"{key} {value}instead of {was.strip()}"
        elif new:
            code, text = "option-new", f"{key} {value}is new"
        else:  # a lock does not distinguish a key of the project from a former option
            values = () if old == ("true",) else old
            code = "option-removed"
            text = f"locked with {Requester().setting(key, *values)}, which the project does not have"
        is_met = True if _OF_FILES.get(key, new) == new else None
        if key == "python" and request.python is not None and not _admits(request.python, lock.python):
            is_met, text = False, f"{text}, and the lock file is for Python {lock.python}"
        yield Difference(Note(code, text).about(option=key, wanted=value.strip(), recorded=was.strip()), is_met)


def _of_machines(lock: Lock, target: Target) -> Iterator[Difference]:
    """Other compute capabilities, or an older C library, which packages may not support."""
    glibc = min((it.glibc for it in target.problem.machines if it.glibc is not None), default=None)
    if glibc is not None and not _admits(f"<={glibc}", lock.glibc or ""):
        yield Difference(Note("machines-changed", f"glibc {glibc} is older than {lock.glibc}"), is_met=None)
    before, now = () if lock.stack is None else lock.stack.capabilities, tuple(map(str, target.problem.gpus))
    new, gone = ([it for it in one if it not in other] for one, other in ((now, before), (before, now)))
    kind = "compute capability"
    if lock.stack is None or not (new or gone):
        return
    if before and now and not (new and gone):
        texts = [f"{kind} {it} {'is new' if new else 'was removed'}" for it in new or gone]
    else:
        bare = "the CPU" if target.problem.cpu or lock.stack.minimum_driver is None else "any GPU"
        old_text, new_text = (", ".join(it) or bare for it in (before, now))
        texts = [f"{kind} {new_text} instead of {old_text}" if now else f"{new_text} instead of {kind} {old_text}"]
    yield from (Difference(Note("machines-changed", it)) for it in texts)


def _is(package: Installed, project: str) -> bool:
    return package.name == project if package.build is None else package.name in conda_names(project)


def _admits(versions: SpecifierSet | str | None, version: str) -> bool:
    """Whether ``versions`` allow ``version``; True if either is not a Python version."""
    try:
        specifier = SpecifierSet(versions) if isinstance(versions, str) else versions
        return specifier is None or not version or specifier.contains(Version(version), prereleases=True)
    except ValueError:
        return True


def _need(text: str) -> Need | None:
    try:
        return parse_need(text)
    except ValueError:
        return None


def _name(text: str) -> str:
    """The project or package that a recorded requirement is about."""
    need = _need(text)
    if need is not None:
        return need.name
    try:
        return parse_match_spec(text).name
    except ValueError:
        return text
