"""The certificates that https connections trust.

In order:

1. a file or directory in PIP_CERT, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE, and the directory SSL_CERT_DIR
2. the system's certificates: they include those of a company's own proxy or index, the system updates them, and they
   load in half the time of certifi's
3. certifi, if the system has none, as in minimal containers and with the installer of python.org on macOS
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
"""The size limit of a certificate file in bytes. envsolve reads it first: OpenSSL would wait for a pipe or a device."""


class Certificates:
    """The TLS contexts, with and without verification, each made when the first connection needs it.

    ``client`` is a PEM file with the client certificate and its key. For the hosts in ``trusted``, as ``name`` or
    ``name:port``, certificates are not verified. Raises UsageError if a file cannot be read.
    """

    def __init__(self, client: Path | None = None, trusted: frozenset[str] = frozenset()) -> None:
        self._client = client
        self._trusted = trusted

    def context(self, host: str, port: int) -> ssl.SSLContext:
        """The TLS context for a connection to ``host``."""
        name = host.strip("[]")
        return self._unchecked if not self._trusted.isdisjoint((name, f"{host}:{port}", host)) else self.checked

    @cached_property
    def checked(self) -> ssl.SSLContext:
        """A context that verifies the server's certificate and its host name."""
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
    found_by_name = any(Path(directory).glob("*"))  # these are read on demand, and do not count as loaded before
    if not found_by_name and not context.cert_store_stats()["x509_ca"]:
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def _no_password() -> str:
    """An empty password, so that OpenSSL does not prompt on the terminal."""
    message = "its key has a password"
    raise ValueError(message)


def _words(error: Exception) -> str:
    """The reason without OpenSSL's numbers and file names."""
    if isinstance(error, ssl.SSLError):
        reason: str | None = error.reason  # None for a file without PEM content
        return "it is not a PEM file" if reason is None else reason.lower().replace("_", " ")
    if isinstance(error, FileError):
        return error.reason
    return getattr(error, "strerror", None) or str(error)
