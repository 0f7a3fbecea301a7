"""The error if no set of conda packages fits a stack. Imported only in that case.

rattler prints a conflict as a tree. It becomes sentences here, next to the reasons for the requirements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envsolve.app.packages.conda_requirements import is_environment_file
from envsolve.app.request.command import way_out
from envsolve.errors import ConflictStep, Hint, UnsolvableError
from envsolve.lockfile.lock import RequestedSpec
from envsolve.model.conda import VirtualPackage
from envsolve.model.prose import sentence_list
from envsolve.model.request import Request
from envsolve.model.solution import Problem, Solution

_INTRODUCTION = "Cannot solve the request because of:"
_BRANCH = re.compile(r"^((?:[│ ]  )*(?:[├└]─ )?)(.*)$")
_DEPTH = 3
"""The indentation of one level in rattler's output."""
_NONE_FOUND = re.compile(r"No candidates were found for (.*?)\.?$")
_PHRASES = (
    (", which can be installed with any of the following options:", ""),
    (" can be installed with any of the following options:", ""),
    (", which cannot be installed because there are no viable options:", ""),
    (" cannot be installed because there are no viable options:", ""),
    (", for which no candidates were found.", ", which is not available with the rest"),
    (
        ", which conflicts with any installable versions previously reported",
        ", which conflicts with the versions above",
    ),
    (", which conflicts with the versions reported above.", ""),
)
_TIED = re.compile(r"""\[channel=(['"]?)[^]'"]*\1\]""")
"""How the engine ties a spec to the first channel that has the name."""
_UNUSUAL_PYTHON = re.compile(r"the constraint python \[build=.*\] cannot be fulfilled")
_NO_USUAL_PYTHON = "no such python is standard CPython; PyPy and free-threaded builds must be requested by name"
_REQUIRES = (" would require", " would constrain")
_VERBS = {" would require": "requires", " would constrain": "works only with"}
_MOST_CAUSES = 3
_REQUESTED = "requested by "
_ENDS = ("not available with the rest", "conflicts with the versions above")
_OBJECT = re.compile(r" (?:requires|works only with) (\S+)")
_ABOUT_PYTHON = re.compile(r" requires python ")


class Unfit(NamedTuple):
    """A question without a solution: the problem, the stack, the match specs, and the output of rattler."""

    problem: Problem
    solution: Solution | None
    specs: tuple[RequestedSpec, ...]
    virtual_packages: tuple[VirtualPackage, ...]
    channels: tuple[str, ...]
    text: str


def conda_refusal(unfit: Unfit, request: Request) -> UnsolvableError:
    """The error for a conflict between conda packages."""
    unfit = unfit._replace(text=_UNUSUAL_PYTHON.sub(_NO_USUAL_PYTHON, _TIED.sub("", unfit.text)))
    channels = sentence_list(unfit.channels, "or")
    platform = unfit.problem.platform
    missing = [found[1] for line in unfit.text.splitlines() if (found := _NONE_FOUND.search(line)) is not None]
    sentences = list(dict.fromkeys(sentences_in(unfit.text)))
    reasons = list(_reasons(unfit, sentences))
    if missing:
        sentences = []
    steps = (
        *(ConflictStep(it.spec, it.reason, "") for it in reasons),
        *(ConflictStep(sentence, "", channels) for sentence in sentences),
    )
    stack = "" if unfit.solution is None else f" with {' and '.join(it.release.label for it in unfit.solution.choices)}"
    if missing:
        code, message = "conda-package-not-found", f"{channels} has no {' or '.join(missing)} for {platform}"
    else:
        code, message = "conda-packages-conflict", f"no compatible set of conda packages for {platform}{stack}"
    shown = _few(reasons, sentences)
    return UnsolvableError(code, message, shown, tuple(_hints(unfit, request, missing)), conflict=steps)


def not_on_channels(solution: Solution, channels: Sequence[str], request: Request) -> UnsolvableError:
    """The error if the matrix has a stack whose packages the channels lack."""
    labels = " with ".join(it.release.label for it in solution.choices)
    message = (
        f"no build on {' or '.join(channels)} runs here; the best known build for "
        f"{solution.problem.platform} is {labels}"
    )
    cause = tuple(f"{choice.release.label}: {choice.release.reference}" for choice in solution.choices)
    hints = (
        Hint(f"add the channel that has it with {request.requester.name_of('channels')}"),
        *_python_lock("or use wheels", request),
    )
    return UnsolvableError("release-not-on-channel", message, cause, hints)


