"""Which paths of folders a lock may have: nothing that pip or a shell would read as something else."""

from __future__ import annotations

import pytest

from envsolve.errors import OutsideError
from envsolve.lockfile.checked_pins import checked_address


@pytest.mark.parametrize("path", ["./own", "./my project", "/home/ana/my own project", "./a-b c"])
def test_a_path_with_single_spaces_is_accepted(path: str) -> None:
    assert checked_address(path) == path


@pytest.mark.parametrize("path", ["./a  b", "./a --no-binary", "./a -e", "./a ", "./a#b", "./a;b", "./a\nb", "./$HOME"])
def test_an_ambiguous_path_is_refused(path: str) -> None:
    with pytest.raises(OutsideError, match="cannot have in a path"):
        checked_address(path)
