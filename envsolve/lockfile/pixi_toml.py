"""``--format pixi``: a pixi workspace manifest, pixi.toml, for one platform or several; pixi solves and locks the rest.

What the stacks of all platforms ask for stands once, what differs under ``[target.PLATFORM]``. The machine is told to
pixi as pixi 0.71 and later have it, at the platform (pixi.prefix.dev, declaring virtual packages per platform). Sources
are pixi's documentation and JSON schema (prefix-dev/pixi, docs/reference/pixi_manifest.md, schema/schema.json).

A manifest is read back as a lock of what its default environment pins on one platform. People edit these files: what is
asked for in no one version, or in words that are not understood, is left open and is no error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.conda_header import comments_of, facts_on_top
from envsolve.lockfile.conda_locks import assembled
from envsolve.lockfile.conda_specs import channels_of, conda_specs, environment_name
from envsolve.lockfile.header import commented, made_by, made_for
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.pip_specs import pip_specs, wheels_of
from envsolve.lockfile.remarks import needs_library_path, use_remarks
from envsolve.lockfile.requirements_txt import read_lines
from envsolve.lockfile.sound_pins import sound_url
from envsolve.lockfile.text_file import clean, shown
from envsolve.lockfile.toml import Value, string, value
from envsolve.lockfile.wheels import find_links_of, goes_by_folder, index_of, requirements_of
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.names import is_name, normalized
from envsolve.model.solution import Solution
from envsolve.model.versions import CudaVersion, LibcVersion

_FIRST_PIXI = "0.71"
"""The first whose platforms say what a machine has; before, ``[system-requirements]`` says it of all platforms."""
_FIRST_MINOR_COMPATIBLE = 11
"""From CUDA 11 on a driver of the first minor runs the whole major (NVIDIA, CUDA compatibility)."""
_ASSUMED_GLIBC = LibcVersion.parse("2.28")
"""What pixi assumes of a Linux that says nothing else."""
_SPEC = re.compile(r"([A-Za-z0-9_.-]+)(.*)\Z")
_PIN = re.compile(r"=([^=<>!~,|]+)(?:=([^=,]+))?\Z")
_PINNED = re.compile(r"(?:==)?([0-9][\w.!+]*?)(?:\.\*)?\Z")
_BARE_VERSION = re.compile(r"[0-9]")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


class _Dependency(NamedTuple):
    """What is asked of one package; what is not said of it is empty."""

    version: str
    build: str = ""
    extras: tuple[str, ...] = ()
    index: str = ""  # type: ignore[assignment]  # the key in the manifest; nobody wants tuple.index
    url: str = ""


class _Wanted(NamedTuple):
    """A dependency with the reasons for it."""

    dependency: _Dependency
    reasons: tuple[str, ...]


_Dependencies = Mapping[str, _Wanted]


def write(answers: Sequence[Answer]) -> str:
    """The content of the file, the same bytes for the same answers, each of which is for a platform of its own.

    Raises UsageError ``channels-differ`` where the stacks are from different channels: a manifest has one list.
    """
    return "\n".join(_lines(answers)) + "\n"


def read(text: str, platform: Platform) -> Lock | None:
    """What a manifest pins on ``platform``; None where it is for other ones. Raises FileError where it is no TOML."""
    document = document_of(text)
    workspace = _read_table(document.get("workspace")) or _read_table(document.get("project"))
    platforms = [_named(it, "platform") for it in _list(workspace.get("platforms"))]
    if platforms and platform not in platforms:
        return None
    conda = [_package(name, asked) for name, asked in _read_asked(document, "dependencies", platform)]
    wheels = read_lines("\n".join(_requirements(document, platform)), "")
    indexes = {normalized(name): index for name, index in _indexes(document, platform)}
    left_open = (Open(f"{shown(it.name)} is no one version", it.name, of_conda=True) for it in conda if not it.version)
    bare = wheels._replace(
        pins=tuple(it._replace(index_url=indexes.get(it.name, it.index_url)) for it in wheels.pins),
        open=(*left_open, *wheels.open),
    )
    pinned = [it for it in conda if it.version]
    lock = assembled(bare, platform, pinned, facts_on_top(text, platform), comments_of(text))
    channels = (_named(it, "channel") for it in _list(workspace.get("channels")))
    return lock._replace(channels=tuple(without_secrets(it) for it in channels if it))


def document_of(text: str) -> Mapping[str, object]:
    """The tables of a manifest. Raises FileError where it is no TOML."""
    import tomli

    try:
        return tomli.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"it is not TOML: {clean(str(error))}") from None


def requirements_in(text: str, platform: Platform) -> tuple[str, ...]:
    """The wheels that a manifest asks for on ``platform``, as requirements. Raises FileError where it is no TOML."""
    return tuple(_requirements(document_of(text), platform))


def _lines(answers: Sequence[Answer]) -> Iterator[str]:
    solutions = {answer.solution.problem.platform: answer.solution for answer in answers}
    yield from _header(answers)
    yield from _workspace(list(solutions.values()))
    yield from _tables("dependencies", {platform: _conda(it) for platform, it in solutions.items()})
    yield from _tables("pypi-dependencies", {platform: _wheels(it) for platform, it in solutions.items()})
    yield from _pypi_options(list(solutions.values()))
    for platform, solution in solutions.items():
        if needs_library_path(solution):
            yield ""
            yield f"[target.{platform}.activation.env]"
            reason = "where the wheel looks for the CUDA libraries"
            yield commented(f"LD_LIBRARY_PATH = {string('$CONDA_PREFIX/lib')}", reason)


def _header(answers: Sequence[Answer]) -> Iterator[str]:
    first = answers[0]
    yield from made_by(first.envsolve_version, first.command, first.matrix_date, own_matrix=first.own_matrix)
    for answer in answers:
        yield from made_for(answer)
    yield from dict.fromkeys(line for it in answers for line in use_remarks(it, sets_library_path=True))
    cuda = [version for answer in answers if (version := _driver_cuda(answer.solution)) is not None]
    if cuda:
        yield "# To install it on a machine without the GPU, put"
        yield f"#   CONDA_OVERRIDE_CUDA={max(cuda)}"
        yield "# before pixi."
    machine = _machine(first.solution)
    if len(answers) == 1 and len(machine) > 1:
        yield from _for_older_pixi(machine)


def _for_older_pixi(machine: Mapping[str, str]) -> Iterator[str]:
    """The spelling that pixi deprecates from 0.71 on, and still reads."""
    keys = {"cuda": "cuda", "glibc": "libc"}
    yield f"# For pixi before {_FIRST_PIXI} leave out requires-pixi and write"
    yield f"#   platforms = {value([machine['platform']])}"
    yield "#   [system-requirements]"
    for key, old in keys.items():
        if key in machine:
            yield f"#   {old} = {string(machine[key])}"


def _workspace(solutions: Sequence[Solution]) -> Iterator[str]:
    machines = [_machine(solution) for solution in solutions]
    told: list[Value] = [machine if len(machine) > 1 else machine["platform"] for machine in machines]
    yield "[workspace]"
    yield f"name = {string(_name(solutions))}"
    yield f"channels = {value(_channels(solutions))}"
    yield f"platforms = {value(told)}"
    if any(len(machine) > 1 for machine in machines):
        yield f"requires-pixi = {string(f'>={_FIRST_PIXI}')}"


def _name(solutions: Sequence[Solution]) -> str:
    names = dict.fromkeys(map(environment_name, solutions))
    frameworks = "-".join(choice.release.framework for choice in solutions[0].choices)
    return next(iter(names)) if len(names) == 1 else frameworks


def _channels(solutions: Sequence[Solution]) -> list[str]:
    lists = {solution.problem.platform: channels_of(solution) for solution in solutions}
    first = channels_of(solutions[0])
    if any(channels != first for channels in lists.values()):
        told = " and ".join(f"{', '.join(channels)} for {platform}" for platform, channels in lists.items())
        message = f"the stacks are from different channels, and a pixi manifest has one list of them: {told}"
        hint = Hint(
            "name one source for all platforms, such as --source conda-forge, or write a file for each platform"
        )
        raise UsageError("channels-differ", message, hints=(hint,))
    return first


def _machine(solution: Solution) -> dict[str, str]:
    """The platform with what a machine must have to be chosen for it."""
    told = {"cuda": _driver_cuda(solution), "glibc": _glibc(solution)}
    machine = {"platform": solution.problem.platform.value}
    return machine | {key: str(version) for key, version in told.items() if version is not None}


def _driver_cuda(solution: Solution) -> CudaVersion | None:
    """The CUDA of the lowest driver that the stack runs on, which is what ``__cuda`` tells: pixi wants that or more."""
    toolkit, minimum = solution.toolkit, solution.minimum_driver
    if toolkit is None:
        return None
    full = toolkit.full(windows=all(machine.windows_driver for machine in solution.problem.machines))
    in_full = full is not None and minimum is not None and minimum.parts >= full.parts
    if in_full or toolkit.version.major < _FIRST_MINOR_COMPATIBLE:
        return toolkit.version
    return CudaVersion(toolkit.version.major, 0)


def _glibc(solution: Solution) -> LibcVersion | None:
    """The oldest of the machines where pixi would assume a newer one, the newest that a build needs where an older."""
    known = [machine.glibc for machine in solution.problem.machines if machine.glibc is not None]
    needed = [choice.release.glibc for choice in solution.choices if choice.release.glibc is not None]
    oldest, newest = min(known, default=_ASSUMED_GLIBC), max(needed, default=_ASSUMED_GLIBC)
    if oldest < _ASSUMED_GLIBC:
        return oldest
    return newest if newest > _ASSUMED_GLIBC else None


def _conda(solution: Solution) -> _Dependencies:
    return _collected((*_conda_dependency(spec), reason) for spec, reason in conda_specs(solution))


def _conda_dependency(spec: str) -> tuple[str, _Dependency]:
    """A match spec in pixi's words, in which a bare version is an exact one."""
    found = _SPEC.match(spec)
    assert found is not None
    name, rest = found[1], found[2]
    pin = _PIN.match(rest)
    if pin is not None and pin[2]:
        return name, _Dependency(f"=={pin[1]}", pin[2])
    if pin is not None:
        return name, _Dependency(pin[1] if pin[1].endswith("*") else f"{pin[1]}.*")
    return name, _Dependency(re.sub(r"\A=(?!=)", "", rest) or "*")


