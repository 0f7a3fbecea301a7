"""Whatever an environment, settings, the cache or a record contain, it is read or named, and nothing fails.

As in test_inputs.py, new examples are drawn each time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envsolve.boundary.display import escaped, one_line
from envsolve.boundary.secrets import masked, without_secrets
from envsolve.conda.condarc import read_condarc
from envsolve.create.record import read_record
from envsolve.diagnose.environment.conda_meta import CondaMeta
from envsolve.diagnose.environment.malformed_files import malformed_files
from envsolve.errors import UsageError
from envsolve.index.cached_page import CachedPage
from envsolve.index.metadata import Metadata
from envsolve.index.requirement_file import read_requirement_file
from envsolve.index.settings import read_settings
from envsolve.index.store import decoded, encoded
from envsolve.validation.activation import activated
from envsolve.validation.inventory import Inventory
from envsolve.validation.metadata import Packages
from tests.fuzz.damage import TEXTS, damaged, noisy
from tests.fuzz.test_inputs import GOLDEN, METADATA, as_toml, fuzz

pytestmark = pytest.mark.fuzz

FILES: Mapping[str, bytes] = {
    "site/demo-1.0.dist-info/METADATA": METADATA,
    "site/demo-1.0.dist-info/RECORD": b"demo.py,sha256=AAAA,10\n../../bin/demo,,\n",
    "site/demo-1.0.dist-info/direct_url.json": b'{"url": "file:///x", "dir_info": {"editable": true}}',
    "pyvenv.cfg": b"home = /usr/bin\nversion = 3.11.7\n",
    "conda-meta/history": b"==> 2026-11-01 10:00:00 <==\n# cmd: conda create\n+conda-forge::python-3.12.1-h1\n",
    "conda-meta/demo-1.0-h1.json": b'{"name": "demo", "version": "1.0", "build": "h1", "files": ["lib/libdemo.so"]}',
    "conda-meta/state": b'{"env_vars": {"CUDA_HOME": "/opt/cuda"}}',
}
"""What an environment is known by."""
STATE: dict[str, Any] = {"env_vars": {"A": "1", "B": "***unset***"}, "version": 2}
UV: dict[str, Any] = {
    "index-url": "https://u:p@127.0.0.1/simple",
    "extra-index-url": ["https://127.0.0.1/more"],
    "index": [{"name": "own", "url": "https://127.0.0.1/own", "default": True, "explicit": False}],
    "pip": {"no-index": False, "find-links": ["./wheels"]},
    "sources": {"torch": {"index": "own"}},
    "allow-insecure-host": ["127.0.0.1:80"],
}
PIP = b"[global]\nindex-url = https://u:p@127.0.0.1/simple\nextra-index-url =\n    https://127.0.0.1/more\n[install]\n"
CONDARC = b"channel_alias: https://127.0.0.1\ncustom_channels: {own: https://127.0.0.1/x}\ndefault_channels: [a]\n"
REQUIREMENTS = (
    b"-r more.in\n-c more.in\n--index-url https://u:p@127.0.0.1/simple\nnumpy==2.0 ; os_name == 'posix' # x\n"
)
ENTRY = (9e9, "etag", "", "https://127.0.0.1/simple/demo/", "text/html", b"<html></html>")


def environment(root: Path, changed: Mapping[str, bytes]) -> Inventory:
    """An environment of ``FILES``, some of them ``changed``."""
    for name, content in {**FILES, **changed}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Inventory("3.12.1", root / "bin/python", root, (root / "site",), (), is_conda=True, owns_prefix=True)


@fuzz
@given(st.sampled_from(sorted(FILES)).flatmap(lambda name: st.tuples(st.just(name), noisy(FILES[name]))))
def test_an_environment_with_noise_in_one_of_its_files(damage: tuple[str, bytes]) -> None:
    with TemporaryDirectory() as directory:
        inventory = environment(Path(directory), dict([damage]))
        for finding in (
            *malformed_files(inventory, Packages(inventory.search_path), CondaMeta(inventory.prefix)),
            *activated({}, inventory).findings,
        ):
            assert one_line(finding.cause).isprintable()


@fuzz
@given(damaged(STATE))
def test_an_environment_with_arbitrary_variables(state: Any) -> None:
    with TemporaryDirectory() as directory:
        inventory = environment(Path(directory), {"conda-meta/state": json.dumps(state).encode()})
        for name, value in activated({}, inventory).environ.items():
            assert "\0" not in name + value
            assert "=" not in name


@fuzz
@given(st.one_of(damaged(UV).map(as_toml), noisy(as_toml(UV))), noisy(PIP), noisy(CONDARC))
def test_settings_of_other_tools(uv: bytes, pip: bytes, condarc: bytes) -> None:
    with TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "uv.toml").write_bytes(uv)
        (root / ".condarc").write_bytes(condarc)
        (root / "pip.conf").write_bytes(pip)
        for environ in ({}, {"PIP_CONFIG_FILE": str(root / "pip.conf"), "UV_NO_CONFIG": "1"}):
            with suppress(UsageError):
                read_settings(environ, None, root, prefix=None, root=root)
        with suppress(UsageError):
            read_condarc({}, root)


@fuzz
@given(noisy(REQUIREMENTS))
@example(b"-r more\0.in\n")
def test_a_requirements_file_with_noise_in_it(content: bytes) -> None:
    with TemporaryDirectory() as directory:
        (Path(directory) / "more.in").write_bytes(content)
        (Path(directory) / "requirements.in").write_bytes(content)
        with suppress(UsageError):
            read_requirement_file(f"{directory}/requirements.in")


@fuzz
@given(noisy((GOLDEN / "record.json").read_bytes()))
def test_a_record_with_noise_in_it(content: bytes) -> None:
    with TemporaryDirectory() as directory:
        (Path(directory) / ".envsolve.json").write_bytes(content)
        with suppress(UsageError):
            read_record(Path(directory))


@fuzz
@given(st.tuples(*(st.one_of(st.just(it), st.integers(-(1 << 63), 1 << 63), TEXTS, st.none()) for it in ENTRY)))
def test_an_index_cache_entry_of_any_shape(fields: tuple[Any, ...]) -> None:
    if not any("\ud800" in it for it in fields if isinstance(it, str)):
        decoded(encoded(fields), CachedPage)
        decoded(encoded(fields), Metadata)


@fuzz
@given(TEXTS, TEXTS, st.sampled_from(["https://u:p@h/", "https://h/t/x/", "//h;token=x", "?key=", "ghp_", "\x1b]0;"]))
def test_text_from_outside_is_one_line_without_control_characters(before: str, after: str, middle: str) -> None:
    text = f"{before}{middle}{after}"
    assert one_line(text).isprintable()
    assert "\x1b]" not in escaped(text)
    assert without_secrets(without_secrets(text)) == without_secrets(text)
    masked(text)
