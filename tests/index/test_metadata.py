"""Invalid requirements in metadata, and how older installers read them."""

from __future__ import annotations

import pytest

from envsolve.index.metadata import needs_in, read_metadata

READ_AS = {
    "numpy (>=1.19.*)": "numpy>=1.19",
    'numpy (>=1.19.*) ; python_version >= "3.7"': "numpy>=1.19",
    "scipy<=1.8.*": "scipy<=1.8",
    "part>=1.0<2.0": "part>=1.0,<2.0",
    "part>=1.0,!=1.5.*": "part!=1.5.*,>=1.0",
    "part==1.*": "part==1.*",
}


@pytest.mark.parametrize("line", READ_AS)
def test_a_requirement_is_parsed_like_in_older_installers(line: str) -> None:
    (found,) = needs_in([line]) or ()
    assert ",".join(sorted(found.specifier.split(","))) == ",".join(
        sorted(READ_AS[line].removeprefix(found.name).split(","))
    )


def test_an_unparsable_requirement_makes_the_metadata_unusable() -> None:
    assert needs_in(["part>=1", "part (one two)"]) is None


def test_corrections_are_cached() -> None:
    text = "Metadata-Version: 2.1\nName: app\nVersion: 1.0\nRequires-Dist: part (>=1.*)\nRequires-Dist: other>=1\n"
    assert read_metadata(text.encode()).corrected == ("part (>=1.*)",)


@pytest.mark.thorough
@pytest.mark.parametrize(("count", "is_read"), [(10_000, True), (10_001, False)])
def test_an_excessive_number_of_requirements_is_refused(count: int, is_read: bool) -> None:
    lines = "".join(f"Requires-Dist: part-{number}\n" for number in range(count))
    found = read_metadata(f"Metadata-Version: 2.1\nName: app\nVersion: 1.0\n{lines}".encode())
    assert (found.requires is not None) is is_read
