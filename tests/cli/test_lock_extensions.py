"""Wheels with GPU code that are on no index: those of a project's own place, and third-party ones if allowed."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
import tomli

from envsolve import extension_sources
from envsolve.app.lock.lock_worlds import Chosen, Worlds
from envsolve.app.lock.target_search import TargetSearch
from envsolve.app.packages import wheel_ways
from envsolve.resolve.closure.newest import Answer, Newest
from envsolve.resolve.closure.resolve import TimeUpError
from tests.cli.locked import pins_in
from tests.cli.locking import undisturbed
from tests.cli.test_lock_installers import pip, uv
from tests.cli.worlds import CP311, fill, torch
from tests.conftest import Envsolve, Result
from tests.index.packages import IndexFile, sdist, wheel
from tests.index.server import IndexServer
from tests.index.shelf import Shelf
from tests.scripts.fat_binary import fat_binary

_OFFICIAL = """
id = "own"
title = "Fast Attention releases"
publisher = "Fast"
official = true
packages = ["flash-attn", "llama-cpp-python", "vllm"]
platforms = ["linux-64"]
[[listing]]
format = "html"
url = "{url}/own/{{lane}}/simple/{{project}}/"
lanes = ["cu118", "cu126", "cu130"]
[[name]]
label = 'cu(?P<cuda>1\\d)torch(?P<torch>\\d\\.\\d+)cxx11abi(?P<abi>TRUE|FALSE)'
cuda_from = "label"
torch_from = "label"
cuda_match = "major"
[[name]]
packages = ["vllm"]
label = 'cu(?P<cuda>1\\d\\d)'
cuda_from = "label"
torch_from = "metadata"
cuda_match = "minor"
[[name]]
packages = ["llama-cpp-python"]
label = ''
cuda_from = "page"
torch_from = "none"
cuda_match = "minor"
"""
_FLAT = """
id = "flat"
title = "A page for each PyTorch"
publisher = "Flat"
official = true
packages = ["kaolin"]
platforms = ["linux-64"]
[[listing]]
format = "html"
url = "{url}/flat/torch-{{torch_version}}_{{lane}}.html"
lanes = ["cu126", "cu130"]
torches = ["2.8.0", "2.15.0"]
[[name]]
label = ''
cuda_from = "page"
torch_from = "page"
cuda_match = "minor"
"""
_OTHER = """
id = "other"
title = "Somebody's wheels"
publisher = "Somebody Else"
official = false
packages = ["flash-attn", "sageattention", "sageattn3"]
platforms = ["linux-64"]
[[listing]]
format = "json"
url = "{url}/lists/releases.json"
rows = ["releases", "*", "assets", "*"]
file = ["name"]
address = ["browser_download_url"]
digest = ["digest"]
[[name]]
label = 'z?cu(?P<cuda>1\\d\\d)torch(?P<torch>\\d\\.\\d+)(cxx11abi(?P<abi>TRUE|FALSE))?'
cuda_from = "label"
torch_from = "label"
cuda_match = "minor"
"""
OLD, NEW = ("--driver", "535.183.01"), ("--driver", "580.65.06")


class World(NamedTuple):
    """The index, the places and the command."""

    envsolve: Envsolve
    server: IndexServer
    own: dict[str, Shelf]

    def __call__(self, *words: str, form: str = "requirements", code: int = 0) -> Result:
        where = ("--index-url", self.server.index_url, "--pytorch-index-url", f"{self.server.url}/whl")
        target = ("--platform", "linux-64", "--format", form, "--gpu", "8.6")
        python = () if "--python" in words else ("--python", "3.11.7")
        done = self.envsolve(*words, *python, *target, *where, "--cache-dir", "cache")
        assert done.code == code, done.err + done.out
        return done

    def typed(self, command: str) -> Result:
        """The result of a command that envsolve suggested."""
        done = self.envsolve(*shlex.split(command)[1:], "--cache-dir", "cache")
        assert done.code == 0, done.err
        return done

    def why_not(self, other: str, *words: str) -> tuple[str, list[str]]:
        """Why not ``other``, without the commands, and the framework in each command, which gives that result."""
        where = ("--index-url", self.server.index_url, "--pytorch-index-url", f"{self.server.url}/whl")
        target = ("--platform", "linux-64", "--gpu", "8.6", "--python", "3.11.7", "--cache-dir", "cache")
        done = self.envsolve(*words, *target, *where, "--why-not", other)
        assert done.code == 0, done.err
        commands = re.findall(r"^    (envsolve .*)$", done.out, re.MULTILINE)
        assert all("flash-attn @ " in self.typed(it).out for it in commands)
        text = re.sub(r"^    .*$", "    COMMAND", done.out, flags=re.MULTILINE)
        return text, [shlex.split(it)[2] for it in commands]

    def publishes(self, *files: IndexFile, of: str = "flash-attn") -> None:
        """List ``files`` as the other place does; they are on their own shelf."""
        shelf = self.server.index("/assets/simple/")
        shelf.add(of, files)
        rows = [
            {
                "name": it.name,
                "browser_download_url": f"{self.server.url}/assets/files/{of}/{quote(it.name)}",
                "digest": f"sha256:{it.sha256}",
            }
            for it in files
        ]
        body = json.dumps({"releases": [{"assets": rows}]}).encode()
        self.server.fault("/lists/releases.json", body=body, content_type="application/json")


def flash(version: str, label: str) -> IndexFile:
    return wheel("flash-attn", f"{version}+{label}", ["torch"], tags=CP311)


def _llama(version: str, lane: str) -> IndexFile:
    """A wheel as listed by a place that states no digest; each lane has other bytes under the same name."""
    file = wheel("llama-cpp-python", version, tags="py3-none-any", members={"llama_cpp/lane": lane.encode()})
    return file._replace(sha256=None)


def _sha256(file: IndexFile) -> str:
    assert file.content is not None
    return hashlib.sha256(file.content).hexdigest()


@pytest.fixture
def here(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    (tmp_path / "here").mkdir()
    undisturbed(monkeypatch, tmp_path / "here")
    with IndexServer(recorded=False) as server:
        fill(server)
        server.add("flash-attn", [sdist("flash-attn", "2.8.3", ["torch"]), sdist("flash-attn", "2.9.0", ["torch"])])
        own = {"cu126": "cu12torch2.8cxx11abiTRUE", "cu130": "cu13torch2.15cxx11abiTRUE"}
        shelves = {it: server.index(f"/own/{it}/simple/", "poor") for it in ("cu118", "cu126", "cu130")}
        for lane, label in own.items():
            shelf = shelves[lane]
            shelf.add("flash-attn", [flash("2.8.3", label)])
            shelf.add("vllm", [wheel("vllm", f"0.33.0+{lane}", ["torch>=2.8"], tags=CP311)])
        for name, text in {"own": _OFFICIAL, "other": _OTHER, "flat": _FLAT}.items():
            (tmp_path / f"{name}.toml").write_text(text.format(url=server.url))
        places = extension_sources.read_sources(tmp_path)
        monkeypatch.setattr(extension_sources, "_shipped", lambda: places)
        yield World(envsolve, server, shelves)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("driver", "version", "label"),
    [(OLD, "2.8.0", "cu12torch2.8cxx11abiTRUE"), (NEW, "2.15.0", "cu13torch2.15cxx11abiTRUE")],
)
def test_the_wheel_of_the_project_matches_the_stack_and_can_change_it(
    here: World, driver: tuple[str, str], version: str, label: str
) -> None:
    done = here("-f", "pytorch", "flash-attn", *driver)
    assert pins_in(done.out)["torch"] == version
    assert f"flash-attn @ {here.server.url}/" in done.out
    assert f"flash_attn-2.8.3%2B{label}" in done.out
    assert f"flash-attn 2.8.3+{label} is from Fast Attention releases, published by the project itself" in done.err


@pytest.mark.thorough
def test_wheels_of_third_parties_need_permission(here: World) -> None:
    here.publishes(flash("2.9.0", "cu130torch2.15"), flash("2.8.3", "cu130torch2.15"))
    assert "2.8.3%2Bcu13torch" in here("-f", "pytorch", "flash-attn", *NEW).out
    done = here("-f", "pytorch", "flash-attn", "--extensions", *NEW)
    assert "/assets/files/flash-attn/flash_attn-2.9.0%2Bcu130torch2.15" in done.out
    assert "published by Somebody Else" in done.err
    assert "# because: from Somebody's wheels, published by Somebody Else\n" in done.out
    assert "--extensions" in done.out.splitlines()[1]


def test_the_project_is_preferred_to_others_with_the_same_wheel(here: World) -> None:
    here.publishes(flash("2.8.3", "zcu130torch2.15"))  # a newer version than that of the project, by its label
    assert "/own/" in here("-f", "pytorch", "flash-attn", "--extensions", *NEW).out


@pytest.mark.thorough
def test_a_label_that_sorts_higher_does_not_limit_pytorch(here: World) -> None:
    here.publishes(flash("2.9.0", "zcu126torch2.8"), flash("2.9.0", "cu130torch2.15"))
    assert pins_in(here("-f", "pytorch", "flash-attn", "--extensions", *NEW).out)["torch"] == "2.15.0"


@pytest.mark.thorough
def test_an_index_with_a_wheel_is_preferred(here: World) -> None:
    here.server.add("flash-attn", [wheel("flash-attn", "2.9.0", ["torch"], tags=CP311)])
    here.publishes(flash("2.9.0", "cu130torch2.15"))
    found = pins_in(here("-f", "pytorch", "flash-attn", "--extensions", *NEW).out)
    assert found["flash-attn"] == "2.9.0"


@pytest.mark.thorough
def test_a_missing_digest_is_computed_once(here: World) -> None:
    file = flash("2.8.3", "cu13torch2.15cxx11abiTRUE")
    here.own["cu130"].add("flash-attn", [file._replace(sha256=None)])
    command = ("-f", "pytorch", "flash-attn", *NEW, "-o", "gpu.txt")
    here(*command)
    text = Path("gpu.txt").read_text("utf-8")
    assert f"sha256:{file.sha256}" in text
    assert here.server.count("*.whl") == 3  # its metadata, its code, and all of it for the digest
    here(*command)
    assert Path("gpu.txt").read_text("utf-8") == text
    assert here.server.count("*.whl") == 4  # its code again


@pytest.mark.thorough
def test_the_digest_of_the_file_counts_among_several_for_one_url(here: World) -> None:
    file = wheel("kaolin", "0.18.0", [], tags=CP311)
    here.server.fault(f"*/{file.name}", body=file.content or b"", content_type="application/zip")

    def listed(*digests: str) -> None:
        links = "".join(f'<a href="files/{file.name}#sha256={it}">{file.name}</a>' for it in digests)
        page = f"<!DOCTYPE html>{links}".encode()
        here.server.fault("/flat/torch-2.15.0_cu130.html", body=page, content_type="text/html", times=1)

    command = ("-f", "pytorch", "kaolin", *NEW, "--audit", "off", "--refresh")
    listed("", str(file.sha256), "b" * 64)
    done = here(*command)
    assert f"sha256:{file.sha256}" in done.out
    assert "b" * 64 not in done.out
    listed("", "a" * 64, "b" * 64)
    assert "has none of the digests that" in here(*command, code=3).err


@pytest.mark.thorough
def test_a_pylock_has_url_and_digest(here: World) -> None:
    lock = tomli.loads(here("-f", "pytorch", "flash-attn", *NEW, form="pylock").out)
    (found,) = [it for it in lock["packages"] if it["name"] == "flash-attn"]
    assert found["archive"]["url"].startswith(f"{here.server.url}/own/cu130/")
    assert set(found["archive"]["hashes"]) == {"sha256"}


@pytest.mark.thorough
@pytest.mark.parametrize(("driver", "lane"), [(OLD, "cu126"), (NEW, "cu130")])
def test_a_wheel_without_a_label_is_for_the_cuda_of_its_page(here: World, driver: tuple[str, str], lane: str) -> None:
    here.server.add("llama-cpp-python", [sdist("llama-cpp-python", "0.3.34", [])])
    for it in ("cu118", "cu126", "cu130"):
        here.own[it].add("llama-cpp-python", [_llama(version, it) for version in ("0.3.33", "0.3.34")])
    command = ("-f", "pytorch", "llama-cpp-python", *driver, "-o", "gpu.txt")
    done = here(*command)
    text = Path("gpu.txt").read_text("utf-8")
    (line,) = [it for it in text.splitlines() if it.startswith("llama-cpp-python @ ")]
    files = f"{here.server.url}/own/{lane}/files/llama-cpp-python"
    assert line == f"llama-cpp-python @ {files}/{_llama('0.3.34', lane).name} \\"
    assert f"sha256:{_sha256(_llama('0.3.34', lane))}" in text
    assert "note: llama-cpp-python 0.3.34 is from Fast Attention releases, published by the project itself" in done.err
    here.own[lane].add("llama-cpp-python", [_llama("0.3.35", lane)])
    here(*command, "numpy", "--refresh")
    assert line in Path("gpu.txt").read_text("utf-8")
    lock = tomli.loads(here("-f", "pytorch", "llama-cpp-python", *driver, form="pylock").out)
    (found,) = [it for it in lock["packages"] if it["name"] == "llama-cpp-python"]
    assert found["version"] == "0.3.35"


@pytest.mark.thorough
def test_a_source_distribution_built_for_the_cpu_by_default_gets_a_note(here: World) -> None:
    here.server.add("llama-cpp-python", [sdist("llama-cpp-python", "0.3.34", [])])
    text = "note: llama-cpp-python 0.3.34 is built for the CPU alone: for the GPU, install nvcc of CUDA "
    done = here("-f", "pytorch", "llama-cpp-python", *NEW)
    assert text in done.err
    assert " and set CMAKE_ARGS=-DGGML_CUDA=on for the installation\n" in done.err
    here.own["cu130"].add("llama-cpp-python", [_llama("0.3.34", "cu130")])
    assert text not in here("-f", "pytorch", "llama-cpp-python", *NEW, "--refresh").err


@pytest.mark.thorough
@pytest.mark.parametrize(("driver", "page"), [(OLD, "torch-2.8.0_cu126"), (NEW, "torch-2.15.0_cu130")])
def test_a_page_can_state_cuda_and_pytorch(here: World, driver: tuple[str, str], page: str) -> None:
    file = wheel("kaolin", "0.18.0", [], tags=CP311)
    for it in ("torch-2.8.0_cu126", "torch-2.15.0_cu130", "torch-2.15.0_cu126"):
        body = f'<!DOCTYPE html><a href="{it}/{file.name}#sha256={file.sha256}">{file.name}</a>'.encode()
        here.server.fault(f"/flat/{it}.html", body=body, content_type="text/html")
        here.server.fault(f"/flat/{it}/{file.name}", body=file.content or b"")
    assert f"kaolin @ {here.server.url}/flat/{page}/{file.name}" in here("-f", "pytorch", "kaolin", *driver).out


@pytest.mark.thorough
def test_a_source_is_only_queried_for_its_own_packages_and_not_for_the_cpu(here: World) -> None:
    here("-f", "pytorch", "numpy", "--extensions", *NEW)
    assert here.server.count("/own/*") == here.server.count("/lists/*") == 0


@pytest.mark.thorough
def test_dependencies_are_looked_up_too(here: World) -> None:
    here.server.add("attentive", [wheel("attentive", "1.0.0", ["flash-attn>=2.8"])])
    done = here("-f", "pytorch", "attentive", *NEW)
    assert "flash_attn-2.8.3%2Bcu13torch2.15" in done.out
    here.server.add("attentive", [wheel("attentive", "0.9.0", ["torch"])])  # an answer without flash-attn
    assert pins_in(here("-f", "pytorch", "attentive", "--refresh", *NEW).out)["attentive"] == "1.0.0"


@pytest.mark.thorough
def test_an_answer_that_took_all_the_time_is_not_given_up_for_wheels_found_later(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.server.add("reader", [wheel("reader", "1.0", ["torch", "flash-attn", "limited<2"], tags=CP311)])
    here.server.add("limited", [wheel("limited", "1.0"), wheel("limited", "2.0")])
    begun = 0

    def newer(self: Newest, name: str, found: Answer, *_: object) -> None:
        raise TimeUpError(found.provider)

    def best_in(search: TargetSearch, worlds: Worlds) -> Chosen | None:
        nonlocal begun
        begun += 1
        return original(search, worlds)

    original = TargetSearch.best_in
    monkeypatch.setattr(TargetSearch, "best_in", best_in)
    assert "/own/" in here("-f", "pytorch", "reader", "limited", *NEW).out
    assert begun == 2
    monkeypatch.setattr(Newest, "_newer", newer)
    done = here("-f", "pytorch", "reader", "limited", *NEW, "--allow-builds")
    assert "note: time ran out before newer versions of " in done.err
    assert begun == 3


@pytest.mark.thorough
def test_packages_unknown_to_every_index_are_looked_up_if_there_is_no_answer(here: World) -> None:
    here.server.add("attentive", [wheel("attentive", "1.0.0", ["llama-cpp-python"])])
    here.own["cu130"].add("llama-cpp-python", [_llama("0.3.34", "cu130")])
    assert "llama_cpp_python-0.3.34-" in here("-f", "pytorch", "attentive", *NEW).out


def test_an_unreachable_source_is_a_note(here: World) -> None:
    here.server.fault("/lists/*", status=500)
    done = here("-f", "pytorch", "flash-attn", "--extensions", *NEW)
    assert "note: could not read Somebody's wheels: wheels of flash-attn there were not considered (" in done.err


@pytest.mark.thorough
def test_an_error_names_unreachable_sources(here: World) -> None:
    here.server.fault("/own/*", status=500)
    refused = here("-f", "pytorch", "llama-cpp-python", *NEW, code=1)
    text = "could not read Fast Attention releases: wheels of llama-cpp-python there were not considered ("
    assert f"cause: {text}" in refused.err


@pytest.mark.thorough
def test_an_unreachable_source_does_not_matter_if_an_index_has_a_wheel(here: World) -> None:
    here.server.add("flash-attn", [wheel("flash-attn", "2.9.0", ["torch"], tags=CP311)])
    here.server.fault("/lists/*", status=500)
    assert "Somebody's wheels" not in here("-f", "pytorch", "flash-attn", "--extensions", *NEW).err


@pytest.mark.thorough
def test_a_lock_records_unreachable_sources(here: World) -> None:
    here.server.fault("/lists/*", status=500, times=2)
    command = ("-f", "pytorch", "flash-attn", "--extensions", *NEW, "-o", "pylock.toml")
    here(*command, form="pylock")
    made = tomli.loads(Path("pylock.toml").read_text("utf-8"))["tool"]["envsolve"]
    assert made["evidence"]["places_unread"] == ["flash-attn Somebody's wheels"]
    text = "Somebody's wheels could not be read when this was locked: wheels of flash-attn there were not considered"
    done = here.envsolve("status", "pylock.toml", "--gpu", "8.6", *NEW)
    assert f"{text} (-P flash-attn tries again)" in done.out + done.err
    here.publishes(flash("2.7.0", "cu130torch2.15"))
    here(*command, form="pylock")
    assert "places_unread" not in Path("pylock.toml").read_text("utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "label",
    [
        "cu126torch2.15",  # this PyTorch is for CUDA 13
        "cu128torch2.14",  # this one is for CUDA 12.6
        "cu126torch2.8cxx11abiFALSE",  # this one has the other ABI
        "cu124torch2.6cxx11abiTRUE",  # PyTorch 2.6 has it only in its build for CUDA 12.6
    ],
)
def test_a_wheel_for_another_pytorch_or_cuda_is_not_used(label: str, here: World) -> None:
    here.server.add("torch", [torch("2.6.0")])
    here.publishes(flash("2.9.0", label))
    assert "flash_attn-2.8.3%2B" in here("-f", "pytorch", "flash-attn", "--extensions", *NEW).out


@pytest.mark.thorough
def test_the_abi_of_pytorch_2_6_depends_on_its_build(here: World) -> None:
    here.server.add("torch", [torch("2.6.0")])
    here.publishes(flash("2.9.0", "cu124torch2.6cxx11abiFALSE"))
    assert "flash_attn-2.9.0%2B" in here("-f", "pytorch==2.6.*", "flash-attn", "--extensions", *NEW).out


@pytest.mark.thorough
def test_a_wheel_is_read_despite_its_name(here: World) -> None:
    members = {"sageattention/_C.so": fat_binary((90,))}
    here.server.add("sageattention", [sdist("sageattention", "2.2.0", ["torch"])])
    here.publishes(
        wheel("sageattention", "2.2.0+cu130torch2.15", ["torch"], tags=CP311, members=members), of="sageattention"
    )
    refused = here("-f", "pytorch", "sageattention", "--extensions", *NEW, code=1)
    assert "no known sageattention wheel has code for compute capability 8.6" in refused.err
    assert "sageattention 2.2.0: it has no wheel, only a source distribution" in refused.err
    assert "hint: allow building packages from source, which runs their code" in refused.err


@pytest.mark.thorough
def test_wheels_of_third_parties_are_mentioned(here: World) -> None:
    here.server.add("sageattention", [sdist("sageattention", "2.2.0", ["torch"])])
    assert "Somebody" not in here("-f", "pytorch", "sageattention", *NEW).err  # who has none there
    here.publishes(sage("cu130torch2.15"), of="sageattention")
    done = here("-f", "pytorch", "sageattention", *NEW)
    assert (
        "note: no wheel of sageattention 2.2.0 was found for pytorch 2.15.0 (pypi, cu132) and Python 3.11; with "
        "third-party wheels, pytorch 2.15.0 (pypi, cu132) and Python 3.11: sageattention 2.2.0+cu130torch2.15 from "
        "Somebody's wheels\n"
    ) in done.err
    (command,) = ways(done)
    assert "sageattention @ " in here.typed(command).out


def sage(label: str) -> IndexFile:
    return wheel("sageattention", f"2.2.0+{label}", ["torch"], tags=CP311)


def ways(done: Result) -> list[str]:
    """The commands of the suggestions with a published wheel."""
    lines = done.err.splitlines()
    return [after.strip() for line, after in pairwise(lines) if re.search(r"(^hint: |; )with .* from .*\S$", line)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["-f", "pytorch==2.14.*", "flash-attn"], "--framework 'pytorch==2.15.*'"),
        (["torch==2.14.0", "flash-attn"], "'torch==2.15.*' flash-attn"),
        (["-f", "pytorch", "flash-attn>2.8.3"], "flash-attn==2.8.3"),
        (["-f", "pytorch>=2.14", "--cuda", "12.*", "flash-attn"], "--cuda 13 "),
    ],
)
def test_next_to_a_source_distribution_the_smallest_change_with_a_wheel_is_suggested(
    words: list[str], changed: str, here: World
) -> None:
    here.server.add("torch", [torch("2.14.0")])
    done = here(*words, *NEW)
    assert "flash-attn==2.9.0" in done.out
    (command,) = ways(done)
    assert changed in command
    assert "flash-attn @ " in here.typed(command).out


def test_a_command_is_suggested_once(here: World) -> None:
    """A version with a published wheel is also one that would fit."""
    here.server.withdraw("flash-attn")
    here.server.add("flash-attn", [wheel("flash-attn", "2.7.0", ["torch==2.0.1"]), wheel("flash-attn", "2.9.0")])
    done = here("-f", "pytorch", "flash-attn==2.7.0", *NEW, code=1)
    assert [it.count("flash-attn==2.9.0") for it in re.findall("^  envsolve .*", done.err, re.MULTILINE)] == [1]
    assert len(ways(done)) == 1


@pytest.mark.thorough
def test_an_error_suggests_wheels_of_third_parties_and_stacks_with_project_wheels(here: World) -> None:
    """The one for the smaller change comes first."""
    here.server.add("torch", [torch("2.14.0")])
    here.server.withdraw("flash-attn")
    here.server.add("flash-attn", [wheel("flash-attn", "2.9.0", tags="cp311-cp311-win_amd64")])
    here.publishes(flash("2.8.3", "cu130torch2.14"))
    done = here("-f", "pytorch==2.14.0", "flash-attn", *NEW, code=1)
    allowing, newer = ways(done)
    assert (
        done.err
        == f"""\
