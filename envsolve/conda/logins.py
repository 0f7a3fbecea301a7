"""Logins of channels, separated from their addresses: rattler stores addresses in its cache and in package records.

A token in a path is passed to rattler as a mirror of the bare address, and a login as an entry of its store of logins:
rattler 0.28 would query a mirror with a login without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError


class Logins(NamedTuple):
    """``mirrors`` maps bare addresses to mirrors, ``hosts`` the name of a server to user and password."""

    mirrors: dict[str, str]
    hosts: dict[str, tuple[str, str]]


def logins_of(addresses: Iterable[str]) -> Logins:
    """The logins and tokens in ``addresses``.

    Raises UsageError ``contradictory-logins`` for two logins on one server: rattler distinguishes servers, not paths.
    """
    found = Logins({}, {})
    for address in addresses:
        bare = without_secrets(address)
        if bare == address:
            continue
        parts = urlsplit(address if "://" in address else f"//{address}")
        _, _, place = parts.netloc.rpartition("@")
        opened = f"{parts.scheme}://{place}{parts.path}"
        if _folder(opened) != _folder(bare) and parts.scheme:
            found.mirrors[_folder(bare)] = _folder(opened)
        if parts.hostname and (parts.username or parts.password):
            login = unquote(parts.username or ""), unquote(parts.password or "")
            if found.hosts.setdefault(parts.hostname, login) != login:
                raise _contradictory(parts.hostname)
    return found


def _folder(address: str) -> str:
    return address.rstrip("/") + "/"


def _contradictory(host: str) -> UsageError:
    hint = Hint("use one login for all channels of the server, or a token in the path: https://host/t/TOKEN/channel")
    return UsageError("contradictory-logins", f"two channels on {host} have different logins", hints=(hint,))
