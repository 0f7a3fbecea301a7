"""The answer of a framework's probe, parsed; inside/operations.py writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from envsolve.validation.child import Outcome


class Raised(NamedTuple):
    """An exception of the framework."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


class Operation(NamedTuple):
    """One operation.

    ``ok`` is None if the framework does not have the operation, and ``unsupported`` says why. ``max_error`` is relative
    to the largest number of the reference; None if a number was NaN or the operation did not finish. ``wrong`` of
    ``numbers`` differ by more than ``tolerance``.
    """

    name: str
    ok: bool | None
    on_device: bool
    max_error: float | None
    tolerance: float
    wrong: int
    numbers: int
    raised: Raised | None
    unsupported: str | None
    learns: bool | None
    losses: tuple[str, ...]
    proves: str | None


class Burn(NamedTuple):
    """A product of large matrices, repeated."""

    ok: bool
    products: int
    seconds: float
    wrong: int
    raised: Raised | None


class Answer(NamedTuple):
    """The facts about a framework. ``stage`` is where the probe ended, if it did not reach the operations."""

    version: str | None
    cpu_build: bool
    device: str | None
    operations: tuple[Operation, ...]
    burn: Burn | None
    stage: str | None
    raised: Raised | None
    unsupported: str | None
    remarks: tuple[str, ...]


def answer_of(outcome: Outcome) -> Answer:
    """The result of the probe, or its notes if it ended early."""
    noted: dict[str, Any] = {key: value for note in outcome.notes for key, value in note.items()}
    result: Mapping[str, Any] = outcome.result or {**noted, "operations": outcome.all_noted("operation")}
    burn = result.get("burn")
    return Answer(
        version=_text(result.get("version")),
        cpu_build=bool(result.get("cpu_build")),
        device=_text(result.get("device")),
        operations=tuple(_operation(it) for it in _sequence(result.get("operations"))),
        burn=_burn(burn) if isinstance(burn, dict) else None,
        stage=_text(result.get("stage")),
        raised=_raised(result.get("error")),
        unsupported=_text(result.get("unsupported")),
        remarks=tuple(map(str, _sequence(result.get("remarks")))),
    )


def _operation(values: Mapping[str, Any]) -> Operation:
    return Operation(
        name=str(values["name"]),
        ok=values["ok"],
        on_device=bool(values["on_device"]),
        max_error=values["max_error"],
        tolerance=float(values["tolerance"]),
        wrong=int(values.get("wrong", 0)),
        numbers=int(values.get("numbers", 0)),
        raised=_raised(values.get("error")),
        unsupported=_text(values.get("unsupported")),
        learns=values.get("learns"),
        losses=tuple(map(str, _sequence(values.get("losses")))),
        proves=_text(values.get("proves")),
    )


def _burn(values: Mapping[str, Any]) -> Burn:
    return Burn(
        ok=bool(values["ok"]),
        products=int(values["products"]),
        seconds=float(values["seconds"]),
        wrong=int(values["wrong"]),
        raised=_raised(values.get("error")),
    )


def _raised(value: object) -> Raised | None:
    if not isinstance(value, dict):
        return None
    return Raised(str(value.get("type", "")), str(value.get("text", "")).strip())


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
