"""The user's netrc file: the file in the variable NETRC, else the one in the home directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from envsolve.boundary.files import FileError, read_bytes

if TYPE_CHECKING:
    from netrc import netrc

_LONGEST = 1024 * 1024


def user_netrc(environ: Mapping[str, str]) -> tuple[netrc | None, str]:
    """The file, with two possible names in the home directory, and the reason if it cannot be used, else ""."""
    from netrc import NetrcParseError, netrc

    named = environ.get("NETRC")
    for name in (named,) if named else ("~/.netrc", "~/_netrc"):
        path = Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser fails where there is no home
        try:
            if read_bytes(path, _LONGEST) is not None:
                return netrc(str(path)), ""
        except FileError as error:
            return None, f"{path} cannot be used for logins: {error.reason}"
        except NetrcParseError as error:
            return None, f"{path} cannot be used for logins: line {error.lineno} is malformed"
        except OSError as error:
            return None, f"{path} cannot be used for logins: {error.strerror or 'it cannot be read'}"
        except ValueError:
            return None, f"{path} cannot be used for logins: it is not UTF-8 text"
    return None, f"{named}, which NETRC names, does not exist" if named else ""
