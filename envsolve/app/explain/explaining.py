"""The use case explain: turns an error text or a log, with known facts, into findings with fixes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from envsolve.app.status.results import Explanation
from envsolve.boundary.secrets import masked
from envsolve.diagnose.case import TITLES, Case, Given
from envsolve.diagnose.cause import Cause, Remedy
from envsolve.diagnose.diagnosis import WordedDiagnosis, diagnoses_of
from envsolve.diagnose.installer import for_installer, typed
from envsolve.diagnose.knowledge import Knowledge
from envsolve.diagnose.reading.interest import interesting
from envsolve.diagnose.scan import Seen, anchors_of, scan
from envsolve.diagnose.tables import Tables
from envsolve.errors import Hint, UsageError
from envsolve.frameworks import FRAMEWORKS
from envsolve.host.machine import this_platform
from envsolve.lockfile.reading import lock_at
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding
from envsolve.model.host import Host, Platform
from envsolve.model.lock_format import PROJECT_LOCKS
from envsolve.model.note import Note
from envsolve.model.versions import DriverVersion

if TYPE_CHECKING:
    from envsolve.app.explain.remedies import Advice

LONGEST_LINE = 400
"""The most characters shown of a line of evidence."""


class ExplainRequest(NamedTuple):
    """A request to explain a text, with what is known about machine and environment.

    ``gpus`` are product names, capabilities or ``auto`` for this machine; ``frameworks`` are requirements as typed.
    ``built_cuda`` is the CUDA that the framework was built with, ``toolkit`` the one installed on the machine.
    """

    gpus: tuple[str, ...] = ()
    driver: DriverVersion | None = None
    host: str | None = None
    platform: Platform | None = None
    prefix: str | None = None
    python: str | None = None
    built_cuda: str | None = None
    toolkit: str | None = None
    frameworks: tuple[str, ...] = ()
    matrix_directory: Path | None = None


def explain(stream: BinaryIO, request: ExplainRequest, environ: Mapping[str, str]) -> Explanation:
    """Read ``stream`` to its end and explain it.

    Raises UsageError for invalid options or a prefix that is not an environment, and OSError if the stream cannot be
    read.
    """
    matrix = Matrix(request.matrix_directory)
    if request.matrix_directory is not None:
        _ = matrix.framework_names  # report a directory without a matrix before reading the text
    tables = Tables()
    given = _given(request, matrix, environ)
    seen = scan(interesting(stream, anchors_of(tables)), tables)
    given = _with_this_machine(given, seen, request, matrix, environ)
    case = Case(seen.sightings, seen.clues, given, Knowledge(matrix))
    answer, notes = _answer(case, tables), tuple(_notes(seen, case))
    locked = _locked_here(case, seen, request)
    if locked is not None:
        packages = {locked.name: locked.version, **given.packages}
        case = Case(seen.sightings, seen.clues, given._replace(packages=packages), case.knowledge)
        before, answer = answer, _answer(case, tables)
        notes = (*notes, *(() if answer == before else (locked.note,)))
    return Explanation(answer.findings, tuple(_recognised(case)), answer.collect, notes)


class _Answer(NamedTuple):
    """The findings, and what to collect where no line of a program decides."""

    findings: tuple[Finding, ...]
    collect: tuple[str, ...]


def _answer(case: Case, tables: Tables) -> _Answer:
    diagnoses = diagnoses_of(case, tables)
    findings = tuple(for_installer(_finding(it, case, case.knowledge.matrix), case) for it in diagnoses)
    if not findings:
        return _Answer(findings, (*COLLECT, *_deciding(case)))
    prose = all(it.prose for it in diagnoses)
    return _Answer(findings, (tuple(_deciding(case)) or COLLECT[:1]) if prose else ())


def _deciding(case: Case) -> Iterator[str]:
    """The command whose output has the line that decides, for the framework of a text and its installer."""
    name = case.mentioned or (case.dependent.on if case.dependent is not None else "")
    framework = FRAMEWORKS.get(name)
    if framework is not None and framework.first_use is not None and not case.saw("amd-gpu"):
        yield DECIDES.format(*typed(f'python -c "{framework.first_use}"', case))


class _Locked(NamedTuple):
    """The framework of a text in the lock of this directory: its package, its only version, and the file."""

    name: str
    version: str
    file: str

    @property
    def note(self) -> Note:
        """A note on the source of the version."""
        text = f"the text names no version of {self.name}: {self.version} is what {self.file} in this directory has"
        return Note("version-from-lock", text).about(file=self.file, name=self.name, version=self.version)


def _locked_here(case: Case, seen: Seen, request: ExplainRequest) -> _Locked | None:
    """The version of the text's framework if only a lock of uv, Poetry or PDM in this directory says it.

    None if the text may come from elsewhere, because it or an option names another environment.
    """
    name, here = case.framework, Path.cwd()
    elsewhere = (Path(clue.value) for clue in seen.clues.get("prefix", ()))
    if name is None or name not in FRAMEWORKS or case.version_of(name) is not None or request.prefix is not None:
        return None
    if any(not it.is_relative_to(here) for it in elsewhere):
        return None
    file = next((it for it in PROJECT_LOCKS if (here / it).is_file()), None)
    platform = case.platform or this_platform()
    try:
        lock = None if file is None else lock_at(here / file, platform)
    except UsageError:
        return None  # `envsolve status` reports its errors
    pins = () if lock is None else lock.pins_for(platform)
    found = {(it.name, it.version) for it in pins if FRAMEWORKS[name].is_installed_as(it.name) and it.version}
    return None if file is None or len(found) != 1 else _Locked(*found.pop(), file)


_OF_PYTHON = frozenset({"package-of-other-release", "process-crashed", "python-error", "python-package-absent"})
"""The findings for an error of Python about which nothing more is known."""


def findings_in(text: str, given: Given, matrix: Matrix) -> tuple[Finding, ...]:
    """The findings for the ``text`` of a probe with the facts in ``given``; the cause of the others is first.

    Texts of Python itself are left to the probe, which knows the package and its files.
    """
    tables = Tables()
    seen = scan(interesting(io.BytesIO(text.encode()), anchors_of(tables)), tables)
    found = _findings(Case(seen.sightings, seen.clues, given, Knowledge(matrix)), tables)
    return tuple(it for it in found if it.id not in _OF_PYTHON)


def _findings(case: Case, tables: Tables) -> tuple[Finding, ...]:
    return tuple(_finding(worded, case, case.knowledge.matrix) for worded in diagnoses_of(case, tables))


def _notes(seen: Seen, case: Case) -> Iterator[Note]:
    if seen.left_out:
        yield Note("lines-left-out", LEFT_OUT.format(seen.left_out))
    if case.linux_library is not None:
        text = OF_LINUX.format(library=case.linux_library, given=case.given.platform, platform=case.platform)
        yield Note("platform-of-text", text)


OF_LINUX = (
    "{library} is a Linux file (WSL is Linux, too), which no program for {given} loads: the answer is for "
    "{platform}, like the text"
)
LEFT_OUT = "{:,} lines in the middle of this log were skipped: it is too long to compare all of them"
COLLECT = (
    "the whole output from the first error or warning on, not only the last line",
    "the first lines of `nvidia-smi`, which show the driver",
    "`python -m torch.utils.collect_env` with PyTorch, else `pip list` or `conda list`",
    "the output of `envsolve doctor` and `envsolve validate` in the environment",
)
"""What to collect if a text is not recognised."""
DECIDES = "the output of `{}`, whose last lines decide"


def _given(request: ExplainRequest, matrix: Matrix, environ: Mapping[str, str]) -> Given:
    from envsolve.app.request.hosts import detected_host
    from envsolve.host.host_file import read_host_file

    host: Host | None = None
    if request.host is not None:
        host = read_host_file(Path(request.host))
    elif "auto" in request.gpus:
        host = detected_host(matrix, environ, thorough=False)
    names, capabilities = _gpus(request.gpus, matrix)
    return Given(
        host=host,
        gpus=names,
        capabilities=capabilities or (host.capabilities if host is not None else ()),
        driver=request.driver or (host.driver if host is not None else None),
        platform=request.platform or (host.platform if host is not None else None),
        python=request.python,
        built_cuda=request.built_cuda,
        toolkit=request.toolkit,
        packages={**_packages_in(request.prefix), **_frameworks(request.frameworks, matrix)},
        prefix=request.prefix,
    )


def _gpus(texts: tuple[str, ...], matrix: Matrix) -> tuple[tuple[str, ...], tuple[ComputeCapability, ...]]:
    """Product names and capabilities of GPUs as typed. Raises UsageError for an unknown one."""
    names, capabilities = [], []
    for text in texts:
        if text in ("auto", "none"):
            continue
        try:
            capabilities.append(ComputeCapability.parse(text))
        except ValueError:
            model = matrix.gpus.find(text)
            names.append(model.name)
            capabilities.append(model.capabilities[0])
    return tuple(names), tuple(capabilities)


def _frameworks(texts: tuple[str, ...], matrix: Matrix) -> dict[str, str]:
    """Frameworks as typed, with their pinned versions."""
    if not texts:
        return {}
    from envsolve.app.solve.solving import framework_requests
    from envsolve.frameworks import split_dependent
    from envsolve.model.request import parse_framework

    named, dependent = split_dependent(texts)
    requested = (*framework_requests(named, matrix), *map(parse_framework, dependent))
    return {
        name: next((clause.version for clause in versions if clause.operator == "=="), "")
        for name, versions in requested
    }


def _packages_in(prefix: str | None) -> dict[str, str]:
    if prefix is None:
        return {}
    from envsolve.diagnose.environment.from_files import inventory_from_files, is_environment
    from envsolve.model.names import normalized

    if not is_environment(Path(prefix)):
        hint = Hint("give the directory of a virtual or conda environment", "envsolve explain --prefix .venv TEXT")
        raise UsageError("no-environment", f"{prefix} is not a Python environment", hints=(hint,))
    inventory = inventory_from_files(Path(prefix))
    return {normalized(it.name): it.version or "" for it in inventory.distributions}


def _with_this_machine(
    given: Given, seen: Seen, request: ExplainRequest, matrix: Matrix, environ: Mapping[str, str]
) -> Given:
    """Add this machine's driver and GPUs if the text clearly comes from it: its environment exists here."""
    if given.host is not None or request.gpus or request.driver is not None or request.platform is not None:
        return given
    if not any(Path(clue.value).is_dir() for clue in seen.clues.get("prefix", ())):
        return given
    from envsolve.app.request.hosts import detected_host

    return given._replace(host=detected_host(matrix, environ, thorough=False))


