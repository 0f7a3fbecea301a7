"""``--format json``: the stack as data, in the documented form, and read back as a lock.

It is a report about a solution, and locks are not written in this format. Reading gives the frameworks and no other
package. Builds have the name that the matrix has, which is a prefix of the build string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from envsolve.boundary.files import FileError, json_value
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.facts import options_of
from envsolve.lockfile.lock import Lock, LockedFramework, Made, Stack, sorted_pins
from envsolve.lockfile.wheels import find_links_of, index_of
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Host, Platform
from envsolve.model.names import normalized
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.release import Source
from envsolve.model.solution import Choice

if TYPE_CHECKING:
    from envsolve import documents

_MAKER = ("envsolve_version", "matrix_date", "request", "alternatives")


def write(answers: Sequence[Answer], notes: Sequence[Note] = ()) -> str:
    """Return one document with a final newline: that of the first platform, with those of all in ``platforms``.

    Each has all ``notes``.
    """
    return _text_of([_with_notes(_document(answer), notes) for answer in answers])


def write_locks(locks: Sequence[Lock], answers: Sequence[Answer], notes: Sequence[Note]) -> str:
    """Like :func:`write`, but for locks, with every package.

    A lock without framework has neither CUDA nor a driver.
    """
    stacks = {it.solution.problem.platform.value: _document(it) for it in answers}
    found = []
    for lock in locks:
        document = _with_notes(stacks.get(lock.platform) or _without_stack(lock), notes)
        document["packages"] = list(_packages(lock))
        if lock.made is not None and lock.made.evidence:
            document["evidence"] = {kind: list(names) for kind, names in lock.made.evidence}
        found.append(document)
    return _text_of(found)


def _with_notes(document: documents.Stack, notes: Sequence[Note]) -> documents.Stack:
    known = document["notes"]
    return {**document, "notes": [*known, *(note for it in notes if (note := it.as_json()) not in known)]}


def _text_of(found: Sequence[documents.Stack]) -> str:
    import json

    document = found[0]
    if len(found) > 1:
        document = {**document, "platforms": [*found]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _without_stack(lock: Lock) -> documents.Stack:
    made = lock.made or Made("")
    return {
        "schema_version": 1,
        "host": {
            "platform": lock.platform,
            "driver": None,
            "driver_cuda": None,
            "glibc": lock.glibc,
            "gpus": [],
            "origin": {},
        },
        "python": ".".join(lock.python.split(".")[:2]),
        "cuda": None,
        "cudnn": None,
        "cuda_owner": None,
        "minimum_driver": None,
        "frameworks": [],
        "packages": [],
        "because": [],
        "alternatives": [],
        "notes": [],
        "request": made.command,
        "options": {key: list(values) for key, values in made.options},
        "matrix_date": made.matrix_date,
        "envsolve_version": made.envsolve_version,
    }


def _packages(lock: Lock) -> Iterator[documents.LockedPackage]:
    """Each package with its version and installer. Files and hashes are in the lock itself."""
    for package in lock.conda:
        yield {"name": package.name, "version": package.version, "build": package.build, "manager": "conda"}
    for pin in sorted_pins(lock.pins):
        yield {"name": pin.name, "version": pin.version, "manager": "pip"}


def document_in(text: str) -> dict[str, Any]:
    """Return an answer without its maker, with only the codes of notes and the relevant facts about machines.

    Raises FileError if it is not an answer.
    """
    return _without_maker(_document_of(text))


def read(text: str, platform: Platform) -> Lock | None:
    """Return the part of an answer for ``platform``, or None if it is for others.

    Raises FileError if it is not an answer.
    """
    document = _document_of(text)
    try:
        parts = {part["host"]["platform"]: part for part in document.get("platforms", [document])}
        part = parts.get(platform)
        return None if part is None else _lock(part, platform)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _no_answer() from None


def _document(answer: Answer) -> documents.Stack:
    solution = answer.solution
    document: documents.Stack = {
        "schema_version": 1,
        "host": _host(answer.hosts[0]),
        "python": str(solution.python),
        "cuda": None if solution.toolkit is None else str(solution.toolkit.version),
        "cudnn": None if solution.cudnn is None else str(solution.cudnn.version),
        "cuda_owner": None if solution.owner is None else solution.owner.value,
        "minimum_driver": None if solution.minimum_driver is None else str(solution.minimum_driver),
        "frameworks": [_framework(choice) for choice in solution.choices],
        "packages": [{"spec": it.spec, "manager": "pip" if it.by_pip else "conda"} for it in answer.requested],
        "because": [{"fact": fact.text, "source": fact.source} for fact in solution.because],
        "alternatives": [_alternative(it) for it in answer.alternatives],
        "notes": [it.as_json() for it in (*solution.notes, *(newer.note for newer in solution.newer_elsewhere))],
        "request": answer.command,
        "options": {key: list(values) for key, values in answer.options},
        "matrix_date": answer.matrix_date,
        "envsolve_version": answer.envsolve_version,
    }
    if answer.own_matrix:
        document["own_matrix"] = True
    if len(answer.hosts) > 1:
        document["hosts"] = _hosts(answer)
    return document


def _alternative(answer: Answer) -> documents.Alternative:
    """The difference between another stack and the first, and the command for it."""
    document = _document(answer)
    return {
        "python": document["python"],
        "cuda": document["cuda"],
        "cudnn": document["cudnn"],
        "cuda_owner": document["cuda_owner"],
        "minimum_driver": document["minimum_driver"],
        "frameworks": document["frameworks"],
        "command": answer.command,
    }


def _hosts(answer: Answer) -> list[documents.FleetHost]:
    """Each kind of host once, with the files that describe it: a fleet has many of a kind."""
    files: dict[str, list[str]] = {}
    described: dict[str, documents.SolvedHost] = {}
    for host, name in zip(answer.hosts, answer.solution.request.hosts, strict=True):
        key = repr(host._replace(notes=(), readings=()))
        files.setdefault(key, []).append(name)
        described.setdefault(key, _host(host))
    return [{**described[key], "files": names} for key, names in files.items()]


def _host(host: Host) -> documents.SolvedHost:
    return {
        "platform": host.platform.value,
        "driver": None if host.driver is None else str(host.driver),
        "driver_cuda": None if host.driver_cuda is None else str(host.driver_cuda),
        "glibc": None if host.glibc is None else str(host.glibc),
        "gpus": [
            {
                "name": gpu.name,
                "compute_capability": None if gpu.compute_capability is None else str(gpu.compute_capability),
                "count": gpu.count,
            }
            for gpu in host.gpus
        ],
        "origin": dict(host.origin),
    }


def _framework(choice: Choice) -> documents.Framework:
    release = choice.release
    return {
        "framework": release.framework,
        "version": str(release.version),
        "package": release.package,
        "source": release.source.value,
        "build": release.build,
        "index": index_of(release),
        "find_links": find_links_of(release),
        "channel": release.source.channel,
        "cuda": None if release.cuda is None else str(release.cuda),
        "cudnn": None if release.cudnn is None else str(release.cudnn),
        "compute_capabilities": [str(target) for target in release.code.sass],
        "ptx": [str(target) for target in release.code.ptx],
        "runs_as": {str(gpu): runs_as for gpu, runs_as in choice.runs_as.items()},
    }


def _document_of(text: str) -> dict[str, Any]:
    """The document in ``text``. Raises FileError if it is not an answer."""
    try:
        document = json_value(text)
    except FileError:
        raise _no_answer() from None
    if not isinstance(document, dict):
        raise _no_answer()
    return document


def _without_maker(document: Mapping[str, object]) -> dict[str, object]:
    found = {key: value for key, value in document.items() if key not in _MAKER}
    found["notes"] = [it.get("code") for it in _tables(document.get("notes"))]
    found["host"] = _machine(document.get("host"))
    found["hosts"] = [(_machine(it), it.get("files")) for it in _tables(document.get("hosts"))]
    found["platforms"] = [_without_maker(it) for it in _tables(document.get("platforms"))]
    return found


def _machine(host: object) -> object:
    """The platform, the C library and the compute capabilities of a host, which an answer depends on."""
    if not isinstance(host, dict):
        return host
    capabilities = {str(it.get("compute_capability")) for it in _tables(host.get("gpus"))}
    return host.get("platform"), host.get("glibc"), sorted(capabilities)


def _tables(listed: object) -> list[Mapping[str, object]]:
    return [it for it in listed if isinstance(it, dict)] if isinstance(listed, list) else []


def _lock(part: Mapping[str, Any], platform: Platform) -> Lock:
    """The lock of a part. Raises KeyError, TypeError or ValueError for an invalid one."""
    frameworks = tuple(map(_read_framework, part["frameworks"]))
    gpus = [_text_or_none(gpu["compute_capability"]) for gpu in part["host"]["gpus"]]
    stack = Stack(
        frameworks,
        tuple(sorted({it for it in gpus if it is not None})),
        _text_or_none(part.get("minimum_driver")),
        _text_or_none(part.get("cuda")),
        _text_or_none(part.get("cudnn")),
    )
    of_pip = [it for it in frameworks if Source(it.source).is_wheel]
    of_conda = [it for it in frameworks if it not in of_pip]
    return Lock(
        tuple(sorted_pins(Pin(normalized(it.package), _version(it), (), "") for it in of_pip)),
        platform,
        _text(part["python"]),
        _text_or_none(part["host"].get("glibc")),
        stack,
        Made(
            _text(part["envsolve_version"]),
            _text(part["request"]),
            None,
            _text_or_none(part.get("matrix_date")),
            part.get("own_matrix") is True,
            options=options_of(part.get("options"), _text(part["request"])),
        ),
        conda=tuple(CondaPackage(it.package, it.version, "", "", "") for it in of_conda),
    )


def _read_framework(row: Mapping[str, object]) -> LockedFramework:
    return LockedFramework(*(_text(row[field]) for field in LockedFramework._fields))


def _version(wheel: LockedFramework) -> str:
    """The version for pip: see :attr:`envsolve.model.release.Release.full_version`."""
    return f"{wheel.version}+{wheel.build}" if wheel.source == Source.PYTORCH else wheel.version


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise TypeError(value)
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _no_answer() -> FileError:
    return FileError("it is JSON, but not from envsolve")
