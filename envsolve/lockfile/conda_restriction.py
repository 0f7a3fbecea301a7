"""What the formats of conda packages hold of a lock: see :mod:`envsolve.lockfile.restriction`."""

from __future__ import annotations

from collections.abc import Collection

from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile import environment_yml, pixi_toml
from envsolve.lockfile.conda_dependencies import Node, categories, dependencies
from envsolve.lockfile.conda_header import comments_of, facts_on_top, header_lines, stack_name
from envsolve.lockfile.conda_locks import assembled, channels_of, named_channel
from envsolve.lockfile.environment_yml import channel_named, indexes_of
from envsolve.lockfile.lock import MAIN, Lock, address_in, sorted_pins, version_in
from envsolve.lockfile.package_address import package_of
from envsolve.lockfile.restriction import restricted_pin
from envsolve.lockfile.sound_packages import sound_packages
from envsolve.lockfile.sound_pins import sound_url, strong_hashes
from envsolve.model.conda import CondaPackage
from envsolve.model.lock_format import Content
from envsolve.model.package import PackageFile, Pin
from envsolve.model.reference import file_name_in


def of_conda(lock: Lock, format_name: str, holds: Collection[Content]) -> Lock:
    """A foreign file that was not exported has nothing but its packages."""
    if format_name == "pixi" or (format_name == "environment" and lock.asks_alone):
        return _of_stack(lock, format_name)
    made = lock.made
    is_known = made is not None or lock.exported_from is not None
    conda = tuple(sorted(lock.conda, key=lambda it: it.name))
    kept = Lock(
        (),
        lock.platform,
        next((it.version for it in conda if it.name == "python"), ""),
        made=made,
        exported_from=lock.exported_from,
        virtual_packages=lock.virtual_packages if made is not None else (),
        variables=lock.variables if is_known or format_name == "environment" else (),
        remarks=lock.remarks if is_known else (),
        environment=lock.environment if is_known or format_name == "environment" else "",
    )
    if made is not None:
        glibc = {it.name: it.version for it in lock.virtual_packages}.get("__glibc")
        kept = kept._replace(stack=lock.stack, glibc=glibc)
    if format_name == "environment":
        return _of_environment(lock, kept, conda, holds)
    kept = kept._replace(environment=stack_name(kept.stack) or kept.environment)
    of_whom = categories(lock) if Content.CATEGORIES in holds else {}

    def others(manager: str, name: str) -> tuple[str, ...]:
        found = of_whom.get(Node(manager, name), ())
        return () if MAIN in found else found

    pins = (_at_address(pin, holds) for pin in sorted_pins(lock.pins))
    packages = (_package(it, holds) for it in sound_packages(conda))
    kept = kept._replace(
        pins=tuple(it._replace(categories=others("pip", it.name)) for it in pins),
        conda=tuple(it._replace(categories=others("conda", it.name)) for it in packages),
    )
    if format_name == "explicit":
        return kept._replace(channels=channels_of(kept.conda, made))
    channels = tuple(named_channel(without_secrets(it)) for it in lock.channels)
    return kept._replace(channels=channels, sources=lock.sources)


def _of_stack(lock: Lock, format_name: str) -> Lock:
    """What is requested as far as it pins something, and what the comments on top say to people."""
    header = "\n".join(header_lines((lock,), resolved=False))
    found, conda = (pixi_toml if format_name == "pixi" else environment_yml).pinned_by(lock)
    kept = assembled(found, lock.platform, conda, facts_on_top(header, lock.platform), comments_of(header))
    return kept._replace(
        channels=tuple(dict.fromkeys(map(without_secrets, lock.channels))),
        variables=lock.variables,
        environment=lock.environment if format_name == "environment" else "",
    )


def _of_environment(lock: Lock, kept: Lock, conda: Collection[CondaPackage], holds: Collection[Content]) -> Lock:
    default = lock.default_index if lock.pins and not lock.default_is_plain else ""
    indexes = indexes_of(lock) if lock.pins else ()
    pins = []
    for pin in sorted_pins(lock.pins):
        bare = restricted_pin(pin, holds, None)
        pins.append(bare if pin.index_url is None else bare._replace(index_url="" if indexes else default))
    channels = tuple(dict.fromkeys(lock.channels))
    names = (channel_named(it, channels) for it in conda)
    packages = zip(conda, names, strict=True)
    return kept._replace(
        pins=tuple(pins),
        conda=tuple(CondaPackage(it.name, it.version, it.build, "", "", channel=name) for it, name in packages),
        channels=tuple(map(without_secrets, channels)),
        default_index=default,
        default_is_plain=not default,
        indexes=indexes,
        find_links=lock.find_links if lock.pins else (),
    )


def _package(package: CondaPackage, holds: Collection[Content]) -> CondaPackage:
    """What an address says, and what stands beside it."""
    if Content.REQUIREMENTS not in holds:
        sha256 = None if package.md5 else package.sha256
        return package_of(CondaPackage("", "", "", "", package.url, package.md5, sha256))
    depends = tuple(f"{name} {rest}".rstrip() for name, rest in dependencies(package).items())
    stated = CondaPackage(package.name, package.version, package.build, "", package.url, package.md5, package.sha256)
    return package_of(stated._replace(depends=depends))


def _at_address(pin: Pin, holds: Collection[Content]) -> Pin:
    """A package that pip installs, by the address of the one file that it takes first, and one digest of that."""
    url = address_in(sound_url(pin.files[0].url))
    keeps = Content.REQUIREMENTS in holds
    return Pin(
        pin.name,
        pin.version if keeps else version_in(pin.name, url),
        (PackageFile(file_name_in(url), url, strong_hashes(pin, pin.files[0])[:1]),),
        None,
        requires=tuple(sorted(set(pin.requires))) if keeps else (),
    )
