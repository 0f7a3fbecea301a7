"""The command as a maintainer runs it, against an index on the loopback interface."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from base64 import b64encode
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from envsolve.releases.frameworks.pytorch import PyTorchIndexReader
from scripts.matrix_refresh.settings import default_cache, default_endpoint
from scripts.refresh_matrix import ROOT, refresh
from tests.matrix.tiny import tiny_matrix
from tests.scripts.served import Failure, ServedIndex, served_index
from tests.scripts.tables import component_table
from tests.scripts.wheels import AARCH64, LINUX, BuiltFile, torch_library, torch_wheel, wheel

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "matrix-refresh.txt"
PYTORCH = """\
# PyTorch. Schema: README.md.
schema_version = 1
updated = "2026-01-05"
framework = "pytorch"
aliases = ["torch"]

[evidence.page]
kind = "project-docs"
reference = "a page"
seen = "2026-11-19"

# The row that a person wrote.
[[release]]
version = "2.9.0"
source = "pytorch"
platform = "linux-64"
build = "cu126"
package = "torch"
cuda = "12.6"
evidence = ["page"]

[[release]]
version = "2.8.0"
source = "pypi"
platform = "linux-64"
build = "cu128"
package = "torch"
pythons = ["3.11", "3.12"]
cuda = "12.8"
sass = ["8.0", "9.0"]  # as the page says
ptx = []
companions = { torchvision = "==0.23.0" }
evidence = ["page"]
inferred = ["sass"]