def _wheels(solution: Solution) -> _Dependencies:
    indexes = {
        requirement: index_of(choice.release) or ""
        for choice in wheels_of(solution)
        for requirement in requirements_of(choice.release, solution.python)
    }
    return _collected((*_wheel(spec, indexes.get(spec, "")), reason) for spec, reason in pip_specs(solution))


def _wheel(spec: str, index: str) -> tuple[str, _Dependency]:
    from packaging.requirements import Requirement

    asked = Requirement(spec)
    extras = tuple(sorted(asked.extras))
    if asked.url:
        return asked.name, _Dependency("", extras=extras, url=asked.url)
    return asked.name, _Dependency(str(asked.specifier) or "*", extras=extras, index=index)


def _collected(asked: Iterator[tuple[str, _Dependency, str]]) -> _Dependencies:
    """By name; a package that is asked for twice must be both."""
    found: dict[str, _Wanted] = {}
    for name, dependency, reason in asked:
        known = found.get(name)
        if known is None:
            found[name] = _Wanted(dependency, (reason,))
        else:
            found[name] = _Wanted(_both(known.dependency, dependency), tuple(dict.fromkeys((*known.reasons, reason))))
    return found


def _both(one: _Dependency, other: _Dependency) -> _Dependency:
    versions = dict.fromkeys(it.version for it in (one, other) if it.version not in ("", "*"))
    return _Dependency(
        ",".join(versions) or one.version,
        one.build or other.build,
        tuple(sorted({*one.extras, *other.extras})),
        one.index or other.index,
        one.url or other.url,
    )


