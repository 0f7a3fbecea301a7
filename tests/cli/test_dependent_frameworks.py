"""``-f vllm``: the stack of PyTorch with the newest vLLM that runs on the machine, from any source with a wheel.

The index and PyTorch's own have builds of PyTorch that exist, and vLLM's pages are in the markup of the recorded one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
import yaml

import envsolve as api
from envsolve import extension_sources
from tests.cli.locked import pins_in
from tests.cli.locking import assert_in_three_parts, undisturbed
from tests.cli.worlds import releases
from tests.conftest import Envsolve, Result
from tests.index.packages import IndexFile, sdist, wheel
from tests.index.server import IndexServer
from tests.scripts.fat_binary import fat_binary

ROOT = Path(__file__).parents[2]
SOURCE = (ROOT / "data/sources/vllm.toml").read_text("utf-8")
PAGE = (ROOT / "tests/sources/pages/vllm-0.30.0-cu129.html").read_bytes()
LINUX_28, LINUX_31, LINUX_35 = (f"cp38-abi3-manylinux_2_{it}_x86_64" for it in (28, 31, 35))
CP312 = "cp312-cp312-manylinux_2_28_x86_64"
NVIDIA = {"nvidia-cublas-cu12": "12.6.4.1", "nvidia-cudnn-cu12": "9.10.2.21", "nvidia-cublas": "13.4.1.3"}
CUDA_12, CUDA_13 = ["nvidia-cublas-cu12", "nvidia-cudnn-cu12"], ["nvidia-cublas"]
OLD, MIDDLE, NEW = "535.183.01", "550.54.15", "580.65.06"


def torch(version: str, requires: list[str]) -> IndexFile:
    return wheel("torch", version, ["typing-extensions>=4.10", *requires], tags=CP312)


def vllm(version: str, torch: str, tags: str = LINUX_28) -> IndexFile:
    """A wheel with its upload date on the index; pages have none."""
    month = int(version.partition("+")[0].split(".")[1]) - 22
    day = f"2026-{max(month, 1):02}-01T00:00:00Z"
    return wheel("vllm", version, [f"torch=={torch}"], tags=tags, upload_time=day)


class World(NamedTuple):
    """Indexes, vLLM's pages and the command."""

    envsolve: Envsolve
    server: IndexServer

    @property
    def network(self) -> tuple[str, ...]:
        return (
            "--index-url",
            self.server.index_url,
            "--pytorch-index-url",
            f"{self.server.url}/whl",
            "--cache-dir",
            "c",
        )

    def __call__(self, *words: str, code: int = 0, gpu: str = "RTX 4090", platform: str = "linux-64") -> Result:
        target = ("--python", "3.12", "--platform", platform, "--format", "requirements", "--gpu", gpu)
        done = self.envsolve(*words, *target, *self.network)
        assert done.code == code, done.err + done.out
        return done

    def publishes(self, version: str, torch: str) -> None:
        """Add a wheel for CUDA 12.9 to the page of a version."""
        file = vllm(f"{version}+cu129", torch)
        assert file.content is not None
        page = PAGE.replace(b"0.30.0", version.encode())
        self.server.fault(f"/{version}/cu129/vllm/", body=page, content_type="text/html")
        address = f"/{version}/{quote(file.name)}"
        self.server.fault(address, body=file.content, content_type="binary/octet-stream")


