"""The installer of wheels, and its configuration from the machine: uv if there is one, otherwise pip.

The lock alone says what is installed, so of the installers' variables only those pass that say how: caches, timeouts,
certificates, places of Pythons. Logins are passed in a netrc file that is removed afterwards, never on a command line.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.answers import PATIENCE
from envsolve.boundary.programs import absolute_entries, find_program, run_program
from envsolve.boundary.secrets import without_secrets
from envsolve.create.netrc_file import netrc_text
from envsolve.index.address import address_of
from envsolve.index.settings import IndexSettings, default_index

_OF_UV = (
    *("UV_CACHE_DIR", "UV_LINK_MODE", "UV_HTTP_TIMEOUT", "UV_REQUEST_TIMEOUT", "UV_HTTP_RETRIES", "UV_NATIVE_TLS"),
    *("UV_SYSTEM_CERTS", "UV_KEYRING_PROVIDER", "UV_CREDENTIALS_DIR", "UV_CONCURRENT_DOWNLOADS", "UV_COMPILE_BYTECODE"),
    *("UV_PYTHON_INSTALL_DIR", "UV_PYTHON_INSTALL_MIRROR", "UV_PYTHON_PREFERENCE", "UV_PYTHON_DOWNLOADS"),
    *("UV_MANAGED_PYTHON", "UV_NO_MANAGED_PYTHON", "UV_PYTHON_BIN_DIR", "UV_CONCURRENT_INSTALLS"),
)
_OF_PIP = ("PIP_DEFAULT_TIMEOUT", "PIP_RETRIES", "PIP_CACHE_DIR", "PIP_KEYRING_PROVIDER", "PIP_PROXY")
_OF_ANOTHER = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__")
"""Variables of the active environment, which is not the one that is made."""
_OLDEST_UV = (0, 6, 15)
"""The first uv that installs from a pylock.toml (its release notes of 0.6.15, astral-sh/uv pull request 12992)."""
_UV_VERSION = re.compile(r"uv (\d+)\.(\d+)\.(\d+)")


class InstallerNetwork(NamedTuple):
    """The network settings of installers. ``settings`` are the indexes that the user has configured, with their logins.

    ``logins`` are further addresses with a login. ``cache_directory`` is what the user named, None for each installer's
    own. With ``offline`` the network is not used.
    """

    settings: IndexSettings
    logins: tuple[str, ...] = ()
    cache_directory: Path | None = None
    no_cache: bool = False
    offline: bool = False

    def keeps(self, text: str) -> bool:
        """Whether installers may cache what they fetch for a lock of ``text``: they also cache its addresses."""
        if self.no_cache or without_secrets(text) != text:
            return False
        return all(_without_login(url) == without_secrets(url) for url in self.addresses)

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses that may contain a login."""
        settings = self.settings
        named = (url for _, url in settings.package_indexes)
        return (*self.logins, *filter(None, (settings.index_url,)), *settings.extra_index_urls, *named)


def find_uv() -> str | None:
    """The program uv: on PATH, beside this interpreter, or in the Python package of that name.

    None if there is none that can read every lock.
    """
    return next((program for program in _candidates() if _will_do(program)), None)


def has_own_pip() -> bool:
    """Whether there is a pip beside envsolve, which installs for any given interpreter."""
    return find_spec("pip") is not None


def _candidates() -> Iterator[str]:
    named = find_program("uv", os.environ)
    if named is not None:
        yield named
    yield str(Path(sys.executable).with_name("uv.exe" if sys.platform == "win32" else "uv"))
    try:
        from uv import find_uv_bin

        yield str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return


def _will_do(program: str) -> bool:
    """Whether it runs and is new enough; other tools may leave a program that does not work."""
    try:
        answer = run_program([program, "--version"], os.environ, PATIENCE)
    except OSError:
        return False
    version = _UV_VERSION.match(answer.last_line)
    return answer.exit_code == 0 and version is not None and tuple(map(int, version.groups())) >= _OLDEST_UV


@contextmanager
def tool_environ(
    environ: Mapping[str, str], network: InstallerNetwork, scratch: Path, *, names_index: bool = True
) -> Iterator[dict[str, str]]:
    """The variables for an installer; without ``names_index`` the lock leaves the package indexes to the user.

    Logins are in the directory ``scratch`` until the block is left. Raises UsageError ``url-invalid`` for one that
    cannot be stored there.
    """
    settings = network.settings
    passed = {
        name: value
        for name, value in environ.items()
        if name in (*_OF_UV, *_OF_PIP) or (not name.startswith(("UV_", "PIP_")) and name not in _OF_ANOTHER)
    }
    entries = [*absolute_entries(environ.get("PATH", ""))] or [*absolute_entries(os.defpath)]
    passed["PATH"] = os.pathsep.join(entries)  # an installer runs in the current directory, which an empty entry means
    passed |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    passed |= {"PIP_BREAK_SYSTEM_PACKAGES": "1"}  # as for uv; what may be changed is decided before
    passed |= {"PYTHONNOUSERSITE": "1", "PIP_USER": "0"}  # packages in the home directory are no part of it
    passed |= _trust(settings)
    if not names_index:
        passed |= _indexes(settings)
    with _netrc(environ, network, scratch) as path:
        yield passed | ({} if path is None else {"NETRC": str(path)})


def _trust(settings: IndexSettings) -> dict[str, str]:
    found = {
        "SSL_CERT_FILE": settings.cert,
        "PIP_CERT": settings.cert,
        "SSL_CLIENT_CERT": settings.client_cert,
        "PIP_CLIENT_CERT": settings.client_cert,
        "UV_INSECURE_HOST": " ".join(settings.trusted_hosts),
        "PIP_TRUSTED_HOST": " ".join(settings.trusted_hosts),
    }
    return {name: value for name, value in found.items() if value}


def _indexes(settings: IndexSettings) -> dict[str, str]:
    default = _without_login(settings.index_url or default_index())
    found = {"UV_DEFAULT_INDEX": default, "PIP_INDEX_URL": default}
    if settings.extra_index_urls:
        extra = " ".join(map(_without_login, settings.extra_index_urls))
        found |= {"UV_INDEX": extra, "PIP_EXTRA_INDEX_URL": extra}
    return found


def _without_login(url: str) -> str:
    """``url`` for an installer, with its login in the netrc file; a token can only be in the address."""
    return address_of(url).url if url.startswith(("http:", "https:")) else url


@contextmanager
def _netrc(environ: Mapping[str, str], network: InstallerNetwork, scratch: Path) -> Iterator[Path | None]:
    """A netrc file with the user's own entries and the logins in addresses; None if addresses have none."""
    text = netrc_text(network.addresses, environ)
    if not text:
        yield None
        return
    path = scratch / "netrc"
    path.touch(0o600)
    try:
        path.write_text(text, "utf-8")
        yield path
    finally:
        path.unlink(missing_ok=True)
