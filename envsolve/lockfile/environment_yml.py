"""environment.yml, as conda, mamba and conda-lock read it, written from a lock and read back as one.

With ``--format environment --exact`` the file names single builds, and wheels with their checksums. conda and mamba
solve it again and find that one answer. Unlike an explicit file it can be read, merged and edited. Without ``--exact``
the file is written from a stack. It has the stack's requirements, each with its reason: versions and ranges, and no
files. CUDA is part of the environment: it comes from conda packages (:mod:`envsolve.lockfile.conda_specs`), or from the
wheels' dependencies or contents.

CEP 24 describes the format and its extensions: ``platforms`` and ``category`` of conda-lock, and selectors of both
kinds. Users edit these files, so a range, or an entry that cannot be parsed, is left open and is not an error.
https://conda.org/learn/ceps/cep-0024
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.checked_packages import checked_packages
from envsolve.lockfile.checked_pins import checked_pins, checked_url, strong_hashes
from envsolve.lockfile.conda_header import comments_of, facts_on_top, header_lines, name_of
from envsolve.lockfile.header import commented
from envsolve.lockfile.lock import Lock, Open, Stack, sorted_pins
from envsolve.lockfile.remarks import override_remark
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.yaml import scalar
from envsolve.lockfile.yaml_document import compose, items_of, line_of, scalar_of, table_of
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.package import Pin
from envsolve.model.release import Source

if TYPE_CHECKING:
    from yaml import Node as YamlNode

    from envsolve.lockfile.conda_dependencies import Node
    from envsolve.model.match_spec import MatchSpec

LONGEST = 512 * 1024
"""Bytes. An exported environment of a thousand packages takes a tenth of it."""
_READ = (
    *("name", "channels", "dependencies", "variables", "category", "platforms"),
    *("pip-repositories", "allow-pypi-requests", "prefix"),
)
_NO_DEFAULTS = "nodefaults"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*\Z"
_SELECTOR = "sel("
_RANGE = r"[<>!~,|]"
_PLAIN = re.compile(
    r"(?:--[a-z-]+ )?[A-Za-z0-9][\w.+~=%<>!,*|\[\]:/-]*(?<!:)(?: @ [A-Za-z][\w.+~=%:/?&-]*)?\Z", re.ASCII
)
"""Requirements that every YAML reader takes for a plain string."""


class Entries(NamedTuple):
    """The entries of an environment.yml for one platform, as text with their lines.

    ``table`` has the top-level nodes by key, ``unread`` the selectors that cannot be evaluated.
    """

    table: dict[str, YamlNode]
    conda: tuple[tuple[str, int], ...]
    pip: tuple[tuple[str, int], ...]
    unread: tuple[tuple[int, str], ...]


def write(lock: Lock) -> str:
    """Return the content of the file, byte for byte the same for the same lock.

    It has the lock's packages, or its requirements if it has no packages. Raises OutsideError ``no-hash`` for a wheel
    without checksum, ``unsound-package`` for invalid names or addresses.
    """
    if lock.is_unresolved:
        return _text_of(lock)
    return _text_of(lock.with_digest(_text_of, lambda text: read(text, Platform(lock.platform))))


def read(text: str, platform: Platform) -> Lock:
    """Return what the file pins on ``platform``. Requirements on more than one version are ``open``.

    A conda package has only name, version and build. The version may be a prefix, as in ``python=3.11``, and the build
    a pattern, as in ``pytorch=2.13.0=cuda126*``. Raises FileError if the text is not an environment.yml.
    """
    from envsolve.lockfile.conda_locks import assembled, named

    entries = read_entries(text, platform)
    lock, conda = _pinned((it for it, _ in entries.conda), (it for it, _ in entries.pip), platform)
    channels, notes, _ = channels_in(entries)
    name = entries.table.get("name")
    return assembled(lock, platform, conda, facts_on_top(text, platform), comments_of(text))._replace(
        channels=channels,
        environment=named(name.value) if name is not None and isinstance(name.value, str) else "",
        variables=variables_in(entries),
        left_out=(*notes, *notes_on(entries)),
    )


def document_in(text: str) -> object:
    """Return the whole document, with its ranges. Raises FileError if it is not valid YAML."""
    from envsolve.lockfile.yaml_document import document_of

    return document_of(text)


def _pinned(specs: Iterable[str], lines: Iterable[str], platform: str) -> tuple[Lock, tuple[CondaPackage, ...]]:
    from envsolve.lockfile.pip_package import markers_of
    from envsolve.lockfile.requirements_txt import read_lines

    found = list(map(_package, specs))
    conda = tuple(it for it in found if isinstance(it, CondaPackage))
    lock = read_lines("\n".join(" ".join(line.split()) for line in lines), "")
    markers = markers_of(platform, next((it.version for it in conda if it.name == "python"), ""))
    pins, left_open = [], [*(it for it in found if isinstance(it, Open)), *lock.open]
    for pin in lock.pins:
        try:
            if markers.holds(pin.marker):
                pins.append(pin._replace(marker=""))
        except ValueError:
            left_open.append(Open(f"{shown(pin.name)} is not for every machine", pin.name))
    return lock._replace(pins=tuple(pins), open=tuple(left_open)), conda


def read_entries(text: str, platform: Platform) -> Entries:
    """Return the entries of ``text``, whatever they are. Raises FileError if it is not an environment.yml."""
    from envsolve.lockfile.selectors import select

    if len(text) > LONGEST:
        raise FileError(f"it is longer than {LONGEST // 1024} KiB")
    selected = select(text, platform)
    root = compose(selected.text)
    if root is None:
        raise FileError("it is empty")
    table = table_of(root, "it")
    if "dependencies" not in table:
        raise FileError("it has no dependencies, which every environment.yml lists")
    conda: list[tuple[str, int]] = []
    pip: list[tuple[str, int]] = []
    for item in items_of(table["dependencies"], "dependencies"):
        if isinstance(item.value, str):
            conda.append((scalar_of(item, "a dependency"), line_of(item)))
            continue
        for key, value in table_of(item, "a dependency").items():
            if key == "pip":
                pip += [(scalar_of(entry, "an entry of pip"), line_of(entry)) for entry in items_of(value, "pip")]
            elif _is_selected(key, line_of(item), platform):
                conda.append((scalar_of(value, key), line_of(value)))
    return Entries(table, _filled(conda), _filled(pip), selected.unread)


def channels_in(entries: Entries) -> tuple[tuple[str, ...], list[str], tuple[tuple[str, str], ...]]:
    """Return the channels, a note for each that had credentials, and the addresses with these."""
    table = entries.table
    channels: dict[str, None] = {}
    notes: list[str] = []
    logins: dict[str, str] = {}
    for item in items_of(table["channels"], "channels") if "channels" in table else ():
        written = _channel(item)
        channel = without_secrets(written)
        if channel != written:
            notes.append(f"line {line_of(item)}: the credentials for {channel} are left out")
            logins[channel] = written
        if channel and channel != _NO_DEFAULTS:
            channels[channel] = None
    return tuple(channels), notes, tuple(logins.items())


def variables_in(entries: Entries) -> tuple[tuple[str, str], ...]:
    """Return the variables that are set in the environment."""
    table = entries.table
    if "variables" not in table:
        return ()
    found = table_of(table["variables"], "variables")
    for name, node in found.items():
        if not re.match(_VARIABLE, name):
            raise FileError(f"{shown(name)} is not a variable name", line_of(node))
    texts = {name: scalar_of(node, f"the variable {name}") for name, node in found.items()}
    quoted = {name: node.value for name, node in found.items() if getattr(node, "style", None) in ("'", '"')}
    return tuple((name, without_secrets(text or quoted.get(name, ""))) for name, text in texts.items())


def notes_on(entries: Entries) -> Iterator[str]:
    """Yield a note for each part of the file that is not read."""
    variables = table_of(entries.table["variables"], "variables") if "variables" in entries.table else {}
    texts = [*entries.pip, *((node.value, line_of(node)) for node in variables.values())]
    for text, line in texts:
        if without_secrets(text) != text:
            yield f"line {line}: the credentials in {shown(text)} are left out"
    for line, selector in entries.unread:
        yield f"line {line}: the selector {shown(selector)} is not supported: the line is included"
    for key, node in entries.table.items():
        if key not in _READ:
            yield f"line {line_of(node)}: {shown(key)} is ignored"


def _text_of(lock: Lock) -> str:
    return "\n".join(_lines(lock)) + "\n"


def _lines(lock: Lock) -> Iterator[str]:
    is_stack = lock.is_unresolved
    yield from header_lines((lock,), resolved=not is_stack)
    yield from override_remark(_conda_cuda(lock.stack))
    if not is_stack:
        from envsolve.lockfile import facts

        yield from facts.commented(facts.facts_of(lock))
    yield f"name: {scalar(name_of((lock,)))}"
    yield "channels:"
    for channel in dict.fromkeys(lock.channels):
        yield f"  - {scalar(channel)}"
    conda, pip = (_requested(lock, by_pip=it) if is_stack else _packages(lock, by_pip=it) for it in (False, True))
    entry = _bare if is_stack else scalar
    yield "dependencies:" if lock.conda or lock.pins or is_stack else "dependencies: []"
    for spec, reason in conda:
        yield commented(f"  - {entry(spec)}", reason)
    wheels = list(pip)
    if wheels:
        yield "  - pip:"
        for option in _options(lock):
            yield f"    - {entry(option)}"
        for requirement, reason in wheels:
            yield commented(f"    - {entry(requirement)}", reason)
    if lock.variables:
        yield "variables:"
        for name, text in lock.variables:
            yield f"  {scalar(name)}: {scalar(text)}"


def _bare(text: str) -> str:
    """A requirement of a stack, without quotes if it needs none."""
    return text if _PLAIN.match(text) else scalar(text)


def _requested(lock: Lock, *, by_pip: bool) -> Iterator[tuple[str, str]]:
    return ((it.spec, it.reason) for it in lock.requested if it.by_pip is by_pip)


def _packages(lock: Lock, *, by_pip: bool) -> Iterator[tuple[str, str]]:
    from envsolve.lockfile.conda_dependencies import Node

    reasons = _reasons(lock)
    if by_pip:
        yield from ((_requirement(pin), reasons.get(Node("pip", pin.name), "")) for pin in checked_pins(lock.pins))
        return
    channels = tuple(dict.fromkeys(lock.channels))
    for package in checked_packages(lock.conda, are_files=False):
        channel = channel_named(package, channels)
        spec = "=".join(filter(None, (package.name, package.version, package.build)))
        yield f"{channel and f'{channel}::'}{spec}", reasons.get(Node("conda", package.name), "")


def _conda_cuda(stack: Stack | None) -> str | None:
    """The CUDA of a stack whose builds are all from conda-forge, or None."""
    sources = set() if stack is None else {it.source for it in stack.frameworks}
    return stack.cuda if stack is not None and sources == {Source.CONDA_FORGE} else None


def _reasons(lock: Lock) -> dict[Node, str]:
    """Why each package is in the file, if it was requested or limited."""
    from envsolve.lockfile.conda_dependencies import Node, requested_packages

    reasons: dict[Node, list[str]] = {}
    for requested, node in requested_packages(lock):
        reasons.setdefault(node, []).append(requested.reason)
    for pin in lock.pins:
        reasons.setdefault(Node("pip", pin.name), []).extend(pin.because)
    return {node: "; ".join(dict.fromkeys(filter(None, found))) for node, found in reasons.items()}


def channel_named(package: CondaPackage, channels: Sequence[str]) -> str:
    """Return the channel of ``package`` as ``channels`` name it, or "" if it is the only one."""
    if len(channels) == 1 or "://" not in package.channel:
        return "" if len(channels) == 1 else package.channel
    address = checked_url(package.channel).rstrip("/")
    named = [channel.rstrip("/") for channel in channels]
    by_name = (channel for channel in named if address.endswith(f"/{channel}"))
    return address if address in named else next(by_name, address)


def _options(lock: Lock) -> Iterator[str]:
    """The options that tell pip where the wheels are."""
    if not lock.default_is_plain:
        yield f"--index-url {checked_url(lock.default_index)}"
    for index in indexes_of(lock):
        yield f"--extra-index-url {index}"
    for place in lock.find_links:
        yield f"--find-links {place}"


def indexes_of(lock: Lock) -> tuple[str, ...]:
    """Return the indexes besides the default one."""
    named = (pin.index_url or lock.default_index for pin in sorted_pins(lock.pins))
    others = (index for index in (*named, *lock.indexes) if index != lock.default_index)
    return tuple(dict.fromkeys(map(checked_url, others)))


def _requirement(pin: Pin) -> str:
    """The pin with its checksums, so that pip installs only these files."""
    files = pin.files if pin.index_url is not None else pin.files[:1]
    hashes = sorted({f"{algorithm}:{digest}" for file in files for algorithm, digest in strong_hashes(pin, file)})
    pinned = f"{pin.name}=={pin.version}" if pin.index_url is not None else f"{pin.name} @ {checked_url(files[0].url)}"
    return " ".join([pinned, *(f"--hash={digest}" for digest in hashes)])


def _filled(entries: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(entry for entry in entries if entry[0])


def _is_selected(key: str, line: int, platform: Platform) -> bool:
    """Whether a section such as ``sel(win)`` is for ``platform``. Raises FileError for any other section."""
    from envsolve.lockfile.selectors import holds

    if not (key.startswith(_SELECTOR) and key.endswith(")")):
        hint = "write each package on one line, as in - python=3.11; pip is the only section"
        raise FileError(f"{shown(key)} is not a section of dependencies: {hint}", line)
    answer = holds(key[len(_SELECTOR) : -1], platform)
    if answer is None:
        raise FileError(f"the selector {shown(key)} is not supported", line)
    return answer


def _channel(item: YamlNode) -> str:
    """A channel by its name or address, or by a mapping with one of them, as conda-lock and pixi write it."""
    if isinstance(item.value, str):
        return scalar_of(item, "a channel").strip()
    table = table_of(item, "a channel")
    node = table.get("url") or table.get("channel")
    if node is None:
        raise FileError("a channel has neither a name nor a URL", line_of(item))
    return scalar_of(node, "a channel").strip()


def _package(entry: str) -> CondaPackage | Open:
    """The package that an entry names in one version, or Open for any other entry."""
    from envsolve.model.match_spec import parse_match_spec

    try:
        spec = parse_match_spec(entry)
    except ValueError:
        return Open(f"{shown(entry)} is not a conda requirement", of_conda=True)
    version = spec.exact_version or _beginning(entry, spec)
    if not version:
        return Open(f"{shown(spec.name)} is not pinned to one version", spec.name, of_conda=True)
    return CondaPackage(spec.name, version, spec.build, spec.subdir, "", channel=spec.channel)


def _beginning(entry: str, spec: MatchSpec) -> str:
    """The version prefix in ``name=version``, as ``conda env export --no-builds`` writes it."""
    version = spec.version.removesuffix(".*")
    return version if version != spec.version and "*" not in entry and not re.search(_RANGE, version) else ""
