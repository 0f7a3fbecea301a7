"""``--format json``: the stack as data, in the shape the interface contract fixes."""

from __future__ import annotations

from collections.abc import Sequence

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.wheels import find_links_of, index_of
from envsolve.model.host import Host
from envsolve.model.solution import Choice

SCHEMA_VERSION = 1


def json_answer(answer: Answer) -> str:
    """The answer as one JSON document with a final newline."""
    return _dumped(_document(answer))


def json_answers(answers: Sequence[Answer]) -> str:
    """The answers for several platforms: the document of the first, with those of all under ``platforms``."""
    documents = [_document(answer) for answer in answers]
    return _dumped({**documents[0], "platforms": documents})


def _dumped(document: dict[str, object]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _document(answer: Answer) -> dict[str, object]:
    solution = answer.solution
    document: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "host": _host(answer.hosts[0]),
        "python": str(solution.python),
        "cuda": None if solution.toolkit is None else str(solution.toolkit.version),
        "cudnn": None if solution.cudnn is None else str(solution.cudnn.version),
        "cuda_owner": None if solution.owner is None else solution.owner.value,
        "minimum_driver": None if solution.minimum_driver is None else str(solution.minimum_driver),
        "frameworks": [_framework(choice) for choice in solution.choices],
        "because": [{"fact": fact.text, "source": fact.source} for fact in solution.because],
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


def _hosts(answer: Answer) -> list[dict[str, object]]:
    """Each host once, with the files that describe it: a fleet has many of a kind."""
    files: dict[str, list[str]] = {}
    described: dict[str, dict[str, object]] = {}
    for host, name in zip(answer.hosts, answer.solution.request.hosts, strict=True):
        key = repr(host._replace(notes=(), readings=()))
        files.setdefault(key, []).append(name)
        described.setdefault(key, _host(host))
    return [{**described[key], "files": names} for key, names in files.items()]


def _host(host: Host) -> dict[str, object]:
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


def _framework(choice: Choice) -> dict[str, object]:
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
