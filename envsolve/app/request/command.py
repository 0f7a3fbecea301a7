"""The command line for a request, used in headers and in hints."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint
from envsolve.lockfile.options import UNRECORDED, Options
from envsolve.model.need import parse_need
from envsolve.model.reference import editable_folder
from envsolve.model.request import Audit, Policy, Request, versions_text
from envsolve.model.requester import key_of

_FILE_OF = {"requirements": "requirements.txt", "pylock": "pylock.toml", "conda-lock": "conda-lock.yml"}


def command_of(request: Request) -> str:
    """The envsolve command that a person would type for ``request``, quoted for a POSIX shell and without secrets."""
    words = ["envsolve", *request.requester.command]
    if request.requester.command:
        request = request._replace(platforms=())  # only a lock can be for another platform
    for option, values in _options(request):
        for value in values:
            words += [option, value]
    words += ["--exact"] if request.packages.exact else []
    words += ["--allow-builds"] if request.packages.allow_builds else []
    words += ["--extensions"] if request.packages.extensions else []
    words += ["--pre"] if request.packages.pre else []
    for text in request.packages.requirements:
        folder = editable_folder(text)
        words += [text] if folder is None else ["-e", folder]
    return shlex.join(map(without_secrets, words))


def way_out(text: str, instead: Request, original: Request, kind: str | None = None) -> Hint:
    """A hint with ``text`` and how to request ``instead``: a command, or the changes to the project of ``original``.

    Neither can change a framework that only requirements name.
    """
    if original.requester.implied and instead.frameworks != original.frameworks:
        return Hint(text, kind=kind)
    if not original.requester.file:
        return Hint(text, command_of(instead), kind)
    changes = [] if instead.hosts != original.hosts else list(_changes(instead, original))
    return Hint(f"{text}: {' and '.join(changes)}" if changes else text, kind=kind)


def _changes(instead: Request, original: Request) -> Iterator[str]:
    """The changes to the keys of a project that turn one request into the other."""
    before = {option: tuple(values) for option, values in _options(original)}
    for option, values in _options(instead):
        found, key = tuple(values), key_of(option)
        if found == before[option]:
            continue
        if option == "--format":
            yield from (original.requester.setting("outputs", _FILE_OF[it]) for it in found if it in _FILE_OF)
        elif found:
            dependent = _dependent(instead) if option == "--framework" else ()
            yield original.requester.setting(key, *found, *dependent)
        else:
            yield f"without {original.requester.name_of(key)}"
    if instead.packages.allow_builds and not original.packages.allow_builds:
        yield original.requester.setting("allow-builds")
    if instead.packages.extensions and not original.packages.extensions:
        yield original.requester.setting("extensions")
    if instead.packages.pre and not original.packages.pre:
        yield original.requester.setting("pre")


def _dependent(request: Request) -> Iterator[str]:
    """The dependent frameworks of a request, which a project may list among its frameworks."""
    from envsolve.frameworks import DEPENDENT_FRAMEWORKS  # only needed for a project

    for text in request.packages.requirements:
        with suppress(ValueError):
            if parse_need(text).name in DEPENDENT_FRAMEWORKS:
                yield text


def recorded_options(request: Request) -> Options:
    """The options of a request that an answer records, without its machines, by the keys of a project."""
    flags = {
        "exact": request.packages.exact,
        "allow-builds": request.packages.allow_builds,
        "extensions": request.packages.extensions,
        "pre": request.packages.pre,
    }
    given = (
        (key_of(option), tuple(map(without_secrets, it)))
        for option, it in _options(request)
        if option not in UNRECORDED
    )
    return (*(it for it in given if it[1]), *((flag, ("true",)) for flag, is_set in flags.items() if is_set))


def recorded_command(request: Request) -> str:
    """The command that an answer records. Machines that a project names have the same names in it."""
    request = request._replace(requester=request.requester._replace(command=()))
    if not request.named_hosts:
        return command_of(request)
    options = command_of(request._replace(hosts=(), platforms=())).removeprefix("envsolve ")
    machines = "; ".join(f"{it.name}: {it.typed}" for it in request.named_hosts)
    return f"envsolve lock  # {options} for {machines}"


def _options(request: Request) -> Iterator[tuple[str, Iterable[str]]]:
    """Every option with its values; options at their default have none."""
    implied = request.requester.implied
    yield "--framework", (str(it) for it in request.frameworks if it.framework not in implied)
    yield "--requirement", request.packages.files
    yield "--constraint", request.packages.constraints
    yield "--override", request.packages.overrides
    yield "--build-constraint", request.packages.build_constraints
    yield "--python", () if request.python is None else (versions_text(request.python),)
    yield "--cuda", () if request.cuda is None else (versions_text(request.cuda),)
    yield "--driver", () if request.driver is None else (str(request.driver),)
    yield "--glibc", () if request.glibc is None else (str(request.glibc),)
    yield "--gpu", request.gpus
    yield "--host", _hosts(request.hosts)
    yield "--source", (source.value for source in request.sources)
    yield "--channel", request.channels
    yield "--extra-index-url", request.extra_index_urls
    yield "--index-url", () if request.index_url is None else (request.index_url,)
    yield "--pytorch-index-url", _given(request.packages.pytorch_index_url)
    yield "--exclude-newer", _given(request.packages.exclude_newer)
    yield "--audit", () if request.packages.audit is Audit.AUTO else (request.packages.audit.value,)
    yield "--platform", (platform.value for platform in request.platforms)
    yield "--prefer", () if request.prefer is Policy.NEWEST_FRAMEWORK else (request.prefer.value,)
    yield "--format", () if request.format in ("", "environment") else (request.format,)


def _given(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


def _hosts(names: Sequence[str]) -> Sequence[str]:
    """``names``. If all nodes of a list are there, one name for the list replaces them."""
    if not any(":" in it for it in names):
        return names
    from envsolve.fleet.inventory import together

    return together(names)