def _tables(name: str, asked: Mapping[Platform, _Dependencies]) -> Iterator[str]:
    """What all platforms ask for alike in one table, the rest in one for each platform."""
    first = next(iter(asked.values()))
    shared = {
        package: held
        for package, held in first.items()
        if all(package in other and other[package].dependency == held.dependency for other in asked.values())
    }
    yield from _table(f"[{name}]", shared)
    for platform, held in asked.items():
        own = {package: it for package, it in held.items() if package not in shared}
        yield from _table(f"[target.{platform}.{name}]", own)


def _table(heading: str, held: _Dependencies) -> Iterator[str]:
    if held:
        yield ""
        yield heading
    for package, (dependency, reasons) in held.items():
        yield commented(f"{_key(package)} = {_told(dependency)}", "; ".join(reasons))


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else string(name)


def _told(dependency: _Dependency) -> str:
    fields: dict[str, Value] = {key: held for key, held in dependency._asdict().items() if held}
    return value(dependency.version if fields.keys() == {"version"} else fields)


def _pypi_options(solutions: Sequence[Solution]) -> Iterator[str]:
    """The user's own indexes, and pages of links, which are no index; the wheels' indexes stand beside the wheels."""
    request = solutions[0].request
    releases = [choice.release for solution in solutions for choice in wheels_of(solution)]
    pages = [find_links_of(release) for release in releases if not goes_by_folder(release)]
    options: dict[str, Value] = {
        "index-url": "" if request.index_url is None else sound_url(request.index_url),
        "extra-index-urls": [sound_url(url) for url in request.extra_index_urls],
        "find-links": [{"url": page} for page in dict.fromkeys(pages) if page is not None],
    }
    given = {key: held for key, held in options.items() if held}
    if given and any(wheels_of(solution) for solution in solutions):
        yield ""
        yield "[pypi-options]"
        for key, held in given.items():
            yield f"{key} = {value(held)}"


