"""Host files: a machine described in JSON, so that another machine can solve for it.

``origin``, ``status``, ``wsl`` and ``notes`` are read back. ``readings`` are written for people and bug reports only: a
host from a file is the result of the detection, not what each source reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from envsolve.boundary.display import one_line, short_line
from envsolve.boundary.files import FileError, decoded, json_value, read_argument
from envsolve.errors import Hint, UsageError
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, GpuStatus, Host, Platform, Reading, SourceFailure
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion
from envsolve.model.words import member_of

if TYPE_CHECKING:
    from envsolve import documents

SCHEMA_VERSION: Final = 1

T = TypeVar("T")


def host_as_json(host: Host) -> documents.Host:
    """The host file of the JSON contract, with ``status``, ``wsl``, ``notes`` and ``readings`` added to its keys."""
    return {
        "schema_version": SCHEMA_VERSION,
        "platform": host.platform.value,
        "driver": _text(host.driver),
        "driver_cuda": _text(host.driver_cuda),
        "glibc": _text(host.glibc),
        "gpus": [_gpu_as_json(gpu) for gpu in host.gpus],
        "origin": dict(host.origin),
        "status": host.status.value,
        "wsl": host.wsl,
        "notes": list(host.notes),
        "readings": [_reading_as_json(reading) for reading in host.readings],
    }


def read_host_file(path: Path) -> Host:
    """The host in the file at ``path``. Raises UsageError with the file and the key if it is invalid."""
    try:
        content = read_argument(str(path), _LONGEST)
        if content is None:
            raise FileError("there is no such file")
        text = decoded(content)
    except FileError as error:
        message = f"cannot read the host file {path}: {error.reason}"
        raise UsageError("host-file-unreadable", message, hints=_HINTS) from None
    try:
        data = json_value(text)
    except FileError as error:
        raise UsageError("host-file-not-json", f"cannot read {path}: {error.reason}", hints=_HINTS) from None
    return host_of(data, path)


def host_of(data: object, path: Path, place: str = "") -> Host:
    """The host that ``data`` of the file at ``path`` describes. Raises UsageError with the key below ``place``."""
    return _host(_Table(path, place, data))


_LONGEST = 4 * 1024 * 1024
"""Bytes; a host has a few hundred."""
_HINTS = (Hint("write one on the target machine", "envsolve detect --json > host.json"),)


def _text(value: object | None) -> str | None:
    return None if value is None else str(value)


def _gpu_as_json(gpu: Gpu) -> documents.Gpu:
    return {
        "name": gpu.name,
        "compute_capability": _text(gpu.compute_capability),
        "count": gpu.count,
        "memory_mib": gpu.memory_mib,
        "mig": gpu.mig,
    }


def _reading_as_json(reading: Reading) -> documents.Reading:
    return {
        "source": str(reading.source),
        "driver": _text(reading.driver),
        "driver_cuda": _text(reading.driver_cuda),
        "gpus": None if reading.gpus is None else [_gpu_as_json(gpu) for gpu in reading.gpus],
        "problem": None if reading.problem is None else _problem_as_json(reading.problem),
    }


def _problem_as_json(problem: SourceFailure) -> documents.SourceFailure:
    return {"code": str(problem.code), "text": problem.text, "number": problem.number}


class _Table:
    """One JSON object of the file with its place in it, so that every error can name the key."""

    def __init__(self, path: Path, place: str, data: object) -> None:
        self.path = path
        self.place = place
        if not isinstance(data, dict):
            raise self.error(place.removesuffix("."), "must be a JSON object", data)
        self.data: dict[str, object] = data

    def error(self, key: str, complaint: str, value: object) -> UsageError:
        """The error about ``key``, a full path such as ``gpus[0].count``."""
        subject = f"{key!r}" if key else "the file"
        message = f"{self.path}: {subject} {complaint}, not {value!r}"
        return UsageError("host-file-wrong-shape", message, hints=_HINTS)

    def required(self, key: str, kind: type[T]) -> T:
        """The value of ``key``, which is required and must be a ``kind``."""
        value = self.get(key, kind)
        if value is None:
            raise UsageError("host-file-wrong-shape", f"{self.path}: {self.place + key!r} is missing", hints=_HINTS)
        return value

    def get(self, key: str, kind: type[T]) -> T | None:
        """The value of ``key``, which must be a ``kind``; None if it is null or absent."""
        value = self.data.get(key)
        if value is None or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
            return value
        raise self.error(self.place + key, f"must be {_KINDS[kind]}", value)

    def parse(self, key: str, parse: Callable[[str], T]) -> T | None:
        """The parsed text at ``key``; None if it is null or absent."""
        text = self.get(key, str)
        return None if text is None else self.parsed(key, text, parse)

    def parsed(self, key: str, text: str, parse: Callable[[str], T]) -> T:
        """``text``, the value of ``key``, parsed."""
        try:
            return parse(text)
        except ValueError as error:
            raise UsageError(
                "host-file-wrong-shape", f"{self.path}: {self.place + key!r}: {error}", hints=_HINTS
            ) from None

    def positive(self, key: str) -> int | None:
        """The number at ``key``, at least 1; None if it is null or absent."""
        number = self.get(key, int)
        if number is not None and number < 1:
            raise self.error(self.place + key, "must be at least 1", number)
        return number


_KINDS: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    list: "a list",
    dict: "an object",
    bool: "true or false",
}


def _host(table: _Table) -> Host:
    _check_schema(table)
    platform = table.parsed("platform", table.required("platform", str), member_of(Platform))
    driver = table.parse("driver", DriverVersion.parse)
    gpus = tuple(
        _gpu(_Table(table.path, f"{table.place}gpus[{i}].", gpu)) for i, gpu in enumerate(table.get("gpus", list) or [])
    )
    return Host(
        platform=platform,
        driver=driver,
        driver_cuda=table.parse("driver_cuda", CudaVersion.parse),
        glibc=table.parse("glibc", LibcVersion.parse),
        gpus=gpus,
        status=table.parse("status", member_of(GpuStatus)) or _default_status(driver, gpus),
        origin=_origin(table),
        wsl=table.get("wsl", bool) or False,
        notes=tuple(one_line(str(note)) for note in table.get("notes", list) or ()),
    )


def _check_schema(table: _Table) -> None:
    version = table.required("schema_version", int)
    if version > SCHEMA_VERSION:
        message = f"{table.path} has schema_version {version}; this envsolve reads up to {SCHEMA_VERSION}"
        raise UsageError("host-file-too-new", message, hints=(Hint("update envsolve"),))
    if version != SCHEMA_VERSION:
        raise table.error(f"{table.place}schema_version", f"must be {SCHEMA_VERSION}", version)


def _gpu(table: _Table) -> Gpu:
    name = table.get("name", str)
    capability = table.parse("compute_capability", ComputeCapability.parse)
    if name is not None and not name.isprintable():
        raise table.error(table.place + "name", "must not contain control characters", name)
    if name is None and capability is None:
        raise table.error(table.place + "compute_capability", "must be given for a GPU without a name", None)
    return Gpu(
        name,
        capability,
        count=table.positive("count") or 1,
        memory_mib=table.positive("memory_mib"),
        mig=table.get("mig", bool) or False,
    )


def _origin(table: _Table) -> dict[str, str]:
    origin: dict[str, object] = table.get("origin", dict) or {}
    return {short_line(str(key)): short_line(str(source)) for key, source in origin.items()}


def _default_status(driver: DriverVersion | None, gpus: tuple[Gpu, ...]) -> GpuStatus:
    """The status for a file written by hand: GPUs in it are meant to be usable."""
    if gpus:
        return GpuStatus.READY
    return GpuStatus.NO_HARDWARE if driver is None else GpuStatus.NO_GPU
