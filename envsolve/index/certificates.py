"""Whom https connections trust.

In order: 1. a file or a directory that PIP_CERT, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE names, and the
directory SSL_CERT_DIR 2. the system's certificates, as they hold those of a company's own proxy or index, are kept up
to date by the system, and load in half the time of 3. certifi, where the system has none, as in bare containers and
with the installer of python.org on macOS.
"""

from __future__ import annotations

import os
import ssl
from functools import cached_property
from pathlib import Path

from envsolve.boundary.files import FileError, read_bytes
from envsolve.errors import Hint, UsageError

BUNDLE_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
DIRECTORY_VARIABLE = "SSL_CERT_DIR"
_LONGEST = 16 * 1024 * 1024
"""Bytes of a file with certificates. It is read here first, as OpenSSL waits for a pipe and reads a device for ever."""


class Certificates:
    """The two ways to make a TLS connection, each prepared when the first connection needs it.

    ``client`` is a file in PEM form with the certificate that envsolve shows, and its key. ``trusted`` are hosts, as
    ``name`` or ``name:port``, whose certificates nobody checks. Raises UsageError where a file cannot be read.
    """

    def __init__(self, client: Path | None = None, trusted: frozenset[str] = frozenset()) -> None:
        self._client = client
        self._trusted = trusted

    def context(self, host: str, port: int) -> ssl.SSLContext:
        """What a connection to ``host`` is made with."""
        name = host.strip("[]")
        return self._unchecked if not self._trusted.isdisjoint((name, f"{host}:{port}", host)) else self.checked

    @cached_property
    def checked(self) -> ssl.SSLContext:
        """The certificate of the server is checked, and that it is for the host that was asked for."""
        return self._with_client(_checked())

    @cached_property
    def _unchecked(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return self._with_client(context)

    def _with_client(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.set_alpn_protocols(["http/1.1"])
        if self._client is not None:
            try:
                read_bytes(self._client, _LONGEST)
                context.load_cert_chain(self._client, password=_no_password)
            except (
                FileError,
                OSError,
                ValueError,
            ) as error:  # an SSLError is an OSError; a key with a password a ValueError
                message = f"the client certificate {self._client} cannot be used: {_words(error)}"
                hint = Hint("it must contain the certificate and its key without a password, both in PEM format")
                raise UsageError("client-certificate-unreadable", message, hints=(hint,)) from error
        return context


def _checked() -> ssl.SSLContext:
    variable, named = next(((name, os.environ[name]) for name in BUNDLE_VARIABLES if os.environ.get(name)), ("", ""))
    directory = os.environ.get(DIRECTORY_VARIABLE, "")
    if not Path(directory).is_dir():
        directory = ""
    if not named and not directory:
        return _of_the_system()
    if Path(named or directory).is_dir():
        return ssl.create_default_context(capath=named or directory)
    try:
        read_bytes(named, _LONGEST)
        return ssl.create_default_context(cafile=named, capath=directory or None)
    except (FileError, OSError) as error:
        message = f"{variable} is {named}, which cannot be used as certificates: {_words(error)}"
        hint = Hint(f"set {variable} to a file with certificates in PEM format, or unset it")
        raise UsageError("invalid-environment-variable", message, hints=(hint,)) from error


def _of_the_system() -> ssl.SSLContext:
    context = ssl.create_default_context()
    directory = ssl.get_default_verify_paths().capath or os.devnull
    found_by_name = any(Path(directory).glob("*"))  # these are read when one is needed, and not counted before
    if not found_by_name and not context.cert_store_stats()["x509_ca"]:
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def _no_password() -> str:
    """Instead of OpenSSL's own question on the terminal."""
    message = "its key has a password"
    raise ValueError(message)


def _words(error: Exception) -> str:
    """The reason without the numbers and file names that OpenSSL puts around it."""
    if isinstance(error, ssl.SSLError):
        reason: str | None = error.reason  # OpenSSL gives none for a file without anything in PEM form
        return "it is not a PEM file" if reason is None else reason.lower().replace("_", " ")
    if isinstance(error, FileError):
        return error.reason
    return getattr(error, "strerror", None) or str(error)