@pytest.fixture
def here(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    (tmp_path / "here").mkdir()
    undisturbed(monkeypatch, tmp_path / "here")
    with IndexServer(recorded=False) as server:
        for name, version in NVIDIA.items():
            server.add(name, releases(name, [version], tags="py3-none-manylinux_2_17_x86_64"))
        server.add("typing-extensions", releases("typing-extensions", ["4.16.0"]))
        server.add("torch", [torch(it, CUDA_13) for it in ("2.15.0", "2.14.0", "2.13.0", "2.11.0")])
        server.add("torch", [torch(it, CUDA_12) for it in ("2.10.0", "2.9.0")])
        server.add("numpy", releases("numpy", ["2.4.6"], tags=CP312))
        for lane, version, cuda in (("cu129", "2.13.0", CUDA_12), ("cu126", "2.14.0", CUDA_12), ("cpu", "2.13.0", [])):
            server.index(f"/whl/{lane}/", "pytorch").add("torch", [torch(f"{version}+{lane}", cuda)])
        pinned = {"0.33.0": "2.14.0", "0.32.0": "2.13.0", "0.30.0": "2.13.0"}
        older = [
            vllm("0.20.0", "2.11.0", LINUX_35),
            vllm("0.19.1", "2.10.0", LINUX_31),
            vllm("0.12.0", "2.9.0", LINUX_31),
        ]
        server.add("vllm", [*(vllm(*it) for it in pinned.items()), *older, sdist("vllm", "0.33.0", ["torch"])])
        world = World(envsolve, server)
        for it in pinned.items():
            world.publishes(*it)
        (tmp_path / "vllm.toml").write_text(SOURCE.replace("https://wheels.vllm.ai", server.url))
        places = extension_sources.read_sources(tmp_path)
        monkeypatch.setattr(extension_sources, "_shipped", lambda: places)
        yield world


def chosen(done: Result) -> tuple[str, str]:
    """The vLLM and the PyTorch of a lock."""
    (line,) = [it for it in done.out.splitlines() if it.startswith("vllm")]
    version = line.split("/")[-1].split("-")[1] if "@" in line else line.split()[0].removeprefix("vllm==")
    return version.replace("%2B", "+"), pins_in(done.out)["torch"]


@pytest.mark.thorough
@pytest.mark.parametrize("driver", [OLD, MIDDLE])
def test_a_driver_before_cuda_13_gets_the_newest_wheel_for_cuda_12(here: World, driver: str) -> None:
    """0.33.0+cu129 has no PyTorch: builds of 2.14.0 are for CUDA 12.6 and 13.0."""
    done = here("-f", "vllm", "--driver", driver)
    assert chosen(done) == ("0.32.0+cu129", "2.13.0+cu129")
    assert "vllm 0.32.0+cu129 is from vLLM wheels, published by the project itself" in done.err


@pytest.mark.thorough
def test_a_driver_for_cuda_13_gets_the_wheel_of_the_index(here: World) -> None:
    assert chosen(here("-f", "vllm", "--driver", NEW)) == ("0.33.0", "2.14.0")


def test_a_gpu_dropped_by_newer_wheels_gets_the_last_that_supports_it(here: World) -> None:
    assert chosen(here("-f", "vllm", "--driver", NEW, gpu="V100")) == ("0.19.1", "2.10.0")


@pytest.mark.thorough
def test_an_old_c_library_gets_the_newest_wheel_that_loads(here: World) -> None:
    assert chosen(here("-f", "vllm", "--driver", NEW, "--glibc", "2.28"))[0] == "0.33.0"
    refused = here("-f", "vllm==0.20.*", "--driver", NEW, "--glibc", "2.28", code=1)
    text = "vllm cannot be installed on Python 3.12.0 on linux-64: its wheels need a newer glibc"
    assert refused.err.startswith(f"error: no-wheel\n  {text}\ncause: the command line requires vllm==0.20.*\n")


@pytest.mark.thorough
def test_kernels_for_other_gpus_do_not_matter(here: World) -> None:
    """Its backend tokenspeed_mla is for 10.x; on other GPUs it uses another one."""
    objects = {"tokenspeed_mla/objs/sm_100a.so": fat_binary((100,))}
    here.server.add("tokenspeed-mla", [wheel("tokenspeed-mla", "0.1.8", ["torch"], tags=LINUX_28, members=objects)])
    needs = ["torch==2.14.0", "tokenspeed-mla==0.1.8"]
    here.server.add("vllm", [wheel("vllm", "0.34.0", needs, tags=LINUX_28)])
    assert chosen(here("-f", "vllm", "--driver", NEW)) == ("0.34.0", "2.14.0")


@pytest.mark.thorough
@pytest.mark.parametrize("spelled", ["vllm==0.30.*", "vLLM==0.30.*"])
def test_the_request_is_equivalent_to_its_framework_plus_the_package(here: World, spelled: str) -> None:
    done = here("-f", spelled, "--driver", MIDDLE)
    assert chosen(done)[0] == "0.30.0+cu129"
    again = here("-f", "pytorch", "vllm==0.30.*", "--driver", MIDDLE)
    assert (again.out, again.err) == (done.out, done.err)
    assert "envsolve --framework pytorch " in done.out.splitlines()[1]


def test_it_can_be_combined_with_a_version_of_its_framework(here: World) -> None:
    done = here("-f", "vllm", "-f", "pytorch==2.11.*", "--driver", NEW, "--glibc", "2.35")
    assert chosen(done) == ("0.20.0", "2.11.0")


def test_without_a_gpu_the_lock_is_for_any_gpu_that_its_wheels_support(here: World) -> None:
    done = here("-f", "vllm", gpu="auto")
    assert chosen(done) == ("0.33.0", "2.14.0")
    assert "CPU environment" not in done.err


def test_for_the_cpu_the_error_lists_the_wheels(here: World) -> None:
    refused = here("-f", "vllm", gpu="none", code=1)
    assert_in_three_parts(refused.err)
    assert "the wheels of vllm on the Python index need an NVIDIA GPU" in refused.err
    assert "'vllm==VERSION+cpu' with --extra-index-url https://wheels.vllm.ai/VERSION/cpu" in refused.err


def test_an_explicit_cpu_wheel_is_locked(here: World) -> None:
    here.server.index("/0.32.0/cpu/").add("vllm", [vllm("0.32.0+cpu", "2.13.0+cpu")])
    words = ("-f", "vllm==0.32.0+cpu", "--extra-index-url", f"{here.server.url}/0.32.0/cpu/")
    assert chosen(here(*words, gpu="none")) == ("0.32.0+cpu", "2.13.0+cpu")


@pytest.mark.parametrize(("platform", "gpu"), [("win-64", "RTX 4090"), ("osx-arm64", "none"), ("osx-arm64", "auto")])
def test_a_missing_wheel_is_reported_in_one_sentence(here: World, platform: str, gpu: str) -> None:
    refused = here("-f", "vllm", platform=platform, gpu=gpu, code=1)
    assert_in_three_parts(refused.err)
    assert f"vllm has no wheel for {platform}, only for linux-64 and linux-aarch64" in refused.err
    assert ("WSL2" in refused.err) == (platform == "win-64")


def test_a_false_marker_requires_nothing(here: World) -> None:
    here.server.add("torch", [wheel("torch", "2.13.0", ["typing-extensions"], tags="cp312-none-macosx_11_0_arm64")])
    done = here("torch", "vllm; sys_platform == 'linux'", platform="osx-arm64", gpu="none")
    assert "vllm" not in pins_in(done.out)


def test_typos_are_recognised(here: World) -> None:
    assert "did you mean vllm?" in here("-f", "vlm", code=2).err
    assert "did you mean --framework vllm?" in here.envsolve("vllm", "--gpu", "8.9").err
    assert "did you mean --framework sglang?" in here.envsolve("sglamg").err
    assert "envsolve -f vllm numpy" in here.envsolve("--gpu", "8.9", "vllm", "numpy").err
    refused = here.envsolve("matrix", "list", "-f", "vllm")
    assert refused.code == 2
    assert "envsolve matrix list -f pytorch" in refused.err


PROJECT = """\
[tool.envsolve]
frameworks = ["vllm==0.30.*"]
gpus = "RTX 4090"
driver = "{driver}"
platforms = ["linux-64"]
python = "3.12"
outputs = ["requirements.txt"]
index-url = "{url}"
pytorch-index-url = "{torch}"
"""


@pytest.fixture
def project(here: World) -> World:
    text = PROJECT.format(driver=MIDDLE, url=here.server.index_url, torch=f"{here.server.url}/whl")
    Path("pyproject.toml").write_text(text)
    return here


@pytest.mark.thorough
def test_a_project_lists_it_among_its_frameworks(project: World) -> None:
    cache = ("--cache-dir", "c")
    done = project.envsolve("lock", *cache)
    assert done.code == 0, done.err
    text = Path("requirements.txt").read_text("utf-8")
    assert "/vllm-0.30.0%2Bcu129-" in text
    assert pins_in(text)["torch"] == "2.13.0+cu129"
    assert project.envsolve("lock", "--check", *cache).code == 0
    assert "\n  vllm 0.30.0+cu129\n" in project.envsolve("status").out
    assert project.envsolve("add", "vllm==0.32.*", *cache).code == 0
    assert 'frameworks = ["vllm==0.32.*"]' in Path("pyproject.toml").read_text("utf-8")
    assert "/vllm-0.32.0%2Bcu129-" in Path("requirements.txt").read_text("utf-8")
    assert project.envsolve("add", "torch", *cache).code == 0
    assert project.envsolve("remove", "vllm", *cache).code == 0
    assert "vllm" not in Path("requirements.txt").read_text("utf-8").partition("\n\n")[2]


def test_project_changes_preserve_it(project: World) -> None:
    text = Path("pyproject.toml").read_text("utf-8").replace("vllm==0.30.*", 'vllm", "pytorch==2.14.*')
    Path("pyproject.toml").write_text(text.replace("python = ", 'sources = ["pypi"]\npython = '))
    refused = project.envsolve("lock", "--cache-dir", "c")
    assert refused.code == 1
    assert 'frameworks = ["pytorch==2.10.0", "vllm"] in pyproject.toml' in refused.err


def test_existing_requirements_with_it_are_adopted_unchanged(here: World) -> None:
    Path("requirements.txt").write_text("vllm\n")
    done = here.envsolve("init", "--gpu", "8.9", "--no-lock")
    assert done.code == 0, done.err
    assert "no framework is listed" not in done.err
    assert 'requirement-files = ["requirements.txt"]' in Path("pyproject.toml").read_text("utf-8")


def test_the_python_api_supports_it(here: World) -> None:
    found = api.lock(
        "vllm",
        gpus="RTX 4090",
        driver=NEW,
        python="3.12",
        platforms="linux-64",
        index_url=here.server.index_url,
        pytorch_index_url=f"{here.server.url}/whl",
        cache_dir="c",
    )
    assert 'name = "vllm"\nversion = "0.33.0"' in found.text


def environment(here: World, *words: str) -> Result:
    """An environment.yml of wheels, from the same indexes as the locks."""
    target = ("--gpu", "RTX 4090", "--python", "3.12", "--platform", "linux-64", "--source", "pypi")
    return here.envsolve(*words, *target, *here.network)


def by_pip(done: Result) -> dict[str, str]:
    """The lines for pip in an environment.yml, by their first word."""
    assert done.code == 0, done.err
    listed: list[Any] = yaml.safe_load(done.out)["dependencies"]
    pip: list[str] = next(it["pip"] for it in listed if isinstance(it, dict))
    return {re.split("[=@ ]", it)[0]: it for it in pip if not it.startswith("--")}


@pytest.mark.thorough
def test_an_environment_file_has_the_framework_that_it_requires(here: World) -> None:
    """2.15.0 would be the newest PyTorch."""
    done = environment(here, "-f", "vllm==0.30", "numpy", "--driver", NEW)
    assert by_pip(done) == {"torch": "torch==2.13.0", "vllm": "vllm==0.30.0", "numpy": "numpy"}
    assert "note: torch 2.13.0 is used, not 2.15.0: vllm 0.30.0 requires torch==2.13.0\n" in done.err
    assert "note: numpy is not pinned: pip will choose its version, and a lock pins it\n" in done.err
    assert "--source pypi --index-url" in done.out.splitlines()[1]
    document = json.loads(environment(here, "-f", "vllm==0.30", "numpy", "--driver", NEW, "--json").out)
    assert document["alternatives"] == []  # as documented: each would be one more lock
    assert [it["version"] for it in document["frameworks"]] == ["2.13.0"]
    assert {it["spec"] for it in document["packages"]} == {"vllm==0.30.0", "numpy"}
    assert {"held-back", "not-pinned"} <= {it["code"] for it in document["notes"]}


def test_an_environment_file_has_the_wheel_that_no_index_has(here: World) -> None:
    target = ("--gpu", "RTX 4090", "--driver", OLD, "--python", "3.12", "--platform", "linux-64")
    done = here.envsolve("-f", "vllm", *target, "--source", "pytorch", "--source", "pypi", *here.network)
    pip = by_pip(done)
    assert pip["torch"] == "torch==2.13.0+cu129"
    assert pip["vllm"].startswith(f"vllm @ {here.server.url}/0.32.0/vllm-0.32.0%2Bcu129-")


@pytest.mark.thorough
def test_an_environment_file_without_a_compatible_framework_is_refused(here: World) -> None:
    done = environment(here, "-f", "vllm==0.30", "-f", "pytorch==2.15.*", "--driver", NEW)
    assert (done.code, done.out) == (1, "")
    assert "vllm 0.30.0 requires torch==2.13.0" in done.err


@pytest.mark.thorough
def test_a_project_with_an_environment_file_stays_valid(project: World) -> None:
    text = Path("pyproject.toml").read_text("utf-8").replace("requirements.txt", "environment.yml")
    text = text.replace("==0.30.*", "").replace(MIDDLE, NEW).replace("python = ", 'sources = ["pypi"]\npython = ')
    Path("pyproject.toml").write_text(text)
    cache = ("--cache-dir", "c")
    done = project.envsolve("lock", *cache)
    assert done.code == 0, done.err
    assert "vllm==0.33.0" in Path("environment.yml").read_text("utf-8")
    project.server.add("vllm", [vllm("0.34.0", "2.15.0")])
    assert project.envsolve("lock", "--check", "--refresh", *cache).code == 0
    assert project.envsolve("lock", "-U", "--refresh", *cache).code == 0
    assert "vllm==0.34.0" in Path("environment.yml").read_text("utf-8")
    assert "torch==2.15.0" in Path("environment.yml").read_text("utf-8")


def answer_to(here: World, *questions: str, framework: str = "vllm") -> str:
    target = ("--python", "3.12", "--platform", "linux-64", "--gpu", "RTX 4090", "--driver", NEW, "--source", "pypi")
    done = here.envsolve("-f", framework, *target, *here.network, *questions)
    assert done.code == 0, done.err
    return done.out


def test_why_is_about_the_compatible_stack(here: World) -> None:
    shown = answer_to(here, "--why", "pytorch", "--why", "vllm")
    assert shown.startswith("pytorch is pytorch 2.14.0 (pypi, cu130)\n")
    assert "torch 2.14.0 is used, not 2.15.0: vllm 0.33.0 requires torch==2.14.0" in shown
    assert "\nvllm is vllm 0.33.0\n" in shown
    assert "0.33.0 is the newest vllm that fits" in shown


@pytest.mark.thorough
def test_why_not_preserves_it_in_the_request(here: World) -> None:
    assert "the requirements for vllm and torch conflict" in answer_to(here, "--why-not", "pytorch==2.15.0")
    shown = answer_to(here, "--why-not", "pytorch==2.13.0")
    assert "vllm 0.32.0 with pytorch 2.13.0 (pypi, cu130)" in shown
    assert "also fits; the answer has vllm 0.33.0 with pytorch 2.14.0 (pypi, cu130)" in shown


@pytest.mark.thorough
def test_why_not_of_another_version_chooses_a_framework_for_it(here: World) -> None:
    shown = answer_to(here, "--why-not", "vllm==0.32.0")
    assert shown.startswith("vllm==0.32.0 fits\n  vllm 0.32.0 has a wheel for pytorch 2.13.0 (pypi, cu130)")


def test_why_not_replaces_the_requested_version(here: World) -> None:
    shown = answer_to(here, "--why-not", "vllm==0.32.0", framework="vllm==0.33.*")
    assert shown.startswith("vllm==0.32.0 fits\n")


def test_explain_uses_its_version(here: World) -> None:
    log = "ImportError: /x/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa"
    found = json.loads(here.envsolve("explain", "--json", "-f", "vllm==0.30.0", log).out)
    (finding,) = found["findings"]
    assert finding["cause"].startswith("vllm 0.30.0 needs a function")
    assert finding["commands"][-1] == "envsolve --framework vllm==0.30.0 --gpu auto"
    assert found["notes"] == []
    other = json.loads(
        here.envsolve("explain", "--json", "-f", "vllm", "-f", "jax", "jax: CUDA_ERROR_OUT_OF_MEMORY").out
    )
    assert other["notes"] == []
