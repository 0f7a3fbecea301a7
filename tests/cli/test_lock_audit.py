"""Wheels that the matrix does not know: a lock only has them if their kernels and libraries fit the stack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic

import pytest

from envsolve.app.packages.wheel_facts import Reading, WheelReader
from tests.binary.device_library import library_for_torch
from tests.cli.locked import pins_in
from tests.cli.worlds import LINUX
from tests.conftest import Envsolve, Result
from tests.index.packages import IndexFile, sdist, wheel
from tests.index.server import IndexServer
from tests.scripts.fat_binary import fat_binary

TARGET = ("--python", "3.11.7", "--platform", "linux-64", "--format", "requirements")
FOR_2_7 = ("_ZN3c104cuda10set_deviceEa", "_ZN3c1011LogAPIUsageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")
"""A symbol that PyTorch had up to 2.7, and one that it has from then on (data/compat_matrix/torch_symbols.toml)."""
FROM_2_8 = ("_ZN3c1021c10_compute_alignmentEm",)
RUNTIME = b"\0CUDA driver version is insufficient for CUDA runtime version\0"


def kernels(
    version: str, library: bytes, *, name: str = "kernels", requires: tuple[str, ...] = ("torch",)
) -> IndexFile:
    """A wheel for this Python whose extension module is ``library``."""
    members = {"kernels/_C.so": b"\x7fELF" + library}
    return wheel("kernels", version, requires, tags=f"cp311-cp311-{LINUX}", members=members)


def for_torch(version: str, symbols: tuple[str, ...], requires: tuple[str, ...] = ("torch",)) -> IndexFile:
    """A wheel whose extension module needs some symbols of PyTorch."""
    return kernels(version, library_for_torch(needs=symbols).removeprefix(b"\x7fELF"), requires=requires)


def lock(envsolve: Envsolve, world: IndexServer, directory: Path, *arguments: str) -> Result:
    where = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    return envsolve(*arguments, *TARGET, *where, "--cache-dir", str(directory))


def pins(envsolve: Envsolve, world: IndexServer, directory: Path, *arguments: str) -> dict[str, str]:
    result = lock(envsolve, world, directory, *arguments)
    assert result.code == 0, result.err
    return pins_in(result.out)


@pytest.mark.thorough
def test_a_release_without_code_for_the_gpu_is_skipped(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    world.add("kernels", [kernels("1.0", fat_binary((70, 80))), kernels("2.0", fat_binary((80,), (80,)))])
    request = ("torch", "kernels", "--driver", "580.65.06")
    assert pins(envsolve, world, tmp_path, *request, "--gpu", "7.0")["kernels"] == "1.0"
    assert pins(envsolve, world, tmp_path, *request, "--gpu", "9.0")["kernels"] == "2.0"
    assert pins(envsolve, world, tmp_path, *request, "--gpu", "7.0", "--audit", "off")["kernels"] == "2.0"


@pytest.mark.thorough
def test_reading_wheels_does_not_shorten_the_search(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = [0.0]
    for module in ("resolve.closure.resolve", "app.lock.target_lock"):
        monkeypatch.setattr(f"envsolve.{module}.monotonic", lambda: monotonic() + passed[0])
    read = WheelReader.read

    def slow(self: WheelReader, readings: Iterable[Reading], progress: Callable[[str], None]) -> object:
        passed[0] += 1000
        return read(self, readings, progress)

    monkeypatch.setattr(WheelReader, "read", slow)
    world.add("kernels", [kernels("1.0", fat_binary((70, 80))), kernels("2.0", fat_binary((80,), (80,)))])
    found = pins(envsolve, world, tmp_path, "torch", "kernels", "--driver", "580.65.06", "--gpu", "7.0")
    assert (found["kernels"], passed[0] > 0) == ("1.0", True)


@pytest.mark.thorough
def test_the_framework_follows_the_cuda_that_a_package_loads(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    request = ("torch", "kernels", "--gpu", "8.6", "--driver", "580.65.06")
    world.add("kernels", [kernels("2.0", b"\0libcudart.so.13\0")])
    assert pins(envsolve, world, tmp_path, *request)["torch"] == "2.15.0"
    world.add("kernels", [kernels("2.1", b"\0libcublas.so.12\0")])
    assert pins(envsolve, world, tmp_path, *request, "--refresh")["torch"] == "2.14.1+cu126"


@pytest.mark.thorough
def test_a_linked_runtime_needs_a_compatible_driver(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    for_12, for_13 = (RUNTIME + fat_binary((80,), (80,), isa=isa) for isa in ((8, 5), (9, 0)))
    world.add("kernels", [kernels("1.0", for_12), kernels("2.0", for_13)])
    request = ("torch", "kernels", "--gpu", "8.6")
    assert pins(envsolve, world, tmp_path, *request, "--driver", "550.54.14")["kernels"] == "1.0"
    assert pins(envsolve, world, tmp_path, *request, "--driver", "580.65.06")["kernels"] == "2.0"
    assert pins(envsolve, world, tmp_path, *request, "--cuda", "12.*")["kernels"] == "1.0"


@pytest.mark.thorough
def test_ptx_that_the_driver_cannot_compile_does_not_count(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    old, new = (fat_binary((80,), (80,), isa=isa) for isa in ((8, 0), (8, 7)))
    world.add("kernels", [kernels("1.0", old), kernels("2.0", new)])
    request = ("torch", "kernels", "--cuda", "12.*")
    assert pins(envsolve, world, tmp_path, *request, "--gpu", "9.0", "--driver", "535.183.01")["kernels"] == "1.0"
    assert pins(envsolve, world, tmp_path, *request, "--gpu", "9.0", "--driver", "570.86.15")["kernels"] == "2.0"
    assert pins(envsolve, world, tmp_path, *request, "--gpu", "8.6", "--driver", "535.183.01")["kernels"] == "2.0"
    refused = lock(envsolve, world, tmp_path, *request, "kernels==2.0", "--gpu", "9.0", "--driver", "535.183.01")
    assert "kernels==2.0 has only PTX of CUDA 12.8 for compute capability 9.0" in refused.err


@pytest.mark.thorough
def test_numpy_1_builds_are_not_locked_with_numpy_2(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    world.add("numpy", [wheel("numpy", "1.26.4"), wheel("numpy", "2.3.0")])
    world.add("kernels", [kernels("1.0", b"numpy.core._multiarray_umath", requires=("torch", "numpy"))])
    found = pins(envsolve, world, tmp_path, "torch", "kernels", "--gpu", "8.6", "--driver", "580.65.06")
    assert (found["kernels"], found["numpy"]) == ("1.0", "1.26.4")


@pytest.mark.thorough
def test_releases_older_than_several_without_code_are_not_read(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    world.add("kernels", [kernels(f"{number}.0", fat_binary((80,))) for number in range(1, 13)])
    result = lock(envsolve, world, tmp_path, "torch", "kernels", "--gpu", "7.0", "--driver", "580.65.06")
    assert result.code == 1
    assert "code for compute capability 7.0" in result.err
    assert sum(world.count(f"/files/kernels/kernels-{number}.0*") > 1 for number in range(1, 13)) == 8


@pytest.mark.thorough
def test_one_release_of_a_series_is_read_and_an_older_series_may_fit(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    newer = [kernels(f"2.{minor}.{patch}", fat_binary((80,))) for minor in (0, 1) for patch in (0, 1, 2)]
    world.add("kernels", [*newer, kernels("1.9.0", fat_binary((70,)))])
    found = pins(envsolve, world, tmp_path, "torch", "kernels", "--gpu", "7.0", "--driver", "580.65.06")
    assert found["kernels"] == "1.9.0"
    read = [
        number
        for number in ("2.1.2", "2.1.1", "2.1.0", "2.0.2", "2.0.1", "2.0.0")
        if world.count(f"/files/kernels/kernels-{number}*") > 1
    ]
    assert read == ["2.1.2", "2.0.2"]


@pytest.mark.thorough
def test_a_wheel_is_only_read_once(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    world.add("kernels", [kernels("1.0", fat_binary((80,)))])
    request = ("torch", "kernels", "--gpu", "8.6", "--driver", "580.65.06")
    first = lock(envsolve, world, tmp_path, *request)
    requests = world.count("/files/kernels/*.whl")
    assert requests
    assert lock(envsolve, world, tmp_path, *request).out == first.out
    assert lock(envsolve, world, tmp_path, *request, "--offline").out == first.out
    assert world.count("/files/kernels/*.whl") == requests


@pytest.mark.thorough
def test_unread_wheels_are_assumed_to_be_like_read_ones(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    xformers = [
        wheel("xformers", "0.0.36", ["torch"], tags=f"cp311-cp311-{LINUX}"),
        wheel("xformers", "0.0.5", ["torch"]),
    ]
    world.add("xformers", xformers)
    world.fault("*xformers-0.0.36*.whl", status=403)
    request = ("torch", "xformers", "--driver", "580.65.06")
    assert pins(envsolve, world, tmp_path, *request, "--gpu", "8.6")["xformers"] == "0.0.36"
    assert pins(envsolve, world, tmp_path, *request, "--gpu", "7.0")["xformers"] == "0.0.5"


@pytest.mark.thorough
@pytest.mark.parametrize("fault", [{"status": 403}, {"cut": True}, {"body": b"no archive"}])
def test_an_unreadable_wheel_is_reported_as_unverified(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, fault: dict[str, object]
) -> None:
    world.add("kernels", [kernels("1.0", fat_binary((80,)))])
    world.fault("*.whl", **fault)  # type: ignore[arg-type]
    result = lock(envsolve, world, tmp_path, "torch", "kernels", "--gpu", "7.0", "--driver", "580.65.06")
    assert result.code == 0
    assert "not verified for this GPU" in result.err
    assert "kernels 1.0" in result.err
    assert "--audit full" in result.err


def test_without_a_gpu_only_compatibility_with_pytorch_is_checked(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    world.add("kernels", [kernels("1.0", fat_binary((80,)))])
    assert pins(envsolve, world, tmp_path, "torch", "kernels", "--gpu", "none")["kernels"] == "1.0"
    assert world.count("/files/kernels/*.whl") == 1
    world.add("kernels", [kernels("2.0", fat_binary((80,)), requires=())])
    assert pins(envsolve, world, tmp_path, "kernels", "--gpu", "none", "--refresh")["kernels"] == "2.0"
    assert world.count("/files/kernels/*2.0*.whl") == 0


@pytest.mark.thorough
def test_a_wheel_compiled_for_one_pytorch_is_not_locked_with_another(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    options = ("--gpu", "8.6", "--driver", "580.65.06")
    world.add("kernels", [for_torch("1.0", FOR_2_7), for_torch("2.0", FROM_2_8)])
    newest = pins(envsolve, world, tmp_path, "torch", "kernels", *options)
    assert newest["kernels"] == "2.0"
    assert pins(envsolve, world, tmp_path, "torch==2.7.1", "kernels", *options)["kernels"] == "1.0"
    assert pins(envsolve, world, tmp_path, "torch", "kernels==1.0", *options)["torch"] == "2.7.1"
    refused = lock(envsolve, world, tmp_path, "torch==2.8.0", "kernels==1.0", *options)
    assert refused.code == 1
    assert "kernels 1.0 requires torch>=2.7,<2.8, as it was compiled for that PyTorch" in refused.err
    assert "PyTorch 2.8 does not have c10::cuda::set_device (_ZN3c104cuda10set_deviceEa)" in refused.err


def test_status_checks_every_package_of_a_lock(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("kernels", [kernels("1.0", RUNTIME + fat_binary((80,), (80,), isa=(9, 0)))])
    world.add("xformers", [wheel("xformers", "0.0.32", tags=f"cp39-abi3-{LINUX}")])
    monkeypatch.setenv("ENVSOLVE_CACHE_DIR", str(tmp_path / "cache"))
    file = str(tmp_path / "requirements.txt")
    request = ("torch", "kernels", "xformers==0.0.32", "--gpu", "8.6", "--driver", "580.65.06", "-o", file)
    assert lock(envsolve, world, tmp_path / "cache", *request).code == 0

    def reasons(*machine: str) -> list[str]:
        done = envsolve("status", file, *machine, "--platform", "linux-64", "--json")
        found: list[str] = json.loads(done.out)["files"][0]["reasons"]
        return found

    assert reasons("--gpu", "8.6", "--driver", "580.65.06") == []
    assert reasons("--gpu", "7.0", "--driver", "580.65.06") == [
        "kernels 1.0 has no code for compute capability 7.0",
        "xformers 0.0.32 has no code for compute capability 7.0",
    ]
    linked = "kernels 1.0 has the runtime of CUDA 13 linked in, the driver runs CUDA 12 at most"
    assert reasons("--gpu", "8.6", "--driver", "560.35.03") == [linked]


def test_an_older_lock_is_checked_with_the_pytorch_that_a_package_was_compiled_for(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("kernels", [for_torch("1.0", FOR_2_7)])
    world.fault("*kernels-1.0*.whl", status=403, times=2)
    monkeypatch.setenv("ENVSOLVE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    machine = ("--gpu", "8.6", "--driver", "580.65.06", "--platform", "linux-64")
    where = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    assert envsolve("init", "-f", "pytorch==2.8.0", "kernels", *machine, "--python", "3.11.7", *where).code == 0
    assert envsolve("lock").code == 0
    assert envsolve("lock", "--check").code == 0
    assert pins(envsolve, world, tmp_path / "cache", "torch==2.7.1", "kernels", *machine[:4])["kernels"] == "1.0"
    status = envsolve("status", "pylock.toml", *machine, "--json")
    (reason,) = json.loads(status.out)["files"][0]["reasons"]
    assert reason.startswith("kernels 1.0 requires torch>=2.7,<2.8, as it was compiled for that PyTorch")
    assert reason.endswith("and torch is 2.8.0")
    assert envsolve("lock", "--check").code == 1


@pytest.mark.thorough
def test_checking_a_lock_uses_facts_read_since(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("kernels", [kernels("1.0", fat_binary((70, 80))), kernels("2.0", fat_binary((80,)))])
    world.fault("*kernels-2.0*.whl", status=403, times=2)
    monkeypatch.setenv("ENVSOLVE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    request = ("torch", "kernels", "--driver", "580.65.06", "--platform", "linux-64", "--python", "3.11.7")
    where = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    assert envsolve("init", "-f", "pytorch", "kernels", *request[2:], *where, "--gpu", "7.0").code == 0
    assert envsolve("lock").code == 0
    assert 'version = "2.0"' in (tmp_path / "pylock.toml").read_text()
    assert envsolve("lock", "--check").code == 0
    assert pins(envsolve, world, tmp_path / "cache", *request[:4], "--gpu", "8.6")["kernels"] == "2.0"
    done = envsolve("lock", "--check")
    assert done.code == 1
    assert "kernels" in done.err + done.out


@pytest.mark.thorough
def test_packages_that_install_the_same_module_are_named(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    for name, content in (("cv", b"1"), ("cv-headless", b"2"), ("cv-alike", b"2"), ("of-cv", b"3")):
        code = bytes(range(256)) * 2 + content
        files = {"kernels/_C.so": b"\x7fELF", "cv/__init__.py": code, "shared/__init__.py": content}
        files = {"kernels/_C.so": b"\x7fELF", "cv/of/__init__.py": code} if name == "of-cv" else files
        world.add(name, [wheel(name, "1.0", ["torch"], tags=f"cp311-cp311-{LINUX}", members=files)])
    machine = ("torch", "--gpu", "8.6", "--driver", "580.65.06")
    both = lock(envsolve, world, tmp_path, *machine, "cv", "cv-headless")
    assert "cv 1.0 and cv-headless 1.0 install different files of the module cv: the last one wins" in both.err
    alike = lock(envsolve, world, tmp_path, *machine, "cv-alike", "cv-headless", "of-cv")
    assert "install different files" not in alike.err


def evidence_in(text: str) -> list[str]:
    return [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# evidence = ")]


@pytest.mark.thorough
def test_a_lock_records_sources_of_facts_about_its_packages(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    world.add("kernels", [kernels("1.0", fat_binary((80,)))])
    world.add("others-gpu", [wheel("others-gpu", "1.0", tags=f"cp311-cp311-{LINUX}")])
    world.add("xformers", [wheel("xformers", "0.0.32", tags=f"cp39-abi3-{LINUX}")])
    world.fault("*others_gpu*.whl", status=403)
    request = ("torch", "kernels", "xformers==0.0.32", "others-gpu", "--gpu", "8.6", "--driver", "580.65.06")
    first = lock(envsolve, world, tmp_path, *request)
    evidence = 'evidence = { matrix = ["torch", "xformers"], wheel = ["kernels"], unread = ["others-gpu"] }'
    assert evidence_in(first.out) == [evidence]
    for cached in ("--offline", "--refresh", "--no-cache"):
        assert lock(envsolve, world, tmp_path, *request, cached).out == first.out
    off = lock(envsolve, world, tmp_path, *request, "--audit", "off")
    evidence = 'evidence = { matrix = ["torch", "xformers"], unread = ["kernels", "others-gpu"] }'
    assert evidence_in(off.out) == [evidence]
    assert "not verified" not in off.err, "--audit off was requested"
    assert evidence_in(lock(envsolve, world, tmp_path, "torch", "kernels", "--gpu", "none").out) == []


@pytest.mark.thorough
def test_a_lock_records_inferred_facts_and_their_sources(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    world.add("xformers", [wheel("xformers", "0.0.36", ["torch"], tags=f"cp311-cp311-{LINUX}")])
    world.fault("*xformers-0.0.36*.whl", status=403)
    locked = lock(envsolve, world, tmp_path, "torch", "xformers", "--gpu", "8.6", "--driver", "580.65.06")
    (evidence,) = evidence_in(locked.out)
    assert 'inferred = ["xformers as in 0.0.' in evidence


@pytest.mark.thorough
def test_status_reports_unverified_packages(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("kernels", [kernels("1.0", fat_binary((80,)))])
    monkeypatch.setenv("ENVSOLVE_CACHE_DIR", str(tmp_path / "cache"))
    driver, text = ("--driver", "580.65.06"), "not verified for this GPU: the libraries in kernels were not read"

    def file(name: str, *how: str) -> str:
        path = str(tmp_path / f"{name}.txt")
        done = lock(envsolve, world, tmp_path / "cache", "torch", "kernels", "--gpu", "8.6", *driver, *how, "-o", path)
        assert done.code == 0, done.err
        return path

    def status_of(path: str, gpu: str) -> tuple[list[str], list[str]]:
        done = envsolve("status", path, "--gpu", gpu, *driver, "--platform", "linux-64", "--json")
        (found,) = json.loads(done.out)["files"]
        return found["reasons"], [it["text"] for it in found["notes"] if it["code"] == "not-verified"]

    read, off = file("read"), file("off", "--audit", "off")
    refused = ["kernels 1.0 has no code for compute capability 9.0"]
    assert status_of(read, "8.6") == ([], [])
    assert status_of(read, "9.0") == (refused, [])
    assert status_of(off, "8.6") == ([], [text]), "whatever was read for another lock"
    assert status_of(off, "9.0") == ([], [text])
    monkeypatch.setenv("ENVSOLVE_CACHE_DIR", str(tmp_path / "another"))
    assert status_of(read, "8.6") == ([], []), "it was read for this GPU, on another machine"
    assert status_of(read, "9.0") == ([], [text])
    assert status_of(off, "9.0") == ([], [text])


def start_project(
    envsolve: Envsolve, world: IndexServer, directory: Path, patch: pytest.MonkeyPatch, *words: str
) -> None:
    """A project with PyTorch and a package with kernels, in a directory with its own cache."""
    world.add("kernels", [kernels("1.0", fat_binary((80,)))])
    patch.setenv("ENVSOLVE_CACHE_DIR", str(directory / "cache"))
    patch.chdir(directory)
    where = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    target = ("--platform", "linux-64", "--python", "3.11.7", "--gpu", "8.6", "--driver", "580.65.06")
    assert envsolve("init", "-f", "pytorch", "kernels", *target, *where, *words).code == 0


def test_a_project_sets_how_wheels_are_read(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_project(envsolve, world, tmp_path, monkeypatch, "--audit", "off")
    assert envsolve("lock").code == 0
    assert 'evidence = { matrix = ["torch"], unread = ["kernels"] }' in (tmp_path / "pylock.toml").read_text("utf-8")
    status = envsolve("status")
    assert (status.code, status.err) == (
        0,
        "note: not verified for this GPU: the libraries in kernels were not read\n",
    )
    assert envsolve("lock", "--audit", "full").code == 0
    assert 'wheel = ["kernels"]' in (tmp_path / "pylock.toml").read_text("utf-8")


@pytest.mark.thorough
def test_a_project_preserves_recorded_facts_of_its_lock(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_project(envsolve, world, tmp_path, monkeypatch)
    assert envsolve("lock").code == 0
    before = (tmp_path / "pylock.toml").read_text("utf-8")
    assert 'evidence = { matrix = ["torch"], wheel = ["kernels"] }' in before
    monkeypatch.setenv("ENVSOLVE_CACHE_DIR", str(tmp_path / "another"))
    assert envsolve("lock", "--offline").code == 0
    assert (tmp_path / "pylock.toml").read_text("utf-8") == before


def test_gpu_without_a_framework_is_refused(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    world.add("kernels-cu12", [wheel("kernels_cu12", "1.0")])
    named = lock(envsolve, world, tmp_path, "kernels-cu12", "--gpu", "7.0", "--driver", "580.65.06")
    assert named.code == 0, named.err
    assert "note: kernels-cu12: not checked for the GPU and the driver, as the lock has no framework" in named.err
    assert "not checked" not in lock(envsolve, world, tmp_path, "kernels-cu12", "--gpu", "none").err


def test_a_source_distribution_replacing_wheels_without_code_is_reported(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    old = sdist("kernels", "1.0", requires=["torch"])
    world.add("kernels", [kernels("2.0", fat_binary((80,))), old])
    result = lock(envsolve, world, tmp_path, "torch", "kernels", "--gpu", "7.0", "--driver", "580.65.06")
    assert pins_in(result.out).get("kernels") == "1.0", result.err
    said = "kernels 1.0 is a source distribution: a wheel of kernels==2.0 has no code for compute capability 7.0"
    assert f"note: {said}\n" in result.err