error: no-wheel
  flash-attn cannot be installed on Python 3.11.7 on linux-64 with pytorch 2.14.0 (pypi, cu130): it has no wheel for \
this Python and platform
cause: the command line requires flash-attn
cause: flash-attn 2.9.0: it has no wheel for this Python and platform
hint: with third-party wheels, pytorch 2.14.0 (pypi, cu130) and Python 3.11: flash-attn 2.8.3+cu130torch2.14 from \
Somebody's wheels
  {allowing}
hint: with pytorch 2.15.0 (pypi, cu132) and Python 3.11: flash-attn 2.8.3+cu13torch2.15cxx11abiTRUE from Fast \
Attention releases
  {newer}
hint: no Python on linux-64 has wheels of flash-attn 2.9.0: require another version or another package
"""
    )
    assert "2.8.3%2Bcu130torch2.14-" in here.typed(allowing).out
    assert "2.8.3%2Bcu13torch2.15cxx11abiTRUE" in here.typed(newer).out


def test_why_not_solves_with_the_stack_of_the_answer(here: World) -> None:
    assert here.why_not("flash-attn", "-f", "pytorch", *NEW) == (
        """\
flash-attn fits
  flash-attn 2.8.3+cu13torch2.15cxx11abiTRUE has a wheel for pytorch 2.15.0 (pypi, cu132) and Python 3.11
  hint: to get flash-attn 2.8.3+cu13torch2.15cxx11abiTRUE
    COMMAND