def _finding(worded: WordedDiagnosis, case: Case, matrix: Matrix) -> Finding:
    """The finding with the environment for its fix, and without secrets."""
    about = _framework_of(worded.cause, case)
    finding = worded.finding._replace(about=about)
    if worded.solvable:
        from envsolve.app.explain.remedies import advice_on

        advice = advice_on(worded.cause.remedy or Remedy(), case, matrix, about)
        finding = finding if advice is None else _with_advice(finding, advice)
    return finding._replace(evidence=tuple(map(_shown, finding.evidence))).with_texts(masked)


def _with_advice(finding: Finding, advice: Advice) -> Finding:
    """The finding with the solver's advice, which is about its first cause; it knows no wheels beyond the matrix."""
    refused = advice.text if finding.commands else ""
    advised = finding._replace(
        fix=finding.fix if refused else f"{finding.fix} {advice.text}".strip(),
        commands=tuple(dict.fromkeys((*finding.commands, *advice.commands))),
        more=" ".join(filter(None, (finding.more, refused, advice.more))),
    )
    if not finding.possible_causes:
        return advised
    first, *others = finding.possible_causes
    first = first._replace(fix=advised.fix, commands=advised.commands, more=advised.more)
    return advised._replace(possible_causes=(first, *others))


def _framework_of(cause: Cause, case: Case) -> str | None:
    """The framework that a cause names, or else the most likely one of the text."""
    named = cause.fields.get("name")
    return named if named in TITLES else case.mentioned


def _shown(line: str) -> str:
    text = masked(" ".join(line.split()))
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"


def _recognised(case: Case) -> Iterator[str]:
    """Facts in the text about machine and environment, as ends of sentences."""
    for name in case.frameworks:
        version = case.version_of(name)
        yield f"{TITLES.get(name, name)} {version}" if version else TITLES.get(name, name)
    named = (
        ("NVIDIA driver", case.driver),
        ("CUDA of the driver", case.driver_cuda if case.clue("driver_cuda") else None),
        ("CUDA", case.toolkit),
        ("cuDNN", case.cudnn),
        ("Python", case.python),
        ("platform", case.platform),
    )
    yield from (f"{what} {value}" for what, value in named if value is not None)
    yield from (f"GPU {masked(name)}" for name in case.gpus)
    yield from (f"compute capability {it}" for it in case.capabilities)
