"""Two files differ if their facts differ, not if someone else made one or added a comment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePath

import pytest

from envsolve.lockfile.lock import Lock, Made, Stack
from envsolve.lockfile.reading import format_in, lock_in
from envsolve.lockfile.same_file import same_file
from envsolve.matrix import Matrix
from envsolve.model.conda import CondaPackage, VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.lock_format import CONDA_FORMATS, PYTHON_FORMATS, VENV_FORMATS
from envsolve.model.package import Pin
from tests.lockfile.conda_locks import two_platforms
from tests.lockfile.formats import written
from tests.lockfile.locks import file, rtx_3090

COMMAND = "envsolve --framework pytorch --driver 580.65.06 --gpu 'RTX 3090' numpy"


def lock_for(format_name: str, matrix: Matrix) -> Lock:
    lock = rtx_3090(matrix) if format_name in PYTHON_FORMATS else two_platforms(matrix)[0]
    assert lock.made is not None
    options = (("frameworks", ("pytorch",)), ("sources", ("pypi", "pytorch")))
    return lock._replace(made=lock.made._replace(command=COMMAND, options=options))


def is_same(format_name: str, one: Lock, other: Lock) -> bool:
    """Whether a file with ``one`` is up to date when ``other`` is to be written."""
    before, after = written(one, format_name), written(other, format_name)
    assert before != after
    return same_file(format_name, before, after, [Platform(other.platform)])


def made(lock: Lock, **changes: object) -> Lock:
    assert isinstance(lock.made, Made)
    return lock._replace(made=lock.made._replace(**changes))  # type: ignore[arg-type]


def stacked(lock: Lock, **changes: object) -> Lock:
    assert isinstance(lock.stack, Stack)
    return lock._replace(stack=lock.stack._replace(**changes))  # type: ignore[arg-type]


def first(lock: Lock, **changes: object) -> Lock:
    """``lock`` with another first package."""
    if lock.conda:
        package: CondaPackage = lock.conda[0]._replace(**changes)  # type: ignore[arg-type]
        return lock._replace(conda=(package, *lock.conda[1:]))
    pin: Pin = lock.pins[0]._replace(**changes)  # type: ignore[arg-type]
    return lock._replace(pins=(pin, *lock.pins[1:]))


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", [*PYTHON_FORMATS, *CONDA_FORMATS])
@pytest.mark.parametrize(
    "change",
    [
        lambda lock: made(lock, envsolve_version="9.9.9"),
        lambda lock: made(lock, matrix_date="2027-01-01"),
        lambda lock: made(lock, command=COMMAND.replace("580.65.06", "580.95.05")),
        lambda lock: made(lock, request=tuple(reversed(lock.made.request))),
        lambda lock: made(lock, options=tuple(reversed(lock.made.options))),
        lambda lock: stacked(lock, machines="NVIDIA RTX A6000 (8.6)"),
        lambda lock: stacked(lock, machines="a GPU of 8.6"),
    ],
)
def test_the_version_of_envsolve_does_not_count(
    change: Callable[[Lock], Lock], format_name: str, matrix: Matrix
) -> None:
    lock = lock_for(format_name, matrix)
    assert is_same(format_name, lock, change(lock))


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", [*PYTHON_FORMATS, *CONDA_FORMATS])
@pytest.mark.parametrize(
    "change",
    [
        lambda lock: made(lock, own_matrix=True),
        lambda lock: made(lock, request_digest="sha256:00"),
        lambda lock: made(lock, request=("numpy>=2",)),
        lambda lock: made(lock, options=(("frameworks", ("jax",)),)),
        lambda lock: made(lock, options=(("sources", ("pytorch", "pypi")),)),
        lambda lock: stacked(lock, capabilities=("8.9",)),
        lambda lock: stacked(lock, capabilities=("8.6", "9.0")),
        lambda lock: stacked(lock, minimum_driver="590.10"),
        lambda lock: lock._replace(platform="linux-aarch64"),
        lambda lock: lock._replace(pins=lock.pins[1:], conda=lock.conda[1:]),
    ],
)
def test_recorded_facts_count(change: Callable[[Lock], Lock], format_name: str, matrix: Matrix) -> None:
    lock = lock_for(format_name, matrix)
    assert not is_same(format_name, lock, change(lock))


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", PYTHON_FORMATS)
@pytest.mark.parametrize(
    "changes", [{"version": "0.0.1"}, {"index_url": "https://example.org/other"}, {"files": (file("torch.whl", "f"),)}]
)
def test_packages_count(changes: dict[str, object], format_name: str, matrix: Matrix) -> None:
    lock = lock_for(format_name, matrix)
    assert not is_same(format_name, first(first(lock, files=(file("torch.whl", "e"),)), **changes), lock)


@pytest.mark.parametrize("format_name", PYTHON_FORMATS)
def test_an_unreachable_source_counts_once_it_is_readable(format_name: str, matrix: Matrix) -> None:
    lock = lock_for(format_name, matrix)
    missed = made(lock, evidence=(("places_unread", ("flash-attn Somebody's wheels",)),))
    found = made(lock, evidence=())
    assert not is_same(format_name, missed, found)
    assert is_same(format_name, found, missed)


@pytest.mark.parametrize("format_name", CONDA_FORMATS)
def test_the_cuda_of_the_driver_among_virtual_packages_does_not_count(format_name: str, matrix: Matrix) -> None:
    lock = lock_for(format_name, matrix)
    others = tuple(it for it in lock.virtual_packages if it.name != "__cuda")
    newer = lock._replace(virtual_packages=(*others, VirtualPackage("__cuda", "13.0")))
    assert is_same(format_name, lock, newer)
    assert is_same(format_name, lock, lock._replace(virtual_packages=others))
    older = tuple(it._replace(version="2.17") if it.name == "__glibc" else it for it in others)
    assert not is_same(format_name, lock, lock._replace(virtual_packages=older))


@pytest.mark.parametrize("format_name", VENV_FORMATS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("numpy", "the command line"), ("numpy", "pyproject.toml")),
        (("requests", "the command line"), ("pyproject.toml", "requests")),
        (("the command line",), ("envsolve.toml", "pyproject.toml")),
    ],
)
def test_requirements_of_a_project_and_of_a_command_line_are_equal(
    old: tuple[str, ...], new: tuple[str, ...], format_name: str, matrix: Matrix
) -> None:
    lock = lock_for(format_name, matrix)
    assert is_same(format_name, first(lock, via=old), first(lock, via=new))
    assert not is_same(format_name, first(lock, via=old), first(lock, via=(*new, "pandas")))


def test_the_source_named_by_a_conda_lock_does_not_count(matrix: Matrix) -> None:
    lock = lock_for("conda-lock", matrix)._replace(sources=())
    assert is_same("conda-lock", lock, lock._replace(sources=("pyproject.toml",)))
    assert not is_same("conda-lock", lock, lock._replace(sources=("environment.yml",)))


SNAPSHOTS = sorted(
    path
    for path in (Path(__file__).parents[1] / "snapshots").iterdir()
    if "envsolve VERSION" in path.read_text("utf-8") and not path.name.startswith("capture.")
)
"""Files that can be read: of what was captured on this machine the snapshots leave a part out."""


def is_current(path: Path, before: str) -> bool:
    """Whether ``before`` means the same as the snapshot at ``path``."""
    after = path.read_text(encoding="utf-8")
    format_name = format_in(PurePath(path.name), after)
    both = (Platform.LINUX_64, Platform.WIN_64)
    there = [platform for platform in both if lock_in(PurePath(path.name), after, platform) is not None]
    return same_file(format_name, before, after, there)


@pytest.mark.thorough
@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.name)
def test_neither_a_newer_envsolve_nor_a_comment_changes_a_format(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert is_current(path, text.replace("VERSION", "9.9.9"))
    assert is_current(path, text.replace("\n", "\r\n"))
    assert is_current(path, f"{text}# mine\n")
    assert is_current(path, f"# mine\n{text}")
    assert is_current(path, text.replace("# For: ", "# mine\n# For: ", 1))
    assert not is_current(path, f"{text}more\n")
    assert not is_current(path, "")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("tensorflow-rtx-3090.yml", "cudnn>=", "cudnn>"),
        ("tensorflow-rtx-3090.yml", "conda-forge", "nvidia"),
        ("tensorflow-rtx-3090.yml", "(8.6)", "(8.9)"),
        ("tensorflow-rtx-3090.yml", "Needs: NVIDIA driver ", "Needs: NVIDIA driver 9"),
        ("tensorflow.pixi.toml", 'cudnn = ">=', 'cudnn = ">'),
        ("tensorflow.pixi.toml", 'driver = "12', 'driver = "11'),
        ("pytorch-wheels-two-platforms.pixi.toml", "# For: win-64, a GPU of 8.6", "# For: win-64, a GPU of 8.9"),
        ("python-lock-rtx-3090.Dockerfile", "USER ", "USER 1"),
        ("python-lock-rtx-3090.Dockerfile", "FROM python:3", "FROM python:2"),
        ("python-lock-rtx-3090.def", "From: python:3", "From: python:2"),
        ("python-lock-rtx-3090.def", "exec python", "exec bash"),
    ],
)
def test_content_outside_of_the_lock_counts(name: str, old: str, new: str) -> None:
    path = next(it for it in SNAPSHOTS if it.name == name)
    text = path.read_text(encoding="utf-8")
    assert old in text
    assert not is_current(path, text.replace(old, new))


ANSWER = {
    "host": {
        "platform": "linux-64",
        "glibc": None,
        "driver": "580.65.06",
        "gpus": [{"name": None, "compute_capability": "8.6", "count": 1}],
        "origin": {"driver": "--driver"},
    },
    "python": "3.12",
    "cuda": "12.9",
    "minimum_driver": "525.60.13",
    "frameworks": [],
    "because": [{"fact": "a", "source": "b"}],
    "notes": [{"code": "newer", "text": "jax 2.0 needs NVIDIA driver 580 or newer"}],
    "request": "envsolve --framework jax --gpu 8.6",
    "options": {"frameworks": ["jax"]},
    "matrix_date": "2026-11-20",
    "envsolve_version": "0.1.0",
}


def is_answer(**changes: object) -> bool:
    """Whether an answer with this difference is up to date."""
    before, after = json.dumps(ANSWER), json.dumps({**ANSWER, **changes})
    return same_file("json", before, after, [Platform.LINUX_64])


def test_facts_of_a_json_answer_count() -> None:
    host = ANSWER["host"]
    assert isinstance(host, dict)
    assert is_answer(envsolve_version="0.2.0", matrix_date="2027-01-01")
    assert is_answer(host={**host, "origin": {"driver": "driver in pyproject.toml"}})
    assert is_answer(notes=[{"code": "newer", "text": "a newer jax, 2.0, needs NVIDIA driver 580 or newer"}])
    assert is_answer(request="envsolve --framework jax --gpu 8.6 --driver 580.65.06")
    assert is_answer(host={**host, "driver": "590.10"})
    assert is_answer(host={**host, "gpus": [{"name": "NVIDIA RTX A6000", "compute_capability": "8.6", "count": 2}]})
    assert not is_answer(host={**host, "gpus": [{"name": None, "compute_capability": "8.9", "count": 1}]})
    assert not is_answer(host={**host, "glibc": "2.17"})
    assert not is_answer(minimum_driver="590.10")
    assert not is_answer(notes=[])
    assert not is_answer(because=[])
    assert not is_answer(options={"frameworks": ["pytorch"]})
    assert not is_answer(platforms=[ANSWER])