""",
        ["pytorch==2.15.0"],
    )


@pytest.mark.thorough
def test_why_not_names_the_necessary_changes(here: World) -> None:
    here.server.add("torch", [torch("2.14.0")])
    here.publishes(flash("2.8.3", "cu126torch2.14"), flash("2.8.3", "cu126torch2.8"))
    assert here.why_not("flash-attn<2.9", "-f", "pytorch==2.14.0", *NEW) == (
        """\
flash-attn<2.9 does not fit
  flash-attn 2.8.3 has no wheel for pytorch 2.14.0 (pypi, cu130) and Python 3.11
  hint: with third-party wheels, pytorch 2.14.0 (pytorch, cu126) and Python 3.11: flash-attn 2.8.3+cu126torch2.14 from \
Somebody's wheels
    COMMAND
  hint: with pytorch 2.15.0 (pypi, cu132) and Python 3.11: flash-attn 2.8.3+cu13torch2.15cxx11abiTRUE from Fast \
Attention releases
    COMMAND
  hint: to compile flash-attn 2.8.3 for compute capability 8.6, install nvcc of CUDA 13.0 beside g++ and PyTorch
    COMMAND
  hint: then build it: its jobs need 9 GB of memory each and follow the free memory; 64 cores take 3 to 5 minutes
    COMMAND
