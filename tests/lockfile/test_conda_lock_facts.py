"""The facts in a conda-lock.yml besides its packages, and reading them back."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from envsolve.lockfile import conda_lock_yml
from envsolve.lockfile.conda_lock_facts import content_hash, facts_in_metadata
from envsolve.lockfile.lock import Lock, RequestedSpec
from envsolve.matrix import Matrix
from envsolve.model.conda import VirtualPackage
from envsolve.model.host import Platform
from tests.lockfile.conda_locks import package, plain, two_platforms
from tests.lockfile.restriction import restricted


def recorded(text: str, platform: Platform = Platform.LINUX_64) -> Mapping[str, object]:
    """The facts about a platform in the file."""
    found = facts_in_metadata(metadata(text), platform)
    assert found is not None
    return found


def metadata(text: str) -> dict[str, str]:
    """The texts that contain them."""
    found: dict[str, str] = yaml.safe_load(text)["metadata"]["custom_metadata"]
    return found


def test_recorded_facts_are_read_back(matrix: Matrix) -> None:
    both = tuple(with_made(it, exclude_newer="2026-10-01T00:00:00Z", own_matrix=True) for it in two_platforms(matrix))
    text = conda_lock_yml.write(both)
    lock, locked = both[0], restricted(both[0], "conda-lock")
    assert lock.made is not None
    assert locked.made is not None
    assert recorded(text) == {
        "schema_version": 1,
        "envsolve_version": "VERSION",
        "command": lock.made.command,
        "matrix_date": "2026-11-20",
        "own_matrix": True,
        "exclude_newer": "2026-10-01T00:00:00Z",
        "variables": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
        "platform": "linux-64",
        "request": [requested.spec for requested in lock.requested],
        "options": {},
        "python": "3.12.11",
        "glibc": "2.35",
        "virtual_packages": [str(it) for it in lock.virtual_packages],
        "packages_digest": locked.made.packages_digest,
        "minimum_driver": "525.60.13",
        "compute_capabilities": ["8.6"],
        "cuda": "12.9",
        "cudnn": "9.13.1.26",
        "frameworks": [
            {
                "framework": "tensorflow",
                "version": "2.19.1",
                "package": "tensorflow",
                "source": "conda-forge",
                "build": "cuda128",
            }
        ],
    }
    facts = recorded(text, Platform.WIN_64)
    assert (facts["minimum_driver"], facts["python"]) == ("456.38", "3.10.18")


def test_a_lock_without_frameworks_has_the_other_facts() -> None:
    facts = recorded(conda_lock_yml.write((plain(package("tzdata"), requested=(RequestedSpec("tzdata"),)),)))
    assert facts["request"] == ["tzdata"]
    assert not {"frameworks", "virtual_packages", "matrix_date", "own_matrix", "python", "minimum_driver"} & set(facts)


def test_a_file_of_another_tool_has_no_facts() -> None:
    text = conda_lock_yml.write((plain(package("tzdata")),)).replace("envsolve.envsolve_version", "other.version")
    assert facts_in_metadata(metadata(text), Platform.LINUX_64) is None


def test_an_invalid_fact_stays_a_text() -> None:
    text = conda_lock_yml.write((plain(package("tzdata"), requested=(RequestedSpec("tzdata"),)),))
    broken = text.replace("""envsolve.linux-64.request: '["tzdata"]'""", "envsolve.linux-64.request: '[[['")
    assert broken != text
    facts = recorded(broken)
    assert (facts["request"], facts["command"]) == ("[[[", "envsolve lock openssl")


def test_the_hash_covers_everything_that_determines_the_packages() -> None:
    lock = plain(requested=(RequestedSpec("openssl"), RequestedSpec("pytest", category="dev")), command="one")
    same = lock._replace(conda=(package("tzdata"),), python="3.12.1", requested=(*lock.requested[::-1],))
    same = with_made(
        same._replace(requested=(same.requested[0]._replace(reason="why"), *same.requested[1:])), command="two"
    )
    assert content_hash(same) == content_hash(lock)
    others = [
        lock._replace(channels=("conda-forge", "nvidia")),
        with_made(lock, exclude_newer="2026-10-01T00:00:00Z"),
        lock._replace(virtual_packages=(VirtualPackage("__cuda", "12.4"),)),
        lock._replace(requested=lock.requested[:1]),
        lock._replace(requested=(lock.requested[0], RequestedSpec("pytest"))),
        lock._replace(requested=(RequestedSpec("openssl", by_pip=True), lock.requested[1])),
    ]
    assert len({*map(content_hash, others), content_hash(lock)}) == len(others) + 1


def with_made(lock: Lock, **more: object) -> Lock:
    """``lock`` with more facts about its making."""
    assert lock.made is not None
    return lock._replace(made=lock.made._replace(**more))  # type: ignore[arg-type]
