"""Explicit files: the bytes, that their readers accept them, their order, and that every line is valid."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.errors import OutsideError
from envsolve.lockfile import explicit
from envsolve.lockfile.lock import Lock
from envsolve.matrix import Matrix
from envsolve.model.conda import CondaPackage
from tests.laws import examples
from tests.lockfile.conda_locks import CHANNEL, WHEELS, conda_locks, package, plain, two_platforms
from tests.lockfile.judges import rattler
from tests.lockfile.locks import file

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
CEP_23 = re.compile(
    r"(?:(?P<url_p>.+)(?:[/\\]))?(?P<fn>[^/\\#]+(?:\.tar\.bz2|\.conda))"
    r"(?:#((?P<md5>[0-9a-f]{32})|((sha256:)?(?P<sha256>[0-9a-f]{64}))))?$"
)
"""What a line of an explicit file looks like, in the words of the specification."""


def addresses(lock: Lock) -> list[str]:
    """The lines below ``@EXPLICIT`` that are not comments."""
    below = explicit.write(lock).partition("@EXPLICIT\n")[2]
    return [line for line in below.splitlines() if not line.startswith("#")]


def names(lock: Lock) -> list[str]:
    """The packages in the order in which they are installed."""
    return [line.rpartition("/")[2].rsplit("-", 2)[0] for line in addresses(lock)]


def made(name: str, *depends: str) -> CondaPackage:
    """A package with its dependencies."""
    return CondaPackage(name, "1", "0", "noarch", f"{CHANNEL}/noarch/{name}-1-0.conda", "0" * 32, depends=depends)


@pytest.mark.parametrize(("number", "platform"), [(0, "linux-64"), (1, "win-64")])
def test_the_output_equals_the_recorded_one(number: int, platform: str, matrix: Matrix) -> None:
    text = explicit.write(two_platforms(matrix)[number])
    path = SNAPSHOTS / f"tensorflow.{platform}.explicit.txt"
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_rattler_reads_the_platform_and_the_urls(matrix: Matrix) -> None:
    both = two_platforms(matrix)
    answer = "[[str(it.platform), [p.url for p in it.packages]] for it in map(ExplicitEnvironmentSpec.from_str, asked)]"
    read_back = rattler(answer, list(map(explicit.write, both)))
    expected = [[lock.platform, sorted(f"{it.url}#{it.md5}" for it in lock.conda)] for lock in both]
    assert [[platform, sorted(urls)] for platform, urls in read_back] == expected  # type: ignore[attr-defined]


def test_a_package_comes_after_its_dependencies(matrix: Matrix) -> None:
    order = names(plain(*two_platforms(matrix)[0].conda[::-1]))
    assert order.index("libabseil") < order.index("libprotobuf")
    assert order.index("ca-certificates") < order.index("openssl") < order.index("python") < order.index("pip")
    assert order.index("iniconfig") < order.index("pytest")


@settings(max_examples=examples(40))
@given(st.lists(st.lists(st.integers(0, 7), max_size=3), max_size=8), st.randoms())
def test_the_order_is_valid_for_any_packages(needs: list[list[int]], chance: object) -> None:
    """Each depends on some before it in ``needs``, whatever their names."""
    words = [f"p{(number * 5) % 8}" for number in range(8)]
    packages = [
        made(words[number], *(words[need] for need in needed if need < number)) for number, needed in enumerate(needs)
    ]
    chance.shuffle(packages)  # type: ignore[attr-defined]  # random.Random
    order = names(plain(*packages))
    assert sorted(order) == sorted(package.name for package in packages)
    for locked in packages:
        assert all(order.index(need) < order.index(locked.name) for need in locked.depends)


def test_python_comes_before_pip_although_each_requires_the_other() -> None:
    assert names(plain(made("abc", "python"), made("pip", "python"), made("python", "pip"))) == ["python", "abc", "pip"]


def test_a_cycle_loses_no_package() -> None:
    assert names(plain(made("a", "b"), made("b", "c"), made("c", "a", "a"))) == ["c", "b", "a"]


def test_a_long_chain_of_packages_does_not_recurse() -> None:
    chain = [made(f"p{number:04}", f"p{number + 1:04}") for number in range(3000)]
    assert names(plain(*chain))[0] == "p2999"


def test_sha256_is_used_without_md5() -> None:
    locked = package("tzdata")
    assert addresses(plain(locked._replace(md5=None))) == [f"{locked.url}#sha256:{locked.sha256}"]
    with pytest.raises(OutsideError, match="no-hash"):
        addresses(plain(locked._replace(md5="0", sha256="1")))


def test_a_url_has_no_variable_of_the_machine_and_no_credentials() -> None:
    locked = package("tzdata", channel="https://me:hush@example.org/$HOME/conda forge")
    assert addresses(plain(locked._replace(url=f"{locked.url}#{'0' * 32}"))) == [
        f"https://example.org/%24HOME/conda%20forge/noarch/tzdata-2025b-h78e105d_0.conda#{locked.md5}"
    ]


def test_a_wheel_is_a_comment_that_pip_can_verify() -> None:
    tree = file("main.zip", url="https://files.example.org/main.zip#egg=a&subdirectory=pkg")
    lock = plain(pip=(WHEELS[1]._replace(files=(tree,), index_url=None),))
    line = explicit.write(lock).splitlines()[-1]
    assert line == f"# pip numpy @ https://files.example.org/main.zip#subdirectory=pkg&sha256={'a' * 64}"


@settings(max_examples=examples(40))
@given(conda_locks())
def test_every_line_is_a_comment_or_a_package(lock: Lock) -> None:
    lines = explicit.write(lock).split("\n")
    assert lines.pop() == ""
    assert lines.count("@EXPLICIT") == 1
    assert lines.count("# platform: linux-64") == 1
    assert not any(line.startswith("# pip ") for line in lines)
    package_lines = [line for line in lines if not line.startswith("#") and line != "@EXPLICIT"]
    assert all(CEP_23.match(line) and line.isprintable() and " " not in line for line in package_lines)
    assert len(package_lines) == len(lock.conda)
