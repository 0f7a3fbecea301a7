"""A lock differs where what it rests on does, not where somebody else made it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.lockfile.maker import same_but_for_maker

HEADER = """\
# Made by envsolve 0.1.0 from the compatibility matrix of 2026-11-20:
#   envsolve --framework pytorch --driver 580.65.06 --gpu 'RTX 3090'
# For: linux-64, NVIDIA GeForce RTX 3090 (8.6), a GPU of 9.0
# Needs: NVIDIA driver 525.60.13 or newer
# [tool.envsolve]
# envsolve_version = "0.1.0"
# matrix_date = "2026-11-20"
torch==2.14.1 \\
    --hash=sha256:00
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("envsolve 0.1.0 from", "envsolve 0.2.0 from"),
        ("matrix of 2026-11-20:", "matrix of 2027-01-01:"),
        ('version = "0.1.0"', 'version = "0.2.0"'),
        ('date = "2026-11-20"', 'date = "2027-01-01"'),
        ("580.65.06", "580.95.05"),
        (" --driver 580.65.06", ""),
        ("NVIDIA GeForce RTX 3090 (8.6)", "a GPU of 8.6"),
        ("NVIDIA GeForce RTX 3090 (8.6)", "NVIDIA RTX A6000 (8.6)"),
        ("\n", "\r\n"),
    ],
)
def test_who_made_it_does_not_count(old: str, new: str) -> None:
    assert old in HEADER
    assert same_but_for_maker(HEADER, HEADER.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    # via\n    #   numpy\n    #   the command line", "    # via\n    #   numpy\n    #   pyproject.toml"),
        (
            "    # via\n    #   requests\n    #   the command line",
            "    # via\n    #   pyproject.toml\n    #   requests",
        ),
        ("    # via the command line", "    # via\n    #   envsolve.toml\n    #   pyproject.toml"),
        ('via = ["requests", "the command line"]', 'via = ["pyproject.toml", "requests"]'),
        ('via = ["the command line"]', 'via = [\n    "envsolve.toml",\n    "pyproject.toml",\n]'),
        ("  sources:\n  - 'the command line'\n", "  sources:\n  - pyproject.toml\n"),
        ("numpy  # asked for by the command line", "numpy  # asked for by pyproject.toml"),
        ("jax 2.0 needs NVIDIA driver 580 or", "a newer jax, 2.0, needs NVIDIA driver 580 or"),
        ('    "driver": "--driver"', '    "driver": "driver in pyproject.toml"'),
    ],
)
def test_a_project_whose_words_were_told_as_those_of_a_command_line_is_the_same(old: str, new: str) -> None:
    assert same_but_for_maker(f"{HEADER}{old}\n", f"{HEADER}{new}\n")
    for other in ("numpy", "requests", "driver"):
        if other in new:
            assert not same_but_for_maker(f"{HEADER}{old}\n", f"{HEADER}{new.replace(other, 'pandas')}\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pytorch", "jax"),
        ("(8.6)", "(8.9)"),
        (", a GPU of 9.0", ""),
        ("525.60.13", "580.65.06"),
        ("==2.14.1", "==2.14.0"),
        ("sha256:00", "sha256:01"),
        ("2026-11-20:", "2026-11-20 that --matrix gave:"),
        ("linux-64", "win-64"),
        ("'RTX 3090'", "'RTX 3090' --gpu 8.0"),
    ],
)
def test_what_it_rests_on_counts(old: str, new: str) -> None:
    assert old in HEADER
    assert not same_but_for_maker(HEADER, HEADER.replace(old, new))


SNAPSHOTS = sorted(
    path
    for path in (Path(__file__).parents[1] / "snapshots").iterdir()
    if "envsolve VERSION" in path.read_text("utf-8")
)


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.name)
def test_a_newer_envsolve_alone_changes_no_format(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert same_but_for_maker(text, text.replace("VERSION", "9.9.9"))
    assert not same_but_for_maker(text, f"{text}more\n")
