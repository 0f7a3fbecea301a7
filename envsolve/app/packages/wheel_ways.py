"""Changes of a request with which a package with kernels has a published wheel, the least change first.

Each change is solved with the changed parts of the request left open, and suggested with the versions of that answer:
so every suggestion has an answer, and names the wheel in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from time import monotonic
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.packages.extension_wheels import published_version
from envsolve.app.packages.requirements import Requirements
from envsolve.app.request.command import way_out
from envsolve.errors import Hint
from envsolve.extension_sources import ExtensionSource, sources_for
from envsolve.frameworks import FRAMEWORK_OF_WHEEL
from envsolve.matrix.torch_symbols import FRAMEWORK
from envsolve.model.host import Platform
from envsolve.model.need import parse_need
from envsolve.model.package import Pin
from envsolve.model.reference import gives_address
from envsolve.model.request import Request
from envsolve.model.solution import Solution

_SECONDS = 15
"""No change is tried after this many seconds."""
_PYTHON, _CUDA, _VERSIONS = "python", "cuda", "versions"
_LIMITS = (_PYTHON, _CUDA, _VERSIONS, FRAMEWORK)
"""The parts of a request that may exclude a wheel, easiest to change first; versions are those of its package."""


class Tried(NamedTuple):
    """The answer to a changed request for one platform: its stack, its packages, and the places of some."""

    solution: Solution | None
    pins: Sequence[Pin]
    source_of: Callable[[Pin], ExtensionSource | None]


Try = Callable[[Request, Requirements, float], Sequence[Tried] | None]
"""The answers to a request, found before a moment of the monotonic clock; None if there are none."""


def are_published(names: Iterable[str]) -> list[str]:
    """Those of ``names`` for which a place in ``data/sources`` has wheels for some platform."""
    return [it for it in sorted(names) if any(sources_for(it, on.value, third_party=True) for on in Platform)]


def ways_to_wheels(names: Collection[str], request: Request, wanted: Requirements, attempt: Try) -> Iterator[Hint]:
    """The changes of ``request``, with requirements ``wanted``, with which all of ``names`` have a wheel.

    The first is the least change. If its wheels come from third parties, the least change without these follows. Only
    changes that were solved in time are suggested.
    """
    end = monotonic() + _SECONDS
    changes = _Changes(names, request, wanted)
    allowed = request.packages.extensions
    seeks_others = not allowed

    @cache
    def solved(lifted: tuple[str, ...], *, extensions: bool) -> _Answer | None:
        free = changes.to(dict.fromkeys(lifted, SpecifierSet()), extensions=extensions)
        return _with_wheels(names, attempt(*free, end)) if monotonic() < end else None

    def way(text: str, answer: _Answer, lifted: tuple[str, ...]) -> Hint:
        extensions = allowed or answer.is_of_others
        instead, _ = changes.to({it: answer.versions_of(it) for it in lifted}, extensions=extensions)
        return way_out(f"{text} {answer.text}", instead, request, "published-wheel")

    if (changes.limits or seeks_others) and solved(changes.limits, extensions=True) is None:
        return
    for lifted in (it for count in range(len(changes.limits) + 1) for it in combinations(changes.limits, count)):
        if not (lifted or seeks_others):
            continue
        answer = solved(lifted, extensions=allowed or seeks_others)
        if answer is not None and answer.is_of_others and not allowed:
            others, answer = answer, solved(lifted, extensions=False) if lifted else None
            if answer is None:
                seeks_others = False
                yield way("with third-party wheels,", others, lifted)
        if answer is not None and lifted:
            yield way("with", answer, lifted)
            return


class _Changes:
    """The changes of a request with requirements ``wanted`` that may give ``names`` a wheel."""

    def __init__(self, names: Collection[str], request: Request, wanted: Requirements) -> None:
        self._request, self._wanted = request, wanted
        needs = {it: parse_need(it) for it in request.packages.requirements if not gives_address(it)}
        limited = {line: it for line, it in needs.items() if it.specifier and not it.marker}
        self._lines = {
            _VERSIONS: {line: it for line, it in limited.items() if it.name in names},
            FRAMEWORK: {line: it for line, it in limited.items() if FRAMEWORK_OF_WHEEL.get(it.name) == FRAMEWORK},
        }
        """The typed requirements that limit what they name, by line."""
        framework = any(it.framework == FRAMEWORK and it.specifier for it in request.frameworks)
        known = {
            _PYTHON: request.python is not None,
            _CUDA: request.cuda is not None,
            _VERSIONS: bool(self._lines[_VERSIONS]) and len(names) == 1,
            FRAMEWORK: framework or bool(self._lines[FRAMEWORK]),
        }
        self.limits = tuple(it for it in _LIMITS if known[it])
        """The parts that the request limits."""

    def to(self, versions: Mapping[str, SpecifierSet], *, extensions: bool) -> tuple[Request, Requirements]:
        """The request and its requirements with other ``versions``, and third parties' wheels if ``extensions``."""
        request, packages = self._request, self._request.packages
        lines = {
            line: need._replace(specifier=str(versions[of]))
            for of, typed in self._lines.items()
            for line, need in typed.items()
            if of in versions
        }
        instead = {parse_need(line): need for line, need in lines.items()}
        torch = versions.get(FRAMEWORK)
        changed = request._replace(
            frameworks=tuple(
                it._replace(specifier=torch) if torch is not None and it.framework == FRAMEWORK and it.specifier else it
                for it in request.frameworks
            ),
            python=versions[_PYTHON] or None if _PYTHON in versions else request.python,
            cuda=versions[_CUDA] or None if _CUDA in versions else request.cuda,
            packages=packages._replace(
                requirements=tuple(str(lines.get(it, it)) for it in packages.requirements),
                extensions=extensions,
            ),
        )
        needs = tuple((instead.get(need, need), origin) for need, origin in self._wanted.needs)
        return changed, self._wanted._replace(needs=needs)