[[release]]
version = "2.7.0"
source = "pypi"
platform = "linux-64"
build = "cu126"
package = "torch"
cuda = "12.6"
evidence = ["page"]
"""
TENSORFLOW = PYTORCH.replace('"pytorch"\naliases', '"tensorflow"\naliases').partition("\n# The row")[0]


class Ran(NamedTuple):
    """The result of one run of the command."""

    code: int
    out: str
    err: str


class Maintainer(NamedTuple):
    """A matrix, a cache and an index, and the command for them."""

    served: ServedIndex
    matrix: Path
    cache: Path

    def runs(self, *arguments: str, endpoint: str | None = None) -> Ran:
        """Run the command in this process."""
        place = ["--matrix", self.matrix, "--cache-dir", self.cache, "--index-url", endpoint or self.served.endpoint]
        result = CliRunner().invoke(refresh, [*map(str, place), *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return Ran(result.exit_code, result.stdout, result.stderr)

    def text(self, framework: str = "pytorch") -> str:
        """The current content of a matrix file."""
        return (self.matrix / f"{framework}.toml").read_text(encoding="utf-8")

    def rows(self) -> list[dict[str, Any]]:
        """The current releases of PyTorch."""
        rows: list[dict[str, Any]] = tomllib.loads(self.text())["release"]
        return rows


@pytest.fixture
def maintainer(index: ServedIndex, tmp_path: Path) -> Maintainer:
    index.add(
        torch_wheel("2.9.0"),
        torch_wheel("2.9.0", tags=f"cp311-cp311-{LINUX}"),
        torch_wheel("2.9.0", tags=f"cp312-cp312-{AARCH64}", cuda=None),
        torch_wheel("2.8.0", library=torch_library(before=200_000)),
        torch_wheel("2.10.0rc1"),
        torch_wheel("0.4.1"),
    )
    matrix = tmp_path / "matrix"
    matrix.mkdir()
    tiny_matrix(matrix)
    (matrix / "cuda_components.toml").write_text(component_table(), encoding="utf-8")
    (matrix / "pytorch.toml").write_text(PYTORCH, encoding="utf-8")
    (matrix / "tensorflow.toml").write_text(TENSORFLOW, encoding="utf-8")
    return Maintainer(index, matrix, tmp_path / "cache")


def test_the_diff_equals_the_recorded_one(maintainer: Maintainer) -> None:
    ran = maintainer.runs("pytorch")
    assert ran.code == 0
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(ran.out, encoding="utf-8")
    assert ran.out == SNAPSHOT.read_text(encoding="utf-8")


def test_the_file_is_updated_from_the_wheels(maintainer: Maintainer) -> None:
    assert maintainer.runs("pytorch").code == 0
    linux, arm, by_hand, older, oldest = maintainer.rows()
    assert (linux["version"], linux["platform"], linux["pythons"]) == ("2.9.0", "linux-64", ["3.11", "3.12"])
    assert (arm["platform"], arm["build"]) == ("linux-aarch64", "cpu")
    assert (older["sass"], older["ptx"], older["pythons"]) == (["7.5", "8.0", "9.0"], ["9.0"], ["3.12"])
    assert older["companions"] == {"torchvision": "==0.23.0"}
    assert "inferred" not in older
    assert (by_hand["source"], oldest["version"]) == ("pytorch", "2.7.0")
    text = maintainer.text()
    assert text.startswith("# PyTorch. Schema: README.md.\nschema_version = 1\n")
    assert '# The row that a person wrote.\n[[release]]\nversion = "2.9.0"\nsource = "pytorch"\n' in text
    assert '"9.0"]  # as the page says\n' in text
    assert 'updated = "2026-01-05"' not in text


def test_release_dates_are_those_of_the_index(maintainer: Maintainer) -> None:
    maintainer.served.uploaded = {
        f"torch-2.9.0-cp312-cp312-{LINUX}.whl": "2025-10-15T10:00:00Z",
        f"torch-2.9.0-cp312-cp312-{AARCH64}.whl": "2025-10-16T10:00:00Z",
        f"torch-0.4.1-cp312-cp312-{LINUX}.whl": "2018-07-26T10:00:00Z",
    }
    first = maintainer.runs("pytorch")
    assert "  ~ 2.9.0 released: (none) -> 2025-10-15\n" in first.out
    assert '\n[dates.released]\n"2.9.0" = "2025-10-15"\n\n' in maintainer.text()
    assert "released" not in maintainer.runs("pytorch", "--offline").out


def test_a_second_run_downloads_no_wheel_and_changes_nothing(maintainer: Maintainer) -> None:
    first = maintainer.runs("pytorch")
    text, before = maintainer.text(), maintainer.served.wheel_requests()
    second = maintainer.runs("pytorch")
    assert (second.code, second.out) == (
        0,
        "pytorch.toml: 0 new, 0 changed, 1 without a wheel on the index\n  ? 2.7.0 pypi linux-64 cu126 torch\n",
    )
    assert (maintainer.text(), maintainer.served.wheel_requests()) == (text, before)
    assert "3 wheels over the network, " in first.err
    assert "0 wheels over the network, 0.0 MB, " in second.err


def test_check_changes_nothing_and_reports_whether_there_is_a_difference(maintainer: Maintainer) -> None:
    looked = maintainer.runs("pytorch", "--dry-run")
    assert looked.code == 1
    assert maintainer.text() == PYTORCH
    assert maintainer.runs("pytorch").out == looked.out
    assert maintainer.runs("pytorch", "--dry-run").code == 0


def test_a_citation_alone_is_also_a_difference(maintainer: Maintainer) -> None:
    maintainer.runs("pytorch")
    (maintainer.matrix / "pytorch.toml").write_text(
        maintainer.text().replace("torch/version.py, ", ""), encoding="utf-8"
    )
    looked = maintainer.runs("pytorch", "--dry-run")
    assert looked.code == 1
    assert "  @ torch-2-9-0-linux-64: " in looked.out


def test_offline_uses_the_cache(maintainer: Maintainer) -> None:
    online = maintainer.runs("pytorch", "--dry-run")
    maintainer.served.files.clear()
    offline = maintainer.runs("pytorch", "--offline")
    assert (offline.code, offline.out) == (0, online.out)
    assert len(maintainer.rows()) == 5


def test_offline_without_a_cache_there_is_nothing_to_read(maintainer: Maintainer) -> None:
    ran = maintainer.runs("pytorch", "--offline")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "error: the list of torch wheels is not in the cache: run once without --offline\n"


def test_fresh_reads_every_wheel_again(maintainer: Maintainer) -> None:
    maintainer.runs("pytorch")
    before = maintainer.served.wheel_requests()
    assert maintainer.runs("pytorch", "--fresh").code == 0
    assert maintainer.served.wheel_requests() == 2 * before
    assert maintainer.runs("pytorch", "--fresh", "--offline").code == 2


def test_an_unreachable_index_writes_nothing(maintainer: Maintainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)  # between attempts
    ran = maintainer.runs("pytorch", endpoint="http://127.0.0.1:1/simple")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: the index did not list torch: ")
    assert ran.err.count("\n") == 1
    assert maintainer.text() == PYTORCH


def _texts(folder: Path) -> str:
    return "".join(f"{path}\n{path.read_text(encoding='utf-8')}" for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("failing", [None, "torch", f"torch-2.8.0-cp312-cp312-{LINUX}.whl"])
def test_a_password_is_sent_to_the_index_and_nowhere_else(failing: str | None, maintainer: Maintainer) -> None:
    if failing is not None:
        maintainer.served.failures[failing] = "forbidden"
    ran = maintainer.runs("pytorch", endpoint=maintainer.served.endpoint.replace("//", "//user:s3cr%65t@"))
    assert ran.code == (0 if failing is None else 3)
    assert maintainer.served.credentials == {f"Basic {b64encode(b'user:s3cret').decode()}"}
    assert "s3cr" not in ran.out + ran.err + _texts(maintainer.matrix) + _texts(maintainer.cache)


def test_a_password_is_for_the_host_of_the_index_alone(maintainer: Maintainer) -> None:
    with served_index() as other:
        other.add(*(BuiltFile(name, file.content) for name, file in maintainer.served.files.items()))
        maintainer.served.files_at = other.url("").replace("//", "//else:wh3re@")
        ran = maintainer.runs("pytorch", endpoint=maintainer.served.endpoint.replace("//", "//user:s3cret@"))
        assert (ran.code, other.credentials) == (0, {""})
    assert "wh3re" not in ran.out + ran.err + _texts(maintainer.matrix) + _texts(maintainer.cache)


@pytest.mark.parametrize(
    "url", ["user:s3cret@127.0.0.1/simple", "http://user:s3/cret@127.0.0.1/", "ftp://user:s3cret@127.0.0.1/", "http://"]
)
def test_an_invalid_url_is_refused_without_its_password(url: str, maintainer: Maintainer) -> None:
    ran = maintainer.runs("pytorch", endpoint=url)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert ran.err.startswith("error: the URL of the index ")
    assert "s3" not in ran.err


def test_an_index_without_the_framework_is_not_an_empty_one(maintainer: Maintainer) -> None:
    ran = maintainer.runs("pytorch", endpoint=maintainer.served.endpoint.replace("simple", "elsewhere"))
    assert (ran.code, ran.out, ran.err) == (3, "", "error: the index has no wheel of torch\n")
    assert maintainer.text() == PYTORCH


@pytest.mark.thorough
@pytest.mark.parametrize("failure", ["cut", "missing", "no-ranges"])
def test_an_unreadable_wheel_is_named_and_the_others_are_merged(failure: Failure, maintainer: Maintainer) -> None:
    name = f"torch-2.8.0-cp312-cp312-{LINUX}.whl"
    maintainer.served.failures[name] = failure
    ran = maintainer.runs("pytorch")
    assert ran.code == 3
    assert f"error: {name}" in ran.err
    assert "2 new, 0 changed, 1 without a wheel on the index" in ran.out
    assert "2.8.0" not in ran.out, "nothing is known of its row"
    assert [row["version"] for row in maintainer.rows()] == ["2.9.0", "2.9.0", "2.9.0", "2.8.0", "2.7.0"]
    del maintainer.served.failures[name]
    later = maintainer.runs("pytorch")
    assert (later.code, "1 wheels over the network" in later.err) == (0, True)
    assert "0 new, 1 changed" in later.out


@pytest.mark.thorough
def test_on_pytorchs_own_index_a_failed_build_is_not_missing_and_a_removed_one_is(
    maintainer: Maintainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PyTorchIndexReader, "endpoints", (maintainer.served.endpoint,))
    for build in ("cpu", "cu126", "cu128"):
        maintainer.served.add(torch_wheel(f"2.9.0+{build}", tags="cp312-cp312-linux_x86_64"))
    command = ["pytorch-index", "--matrix", str(maintainer.matrix), "--cache-dir", str(maintainer.cache)]
    assert CliRunner().invoke(refresh, command).exit_code == 0
    maintainer.served.failures["torch-2.9.0+cu126-cp312-cp312-linux_x86_64.whl"] = "missing"
    del maintainer.served.files["torch-2.9.0+cu128-cp312-cp312-linux_x86_64.whl"]
    ran = CliRunner().invoke(refresh, [*command, "--fresh"])
    assert ran.exit_code == 3
    assert [line for line in ran.stdout.splitlines() if "?" in line] == ["  ? 2.9.0 pytorch linux-64 cu128 torch"]


def test_pytorchs_own_index_cannot_be_replaced(maintainer: Maintainer) -> None:
    ran = maintainer.runs("pytorch", "pytorch-index")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "error: pytorch-index has an index of its own: leave --index-url out\n"
    assert not maintainer.served.requests


def test_invalid_cached_facts_are_one_clear_error(maintainer: Maintainer) -> None:
    maintainer.runs("pytorch", "--dry-run")
    cached = next(path for path in maintainer.cache.rglob("*.json") if path.name.startswith("torch-2.8.0"))
    cached.write_text('{"read": [], "cuda": ["12.8"]}', encoding="utf-8")
    ran = maintainer.runs("pytorch", "--dry-run")
    assert ran.code == 3
    message = "the reader cannot use its wheels or their cached facts: KeyError('requires')"
    assert [line for line in ran.err.splitlines() if "error" in line] == [f"error: pytorch 2.8.0: {message}"]


def test_an_unreadable_build_info_names_the_wheel(maintainer: Maintainer) -> None:
    info = "build_info = strange()\n"
    broken = wheel("tensorflow", "2.20.0", {"tensorflow/python/platform/build_info.py": info})
    maintainer.served.add(broken)
    ran = maintainer.runs("tensorflow")
    assert ran.code == 3
    assert f"error: {broken.name}: build_info.py is written in a way that is not known" in ran.err
    assert maintainer.text("tensorflow") == TENSORFLOW


def test_a_framework_without_a_reader_is_named_before_anything_is_read(maintainer: Maintainer) -> None:
    ran = maintainer.runs("pytorch", "mxnet")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: mxnet has no reader; those that have: ")
    assert not maintainer.served.requests
    assert maintainer.text() == PYTORCH


def test_a_folder_without_a_matrix_is_one_clear_error(maintainer: Maintainer, tmp_path: Path) -> None:
    for folder in (tmp_path / "nothing", tmp_path):
        ran = maintainer._replace(matrix=folder).runs("pytorch")
        assert (ran.code, ran.out) == (3, "")
        assert ran.err.startswith("error: ")
        assert ran.err.count("\n") == 1
    assert not maintainer.served.requests


def test_invalid_toml_is_found_before_the_index_is_queried(maintainer: Maintainer) -> None:
    (maintainer.matrix / "pytorch.toml").write_text("release = [", encoding="utf-8")
    ran = maintainer.runs("pytorch")
    assert ran.code == 3
    assert ran.err.startswith("error: pytorch.toml: ")
    assert not maintainer.served.requests


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ('build = "cu126"\n', "", "pytorch.toml: release[1].build: "),
        ('version = "2.8.0"', 'version = "2.8.0x"', "pytorch.toml: release[2].version: "),
        ("[[release]]", "[release]", "pytorch.toml"),
        ("[evidence.page]", "  [evidence.page]", "pytorch.toml cannot be changed in place: "),
        ("[evidence.page]", "[evidence]\n  [evidence.page]", "pytorch.toml cannot be changed in place: "),
    ],
)
def test_a_mistake_by_hand_is_named_before_the_index_is_queried(
    right: str, wrong: str, says: str, maintainer: Maintainer
) -> None:
    text = maintainer.text()
    (maintainer.matrix / "pytorch.toml").write_text(text.replace(right, wrong), encoding="utf-8")
    ran = maintainer.runs("pytorch")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert ran.err.startswith(f"error: {says}")
    assert not maintainer.served.requests


@pytest.mark.thorough
def test_the_script_is_executable(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "refresh_matrix.py"), "--help"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "--dry-run" in ran.stdout


@pytest.mark.thorough
def test_the_index_is_that_of_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://one.example/simple")
    assert default_endpoint() == "https://one.example/simple"
    monkeypatch.delenv("PIP_INDEX_URL")
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://other.example/simple\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert default_endpoint() == "https://other.example/simple"


def test_the_cache_is_in_the_cache_directory_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "envsolve" / "matrix-refresh"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache() == tmp_path / ".cache" / "envsolve" / "matrix-refresh"
