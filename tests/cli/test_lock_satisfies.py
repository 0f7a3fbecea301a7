"""``envsolve lock --check`` and ``lock`` decide from the lock, like ``status``: no index or channel is queried."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from tests.cli.test_lock import Project, project

pytestmark = pytest.mark.thorough

__all__ = ["project"]

OFF = ("--offline", "--no-cache")
NUMPY = 'dependencies = ["numpy"]'
GPUS = 'gpus = ["RTX 3090"]'
FRAMEWORKS = 'frameworks = ["pytorch"]'
PLATFORMS = 'platforms = ["linux-64"]'


class Edit(NamedTuple):
    """A change of the project, and the resulting reasons."""

    old: str
    new: str
    reasons: tuple[str, ...]


SATISFIED = {
    "a requirement that is locked": Edit(
        NUMPY, 'dependencies = ["numpy", "typing-extensions"]', ("typing-extensions is new",)
    ),
    "a range around what is locked": Edit(NUMPY, 'dependencies = ["numpy>=2"]', ("numpy>=2 instead of numpy",)),
    "a range of a framework": Edit(FRAMEWORKS, 'frameworks = ["pytorch>=2.5"]', ("pytorch>=2.5 instead of pytorch",)),
    "a framework by its package": Edit(NUMPY, 'dependencies = ["numpy", "torch>=2"]', ("torch>=2 is new",)),
    "a constraint": Edit(
        PLATFORMS, f'{PLATFORMS}\nconstraint-files = ["bounds.txt"]', ("bounds.txt: constraint numpy<3 is new",)
    ),
    "an override": Edit(PLATFORMS, f'{PLATFORMS}\noverrides = ["numpy<3"]', ("override numpy<3 is new",)),
    "a GPU that the builds cover": Edit(GPUS, 'gpus = ["RTX 3090", "RTX 4090"]', ("compute capability 8.9 is new",)),
    "another such GPU": Edit(GPUS, 'gpus = ["RTX 4090"]', ("compute capability 8.9 instead of 8.6",)),
    "a range of Python": Edit(
        'python = "3.11.7"', 'python = "==3.11.7,<3.12"', ("python ==3.11.7,<3.12 instead of 3.11.7",)
    ),
}
UNSATISFIED = {
    "a requirement that is not locked": Edit(
        NUMPY, 'dependencies = ["numpy", "six"]', ("six is new and not in the lock file",)
    ),
    "a range that excludes what is locked": Edit(
        NUMPY, 'dependencies = ["numpy<2"]', ("numpy<2 instead of numpy, but the lock file has numpy 2.4.6",)
    ),
    "an override": Edit(
        PLATFORMS,
        f'{PLATFORMS}\noverrides = ["numpy<2"]',
        ("override numpy<2 is new, but the lock file has numpy 2.4.6",),
    ),
    "an override that leaves a package out": Edit(
        PLATFORMS,
        f"{PLATFORMS}\noverrides = [\"numpy; sys_platform == 'win32'\"]",
        ("numpy was removed", "override numpy; sys_platform == 'win32' is new"),
    ),
    "a requirement with an extra": Edit(NUMPY, 'dependencies = ["numpy[more]"]', ("numpy[more] instead of numpy",)),
    "a requirement that is gone": Edit(NUMPY, "dependencies = []", ("numpy was removed",)),
    "a framework": Edit(FRAMEWORKS, 'frameworks = ["pytorch", "jax"]', ("jax is new and not in the lock file",)),
    "a range of a framework": Edit(
        FRAMEWORKS,
        'frameworks = ["pytorch<2.10"]',
        ("pytorch<2.10 instead of pytorch, but the lock file has torch 2.14.1+cu126",),
    ),
    "a GPU": Edit(
        GPUS,
        'gpus = ["RTX 5090"]',
        (
            "NVIDIA GeForce RTX 5090 (compute capability 12.0) needs driver branch R570 (570.26) or newer",
            "this machine has driver 535.183.01 (from driver in pyproject.toml)",
            "compute capability 12.0 instead of 8.6",
        ),
    ),
    "a Python": Edit(
        'python = "3.11.7"',
        'python = "3.12"',
        ("python 3.12 instead of 3.11.7, and the lock file is for Python 3.11.7",),
    ),
    "a day": Edit(
        PLATFORMS,
        f'{PLATFORMS}\nexclude-newer = "2026-01-01"',
        (
            "builds released before 2026-01-02 were requested",
            "pytorch 2.14.1 was released on 2026-09-30",
            "exclude-newer 2026-01-02T00:00:00Z is new",
        ),
    ),
}


@pytest.fixture
def locked(project: Project) -> Project:
    """A locked project with requirements files."""
    (project.directory / "bounds.txt").write_text("numpy<3\n")
    assert project("lock").code == 0
    return project


def outcome(project: Project, *words: str) -> list[str]:
    """The messages of a command about the files of the project, without their names."""
    named = "note: requirements.txt, locks/pylock.toml: "
    return [line.removeprefix(named) for line in project(*words).err.splitlines() if line.startswith(named)]


def packages(project: Project) -> list[str]:
    return [line for line in project.read().splitlines() if line and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("case", SATISFIED)
def test_changes_that_the_lock_satisfies_are_recorded_without_the_network(case: str, locked: Project) -> None:
    old, new, reasons = SATISFIED[case]
    before = packages(locked)
    locked.say(old, new)
    assert [tuple(it["reasons"]) for it in locked.data("status")["files"]] == [reasons] * 2
    assert locked("lock", "--check", *OFF).code == 1
    assert outcome(locked, "lock", "--check", *OFF) == ["out of date, same packages", *reasons]
    assert outcome(locked, "lock", *OFF) == ["written, same packages", *reasons]
    assert packages(locked) == before
    after = locked.read()
    assert outcome(locked, "lock", "--check", *OFF) == ["up to date"]
    assert {it["status"] for it in locked.data("status")["files"]} == {"fits"}
    assert locked("lock", "-P", "six").code == 0
    assert locked.read() == after, "with the network it is the same"


@pytest.mark.parametrize("case", UNSATISFIED)
def test_changes_that_the_lock_does_not_satisfy_are_reported_without_the_network(case: str, locked: Project) -> None:
    old, new, reasons = UNSATISFIED[case]
    before = locked.read()
    locked.say(old, new)
    assert [tuple(it["reasons"]) for it in locked.data("status")["files"]] == [reasons] * 2
    assert locked("lock", "--check", *OFF).code == 1
    assert outcome(locked, "lock", "--check", *OFF) == ["out of date", *reasons]
    assert locked("lock", *OFF).code != 0
    assert locked.read() == before


@pytest.mark.parametrize(
    ("case", "file", "begins"),
    [
        ("a requirement that is not locked", "pyproject.toml", 'dependencies = ["numpy", "six"]'),
        ("a range that excludes what is locked", "requirements.txt", "numpy==2.4.6"),
        ("a range of a framework", "requirements.txt", "torch==2.14.1+cu126"),
        ("a framework", "pyproject.toml", 'frameworks = ["pytorch", "jax"]'),
        ("a day", "pyproject.toml", "outputs = "),
    ],
)
def test_ci_shows_what_is_out_of_date_at_the_line_that_it_is_about(
    case: str, file: str, begins: str, locked: Project
) -> None:
    old, new, _ = UNSATISFIED[case]
    locked.say(old, new)
    results = json.loads(locked("lock", "--check", "--output-format", "sarif", *OFF).out)["runs"][0]["results"]
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == file
    line = (locked.directory / file).read_text("utf-8").splitlines()[place["region"]["startLine"] - 1]
    assert line.startswith(begins), line


def test_an_override_that_changed_or_is_gone_is_reported(locked: Project) -> None:
    locked.say(PLATFORMS, f'{PLATFORMS}\noverrides = ["numpy<2"]')
    assert locked("lock").code == 0
    locked.say("numpy<2", "numpy<=1.26.4")
    assert outcome(locked, "lock", "--check", *OFF) == [
        "out of date, same packages",
        "override numpy<=1.26.4 instead of numpy<2",
    ]
    locked.say("numpy<=1.26.4", "numpy>=2")
    assert outcome(locked, "lock", "--check", *OFF) == [
        "out of date",
        "override numpy>=2 instead of numpy<2, but the lock file has numpy 1.26.4",
    ]
    locked.say('\noverrides = ["numpy>=2"]', "")
    assert outcome(locked, "lock", "--check", *OFF) == ["out of date", "override numpy<2 was removed"]
    assert locked("lock", *OFF).code != 0, "what it replaced is not known"


def test_the_order_of_requirements_makes_no_difference(locked: Project) -> None:
    locked.say(NUMPY, 'dependencies = ["typing-extensions", "numpy"]')
    assert locked("lock").code == 0
    before = locked.read()
    locked.say('["typing-extensions", "numpy"]', '["numpy", "typing-extensions"]')
    assert locked("lock", "--check", *OFF).code == 0
    assert locked("lock", *OFF).code == 0
    assert {it["status"] for it in locked.data("status")["files"]} == {"fits"}
    assert locked.read() == before


@pytest.mark.parametrize("removed", ["numpy==", "    --hash", ""])
def test_packages_that_someone_changed_are_reported(removed: str, locked: Project) -> None:
    path = locked.directory / "requirements.txt"
    lines = path.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith(removed or "    --hash"))
    altered = [] if removed else [lines[at].replace("=sha256:5", "=sha256:6")]
    path.write_text("".join([*lines[:at], *altered, *lines[at + 1 :]]))
    done = locked("lock", "--check", *OFF)
    assert done.code == 1
    assert "requirements.txt: packages or digests were changed after envsolve wrote the file\n" in done.err
    assert "packages or digests were changed" in locked("status").out
    assert locked("lock", *OFF).code == 3
    assert locked("lock").code == 0
    assert locked("lock", "--check", *OFF).code == 0


def test_a_file_that_is_missing_is_reported_without_the_network(locked: Project) -> None:
    (locked.directory / "requirements.txt").unlink()
    done = locked("lock", "--check", *OFF)
    assert (done.code, "requirements.txt: missing\n" in done.err) == (1, True)


def test_the_requester_is_recorded_with_the_package(locked: Project) -> None:
    locked.say(NUMPY, 'dependencies = ["numpy", "typing-extensions"]')
    assert locked("lock", *OFF).code == 0
    assert "typing-extensions==4.16.0" in locked.read()
    assert "    # via\n    #   pyproject.toml\n    #   torch\n" in locked.read()


def test_json_marks_changes_that_were_not_computed(locked: Project) -> None:
    locked.say(NUMPY, 'dependencies = ["numpy", "six"]')
    (first, _) = locked.data("lock", "--check", *OFF)["files"]
    assert (first["status"], first["changes"]) == ("stale", None)
    locked.say('["numpy", "six"]', '["numpy>=2"]')
    (first, _) = locked.data("lock", "--check", *OFF)["files"]
    assert (first["status"], first["changes"]) == ("stale", [])


def test_reasons_are_notes_with_their_values(locked: Project) -> None:
    locked.say(NUMPY, 'dependencies = ["numpy<2"]')
    (reason,) = locked.data("lock", "--check", *OFF)["files"][0]["because"]
    assert reason["code"] == "requirement-changed"
    assert reason["fields"] == {"name": "numpy", "wanted": "numpy<2", "recorded": "numpy", "locked": "numpy 2.4.6"}
    assert locked.data("status")["files"][0]["because"] == [reason]


def test_another_index_is_reported_and_left_to_the_network(locked: Project) -> None:
    url = locked.index_url.rstrip("/")
    locked.say(f'index-url = "{url}/"', f'index-url = "{url}/other/"')
    (reason,) = locked.data("status")["files"][0]["reasons"]
    assert reason == f"index-url {url}/other/ instead of {url}/"
    assert locked("lock", "--check", *OFF).code == 1
    assert locked("lock", *OFF).code == 3
