"""Logins for package indexes, from the same places as in pip, so that private indexes work without settings.

In order: 1. the address itself 2. netrc 3. the keyring. The keyring can open a window or start a program, so it is
queried only after a server denied access, once for each server.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from envsolve.boundary.programs import find_program, run_program
from envsolve.index.address import Address, Login, Origin
from envsolve.index.user_netrc import user_netrc

if TYPE_CHECKING:
    from netrc import netrc

_KEYRING_TIMEOUT = 60.0
"""The time limit, in seconds, of the command ``keyring``, which may wait for a person to unlock a store."""


class Credentials:
    """The logins of one run, safe to use from many threads. ``notes`` say what could not be read, without secrets."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._lock = Lock()
        self._keyring = Lock()
        self._logins: dict[Origin, Login | None] = {}
        self._tried: set[Origin] = set()
        self._netrc: netrc | None = None
        self._netrc_read = False

    def login_for(self, address: Address) -> Login | None:
        """The login to send: that of the address, else the known one of its server.

        The first login in an address is also used for addresses of that server without one, such as those of the files
        that an index lists.
        """
        origin, written = address.origin, address.login
        complete = written is not None and written.password is not None
        if origin not in self._logins or (written is not None and self._logins[origin] is None):
            self._keep(origin, written if complete else self._of_netrc(address) or written)
        known = self._logins[origin]
        return written if complete or not _is_of(known, written) else known

    def after_refusal(self, address: Address, sent: Login | None) -> Login | None:
        """Another login after the server answered 401 to ``sent``; None if there is none.

        The keyring is queried for the address first, then for its server, as in pip and uv: some stores use the one,
        some the other.
        """
        if sent is not None and sent.password is not None:
            return None
        with self._keyring:
            known = self._logins.get(address.origin)
            if known != sent and known is not None:
                return known
            if address.origin in self._tried:
                return None
            self._tried.add(address.origin)
            found = self._of_keyring(address, None if sent is None else sent.user)
            if found is not None:
                self._keep(address.origin, found)
            return found

    def _keep(self, origin: Origin, login: Login | None) -> Login | None:
        with self._lock:
            known = self._logins.get(origin)
            if known is None or known.password is None:
                self._logins[origin] = known = login or known
            return known

    def _of_netrc(self, address: Address) -> Login | None:
        with self._lock:
            if not self._netrc_read:
                self._netrc, problem = user_netrc(os.environ)
                self.notes += [problem] if problem else []
                self._netrc_read = True
        entry = None if self._netrc is None else self._netrc.authenticators(address.origin.host.strip("[]"))
        if entry is None:
            return None
        found = Login(entry[0], entry[2] or "")
        return found if _is_of(found, address.login) else None

    def _of_keyring(self, address: Address, user: str | None) -> Login | None:
        _, host, port = address.origin
        netloc = address.url.split("/", 3)[2]
        services = (address.url.partition("?")[0], netloc)
        try:
            return _from_keyring_module(services, user)
        except ImportError:
            return _from_keyring_command(services, user)
        except Exception as error:  # noqa: BLE001 - stores are plug-ins and can raise anything
            self.notes.append(f"the keyring has no login for {host}:{port}: it failed with {type(error).__name__}")
            return None


def _is_of(login: Login | None, requested: Login | None) -> bool:
    """Whether ``login`` belongs to the user that an address names, if it names one."""
    return requested is None or (login is not None and login.user == requested.user)


def _from_keyring_module(services: Sequence[str], user: str | None) -> Login | None:
    """The login from the module ``keyring`` in this environment. Raises ImportError if there is none."""
    from importlib import import_module

    keyring = import_module("keyring")
    for service in services:
        found = keyring.get_credential(service, user)
        if found is not None and found.password is not None:
            return Login(found.username or user or "", found.password)
    return None


def _from_keyring_command(services: Sequence[str], user: str | None) -> Login | None:
    """The login from the command ``keyring``, installed separately. From 25.2 on it prints user names too."""
    command = find_program("keyring", os.environ)
    if command is None or (user or "").startswith("-"):
        return None
    for service in services:
        question = ("--mode", "creds", "get", service) if user is None else ("get", service, user)
        lines = _output_lines([command, *question])
        if user is None and len(lines) > 1:
            return Login(lines[0], lines[1])
        if user is not None and lines:
            return Login(user, lines[0])
    return None


def _output_lines(command: list[str]) -> list[str]:
    """The lines that a command prints; none if it fails. Its error messages do not help a user here."""
    try:
        finished = run_program(command, os.environ | {"PYTHONIOENCODING": "utf-8"}, _KEYRING_TIMEOUT)
    except OSError:
        return []
    return finished.output.splitlines() if finished.exit_code == 0 else []
