"""Host files: the round trip, recorded machines, and errors that name the file and the key."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.errors import UsageError
from envsolve.host.host_file import host_as_json, read_host_file
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, GpuStatus, Host, Platform, Reading, SourceFailure
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion

RECORDED = sorted(Path(__file__).parents[1].joinpath("hosts").glob("*.json"))

CAPABILITIES = st.builds(ComputeCapability, st.integers(2, 12), st.integers(0, 9))
DRIVERS = st.tuples(st.integers(300, 999), st.integers(0, 999), st.integers(0, 99)).map(
    lambda parts: DriverVersion.parse(f"{parts[0]}.{parts[1]}.{parts[2]:02}")
)
TEXTS = st.text(max_size=40).filter(str.isprintable)
GPUS = st.builds(
    Gpu,
    st.text(min_size=1, max_size=40).filter(str.isprintable),
    st.none() | CAPABILITIES,
    count=st.integers(1, 16),
    memory_mib=st.none() | st.integers(1, 10**6),
    mig=st.booleans(),
)
HOSTS = st.builds(
    Host,
    platform=st.sampled_from(Platform),
    driver=st.none() | DRIVERS,
    driver_cuda=st.none() | st.builds(CudaVersion, st.integers(1, 99), st.integers(0, 99)),
    glibc=st.none() | st.builds(LibcVersion, st.integers(2, 3), st.integers(0, 99)),
    gpus=st.lists(GPUS, max_size=4).map(tuple),
    status=st.sampled_from(GpuStatus),
    origin=st.dictionaries(st.sampled_from(["driver", "gpus"]), TEXTS),
    wsl=st.booleans(),
    notes=st.lists(TEXTS, max_size=3).map(tuple),
    readings=st.just(()),
)


def written(tmp_path: Path, text: str) -> Path:
    """A host file with this text."""
    path = tmp_path / "host.json"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.thorough
@given(HOSTS)
def test_a_host_survives_a_round_trip_through_its_file(host: Host) -> None:
    with tempfile.TemporaryDirectory() as directory:
        assert read_host_file(written(Path(directory), json.dumps(host_as_json(host)))) == host


def test_notes_and_origins_of_a_file_cannot_control_a_terminal(tmp_path: Path) -> None:
    data = {**host_as_json(Host(Platform.LINUX_64)), "notes": ["\x1b]0;t\x07"], "origin": {"driver": "\u202e" * 999}}
    host = read_host_file(written(tmp_path, json.dumps(data)))
    assert host.notes == ("\\u001b]0;t\\u0007",)
    assert host.origin["driver"].isprintable()
    assert len(host.origin["driver"]) == 256


def test_readings_are_written_and_not_read_back(tmp_path: Path) -> None:
    reading = Reading(
        "nvml", DriverVersion.parse("580.65.06"), gpus=(Gpu("T4", None),), problem=SourceFailure("hang", "slow", 7)
    )
    host = Host(Platform.LINUX_64, readings=(reading,))
    text = json.dumps(host_as_json(host))
    assert '"source": "nvml"' in text
    assert '"number": 7' in text
    assert read_host_file(written(tmp_path, text)) == host._replace(readings=())


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_machine_reads_and_writes_the_same(path: Path) -> None:
    host = read_host_file(path)
    assert host_as_json(host) == {**json.loads(path.read_text(encoding="utf-8")), "readings": []}
    assert (host.status == GpuStatus.READY) == bool(host.gpus)


def test_there_are_recorded_machines() -> None:
    assert len(RECORDED) >= 12


SMALL = {"schema_version": 1, "platform": "linux-64"}


def test_a_handwritten_file_may_be_short(tmp_path: Path) -> None:
    text = json.dumps({**SMALL, "driver": "535.129.03", "gpus": [{"compute_capability": "sm_86"}], "owner": "someone"})
    host = read_host_file(written(tmp_path, text))
    assert host.gpus == (Gpu(None, ComputeCapability(8, 6)),)
    assert host.status == GpuStatus.READY


@pytest.mark.parametrize(("more", "status"), [({}, GpuStatus.NO_HARDWARE), ({"driver": "580.65.06"}, GpuStatus.NO_GPU)])
def test_without_gpus_the_status_depends_on_the_driver(more: dict[str, str], status: GpuStatus, tmp_path: Path) -> None:
    assert read_host_file(written(tmp_path, json.dumps({**SMALL, **more}))).status == status


MISTAKES: dict[str, tuple[object, str]] = {
    "no object": ([], "the file must be a JSON object, not []"),
    "no schema version": ({"platform": "linux-64"}, "'schema_version' is missing"),
    "a schema version that is no number": ({**SMALL, "schema_version": "1"}, "'schema_version' must be a whole number"),
    "a schema version that is true": ({**SMALL, "schema_version": True}, "'schema_version' must be a whole number"),
    "a schema version that never was": ({**SMALL, "schema_version": 0}, "'schema_version' must be 1, not 0"),
    "no platform": ({"schema_version": 1}, "'platform' is missing"),
    "an unknown platform": (
        {**SMALL, "platform": "linux"},
        "'platform': 'linux' is not one of linux-64, linux-aarch64",
    ),
    "a driver that is no version": ({**SMALL, "driver": "new"}, "'driver': 'new' is not an NVIDIA driver version"),
    "a driver that is a number": ({**SMALL, "driver": 580.65}, "'driver' must be a text, not 580.65"),
    "a bad CUDA version": ({**SMALL, "driver_cuda": "12"}, "'driver_cuda': '12' is not a CUDA version"),
    "a bad glibc": ({**SMALL, "glibc": "musl"}, "'glibc': 'musl' is not a glibc version"),
    "GPUs that are no list": ({**SMALL, "gpus": {}}, "'gpus' must be a list"),
    "a GPU that is no object": ({**SMALL, "gpus": ["T4"]}, "'gpus[0]' must be a JSON object, not 'T4'"),
    "a GPU without any fact": ({**SMALL, "gpus": [{}]}, "'gpus[0].compute_capability' must be given"),
    "a bad capability": (
        {**SMALL, "gpus": [{"name": "T4", "compute_capability": "7.5"}, {"compute_capability": "new"}]},
        "'gpus[1].compute_capability': 'new' is not a compute capability",
    ),
    "zero GPUs": ({**SMALL, "gpus": [{"name": "T4", "count": 0}]}, "'gpus[0].count' must be at least 1, not 0"),
    "memory as text": (
        {**SMALL, "gpus": [{"name": "T4", "memory_mib": "16 GB"}]},
        "'gpus[0].memory_mib' must be a whole number",
    ),
    "MIG as text": ({**SMALL, "gpus": [{"name": "T4", "mig": "on"}]}, "'gpus[0].mig' must be true or false"),
    "an unknown status": ({**SMALL, "status": "fine"}, "'status': 'fine' is not one of ready"),
    "an origin that is no object": ({**SMALL, "origin": "me"}, "'origin' must be an object"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_key(name: str, tmp_path: Path) -> None:
    data, words = MISTAKES[name]
    path = written(tmp_path, json.dumps(data))
    with pytest.raises(UsageError) as raised:
        read_host_file(path)
    assert raised.value.code == "host-file-wrong-shape"
    assert words in raised.value.message
    assert str(path) in raised.value.message


def test_a_file_of_a_newer_envsolve_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read_host_file(written(tmp_path, json.dumps({**SMALL, "schema_version": 2})))
    assert raised.value.code == "host-file-too-new"


@pytest.mark.parametrize("text", ["", "driver: 580", "\ud800".encode("utf-16", "surrogatepass").decode("latin-1")])
def test_a_file_that_is_not_json_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read_host_file(written(tmp_path, text))
    assert raised.value.code == "host-file-not-json"


def test_invalid_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "host.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(UsageError):
        read_host_file(tmp_path / "host.json")


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_an_unreadable_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read_host_file(tmp_path / name)
    assert raised.value.code == "host-file-unreadable"