""",
        ["pytorch==2.14.0", "pytorch==2.15.*"],
    )


def test_why_not_reports_that_no_stack_helps(here: World) -> None:
    text, commands = here.why_not("flash-attn", "-f", "pytorch", "--gpu", "7.5", *NEW)
    assert "flash-attn cannot run on the GPU, for Python 3.11.7 on linux-64 with pytorch 2.15.0 (pypi, cu132)\n" in text
    assert re.search(r"^  flash-attn.* has no code for compute capability 7\.5$", text, re.MULTILINE), text
    assert commands == []
    refused = here.envsolve("-f", "pytorch", "--gpu", "none", "--why-not", "flash-attn", "--platform", "linux-64")
    assert "the answer is a CPU environment, and flash-attn has code for GPUs" in refused.err


def compiling(done: Result) -> str:
    """The notes, or the hints, with the commands that compile."""
    found = re.search(r"^(note|hint): to compile .*\n.*\n\1: then build it.*\n.*\n", done.err, re.MULTILINE)
    return found[0] if found else ""


def test_a_locked_source_distribution_comes_with_the_commands_to_compile_it(here: World) -> None:
    here.server.add("torch-scatter", [sdist("torch-scatter", "2.1.2")])
    expected = """\
note: to compile torch-scatter 2.1.2 for compute capability 8.6, 9.0, install nvcc of CUDA 13.2 beside g++ and PyTorch
  pip install 'cuda-toolkit[nvcc]==13.2.*' nvidia-cuda-cccl ninja setuptools wheel
