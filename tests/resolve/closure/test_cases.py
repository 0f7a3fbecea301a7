"""Small worlds of packages with the expected pins, as data in tests/cases/closure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli

from tests.conftest import Envsolve
from tests.index.server import IndexServer
from tests.resolve.closure.world import small_world, words_of

pytestmark = pytest.mark.thorough

CASES = {
    f"{path.stem}: {case['name']}": case
    for path in sorted((Path(__file__).parents[2] / "cases" / "closure").glob("*.toml"))
    for case in tomli.loads(path.read_text(encoding="utf-8"))["case"]
}
KEYS = {
    "name", "ask", "lines", "constraints", "packages", "second",
    "python", "platform", "glibc", "held", "upgrade", "upgrade_package", "exclude_newer", "allow_builds", "pre",
    "pins", "files", "exit", "code", "says", "never_says",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_packages_are_the_expected_ones(name: str, server: IndexServer, envsolve: Envsolve, tmp_path: Path) -> None:
    case = CASES[name]
    world = small_world(server, f"case-{list(CASES).index(name)}", case)
    result = envsolve(*words_of(case, world, tmp_path))
    for words in case.get("says", []):
        assert words in result.err
    for words in case.get("never_says", []):
        assert words not in result.err
    if "code" in case:
        assert result.err.startswith(f"error: {case['code']}\n"), result.err + result.out
        assert (result.code, result.out) == (case.get("exit", 1), "")
        return
    assert result.code == 0, result.err
    text = (tmp_path / "pylock.toml").read_text(encoding="utf-8") if "held" in case else result.out
    check_lock(tomli.loads(text), case)


def check_lock(lock: dict[str, Any], case: dict[str, Any]) -> None:
    """Compare a lock with the pins, and if a case has them the files, that it expects.

    A source archive by its address has no version in a lock.
    """
    pins = ["==".join(filter(None, (it["name"], it.get("version")))) for it in lock["packages"]]
    assert pins == sorted(case["pins"])
    if "files" in case:
        files = [
            file["name"]
            for it in lock["packages"]
            for file in (*it.get("wheels", []), *filter(None, [it.get("sdist")]))
        ]
        assert files == case["files"]


@pytest.mark.parametrize("name", CASES)
def test_every_key_of_a_case_is_read(name: str) -> None:
    case = CASES[name]
    assert case.keys() <= KEYS
    assert ("pins" in case) is not ("code" in case)
