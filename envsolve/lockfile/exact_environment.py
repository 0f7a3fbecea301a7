"""``--format environment --exact``: an environment.yml of single builds, and of wheels with their checksums.

conda and mamba solve it again and find the one answer; unlike an explicit file it can be read, merged and edited.
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.lockfile.conda_dependencies import Node, asked_packages
from envsolve.lockfile.conda_header import header_lines, name_of
from envsolve.lockfile.conda_lock import CondaLock, PlatformLock
from envsolve.lockfile.header import commented
from envsolve.lockfile.remarks import override_remark, override_remarks
from envsolve.lockfile.sound_packages import sound_packages
from envsolve.lockfile.sound_pins import sound_pins, sound_url, strong_hashes
from envsolve.lockfile.yaml import scalar
from envsolve.model.conda import CondaPackage
from envsolve.model.package import Pin


def exact_environment_yml(lock: CondaLock, part: PlatformLock) -> str:
    """The content of the file for one platform of ``lock``, the same bytes for the same part.

    Raises OutsideError ``no-hash`` for a wheel without checksum, ``unsound-package`` for what no lock may hold.
    """
    return "\n".join(_lines(lock, part)) + "\n"


def _lines(lock: CondaLock, part: PlatformLock) -> Iterator[str]:
    yield from header_lines(lock, (part,))
    if part.recorded is not None:
        yield from override_remark(part.recorded.conda_cuda)
    elif part.answer is not None:
        yield from override_remarks(part.answer.solution)
    yield f"name: {scalar(name_of((part,)))}"
    yield "channels:"
    for channel in lock.channels:
        yield f"  - {scalar(channel)}"
    yield "dependencies:" if part.conda or part.pip else "dependencies: []"
    reasons = _reasons(part)
    for package in sound_packages(part.conda):
        spec = f"{_channel(package, lock)}{package.name}={package.version}={package.build}"
        yield commented(f"  - {scalar(spec)}", reasons.get(Node("conda", package.name), ""))
    if part.pip:
        yield "  - pip:"
        for option in _options(lock, part):
            yield f"    - {scalar(option)}"
        for pin in sound_pins(part.pip):
            yield commented(f"    - {scalar(_requirement(pin))}", reasons.get(Node("pip", pin.name), ""))
    if lock.variables:
        yield "variables:"
        for name, text in lock.variables:
            yield f"  {scalar(name)}: {scalar(text)}"


def _reasons(part: PlatformLock) -> dict[Node, str]:
    """Why each package is in the file, where somebody asked for it or bounded it."""
    reasons: dict[Node, list[str]] = {}
    for asked, node in asked_packages(part):
        reasons.setdefault(node, []).append(asked.reason)
    for pin in part.pip:
        reasons.setdefault(Node("pip", pin.name), []).extend(pin.because)
    return {node: "; ".join(dict.fromkeys(filter(None, found))) for node, found in reasons.items()}


def _channel(package: CondaPackage, lock: CondaLock) -> str:
    """Its channel as the file names it, where there are several to take it from."""
    if len(lock.channels) == 1 or not package.channel:
        return ""
    address = sound_url(package.channel).rstrip("/")
    channels = [channel.rstrip("/") for channel in lock.channels]
    by_name = (channel for channel in channels if address.endswith(f"/{channel}"))
    return f"{address if address in channels else next(by_name, address)}::"


def _options(lock: CondaLock, part: PlatformLock) -> Iterator[str]:
    """What tells pip where the wheels are."""
    if lock.default_index is not None and not lock.default_is_plain:
        yield f"--index-url {sound_url(lock.default_index)}"
    indexes = [pin.index_url for pin in sound_pins(part.pip) if pin.index_url not in (None, lock.default_index)]
    for index in dict.fromkeys(indexes):
        assert index is not None
        yield f"--extra-index-url {sound_url(index)}"


def _requirement(pin: Pin) -> str:
    """The pin with its checksums, so that pip installs these files and no others."""
    files = pin.files if pin.index_url is not None else pin.files[:1]
    hashes = sorted({f"{algorithm}:{digest}" for file in files for algorithm, digest in strong_hashes(pin, file)})
    asked = f"{pin.name}=={pin.version}" if pin.index_url is not None else f"{pin.name} @ {sound_url(files[0].url)}"
    return " ".join([asked, *(f"--hash={digest}" for digest in hashes)])
