"""The loopback index itself, checked with other clients: pypi-simple, pip, uv, requests."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner
from packaging.metadata import parse_email
from pypi_simple import NoMetadataError, PyPISimple

from scripts.index_recorder import recording
from scripts.index_recorder.uv_pins import compile_with_uv, pins_of
from scripts.index_recorder.walk import read_resolutions
from scripts.record_index import record
from tests.index.faults import GARBAGE, INVALID_JSON, WRONG_SHAPES, gzip_bomb, halved, large_page, tampered
from tests.index.packages import core_metadata, sdist, wheel
from tests.index.server import IndexServer
from tests.index.shelf import JSON_TYPE, RECORDED

PINS: dict[str, dict[str, str] | None] = json.loads((RECORDED / "uv_pins.json").read_text("utf-8"))
"""What uv resolved against the index that was recorded."""
RESOLUTIONS = {it.name: it for it in read_resolutions(RECORDED / "resolutions.toml")}


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.fixture
def bare_index() -> Iterator[IndexServer]:
    """An empty index."""
    with IndexServer(recorded=False) as server:
        yield server


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["W1", "W7", *(pytest.param(it, marks=pytest.mark.thorough) for it in ("W2", "W3", "W4"))]
)
def test_uv_resolves_like_with_the_recorded_index(index: IndexServer, name: str) -> None:
    assert pins_of(compile_with_uv(index.index_url, RESOLUTIONS[name].requirements)) == PINS[name]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["W3", pytest.param("W4", marks=pytest.mark.thorough)])
def test_uv_resolves_the_same_if_the_index_has_only_names_and_hashes(poor_index: IndexServer, name: str) -> None:
    assert pins_of(compile_with_uv(poor_index.index_url, RESOLUTIONS[name].requirements)) == PINS[name]
    assert any(it.status == 206 for it in poor_index.requests)


@pytest.mark.thorough
def test_both_kinds_of_index_list_the_same_files(index: IndexServer, poor_index: IndexServer) -> None:
    for project in ("torch", "jax", "numpy"):
        with PyPISimple(index.index_url) as client:
            rich = client.get_project_page(project).packages
        with PyPISimple(poor_index.index_url) as client:
            poor = client.get_project_page(project).packages
        assert [it.filename for it in rich] == [it.filename for it in poor]
        assert all(it.upload_time and it.size for it in rich)
        assert not any(it.upload_time or it.size or it.requires_python or it.has_metadata for it in poor)


def test_a_page_says_the_same_in_json_and_in_html(index: IndexServer) -> None:
    def facts(accept: str) -> list[tuple[object, ...]]:
        with PyPISimple(index.index_url, accept=accept) as client:
            packages = client.get_project_page("numpy").packages
        return [
            (it.filename, it.url, it.digests, it.requires_python, it.is_yanked, it.metadata_digests) for it in packages
        ]

    assert facts(JSON_TYPE) == facts("text/html")


def test_metadata_has_the_hash_stated_on_the_page(index: IndexServer) -> None:
    with PyPISimple(index.index_url) as client:
        for package in client.get_project_page("torch").packages:
            if package.filename.startswith("torch-2.8.0-"):
                assert b"Requires-Dist: nvidia-cublas-cu12" in client.get_package_metadata_bytes(package, verify=True)


def test_unrecorded_files_are_listed_and_missing(index: IndexServer) -> None:
    with PyPISimple(index.index_url) as client:
        packages = client.get_project_page("torch").packages
        unrecorded = next(it for it in packages if it.filename.startswith("torch-2.10.0-"))
        assert unrecorded.metadata_digests
        with pytest.raises(NoMetadataError):
            client.get_package_metadata_bytes(unrecorded)


def test_a_stand_in_for_a_wheel_has_its_hash_and_the_recorded_metadata(poor_index: IndexServer) -> None:
    with PyPISimple(poor_index.index_url) as client:
        package = next(it for it in client.get_project_page("torch").packages if "2.8.0-cp311" in it.filename)
        content = requests.get(package.url, timeout=5).content
    assert package.digests == {"sha256": hashlib.sha256(content).hexdigest()}
    with zipfile.ZipFile(BytesIO(content)) as archive:
        assert archive.testzip() is None
        fields, _ = parse_email(archive.read("torch-2.8.0.dist-info/METADATA"))
        assert {"METADATA", "WHEEL", "RECORD"} <= {it.rpartition("/")[2] for it in archive.namelist()}
    assert fields["version"] == "2.8.0"
    assert "sympy>=1.13.3" in fields["requires_dist"]


@pytest.mark.thorough
def test_pip_accepts_a_made_up_index(bare_index: IndexServer, tmp_path: Path) -> None:
    alpha, beta = wheel("Alpha", "1.0", ["beta>=2; python_version>='3'"]), wheel("beta", "2.1+local")
    bare_index.add("Alpha", [alpha, wheel("alpha", "2.0", yanked="broken")])
    bare_index.add("beta", [wheel("beta", "1.0"), beta, wheel("beta", "3", requires_python=">=3.99")])
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"alpha==1.0 --hash=sha256:{alpha.sha256}\nbeta==2.1+local --hash=sha256:{beta.sha256}\n")
    command = [sys.executable, "-m", "pip", "--isolated", "install", "--no-cache-dir", "--require-hashes", "-q"]
    command += ["--disable-pip-version-check", "--target", str(tmp_path / "installed")]
    command += ["--index-url", bare_index.index_url, "-r", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    installed = {it.name for it in (tmp_path / "installed").iterdir()}
    assert installed >= {"alpha.py", "beta.py", "alpha-1.0.dist-info", "beta-2.1+local.dist-info"}


def test_uv_reads_a_made_up_world(bare_index: IndexServer) -> None:
    bare_index.add("alpha", [wheel("alpha", "1.0", ["beta[fast]>=1"])])
    bare_index.add(
        "beta",
        [
            wheel("beta", "1.0", ["gamma; extra=='fast'"], extras=["fast"]),
            wheel("beta", "1.1", yanked=""),
            wheel("beta", "2.0", requires_python=">=3.99"),
            wheel("beta", "3.0", tags="cp311-cp311-win_amd64"),
            wheel("beta", "4.0a1"),
        ],
    )
    bare_index.add("gamma", [sdist("gamma", "2.0"), wheel("gamma", "1.0", build="1")])
    assert pins_of(compile_with_uv(bare_index.index_url, ["alpha"])) == {"alpha": "1.0", "beta": "1.0", "gamma": "1.0"}


@pytest.mark.thorough
def test_uv_reads_the_requirements_of_a_static_source_distribution_only(bare_index: IndexServer) -> None:
    bare_index.add("static", [sdist("static", "1.0", ["beta"])])
    bare_index.add("dynamic", [sdist("dynamic", "1.0", ["beta"], static=False)])
    bare_index.add("beta", [wheel("beta", "1.0")])
    done = compile_with_uv(bare_index.index_url, ["static"], "--only-binary", ":none:")
    assert pins_of(done) == {"static": "1.0", "beta": "1.0"}
    assert compile_with_uv(bare_index.index_url, ["dynamic"], "--only-binary", ":none:").returncode != 0


@pytest.mark.thorough
def test_several_indexes_lie_on_one_server(bare_index: IndexServer) -> None:
    first, second = bare_index.index("/a/simple/"), bare_index.index("/b/simple/", "poor")
    first.add("alpha", [wheel("alpha", "1.0")])
    second.add("alpha", [wheel("alpha", "2.0")])
    assert pins_of(compile_with_uv(first.index_url, ["alpha"])) == {"alpha": "1.0"}
    assert pins_of(compile_with_uv(second.index_url, ["alpha"])) == {"alpha": "2.0"}


def test_a_page_as_pytorch_has_them(bare_index: IndexServer, session: requests.Session) -> None:
    shelf = bare_index.index("/whl/cu126/", "pytorch")
    shelf.add(
        "torch",
        [wheel("torch", "2.9.0+cu126", tags="cp311-cp311-manylinux_2_28_x86_64", upload_time="2026-01-02T03:04:05Z")],
    )
    page = session.get(f"{shelf.index_url}torch/", headers={"Accept": JSON_TYPE}).text
    assert f'href="{bare_index.url}/whl/cu126/files/torch/torch-2.9.0%2Bcu126-cp311' in page
    assert 'data-upload-time="2026-01-02T03:04:05Z"' in page
    assert pins_of(compile_with_uv(shelf.index_url, ["torch"])) == {"torch": "2.9.0+cu126"}


def test_a_page_that_has_not_changed_is_not_sent_again(index: IndexServer, session: requests.Session) -> None:
    first = session.get(f"{index.index_url}numpy/", headers={"Accept": JSON_TYPE})
    assert first.headers["Cache-Control"] == "max-age=600, public"
    assert first.headers["Content-Encoding"] == "gzip"
    plain = session.get(f"{index.index_url}numpy/", headers={"Accept": JSON_TYPE, "Accept-Encoding": "identity"})
    assert plain.content == first.content
    again = session.get(
        f"{index.index_url}numpy/", headers={"Accept": JSON_TYPE, "If-None-Match": first.headers["ETag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert index.requests == [
        ("GET", "/simple/numpy/", 200),
        ("GET", "/simple/numpy/", 200),
        ("GET", "/simple/numpy/", 304),
    ]
    assert index.headers[2]["if-none-match"] == first.headers["ETag"]


def test_a_name_that_is_not_normalized_is_sent_on(index: IndexServer, session: requests.Session) -> None:
    assert session.get(f"{index.index_url}Typing.Extensions").url == f"{index.index_url}typing-extensions/"
    assert session.get(f"{index.index_url}nobody-has-it/").status_code == 404


@pytest.mark.parametrize(
    ("byte_range", "status", "start", "end"),
    [("bytes=0-9", 206, 0, 10), ("bytes=-7", 206, -7, None), ("bytes=5-", 206, 5, None), ("pieces=1-2", 200, 0, None)],
)
def test_files_come_in_ranges(
    bare_index: IndexServer, session: requests.Session, byte_range: str, status: int, start: int, end: int | None
) -> None:
    alpha = wheel("alpha", "1.0")
    assert alpha.content is not None
    bare_index.add("alpha", [alpha])
    url = f"{bare_index.url}/files/alpha/{alpha.name}"
    answer = session.get(url, headers={"Range": byte_range})
    assert (answer.status_code, answer.content) == (status, alpha.content[start:end])
    assert session.head(url).headers["Content-Length"] == str(len(alpha.content))
    assert session.get(url, headers={"Range": "bytes=999999-"}).status_code == 416
    bare_index.ranges = False
    whole = session.get(url, headers={"Range": byte_range})
    assert (whole.status_code, whole.content) == (200, alpha.content)
    assert "Accept-Ranges" not in whole.headers


def test_a_fault_ends_after_the_given_number_of_times(index: IndexServer, session: requests.Session) -> None:
    index.fault("/simple/numpy/", status=429, retry_after=7, times=2)
    answers = [session.get(f"{index.index_url}numpy/") for _ in range(3)]
    assert [it.status_code for it in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "7"
    assert index.count("/simple/*") == 3


def test_a_cut_answer_is_seen_as_one(index: IndexServer, session: requests.Session) -> None:
    index.fault("/simple/numpy/", cut=True)
    with pytest.raises(requests.exceptions.RequestException):
        session.get(f"{index.index_url}numpy/", headers={"Accept-Encoding": "identity"})


@pytest.mark.parametrize("cut", [False, True])
def test_a_server_that_stalls_ends_at_once_all_the_same(session: requests.Session, cut: bool) -> None:
    with IndexServer() as server:
        server.fault("/simple/numpy/", stall=60, cut=cut)
        with pytest.raises(requests.exceptions.RequestException):
            session.get(f"{server.index_url}numpy/", timeout=0.1)
        started = time.monotonic()
    assert time.monotonic() - started < 2


def test_each_answer_waits_for_as_long_as_the_latency_says(index: IndexServer, session: requests.Session) -> None:
    index.latency_ms = 50
    started = time.monotonic()
    session.get(f"{index.index_url}six/")
    assert time.monotonic() - started >= 0.05


def test_a_redirect_may_lead_to_another_server_or_to_a_missing_page(
    index: IndexServer, session: requests.Session
) -> None:
    with IndexServer() as other:
        index.fault("/simple/numpy/", redirect=f"{other.url}{{path}}")
        assert session.get(f"{index.index_url}numpy/").url == f"{other.index_url}numpy/"
    index.fault("/simple/six/", redirect="{path}")
    with pytest.raises(requests.TooManyRedirects):
        session.get(f"{index.index_url}six/")


def test_credentials_are_required(index: IndexServer, session: requests.Session) -> None:
    index.require("me", "secret", under="/simple/")
    refused = session.get(f"{index.index_url}six/")
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="packages"')
    assert session.get(f"{index.index_url}six/", auth=("me", "wrong")).status_code == 401
    assert session.get(f"{index.index_url}six/", auth=("me", "secret")).status_code == 200


def test_metadata_that_was_tampered_with_has_another_hash(bare_index: IndexServer) -> None:
    bare_index.add("alpha", [wheel("alpha", "1.0")])
    bare_index.fault("*.metadata", alter=tampered)
    with PyPISimple(bare_index.index_url) as client:
        (package,) = client.get_project_page("alpha").packages
        with pytest.raises(ValueError, match="digest"):
            client.get_package_metadata_bytes(package)


def test_a_wheel_may_be_an_invalid_archive(poor_index: IndexServer, session: requests.Session) -> None:
    poor_index.fault("*.whl", alter=halved)
    with PyPISimple(poor_index.index_url) as client:
        url = next(it.url for it in client.get_project_page("jax").packages if it.filename.startswith("jax-0.10.2-"))
    whole = session.get(url)
    assert whole.status_code == 200
    assert session.get(url, headers={"Range": "bytes=-10"}).content == whole.content[-10:]
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(BytesIO(whole.content))


@pytest.mark.parametrize("body", [GARBAGE, INVALID_JSON, *WRONG_SHAPES, b""])
def test_a_page_may_have_any_content(index: IndexServer, session: requests.Session, body: bytes) -> None:
    index.fault("/simple/numpy/", body=body)
    answer = session.get(f"{index.index_url}numpy/")
    assert (answer.status_code, answer.content, answer.headers["Content-Type"]) == (200, body, JSON_TYPE)


def test_a_small_answer_may_decompress_to_a_large_one(index: IndexServer, session: requests.Session) -> None:
    bomb = gzip_bomb(20_000_000)
    assert len(bomb) < 100_000
    index.fault("/simple/numpy/", body=bomb, encoding="gzip")
    assert len(session.get(f"{index.index_url}numpy/").content) == 20_000_000
    assert json.loads(large_page(1_000_000))["files"] == []


def test_an_index_may_be_wrong(bare_index: IndexServer, session: requests.Session) -> None:
    honest = wheel("alpha", "1.0", metadata=core_metadata("beta", "1.0"))
    files = [
        honest,
        honest._replace(name="../../alpha-2.0-py3-none-any.whl"),
        honest._replace(name="alpha-3.0\0\n-py3-none-any.whl"),
        honest._replace(name="alpha-4.0-py3-none-any.whl", href="javascript:alert(1)"),
        honest._replace(name="alpha-5.0-py3-none-any.whl", sha256=None),
    ]
    bare_index.add("alpha", files, page_name="beta")
    page = session.get(f"{bare_index.index_url}alpha/", headers={"Accept": JSON_TYPE}).json()
    assert page["name"] == "beta"
    assert [it["filename"] for it in page["files"]] == [it.name for it in files]
    assert page["files"][3]["url"] == "javascript:alert(1)"
    assert page["files"][4]["hashes"] == {}
    assert b"Name: beta" in session.get(f"{page['files'][0]['url']}.metadata").content


@pytest.mark.thorough
def test_the_recording_is_small_and_names_no_index() -> None:
    files = [path for path in RECORDED.iterdir() if path.suffix == ".xz"]
    assert sum(path.stat().st_size for path in files) < 5_000_000
    assert max(path.stat().st_size for path in files) < 1_000_000
    for name in recording.names(RECORDED):
        project = recording.read(RECORDED, name)
        assert project is not None
        assert not any("/" in file.name for file in project.files)
        assert all(text == recording.stripped(text.encode()) for text in project.metadata.values())


@pytest.mark.thorough
def test_recording_the_recording_gives_the_same(index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "resolutions.toml").write_text('[[resolution]]\nname = "small"\nrequirements = ["jinja2"]\n')
    taken = []
    for _ in range(2):
        done = CliRunner().invoke(record, ["--index-url", index.index_url, "--directory", str(tmp_path)])
        assert done.exit_code == 0, done.output
        taken.append({path.name: path.read_bytes() for path in tmp_path.glob("*.xz")})
    assert taken[0] == taken[1]
    assert sorted(taken[0]) == ["jinja2.json.xz", "markupsafe.json.xz"]
    again, first = recording.read(tmp_path, "jinja2"), recording.read(RECORDED, "jinja2")
    assert again is not None
    assert first is not None
    assert set(again.files) <= set(first.files)
    assert again.metadata.items() <= first.metadata.items()
