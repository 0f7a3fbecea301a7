"""``--format environment``: a conda environment.yml that a person can read, each pin with its reason.

CUDA stays inside the environment: it comes from conda packages (:mod:`envsolve.lockfile.conda_specs`), or from the
wheels' own dependencies or their inside.
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.conda_specs import channels_of, conda_specs, environment_name
from envsolve.lockfile.header import commented, made_by, made_for
from envsolve.lockfile.pip_specs import pip_options, pip_specs, wheels_of
from envsolve.lockfile.remarks import override_remarks, use_remarks
from envsolve.lockfile.yaml import scalar


def environment_yml(answer: Answer) -> str:
    """The content of the file, the same bytes for the same answer."""
    return "".join(f"{line}\n" for line in _lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    solution = answer.solution
    yield from made_by(answer.envsolve_version, answer.command, answer.matrix_date, own_matrix=answer.own_matrix)
    yield from made_for(answer)
    yield from use_remarks(answer)
    yield from override_remarks(solution)
    yield f"name: {environment_name(solution)}"
    yield "channels:"
    for channel in channels_of(solution):
        yield f"  - {scalar(channel)}"
    yield "dependencies:"
    for spec, reason in conda_specs(solution):
        yield commented(f"  - {spec}", reason)
    if wheels_of(solution):
        yield "  - pip"
        yield "  - pip:"
        for option in pip_options(solution):
            yield f"    - {option}"
        for requirement, reason in pip_specs(solution):
            yield commented(f"    - {requirement}", reason)