note: then build it
  export CUDA_HOME="$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13" && \
ln -sf libcudart.so.13 "$CUDA_HOME/lib/libcudart.so" && \
FORCE_CUDA=1 TORCH_CUDA_ARCH_LIST='8.6;9.0' pip install --no-build-isolation torch-scatter==2.1.2
"""
    assert compiling(here("-f", "pytorch", "torch-scatter", "--gpu", "9.0", *NEW)) == expected


@pytest.mark.thorough
def test_nvcc_of_cuda_12_comes_from_conda_forge(here: World) -> None:
    expected = """\
note: to compile flash-attn 2.9.0 for compute capability 8.6, install nvcc of CUDA 12.6 beside g++ and PyTorch
  conda create -p ./cuda-12.6 -c conda-forge cuda-version=12.6 cuda-nvcc cuda-libraries-dev && \
pip install ninja packaging psutil setuptools wheel
note: then build it: its jobs need 9 GB of memory each and follow the free memory; 64 cores take 3 to 5 minutes
  export CUDA_HOME="$PWD/cuda-12.6" CPATH="$PWD/cuda-12.6/targets/x86_64-linux/include" && \
FLASH_ATTENTION_FORCE_BUILD=TRUE FLASH_ATTN_CUDA_ARCHS=80 pip install --no-build-isolation flash-attn==2.9.0
"""
    assert compiling(here("-f", "pytorch==2.7.*", "flash-attn", *OLD)) == expected


def test_the_build_gets_variables_and_a_library_to_link(here: World, tmp_path: Path) -> None:
    """A shell runs the command; ``pip`` and ``python`` are replaced."""
    here.server.add("torch-scatter", [sdist("torch-scatter", "2.1.2")])
    command = compiling(here("-f", "pytorch", "torch-scatter", *NEW)).splitlines()[-1]
    library = tmp_path / "site" / "nvidia" / "cu13" / "lib"
    library.mkdir(parents=True)
    (library / "libcudart.so.13").write_text("cudart")
    programs = {"pip": 'echo "$*" "$CUDA_HOME" $FORCE_CUDA $TORCH_CUDA_ARCH_LIST', "python": f"echo {tmp_path}/site"}
    for name, does in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", command], env=path, capture_output=True, text=True, check=True)
    assert done.stdout == f"install --no-build-isolation torch-scatter==2.1.2 {library.parent} 1 8.6\n"
    assert (library / "libcudart.so").read_text() == "cudart"


@pytest.mark.thorough
@pytest.mark.parametrize("years", [0, 6])
def test_an_error_about_a_source_distribution_explains_how_to_compile_it(years: int, here: World) -> None:
    """However old the other requested packages are."""
    times = (f"{2026 - years}-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
    here.server.add("wide", [wheel("wide", version, upload_time=it) for version, it in zip("12", times, strict=True)])
    here.server.add("torch", [wheel("torch", "2.15.0", tags=CP311.replace("311", "312"))])
    done = here("-f", "pytorch==2.15.*", "flash-attn<2.9", "wide", *NEW, "--python", "3.12", code=1)
    assert compiling(done).startswith("hint: to compile flash-attn 2.8.3 for compute capability 8.6, ")


def test_sources_without_code_for_a_gpu_are_not_compiled(here: World) -> None:
    here.server.add("mamba-ssm", [sdist("mamba-ssm", "2.3.2.post1", ["torch"])])
    assert compiling(here("-f", "pytorch==2.7.*", "mamba-ssm", *OLD)) != ""
    assert compiling(here("-f", "pytorch==2.7.*", "mamba-ssm", "--gpu", "6.1", *OLD)) == ""


@pytest.mark.thorough
def test_another_python_with_a_wheel_is_suggested(here: World) -> None:
    here.server.add("torch", [wheel("torch", "2.15.0", tags=CP311.replace("311", "312"))])
    done = here("-f", "pytorch", "flash-attn", *NEW, "--python", "3.12", code=1)
    (command,) = ways(done)
    assert "--python 3.11 " in command
    assert "flash-attn @ " in here.typed(command).out


@pytest.mark.thorough
def test_a_project_gets_a_hint_with_the_key(here: World) -> None:
    here.publishes(wheel("sageattn3", "1.0+cu130torch2.15", ["torch"], tags=CP311), of="sageattn3")
    here.server.add("sageattn3", [wheel("sageattn3", "1.0", tags="cp311-cp311-win_amd64")])
    Path("pyproject.toml").write_text(
        f"""
        [tool.envsolve]
        frameworks = ["pytorch==2.8.*"]
        requirements = ["sageattn3"]
        extensions = true
        python = "3.11"
        gpus = ["8.6"]
        driver = "580.65.06"
        platforms = ["linux-64"]
        index-url = "{here.server.index_url}"
        pytorch-index-url = "{here.server.url}/whl"
        outputs = ["requirements.txt"]
        """
    )
    done = here.envsolve("lock", "--cache-dir", "cache")
    assert (
        "hint: with pytorch 2.15.0 (pypi, cu132) and Python 3.11: sageattn3 1.0+cu130torch2.15 from Somebody's wheels: "
        'frameworks = ["pytorch==2.15.*"] in pyproject.toml\n'
    ) in done.err


@pytest.mark.thorough
def test_a_stack_with_the_required_pytorch_is_suggested(here: World) -> None:
    here.server.add("sageattention", [wheel("sageattention", "2.2.0", ["torch==2.8.0"], tags=CP311)])
    done = here("-f", "pytorch==2.15.*", "sageattention", *NEW, code=1)
    assert done.err.startswith("error: packages-conflict\n")
    (command,) = ways(done)
    assert "with pytorch 2.8.0 (pypi, cu128) and Python 3.11: sageattention 2.2.0 from http" in done.err
    assert pins_in(here.typed(command).out)["sageattention"] == "2.2.0"


@pytest.mark.thorough
def test_packages_without_wheels_for_any_stack_are_not_suggested(here: World) -> None:
    here.server.add("sageattn3", [wheel("sageattn3", "2.2.0", tags="cp311-cp311-win_amd64")])
    here.publishes(sage("cu130torch2.15"), of="sageattention")
    refused = here("-f", "pytorch==2.15.*", "sageattn3", *NEW, code=1)
    assert ways(refused) == []
    assert "Somebody" not in refused.err


def test_nothing_is_suggested_that_was_not_solved_in_time(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    here.server.add("torch", [torch("2.14.0")])
    monkeypatch.setattr(wheel_ways, "_SECONDS", 0)
    assert ways(here("-f", "pytorch==2.14.0", "flash-attn", *NEW)) == []


@pytest.mark.thorough
def test_nothing_is_suggested_from_an_unreachable_source(here: World) -> None:
    here.server.add("torch", [torch("2.14.0")])
    here.server.fault("/own/*", status=500)
    assert ways(here("-f", "pytorch==2.14.0", "flash-attn", *NEW)) == []


def test_exact_requests_are_not_replaced_by_other_builds(here: World) -> None:
    here.server.add("torch", [torch("2.14.0")])
    assert ways(here("-f", "pytorch==2.14.0", "flash-attn", "--allow-builds", *NEW)) == []


def test_a_gpu_without_code_is_the_reason_for_every_stack(here: World) -> None:
    done = here("-f", "pytorch==2.15.*", "flash-attn", "--gpu", "7.5", *NEW, code=1)
    assert (
        "error: gpu-not-supported\n  flash-attn cannot run on the GPU, for Python 3.11.7 on linux-64 with" in done.err
    )
    assert "cause: flash-attn>=2.7.3 has no code for compute capability 7.5" in done.err
    assert done.err.count("hint: ") == done.err.count("hint: leave out flash-attn: no other PyTorch") == 1


@pytest.mark.thorough
def test_code_for_new_gpus_needs_a_wheel_built_with_a_new_cuda(here: World) -> None:
    """setup.py of flash-attn compiles for 12.0 from CUDA 12.8 on."""
    here.publishes(flash("2.8.4", "cu126torch2.8"), flash("2.8.5", "cu130torch2.15"))
    words = ("-f", "pytorch", "flash-attn", "--extensions", *NEW)
    assert "2.8.5%2Bcu130torch2.15" in here(*words, "--gpu", "12.0").out
    assert "2.8.4%2Bcu126torch2.8" in here(*words, "--cuda", "12.*").out
    assert "2.8.3%2Bcu12torch2.8" in here(*words, "--gpu", "12.0", "--cuda", "12.*").out


@pytest.mark.thorough
def test_a_project_wheel_for_another_cuda_is_used_if_that_of_the_index_does_not_run(here: World) -> None:
    """vLLM's wheels on the index are for CUDA 13, and those for CUDA 12 on its own pages."""
    here.server.add("vllm", [wheel("vllm", "0.33.0", ["torch>=2.8"], tags=CP311)])
    assert "vllm @ " in here("-f", "pytorch", "vllm", *OLD).out
    assert pins_in(here("-f", "pytorch", "vllm", *NEW).out)["vllm"] == "0.33.0"


