"""Machine types of clouds as machines of a request."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from envsolve.errors import UsageError
from envsolve.fleet.cloud import CLOUDS, MachineType, machine_of, machine_types
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from tests.conftest import Envsolve

DATA = Path(__file__).parents[2] / "data" / "clouds"
TYPES = [(cloud, it) for cloud in CLOUDS for it in machine_types(cloud).values()]


def test_every_file_is_a_cloud() -> None:
    assert sorted(it.stem for it in DATA.glob("*.toml")) == sorted(CLOUDS)


@pytest.mark.thorough
@pytest.mark.parametrize(("cloud", "it"), TYPES, ids=[f"{cloud}:{it.name}" for cloud, it in TYPES])
def test_every_type_has_a_gpu_that_the_matrix_knows(cloud: str, it: MachineType, matrix: Matrix) -> None:
    assert matrix.gpus.find(it.gpu).name == it.gpu
    assert len(matrix.gpus.find(it.gpu).capabilities) == 1
    assert 1 <= it.count <= 16
    assert urlsplit(it.source).scheme == "https"
    is_arm = it.gpu in ("T4G", "NVIDIA GB200", "NVIDIA GB300")
    assert it.platform is (Platform.LINUX_AARCH64 if is_arm else Platform.LINUX_64)


def test_no_type_is_in_two_series() -> None:
    for cloud in CLOUDS:
        lines = [it for it in (DATA / f"{cloud}.toml").read_text().splitlines() if it.startswith('"')]
        assert len(lines) == len(machine_types(cloud))


def test_a_type_in_any_case_is_a_machine_without_a_driver() -> None:
    found = machine_of("azure:standard_nc48ads_a100_v4")
    assert found is not None
    assert found.name == "azure:Standard_NC48ads_A100_v4"
    assert [(it.name, it.count) for it in found.host.gpus] == [("NVIDIA A100 80GB PCIe", 2)]
    assert (found.host.driver, found.host.glibc) == (None, None)


@pytest.mark.parametrize("text", ["aws", "host.json", "nodes.json:a1", "C:\\host.json", "oracle:BM.GPU.H100.8"])
def test_other_names_are_no_machine_type(text: str) -> None:
    assert machine_of(text) is None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("aws:ml.p4d.24xlarge", "aws:p4d.24xlarge"),
        ("gcp:a2-highgpu-3g", "gcp:a2-highgpu-2g"),
        ("azure:NC24ads_A100_v4", "azure:Standard_NC24ads_A100_v4"),
    ],
)
def test_an_unknown_type_suggests_similar_ones(text: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        machine_of(text)
    assert caught.value.code == "unknown-machine-type"
    assert meant in caught.value.hints[0].text
    assert "--gpu and --platform" in caught.value.hints[-1].text


def test_a_stack_for_a_machine_type(envsolve: Envsolve) -> None:
    done = envsolve("-f", "pytorch", "--host", "aws:p4d.24xlarge", "--host", "gcp:g2-standard-24")
    assert done.code == 0, done.err
    assert "# For: linux-64, NVIDIA A100-SXM4-40GB (8.0), NVIDIA L4 (8.9)\n" in done.out
    assert "--host aws:p4d.24xlarge --host gcp:g2-standard-24\n" in done.out
    old = envsolve("-f", "pytorch", "--host", "aws:p4d.24xlarge", "--driver", "470.57.02")
    assert "# Needs: NVIDIA driver 450.80.02 or newer\n" in old.out


def test_a_driver_of_an_image_can_be_too_old(envsolve: Envsolve) -> None:
    refused = envsolve("-f", "pytorch==2.15.*", "--host", "aws:g5.xlarge", "--driver", "535.183.01")
    assert refused.code == 1
    assert "on aws:g5.xlarge: pytorch 2.15.0 (pypi, cu132) then fits; then set it with --driver\n" in refused.err


def test_a_plan_for_a_machine_type(envsolve: Envsolve) -> None:
    done = envsolve("fleet", "plan", "aws:g5.xlarge", "-f", "pytorch")
    assert done.out.splitlines()[2] == "   1 node: aws:g5.xlarge"
    assert envsolve("fleet", "plan", "aws:g5", "-f", "pytorch").err.startswith("error: unknown-machine-type\n")
