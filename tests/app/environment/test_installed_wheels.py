"""Which installed packages require which: markers and extras decide, along chains of packages."""

from __future__ import annotations

from pathlib import Path

from envsolve.app.environment.installed_wheels import captured
from envsolve.index.fitting import Interpreter
from envsolve.model.host import Platform
from envsolve.model.need import Markers
from envsolve.validation.metadata import Package

MARKERS = Markers(Interpreter((3, 12, 0), Platform.LINUX_64).marker_values())


def package(name: str, *requires: str) -> Package:
    return Package(name, "1.0", Path(name), "pip", requires, editable=False, described=True)


def test_a_requirement_with_an_extra_applies_if_a_chain_of_packages_requires_the_extra() -> None:
    packages = [
        package("delta"),
        package("gamma", 'delta; extra == "deep"', 'omega; extra == "other"', 'gamma[deep]; extra == "all"'),
        package("beta", 'gamma[all]; extra == "fast"', 'omega; python_version < "3.10"'),
        package("alpha", "Beta[Fast]", "omega; no_such_variable == '1'", "absent"),
        package("omega", "setuptools"),
        package("setuptools"),
        package("pip", "setuptools"),
    ]
    found, requires = captured(packages, MARKERS)
    assert [it.name for it in found] == ["alpha", "beta", "delta", "gamma", "omega", "setuptools"]
    assert (requires["alpha"], requires["beta"], requires["gamma"]) == ({"beta"}, {"gamma"}, {"delta"})
