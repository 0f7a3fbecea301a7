"""``--format conda-lock``: conda-lock.yml, version 1 (CEP 37), with the packages of all platforms in one file.

conda-lock, mamba, micromamba and rattler read it. Fields are in conda-lock's own order, packages are sorted by manager,
name and platform, and the file has no timestamp: the same lock gives the same bytes. Files of conda-lock 1 to 4, mamba
and conda-lockfiles can be read as well, and optional fields may be missing. https://conda.org/learn/ceps/cep-0037
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from envsolve import __version__
from envsolve.boundary.display import one_line
from envsolve.boundary.files import FileError
from envsolve.errors import Hint, OutsideError
from envsolve.lockfile.checked_packages import checked_packages, without_hash
from envsolve.lockfile.checked_pins import checked_pins, checked_url, strong_hashes
from envsolve.lockfile.conda_dependencies import Node, categories, dependencies
from envsolve.lockfile.conda_header import Comments, comments_of, header_lines, name_of, variable_remarks
from envsolve.lockfile.conda_lock_facts import content_hash, custom_metadata, facts_in_metadata
from envsolve.lockfile.conda_locks import assembled, channels_of, read_channel, with_wheels
from envsolve.lockfile.lock import MAIN, Lock, Open
from envsolve.lockfile.package_address import package_of
from envsolve.lockfile.pip_package import markers_of, pin_at
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.yaml import scalar
from envsolve.lockfile.yaml_document import document_of, is_null, mapping, sequence, text, text_or_none
from envsolve.model.conda import CondaPackage
from envsolve.model.need import Markers
from envsolve.model.package import Pin

_NO_SOURCE = "the command line"
"""The source if no file was read, because mamba refuses a file without any."""
INSTALLED_BY_DEFAULT = "dev"
"""The category besides main that conda-lock installs by default."""
_VERSION = "1"
_VIRTUAL = "__"
_PIP = ("pip", "pypi")

_Entry = tuple[str, str, str, str]
"""Manager, name and platform, by which entries are sorted, and the text without its category."""
_Table = Mapping[str, object]


def write(locks: Sequence[Lock]) -> str:
    """Return the content of the file, byte for byte the same for the same locks, one for each platform.

    Raises OutsideError ``no-hash`` for a conda package without md5 or a wheel without sha256, which no reader accepts,
    and ``unsound-package`` for invalid names or addresses.
    """
    return _text_of([lock.with_digest(lambda it: _text_of([it]), lambda text: read(text)[0]) for lock in locks])


def read(content: str) -> tuple[Lock, ...]:
    """Return the locks in the file, one for each platform. Raises FileError if it is not a conda-lock.yml."""
    table = mapping(document_of(content), "it")
    version = text_or_none(table.get("version"), "its version") or _VERSION
    if version != _VERSION:
        raise FileError(f"it is version {shown(version)} of the format, and envsolve reads version {_VERSION}")
    if "package" not in table:
        raise FileError("it has no list of packages, which every conda-lock.yml has")
    metadata = mapping(table.get("metadata"), "its metadata")
    recorded = mapping(metadata.get("custom_metadata"), "custom_metadata")
    texts = {key: it for key, it in recorded.items() if isinstance(it, str)}
    comments = comments_of(content)
    locks = [
        _read_platform(platform, entries, facts_in_metadata(texts, platform), comments)
        for platform, entries in _entries_by_platform(table, metadata).items()
    ]
    made = next((lock.made for lock in locks), None)
    channels = tuple(read_channel(it) for it in sequence(metadata.get("channels"), "its list of channels"))
    channels = channels or channels_of([package for lock in locks for package in lock.conda], made)
    named = (text_or_none(it, "a source") for it in sequence(metadata.get("sources"), "its list of sources"))
    sources = tuple(it for it in named if it and it != _NO_SOURCE)
    return tuple(lock._replace(channels=channels, sources=sources) for lock in locks)


def _text_of(locks: Sequence[Lock]) -> str:
    return "\n".join(_lines(locks)) + "\n"


def _lines(locks: Sequence[Lock]) -> Iterator[str]:
    groups = {lock.platform: categories(lock) for lock in locks}
    yield from header_lines(locks)
    yield from _how_to_install(locks, {name for found in groups.values() for names in found.values() for name in names})
    yield "version: 1"
    yield from _metadata(locks)
    entries = sorted(entry for lock in locks for entry in _entries(lock))
    yield "package:" if entries else "package: []"
    for manager, name, platform, entry in entries:
        for category in groups[platform][Node(manager, name)]:
            optional = "false" if category == MAIN else "true"
            yield f"{entry}\n  category: {scalar(category)}\n  optional: {optional}"


def _how_to_install(locks: Sequence[Lock], names: set[str]) -> Iterator[str]:
    environment, others = name_of(locks), sorted(names - {MAIN})
    extras = "".join(f" --extras {quote(name)}" for name in others if name != INSTALLED_BY_DEFAULT)
    named = "".join(f" --category {quote(name)}" for name in [MAIN, *others]) if others else ""
    yield "# To install it, with one of these (mamba and micromamba know it by a name that ends in -lock.yml):"
    yield f"#   {one_line(f'conda-lock install --name {environment}{extras} conda-lock.yml')}"
    yield f"#   {one_line(f'micromamba create --name {environment}{named} --file conda-lock.yml')}"
    if not others and not any(lock.pins for lock in locks):
        yield one_line(
            f"#   conda create --name {environment} --file conda-lock.yml  # from 26.5 on, by this very name"
        )
    yield from variable_remarks(locks[0], environment)


def _metadata(locks: Sequence[Lock]) -> Iterator[str]:
    yield "metadata:"
    yield "  content_hash:"
    for lock in locks:
        yield f"    {lock.platform}: {scalar(content_hash(lock))}"
    yield "  channels:"
    for channel in locks[0].channels:
        yield f"  - url: {scalar(channel)}"
        yield "    used_env_vars: []"
    yield "  platforms:"
    for lock in locks:
        yield f"  - {lock.platform}"
    yield "  sources:"
    for source in locks[0].sources or (_NO_SOURCE,):
        yield f"  - {scalar(source)}"
    yield "  custom_metadata:"
    version = __version__ if locks[0].made is None else locks[0].made.envsolve_version
    yield f"    created_by: {scalar(f'envsolve {version}')}"  # required by conda itself
    for key, fact in custom_metadata(locks):
        yield f"    {scalar(key)}: {scalar(fact)}"


def _entries(lock: Lock) -> Iterator[_Entry]:
    platform = lock.platform
    for package in checked_packages(lock.conda):
        yield "conda", package.name, platform, _conda_entry(package, platform)
    for pin in checked_pins(lock.pins):
        yield "pip", pin.name, platform, _pip_entry(pin, platform)


def _conda_entry(package: CondaPackage, platform: str) -> str:
    if package.md5 is None:
        raise without_hash(package, "md5")
    sha256 = "" if package.sha256 is None else f"\n    sha256: {scalar(package.sha256)}"
    return (
        f"- name: {scalar(package.name)}\n"
        f"  version: {scalar(package.version)}\n"
        "  manager: conda\n"
        f"  platform: {platform}\n"
        f"  dependencies:{_mapping(dependencies(package))}\n"
        f"  url: {scalar(package.url)}\n"
        "  hash:\n"
        f"    md5: {scalar(package.md5)}{sha256}\n"
        f"  build: {scalar(package.build)}"
    )


def _pip_entry(pin: Pin, platform: str) -> str:
    """A wheel, or the source if there is none. The format has room for one file, so it is the one that pip prefers."""
    file = pin.files[0]
    sha256 = dict(strong_hashes(pin, file)).get("sha256")
    url, _, fragment = checked_url(file.url).partition("#")
    if sha256 is None or "subdirectory=" in fragment or not pin.version:
        problem = "a folder of an archive" if pin.version else "no version"
        raise _not_writable(pin, problem if sha256 else "a checksum other than sha256")
    return (
        f"- name: {scalar(pin.name)}\n"
        f"  version: {scalar(pin.version)}\n"
        "  manager: pip\n"
        f"  platform: {platform}\n"
        f"  dependencies:{_mapping(dict.fromkeys(sorted(pin.requires), ''))}\n"
        f"  url: {scalar(url)}\n"
        "  hash:\n"
        f"    sha256: {scalar(sha256)}"
    )


def _mapping(table: Mapping[str, str]) -> str:
    return "".join(f"\n    {scalar(key)}: {scalar(value)}" for key, value in table.items()) or " {}"


def _not_writable(pin: Pin, what: str) -> OutsideError:
    message = f"{pin.name} {pin.version} has {what}, which conda-lock.yml cannot record"
    hint = Hint(f"remove {pin.name}, or write another format")
    return OutsideError("no-hash" if "checksum" in what else "unsound-package", message, hints=(hint,))


def _entries_by_platform(table: _Table, metadata: _Table) -> dict[str, dict[str, _Table]]:
    """The entries of each platform, by their names in messages, with platforms without packages included."""
    stated = sequence(metadata.get("platforms"), "its list of platforms")
    found: dict[str, dict[str, _Table]] = {text(it, "a platform"): {} for it in stated}
    for position, entry in enumerate(sequence(table["package"], "its list of packages"), start=1):
        what = f"package {position}"
        row = mapping(entry, what)
        found.setdefault(text(row.get("platform"), f"the platform of {what}"), {})[what] = row
    return found


def _read_platform(
    platform: str, entries: Mapping[str, _Table], facts: Mapping[str, object] | None, comments: Comments
) -> Lock:
    """The lock for a platform. A package has one entry for each of its categories."""
    conda: dict[CondaPackage, set[str]] = {}
    for what, table in entries.items():
        if not _is_of_pip(table, what) and not text(table.get("name"), f"the name of {what}").startswith(_VIRTUAL):
            conda.setdefault(_read_conda(table, what), set()).add(_category(table, what))
    python = next((it.version for it in conda if it.name == "python"), "")
    markers = markers_of(platform, python)
    pip: dict[Pin | Open, set[str]] = {}
    for what, table in entries.items():
        if _is_of_pip(table, what):
            pip.setdefault(_read_pip(table, what, markers), set()).add(_category(table, what))
    packages = [it._replace(categories=_others(found)) for it, found in conda.items()]
    wheels = [it._replace(categories=_others(found)) if isinstance(it, Pin) else it for it, found in pip.items()]
    return assembled(with_wheels(Lock(()), wheels), platform, packages, facts, comments)


def _is_of_pip(table: _Table, what: str) -> bool:
    return text_or_none(table.get("manager"), f"the manager of {what}") in _PIP


def _category(table: _Table, what: str) -> str:
    return text_or_none(table.get("category"), f"the category of {what}") or MAIN


def _others(found: set[str]) -> tuple[str, ...]:
    return () if MAIN in found else tuple(sorted(found))


def _read_conda(table: _Table, what: str) -> CondaPackage:
    depends = mapping(table.get("dependencies"), f"the list of what {what} depends on")
    digests = mapping(table.get("hash"), f"the hashes of {what}")
    return package_of(
        CondaPackage(
            text(table.get("name"), f"the name of {what}"),
            text(table.get("version"), f"the version of {what}"),
            text_or_none(table.get("build"), f"the build of {what}") or "",
            "",
            text(table.get("url"), f"the address of {what}"),
            text_or_none(digests.get("md5"), f"the md5 of {what}"),
            text_or_none(digests.get("sha256"), f"the sha256 of {what}"),
            depends=tuple(_depends(name, spec) for name, spec in depends.items()),
        )
    )


def _depends(name: str, spec: object) -> str:
    return name if is_null(spec) else f"{name} {text(spec, f'what is required of {shown(name)}')}"


def _read_pip(table: _Table, what: str, markers: Markers) -> Pin | Open:
    sha256 = mapping(table.get("hash"), f"the hashes of {what}").get("sha256")
    return pin_at(
        text(table.get("name"), f"the name of {what}"),
        text(table.get("version"), f"the version of {what}"),
        text(table.get("url"), f"the address of {what}"),
        f"sha256:{text_or_none(sha256, f'the sha256 of {what}') or ''}",
        requires=tuple(mapping(table.get("dependencies"), f"the list of what {what} depends on")),
        markers=markers,
    )
