"""The netrc file with logins for uv and pip: those in addresses, and those of the user's own file for other hosts.

A value is quoted only if necessary, since the parser of Python before 3.11 takes quotes for a part of it
(python/cpython, "netrc: rewrite the parser", 3.11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from envsolve.errors import Hint, UsageError
from envsolve.index.user_netrc import user_netrc

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN = re.compile(r"[^\s\"\\#][^\s\"\\]*\Z")
_DEFAULT = "default"
"""The standard library's name of the entry for all other hosts, which has to be the last."""


def netrc_text(addresses: Sequence[str], environ: Mapping[str, str]) -> str:
    """The text of the file; "" if no address has a login.

    A user's entry for a host of ``addresses`` is left out, since parsers differ in which of two entries they use.
    Raises UsageError ``url-invalid`` for a login that such a file cannot contain.
    """
    logins = dict.fromkeys(_logins(addresses))
    if not logins:
        return ""
    hosts = {host for host, _, _ in logins}
    return "".join((*(_entry(*it) for it in logins), *_own_entries(environ, hosts)))


def _logins(addresses: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for address in addresses:
        parts = urlsplit(address) if "@" in address else None
        if parts is not None and parts.hostname and (parts.username or parts.password):
            yield parts.hostname, unquote(parts.username or ""), unquote(parts.password or "")


def _entry(host: str, user: str, password: str) -> str:
    if any(map(_CONTROL.search, (host, user, password))):
        hint = Hint("remove control characters, such as a line break, from the user name and password")
        raise UsageError("url-invalid", f"the login for {host!r} contains a control character", hints=(hint,))
    machine = _DEFAULT if host == _DEFAULT else f"machine {_value(host)}"
    return f"{machine} login {_value(user)} password {_value(password)}\n"


def _value(text: str) -> str:
    if _PLAIN.match(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _own_entries(environ: Mapping[str, str], named: set[str]) -> Iterator[str]:
    file, _ = user_netrc(environ)
    own = {} if file is None else file.hosts
    for host in sorted(set(own) - named, key=lambda it: (it == _DEFAULT, it)):
        user, _, password = own[host]
        yield _entry(host, user or "", password or "")