def _read_asked(
    document: Mapping[str, object], key: str, platform: Platform
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """What is asked of each package, as a table; what is said of the platform takes the place of the rest.

    A name that no package has, and a text that is no line of one, are passed over.
    """
    targets = _read_table(document.get("target"))
    families = ("win",) if platform.is_windows else ("unix", platform.partition("-")[0])
    found = dict(_read_table(document.get(key)))
    for name in (*families, platform):
        found.update(_read_table(_read_table(targets.get(name)).get(key)))
    for package, asked in found.items():
        if is_name(package):
            yield package, {"version": asked} if isinstance(asked, str) else _read_table(asked)


def _package(name: str, asked: Mapping[str, object]) -> CondaPackage:
    """A package of conda; the version is "" where it is not pinned."""
    pin = _PINNED.match(_text(asked, "version").strip())
    channel = without_secrets(_text(asked, "channel"))
    return CondaPackage(name, "" if pin is None else pin[1], _text(asked, "build"), "", "", channel=channel)


def _requirements(document: Mapping[str, object], platform: Platform) -> Iterator[str]:
    for name, asked in _read_asked(document, "pypi-dependencies", platform):
        extras = ",".join(it for it in _list(asked.get("extras")) if isinstance(it, str))
        project = f"{name}[{extras}]" if extras else name
        version = _text(asked, "version").strip()
        address = _text(asked, "url")
        bare = "==" if _BARE_VERSION.match(version) else ""
        yield f"{project} @ {address}" if address else f"{project}{bare}{'' if version == '*' else version}"


def _indexes(document: Mapping[str, object], platform: Platform) -> Iterator[tuple[str, str]]:
    for name, asked in _read_asked(document, "pypi-dependencies", platform):
        if "index" in asked:
            yield name, without_secrets(_text(asked, "index")).rstrip("/")


def _named(entry: object, key: str) -> str:
    """A platform or a channel: by its name, or by a table that has it."""
    return entry if isinstance(entry, str) else _text(_read_table(entry), key)


def _read_table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(table: Mapping[str, object], key: str) -> str:
    found = table.get(key)
    return found if isinstance(found, str) and found.isprintable() else ""