def test_a_conda_answer_has_no_such_wheels(here: World) -> None:
    done = here.envsolve("-f", "pytorch", "flash-attn", "--extensions", "--gpu", "8.6", *NEW)
    assert done.code == 0
    assert "note: --extensions is ignored: only Python locks have wheels that are on no index" in done.err
    assert "--format pylock --extensions flash-attn" in done.err


@pytest.mark.thorough  # installers judge the lock
def test_pip_and_uv_install_the_wheel_from_the_lock_alone(here: World) -> None:
    here.publishes(flash("2.9.0", "cu130torch2.15"))
    command = ("-f", "pytorch", "flash-attn", "--extensions", *NEW)
    requirements, pylock = Path("requirements.txt").absolute(), Path("pylock.toml").absolute()
    here(*command, "-o", str(requirements))
    here(*command, "-o", str(pylock), form="pylock")
    text = requirements.read_text("utf-8")
    (address,) = [line.split()[2] for line in text.splitlines() if line.startswith("flash-attn @ ")]
    assert pip(requirements, "--require-hashes") == pins_in(text) | {"flash-attn": "2.9.0+cu130torch2.15"}
    assert uv(requirements, "sync", "--require-hashes") == pins_in(text) | {"flash-attn": address}
    assert uv(pylock, "sync") == pins_in(text) | {"flash-attn": address}
