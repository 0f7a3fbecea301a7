"""Which requirements of Python become conda packages, and which stay with pip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envsolve.app.asked_packages import given
from envsolve.app.conda_asked import CondaAsked
from envsolve.app.conda_needs import split_needs
from envsolve.conda.session import Listed
from envsolve.model.host import Platform
from envsolve.model.request import Packages
from envsolve.model.solution import Machine, Problem

PROBLEM = Problem((), Platform.LINUX_64, (Machine(None, (), None),), True, None, None)


def listed(names: frozenset[str]) -> Mapping[str, Sequence[Listed]]:
    return {name: [Listed("13.9.4", "pyh_0", ())] for name in names}


def test_what_has_the_hashes_of_wheels_stays_with_pip(tmp_path: Path) -> None:
    asked = tmp_path / "asked.in"
    asked.write_text("rich==13.9.4 --hash=sha256:00\nclick\n", encoding="utf-8")
    wanted = given(Packages(files=(str(asked),)))
    split = split_needs(CondaAsked(python=wanted), wanted, PROBLEM, None, listed, frozenset())
    assert [it.spec for it in split.conda] == ["click"]
    assert [it.spec for it in split.by_pip] == ["rich==13.9.4"]
    assert split.python is not None
    assert split.python.hashes.keys() == {"rich"}