def _reasons(unfit: Unfit, sentences: Sequence[str]) -> Iterator[RequestedSpec]:
    """The requirements that the sentences mention, and assumptions about the machine."""
    words = {word for sentence in sentences for word in re.split(r"[\s,]+", sentence)}
    for it in unfit.specs:
        if it.reason and _name(it.spec) in words:
            yield it
    for virtual in unfit.virtual_packages:
        if virtual.name in words:
            yield RequestedSpec(str(virtual), "provided by the machine")


def _few(reasons: Sequence[RequestedSpec], sentences: Sequence[str]) -> tuple[str, ...]:
    """The most informative causes.

    They are the user's requirement, what excludes it (rattler begins with the newest version, and lists other Pythons
    for it), and the requirement for that package, or else how it became a dependency.
    """
    final = [it for it in sentences if it.endswith(_ENDS)]
    excluding = next((it for it in final if not _ABOUT_PYTHON.search(it)), (final or [*sentences[-1:], ""])[0])
    subject, limited = excluding.partition(" ")[0], _object(excluding)
    reasons = sorted(reasons, key=lambda it: not it.reason.startswith(_REQUESTED))
    of_person = [it for it in reasons[:1] if it.reason.startswith(_REQUESTED)]
    of_limited = [it for it in reasons if _name(it.spec) == limited]
    of_subject = [it for it in reasons if _name(it.spec) == subject]
    leading = [it for it in sentences if _object(it) == subject]
    wanted = (*map(_cause, (*of_person, *of_limited)), excluding, *map(_cause, of_subject), *leading)
    few = list(dict.fromkeys(it for it in (*wanted, *map(_cause, reasons)) if it))[:_MOST_CAUSES]
    return tuple(it for it in (*map(_cause, reasons), *sentences) if it in few)


def _object(sentence: str) -> str:
    """The package that a sentence limits."""
    found = _OBJECT.search(sentence)
    return "" if found is None else found[1]


def _cause(entry: RequestedSpec) -> str:
    return f"{entry.spec}: {entry.reason}"


def _hints(unfit: Unfit, request: Request, missing: Sequence[str]) -> Iterator[Hint]:
    if missing:
        yield Hint(f"check the spelling, or add the channel that has it with {request.requester.name_of('channels')}")
        return
    if unfit.solution is not None and any(it.release.source.channel for it in unfit.solution.choices):
        yield from _python_lock("try a Python lock: wheels have other dependencies", request)
    yield Hint("relax one of these requirements, or move one into a separate environment")


def _python_lock(text: str, request: Request) -> Iterator[Hint]:
    """A hint to use a Python lock, unless the request has an environment.yml, which such a lock cannot use."""
    if not any(map(is_environment_file, request.packages.files)):
        yield way_out(text, request._replace(format="requirements", channels=(), sources=()), request)


def sentences_in(tree: str) -> Iterator[str]:
    """The facts in rattler's tree, one sentence for each informative line."""
    above: dict[int, str] = {}
    for raw in tree.strip().splitlines():
        line = raw.removeprefix(_INTRODUCTION).strip() if raw.startswith(_INTRODUCTION) else raw
        branch = _BRANCH.match(line)
        assert branch is not None
        depth, text = len(branch[1]) // _DEPTH, branch[2].strip()
        known = [phrase for phrase in _PHRASES if text.endswith(phrase[0])]
        bare = text.removesuffix(known[0][0]) + known[0][1] if known else text
        above[depth] = text
        parent = above.get(depth - 1, "") if depth else ""
        verb = next((it for it in _REQUIRES if parent.endswith(it)), None)
        if verb is not None:
            yield f"{parent.removesuffix(verb)} {_VERBS[verb]} {bare}"
        elif not text.endswith((*_REQUIRES, ":", "are incompatible")) and not _is_bare_package(bare):
            yield bare.removesuffix(".")


def _is_bare_package(text: str) -> bool:
    """Whether a line only names a package of the line above: ``cudatoolkit 11.8.0``."""
    return re.fullmatch(r"[\w.-]+ [\w.!+|\s]+", text) is not None


def _name(spec: str) -> str:
    return re.split(r"[\s=<>!~\[]", spec.rpartition("::")[2], maxsplit=1)[0]
