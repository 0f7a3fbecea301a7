"""One reader for every file that envsolve reads back, whatever its name."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from envsolve.app.lock.existing_locks import versions_in
from envsolve.errors import UsageError
from envsolve.lockfile import (
    conda_lock_yml,
    environment_yml,
    explicit,
    json_answer,
)
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.reading import lock_at, lock_in
from envsolve.lockfile.stack import lock_of
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from tests.lockfile.conda_locks import two_platforms
from tests.lockfile.formats import EXAMPLES, written
from tests.lockfile.locks import rtx_3090
from tests.lockfile.restriction import restricted
from tests.lockfile.test_pixi_toml import CASES, answers
from tests.lockfile.test_pixi_toml import written as manifest_of

LINUX = Platform.LINUX_64


def test_a_python_lock_is_recognised_by_its_content(matrix: Matrix) -> None:
    lock = rtx_3090(matrix)
    for format_name in PYTHON_FORMATS:
        for name in (EXAMPLES[format_name].file, "gpu.lock", "gpu.txt"):
            found = lock_in(PurePath(name), written(lock, format_name), LINUX)
            assert found == restricted(lock, format_name), name


def test_a_conda_lock_is_recognised_by_its_content(matrix: Matrix) -> None:
    locks = two_platforms(matrix)
    for lock in locks:
        for name, text, format_name in (
            ("conda-lock.yml", conda_lock_yml.write(locks), "conda-lock"),
            ("conda.txt", explicit.write(lock), "explicit"),
            ("gpu.lock", explicit.write(lock), "explicit"),
            ("environment.yml", environment_yml.write(lock), "environment"),
        ):
            found = lock_in(PurePath(name), text, Platform(lock.platform))
            assert found is not None
            assert restricted(found, format_name) == restricted(lock, format_name), name


@pytest.mark.parametrize("case", CASES)
def test_a_stack_is_the_same_in_each_format(case: str, matrix: Matrix) -> None:
    given = answers(CASES[case], matrix)
    manifest, document = manifest_of(given), json_answer.write(given)
    for answer in given:
        platform = answer.solution.problem.platform
        environment = lock_in(PurePath("environment.yml"), environment_yml.write(lock_of(answer)), platform)
        pixi = lock_in(PurePath("pixi.toml"), manifest, platform)
        answered = lock_in(PurePath("answer.json"), document, platform)
        assert environment is not None
        assert pixi is not None
        assert answered is not None
        assert pixi._replace(environment="") == of_pixi(environment, pixi)
        assert (answered.made, answered.platform) == (environment.made, environment.platform)
        assert answered.stack is not None
        assert answered.stack.minimum_driver == (environment.stack and environment.stack.minimum_driver)
        locked = {name: version.partition("+")[0] for name, version in environment.versions.items()}
        assert {it.package: it.version for it in answered.stack.frameworks}.items() <= locked.items()
        assert versions_in(environment).python in (versions_in(answered).python, None)


def of_conda_first(it: Open) -> tuple[bool, str]:
    return not it.of_conda, str(it.name)


def of_pixi(environment: Lock, pixi: Lock) -> Lock:
    """An environment.yml as a manifest expresses it: an index next to each wheel, no pip and no options."""
    indexes = {pin.name: pin.index_url for pin in pixi.pins}
    return environment._replace(
        pins=tuple(pin._replace(index_url=indexes[pin.name]) for pin in environment.pins),
        open=tuple(sorted((it for it in environment.open if it.name not in ("pip", None)), key=of_conda_first)),
        default_index=pixi.default_index,
        indexes=(),
        find_links=(),
        variables=pixi.variables,
        remarks=pixi.remarks,
        environment="",
    )


def test_a_handwritten_manifest_pins_exact_versions() -> None:
    text = """
        [project]
        channels = ["conda-forge", { channel = "nvidia", priority = 1 }]
        platforms = ["linux-64", "win-64"]
        [dependencies]
        python = "3.12.*"
        numpy = "2.3.5"
        scipy = { version = "==1.16", build = "py*", channel = "nvidia" }
        pandas = ">=2"
        six = { path = "." }
        odd = 3
        "no name\\u001b" = "1.0"
        [pypi-dependencies]
        jax = { version = "==0.10.1", extras = ["cuda13"] }
        rich = "14.0"
        torch = { version = "*", index = "https://user:secret@example.org/whl/" }
        own = { url = "https://example.org/own-1.0-py3-none-any.whl" }
        [target.unix.dependencies]
        numpy = "2.3.4"
        [target.linux-64.dependencies]
        scipy = "*"
    """
    lock = lock_in(PurePath("pixi.toml"), text, LINUX)
    assert lock is not None
    assert [(it.name, it.version) for it in lock.conda] == [("numpy", "2.3.4"), ("python", "3.12")]
    assert [(it.name, it.version) for it in lock.pins] == [("jax", "0.10.1"), ("own", "1.0"), ("rich", "14.0")]
    assert {it.name for it in lock.open} == {"scipy", "pandas", "six", "odd", "torch"}
    assert (lock.channels, lock.made) == (("conda-forge", "nvidia"), None)
    windows = lock_in(PurePath("pixi.toml"), text, Platform.WIN_64)
    assert windows is not None
    assert windows.versions.items() >= {"numpy": "2.3.5", "scipy": "1.16"}.items()
    assert lock_in(PurePath("pixi.toml"), text, Platform.OSX_64) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("answer.json", b"{"),
        ("answer.json", b"{}"),
        ("answer.json", b'{"frameworks": 3}'),
        ("answer.json", b'{"frameworks": [], "platforms": [3]}'),
        ("answer.json", b'{"frameworks": [], "host": {"platform": "linux-64", "gpus": []}, "python": 3}'),
        ("answer.json", b"\xff\xfe\x00"),
        ("answer.json", b'{"frameworks": [], "host": {"platform": "linux-64", "gpus": []}, "python": "\\u001b"}'),
        ("pixi.toml", b"[workspace"),
        ("whatever.lock", b"[project]\nname = 'a'\n"),
        ("environment.yml", b"dependencies: [a\n"),
        ("pyproject.toml", b"[project]\n"),
    ],
)
def test_an_unknown_format_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        lock_at(path, LINUX)
    assert refused.value.code == "held-unreadable"
    assert str(path) in refused.value.message
    assert refused.value.hints


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="held-unreadable"):
        lock_at(tmp_path, LINUX)


@pytest.mark.parametrize("name", [it.file for it in EXAMPLES.values()])
def test_missing_and_empty_files_have_no_packages(name: str, tmp_path: Path) -> None:
    assert lock_at(tmp_path / name, LINUX) is None
    (tmp_path / name).write_text("\n")
    assert lock_at(tmp_path / name, LINUX) is None


@pytest.mark.parametrize("workspace", ["3", "{ platforms = 3, channels = 'a' }", "{ platforms = [3, {}] }"])
def test_any_content_of_a_manifest_is_handled(workspace: str) -> None:
    rest = "target = 3\ndependencies = []\npypi-dependencies = { a = { extras = 1, version = 2 } }\n"
    found = lock_in(PurePath("pixi.toml"), f"workspace = {workspace}\n{rest}", LINUX)
    assert found is None or found.pins == ()