class _Answer(NamedTuple):
    """A stack with its wheels, and the sources of those that are on no index."""

    solution: Solution
    wheels: tuple[tuple[Pin, ExtensionSource | None], ...]

    @property
    def is_of_others(self) -> bool:
        """Whether third parties publish one of the wheels."""
        return any(source is not None and not source.is_official for _, source in self.wheels)

    @property
    def text(self) -> str:
        """The answer in words."""
        places = (pin.index_url if source is None else source.title for pin, source in self.wheels)
        pairs = zip(self.wheels, places, strict=True)
        wheels = (f"{pin.name} {published_version(pin)} from {place}" for (pin, _), place in pairs)
        return f"{stack_text(self.solution)}: {', '.join(wheels)}"

    def versions_of(self, what: str) -> SpecifierSet:
        """The versions of a part of the request, as a person writes them."""
        solution = self.solution
        if what == _VERSIONS:
            return SpecifierSet(f"=={self.wheels[0][0].version.partition('+')[0]}")
        if what == _CUDA:
            return SpecifierSet("" if solution.toolkit is None else f"=={solution.toolkit.version.major}.*")
        torch = (str(it.release.version) for it in solution.choices if it.release.framework == FRAMEWORK)
        return SpecifierSet(f"=={_minor(str(solution.python) if what == _PYTHON else next(torch))}.*")


def _with_wheels(names: Collection[str], tried: Sequence[Tried] | None) -> _Answer | None:
    """The first answer, if each is for GPUs and has wheels of all ``names``."""
    found: list[_Answer] = []
    for it in tried or ():
        wheels = tuple((pin, it.source_of(pin)) for pin in it.pins if pin.name in names and pin.files[0].is_wheel)
        if it.solution is None or it.solution.problem.cpu or len(wheels) < len(names):
            return None
        found.append(_Answer(it.solution, wheels))
    return found[0] if found else None


def stack_text(solution: Solution) -> str:
    """The frameworks and the Python of a stack."""
    frameworks = ", ".join(it.release.label for it in solution.choices)
    return f"{frameworks} and Python {_minor(str(solution.python))}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
