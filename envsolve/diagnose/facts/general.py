"""What is known of the environment and the machine that a text is about, beside the properties of the case."""

from __future__ import annotations

from envsolve.diagnose.case import TITLES, Case, Lines
from envsolve.diagnose.facts.shared.gpu_packages import about_gpus
from envsolve.frameworks import FRAMEWORKS


def framework(case: Case, lines: Lines) -> str | None:
    """The framework, as its makers write it."""
    known = name(case, lines)
    return TITLES.get(known, known) if known else None


def name(case: Case, lines: Lines) -> str | None:
    """The framework, by envsolve's name: of the case, or the one that alone says it in the words of the lines."""
    return case.framework or next((it for it in FRAMEWORKS if any(line.get(it) for line in lines)), None)


def version(case: Case, _lines: Lines) -> str | None:
    """The framework's version, local part included."""
    return case.version_of(case.framework)


def gpu(case: Case, _lines: Lines) -> str | None:
    """The name of the GPU."""
    return case.gpus[0] if case.gpus else None


def platform_given(case: Case, _lines: Lines) -> bool:
    """Whether the platform is given and not read from the text."""
    return case.given.platform is not None


def of_gpus(case: Case, _lines: Lines) -> bool:
    """Whether the text names a GPU framework or a package built for CUDA."""
    return about_gpus(case)


def line(_case: Case, lines: Lines) -> str:
    """The text of the first judged line."""
    return lines[0].line
