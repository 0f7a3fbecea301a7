"""Laws of export: a lock converted to another format and back has the same packages and facts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.app.environment.exact_files import IndexOptions
from envsolve.app.environment.export_python import export_python
from envsolve.app.environment.exporting import ExportRequest, export_conda
from envsolve.app.request.network import Network
from envsolve.boundary.files import FileError
from envsolve.errors import EnvsolveError
from envsolve.lockfile import conda_lock_yml, explicit, pylock_toml, requirements_txt
from envsolve.lockfile.lock import MAIN, Lock, Made
from envsolve.lockfile.reading import format_in, locks_in
from tests.lockfile.conda_locks import conda_locks, usual_conda_locks
from tests.lockfile.locks import locks

pytestmark = pytest.mark.thorough  # laws over whole locks


@given(conda_locks())
def test_conda_lock_to_explicit_and_back(lock: Lock) -> None:
    lock = as_channels_have_it(lock)
    text = conda_lock_yml.write((lock,))
    there = exported("conda-lock", text, "explicit")
    assert there.partition("@EXPLICIT")[2] == explicit.write(lock).partition("@EXPLICIT")[2]
    back = exported("explicit", there, "conda-lock")
    assert packages(back) == packages(text)
    again = exported("conda-lock", back, "explicit")
    assert sorted(again.partition("@EXPLICIT")[2].split()) == sorted(there.partition("@EXPLICIT")[2].split())


@given(usual_conda_locks(st.text("abc -=", min_size=1, max_size=12).map(str.strip)))
def test_the_facts_of_a_conda_lock_are_preserved(lock: Lock) -> None:
    made = Made("VERSION", "envsolve lock") if lock.made is None else lock.made
    text = conda_lock_yml.write((lock._replace(made=made, exported_from=None),))
    there = exported("conda-lock", text, "explicit")
    assert there.splitlines()[:2] == text.splitlines()[:2]
    assert there.splitlines()[2] == "# Exported from lock by envsolve"
    assert format_in(PurePath("lock"), there) == "explicit"


@given(conda_locks())
def test_an_invalid_lock_is_reported(lock: Lock) -> None:
    with suppress(FileError, EnvsolveError):
        exported("conda-lock", conda_lock_yml.write((lock,)), "environment")


@given(locks())
def test_a_pylock_becomes_requirements_of_the_same_lock(lock: Lock) -> None:
    there = requirements_txt.read(requirements_of(pylock_toml.read(pylock_toml.write(lock))))
    here = requirements_txt.read(requirements_txt.write(lock))
    assert there.exported_from == "lock"
    assert [(pin.name, pin.version, pin.files) for pin in there.pins] == [
        (pin.name, pin.version, pin.files) for pin in here.pins
    ]
    assert there.made is not None
    assert here.made is not None
    digest = here.made.packages_digest  # another one: a pylock.toml does not say which index is the default one
    assert there.made._replace(packages_digest=digest) == here.made


def exported(kind: str, text: str, format_name: str) -> str:
    """The lock in its new format."""
    return export_conda(ExportRequest(Path("lock"), format_name), kind, locks_in(kind, text)).texts[0][1]


def as_channels_have_it(lock: Lock) -> Lock:
    """``lock`` with facts as channels state them: texts on one line, and file names as in CEP 26."""
    conda = (
        it._replace(
            url=f"{it.channel}/{it.subdir}/{it.name}-{it.version}-{it.build}.conda",
            depends=tuple(spec for spec in it.depends if spec.isprintable()),
        )
        for it in lock.conda
    )
    requested = tuple(it._replace(category="dev" if it.category else MAIN) for it in lock.requested)
    return lock._replace(conda=tuple(conda), requested=requested, channels=("conda-forge",), sources=())


def packages(text: str) -> set[tuple[str, str, str, str, str | None]]:
    """The content of a conda-lock.yml."""
    (lock,) = conda_lock_yml.read(text)
    return {(it.name, it.version, it.build, it.url, it.md5) for it in lock.conda}


def requirements_of(lock: Lock) -> str:
    requested = ExportRequest(Path("lock"), "requirements", indexes=IndexOptions(network=Network(offline=True)))
    return export_python(requested, "pylock", lock, {}).texts[0][1]
