"""Readings from libraries of the driver. They are answers of a child process, so they may be anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from envsolve.host.gpus import grouped
from envsolve.host.loader import find_in_current_directory, missing, without_relative_entries
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Reading, SourceFailure
from envsolve.model.versions import CudaVersion, DriverVersion

if TYPE_CHECKING:
    from envsolve.host.child import Ended, Query

T = TypeVar("T")

_NAMES = {Source.NVML: "NVML", Source.LIBCUDA: "libcuda"}
_MEMORY_SIZES = range(1 << 20, 1 << 50)
"""Plausible bytes of memory of a GPU; other numbers are garbage."""


def query_library(machine: Machine, source: Source, query: Query, names: Sequence[str]) -> Reading:
    """Query the library that one of ``names`` loads.

    A child that crashes, hangs or prints garbage becomes a problem.
    """
    problem = missing(names, machine.environ)
    if problem is None:
        from envsolve.host.child import query_child

        ended = query_child(query, names, without_relative_entries(machine.environ), machine.timeout)
        reading = reading_of(ended, source)
    else:
        reading = Reading(source, problem=problem)
    if reading.problem is not None and reading.problem.code == Trouble.LIBRARY_MISSING:
        found = find_in_current_directory(names, machine.environ)
        if found is not None:
            text = f"{found} lies in the current directory"
            return reading._replace(problem=SourceFailure(Trouble.LIBRARY_IN_CURRENT_DIRECTORY, text))
    return reading


def reading_of(ended: Ended, source: Source) -> Reading:
    """The facts in the answer of a child, or the reason why there are none."""
    problem = _ending(ended, _NAMES[source])
    if problem is not None:
        return Reading(source, problem=problem)
    try:
        return _reading(ended.answer, source)
    except (ValueError, TypeError, RecursionError):
        text = f"the process that queried {_NAMES[source]} sent an unreadable result"
        return Reading(source, problem=SourceFailure(Trouble.PROBE_FAILED, text))


def _ending(ended: Ended, name: str) -> SourceFailure | None:
    code = ended.exit_code
    if ended.too_large:
        return SourceFailure(Trouble.CRASH, f"{name} took too much memory and was stopped")
    if code is None:
        return SourceFailure(Trouble.HANG, f"{name} did not answer in time")
    if code < 0:
        return SourceFailure(Trouble.CRASH, f"{name} died with signal {-code}", -code)
    if code > 0 or not ended.answer:
        return SourceFailure(Trouble.CRASH, f"{name} ended the process that queried it, with exit code {code}", code)
    return None


def _reading(answer: bytes, source: Source) -> Reading:
    """The reading in ``answer``.

    Raises ValueError, TypeError or RecursionError if it is not from nvml.py or libcuda.py.
    """
    import json

    facts = _typed(json.loads(answer), dict) or {}
    driver, problem = _typed(facts.get("driver"), str), _problem(_typed(facts.get("problem"), list))
    number, gpus = _typed(facts.get("driver_cuda"), int), _typed(facts.get("gpus"), list)
    try:
        version = None if driver is None else DriverVersion.parse(driver)
    except ValueError as error:
        version, problem = None, problem or SourceFailure(Trouble.UNREADABLE_ANSWER, str(error))
    return Reading(
        source,
        driver=version,
        driver_cuda=None if number is None else CudaVersion.from_driver_api(number),
        gpus=None if gpus is None else grouped(_gpu(*_typed(gpu, list) or ()) for gpu in gpus),
        problem=problem,
    )


def _problem(parts: list[object] | None) -> SourceFailure | None:
    if parts is None:
        return None
    code, text, number = parts
    return SourceFailure(Trouble(str(code)), _typed(text, str) or "", _typed(number, int))


def _gpu(name: object, major: object, minor: object, memory: object, mig: object) -> Gpu:
    size = _typed(memory, int) or 0
    return Gpu(
        _typed(name, str),
        _capability(_typed(major, int), _typed(minor, int)),
        memory_mib=size // 2**20 if size in _MEMORY_SIZES else None,
        mig=_typed(mig, bool) or False,
    )


def _capability(major: int | None, minor: int | None) -> ComputeCapability | None:
    """The compute capability; None if the library does not know it or reports invalid numbers."""
    try:
        return ComputeCapability.parse(f"{major}.{minor}")
    except ValueError:
        return None


def _typed(value: object, kind: type[T]) -> T | None:
    """``value``, which is None or a ``kind``; raises ValueError otherwise. True does not count as a number."""
    if value is None or (isinstance(value, kind) and isinstance(value, bool) == (kind is bool)):
        return value
    raise ValueError(f"not a {kind.__name__}")
