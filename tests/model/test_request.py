from __future__ import annotations

import pytest
from packaging.version import Version

from envsolve.model.request import parse_framework, parse_versions
from envsolve.resolve.parts import minor_lies_in


@pytest.mark.parametrize(
    ("text", "admits", "refuses"),
    [
        ("12", "12.6", "13.0"),
        ("12.*", "12.6", "13.0"),
        ("12.6", "12.6", "12.8"),
        ("<13", "12.9", "13.0"),
        (">=12.4,<12.8", "12.6", "12.8"),
        ("==12.6", "12.6", "12.5"),
    ],
)
def test_a_bare_version_is_a_prefix(text: str, admits: str, refuses: str) -> None:
    versions = parse_versions(text)
    assert versions.contains(admits)
    assert not versions.contains(refuses)


@pytest.mark.parametrize("text", ["", "twelve", ">", "12.*.1", ">=3.10 <3.13"])
def test_an_unreadable_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="version or a range"):
        parse_versions(text)


@pytest.mark.parametrize(
    "text", ["torch[extra]", "torch @ https://example.com/t.whl", "torch; python_version>'3'", "a b"]
)
def test_a_framework_is_a_name_with_versions_only(text: str) -> None:
    with pytest.raises(ValueError, match="framework"):
        parse_framework(text)


@pytest.mark.parametrize(
    ("minor", "specifier", "lies"),
    [
        ("3.11", ">=3.11.5", True),
        ("3.11", "==3.11.5", True),
        ("3.11", "<3.11", False),
        ("3.11", "!=3.11.3", True),
        ("3.10", ">=3.11.5", False),
        ("3.12", "3.12", True),
        ("3.13", ">=3.10,<3.13", False),
    ],
)
def test_a_python_minor_lies_in_a_range_when_one_of_its_patches_does(minor: str, specifier: str, lies: bool) -> None:
    assert minor_lies_in(Version(minor), parse_versions(specifier)) is lies
