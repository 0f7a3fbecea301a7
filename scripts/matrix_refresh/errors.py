"""What can go wrong while the matrix is refreshed; each error is one sentence for the maintainer."""

from __future__ import annotations

import re

from envsolve.releases.errors import ReleaseError

_CREDENTIALS = re.compile(r"//[^/\s?#]*@")


class RefreshError(ReleaseError):
    """An index does not answer, a wheel cannot be read, or a file is no matrix.

    What other libraries say becomes part of it, on one line and without the user and password of a URL.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(without_credentials(message).split("\n")))


def without_credentials(text: str) -> str:
    """``text`` with the user and password taken out of every URL in it."""
    return _CREDENTIALS.sub("//", text)
