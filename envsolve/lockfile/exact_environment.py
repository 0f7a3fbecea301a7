"""``--format environment --exact``: an environment.yml of single builds, and of wheels with their checksums.

conda and mamba solve it again and find the one answer; unlike an explicit file it can be read, merged and edited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envsolve.lockfile import facts
from envsolve.lockfile.conda_dependencies import Node, asked_packages
from envsolve.lockfile.conda_header import header_lines, name_of
from envsolve.lockfile.header import commented
from envsolve.lockfile.lock import Lock, Stack
from envsolve.lockfile.remarks import override_remark
from envsolve.lockfile.sound_packages import sound_packages
from envsolve.lockfile.sound_pins import sound_pins, sound_url, strong_hashes
from envsolve.lockfile.yaml import scalar
from envsolve.model.conda import CondaPackage
from envsolve.model.package import Pin
from envsolve.model.release import Source


def write(lock: Lock) -> str:
    """The content of the file, the same bytes for the same lock.

    Raises OutsideError ``no-hash`` for a wheel without checksum, ``unsound-package`` for what no lock may hold.
    """
    return "\n".join(_lines(lock.with_digest("environment"))) + "\n"


def _lines(lock: Lock) -> Iterator[str]:
    yield from header_lines((lock,))
    yield from override_remark(_conda_cuda(lock.stack))
    yield from facts.commented(facts.facts_of(lock))
    yield f"name: {scalar(name_of((lock,)))}"
    yield "channels:"
    for channel in lock.channels:
        yield f"  - {scalar(channel)}"
    yield "dependencies:" if lock.conda or lock.pins else "dependencies: []"
    reasons = _reasons(lock)
    for package in sound_packages(lock.conda):
        channel = channel_named(package, lock.channels)
        spec = f"{channel and f'{channel}::'}{package.name}={package.version}={package.build}"
        yield commented(f"  - {scalar(spec)}", reasons.get(Node("conda", package.name), ""))
    if lock.pins:
        yield "  - pip:"
        for option in _options(lock):
            yield f"    - {scalar(option)}"
        for pin in sound_pins(lock.pins):
            yield commented(f"    - {scalar(_requirement(pin))}", reasons.get(Node("pip", pin.name), ""))
    if lock.variables:
        yield "variables:"
        for name, text in lock.variables:
            yield f"  {scalar(name)}: {scalar(text)}"


def _conda_cuda(stack: Stack | None) -> str | None:
    """The CUDA of a stack that is conda-forge's throughout; None for any other."""
    sources = set() if stack is None else {it.source for it in stack.frameworks}
    return stack.cuda if stack is not None and sources == {Source.CONDA_FORGE} else None


def _reasons(lock: Lock) -> dict[Node, str]:
    """Why each package is in the file, where somebody asked for it or bounded it."""
    reasons: dict[Node, list[str]] = {}
    for asked, node in asked_packages(lock):
        reasons.setdefault(node, []).append(asked.reason)
    for pin in lock.pins:
        reasons.setdefault(Node("pip", pin.name), []).extend(pin.because)
    return {node: "; ".join(dict.fromkeys(filter(None, found))) for node, found in reasons.items()}


def channel_named(package: CondaPackage, channels: Sequence[str]) -> str:
    """The channel of ``package`` as ``channels`` name it; "" where there is one alone to take it from."""
    if len(channels) == 1 or not package.channel:
        return ""
    address = sound_url(package.channel).rstrip("/")
    named = [channel.rstrip("/") for channel in channels]
    by_name = (channel for channel in named if address.endswith(f"/{channel}"))
    return address if address in named else next(by_name, address)


def _options(lock: Lock) -> Iterator[str]:
    """What tells pip where the wheels are."""
    if not lock.default_is_plain:
        yield f"--index-url {sound_url(lock.default_index)}"
    for index in indexes_of(lock):
        yield f"--extra-index-url {index}"


def indexes_of(lock: Lock) -> tuple[str, ...]:
    """The indexes beside the default one."""
    named = (pin.index_url or lock.default_index for pin in sound_pins(lock.pins))
    others = (index for index in (*named, *lock.indexes) if index != lock.default_index)
    return tuple(dict.fromkeys(map(sound_url, others)))


def _requirement(pin: Pin) -> str:
    """The pin with its checksums, so that pip installs these files and no others."""
    files = pin.files if pin.index_url is not None else pin.files[:1]
    hashes = sorted({f"{algorithm}:{digest}" for file in files for algorithm, digest in strong_hashes(pin, file)})
    asked = f"{pin.name}=={pin.version}" if pin.index_url is not None else f"{pin.name} @ {sound_url(files[0].url)}"
    return " ".join([asked, *(f"--hash={digest}" for digest in hashes)])
