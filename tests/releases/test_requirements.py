"""Requires-Dist in the terms of the matrix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.releases.requirements import (
    CudaReleases,
    applies_on,
    extras,
    header,
    only_version,
    requirements,
    specifier_text,
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("texts", "admitted"),
    [
        (["cuda-toolkit[cublas,cudart]==13.0.2"], "==13.0"),
        (["cuda-toolkit==13.0.*"], "==13.0"),
        (["cuda-toolkit>=12.8,<13"], ">=12.8,<13"),
        (["cuda-toolkit>=12.5,<12.9"], ">=12.5,<12.9"),
        (["nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cublas-cu12==12.4.5.8"], "==12.4"),
        (["nvidia_cuda_runtime_cu11==11.7.99"], "==11.7"),
        (["nvidia-cublas-cu12>=12.5.3.2", "nvidia-cufft-cu12>=11.2.3.61"], ">=12.5,<13"),
        (["nvidia-cublas-cu12>=12.4.5.8,<13", "nvidia-cufft-cu12==11.3.3.83"], "==12.8"),
        (["nvidia-cublas-cu12>=12.4,<12.6"], ">=12.4,<12.6"),
        (["nvidia-cublas>=13.1"], ">=13.0,<14"),
        (["nvidia-cublas-cu12>=12.8", "nvidia-cuda-nvcc-cu12>=12.9", "nvidia-cudnn-cu12>=9.8,<10"], ">=12.8,<13"),
        (["nvidia-cublas-cu12==12.8.4.1", "nvidia-cufft-cu12==11.4.1.4"], None),
        (["nvidia-cublas-cu12>=99"], None),
        (["numpy"], None),
        ([], None),
    ],
)
def test_requirements_of_a_wheel_become_toolkits(
    texts: list[str], admitted: str | None, cuda_releases: CudaReleases
) -> None:
    assert cuda_releases.admitted(requirements(texts)) == admitted


@pytest.mark.parametrize(
    ("texts", "admitted"),
    [
        (["cuda-toolkit==13.1.0"], "==13.1"),
        (["cuda-toolkit==12.9.*"], "==12.9"),
        (["nvidia-cuda-runtime-cu12==12.9.*", "nvidia-cublas-cu12==12.9.*"], "==12.9"),
        (["nvidia-cublas-cu12~=12.9.1"], "==12.9"),
    ],
)
def test_a_pin_of_the_newest_toolkit_admits_no_later_one(
    texts: list[str], admitted: str, cuda_releases: CudaReleases
) -> None:
    assert cuda_releases.admitted(requirements(texts)) == admitted


@pytest.mark.parametrize("text", ["cuda-toolkit==13.*", "cuda-toolkit~=13.0", "cuda-toolkit>=13.0,<14"])
def test_a_major_without_a_minor_stays_open_up_to_the_next(text: str, cuda_releases: CudaReleases) -> None:
    assert cuda_releases.admitted(requirements([text])) == ">=13.0,<14"


@pytest.mark.parametrize(
    ("specifier", "text"),
    [
        ("<10.0,>=9.3.0.75", ">=9.3.0.75,<10"),
        ("==9.10.2.21", "==9.10.2.21"),
        ("<13.0,!=12.6.1,>=12.5", "!=12.6.1,>=12.5,<13"),
        ("<12.9.1", "<12.9.1"),
        ("", ""),
    ],
)
def test_a_specifier_is_written_lower_bound_first(specifier: str, text: str) -> None:
    assert specifier_text(SpecifierSet(specifier)) == text


@pytest.mark.parametrize(
    ("specifier", "version"), [("==9.1", "9.1"), ("==9.*", None), (">=9", None), ("==9.1,!=9.2", None), ("", None)]
)
def test_only_an_exact_pin_gives_a_version(specifier: str, version: str | None) -> None:
    assert only_version(SpecifierSet(specifier)) == version


@pytest.mark.parametrize(
    ("marker", "platforms"),
    [
        ('platform_system == "Linux"', {"linux-64", "linux-aarch64"}),
        ('platform_system == "Linux" and platform_machine == "x86_64"', {"linux-64"}),
        ('sys_platform == "win32"', {"win-64"}),
        ('platform_machine == "AMD64"', {"win-64"}),
        ('sys_platform == "darwin" and platform_machine == "arm64"', {"osx-arm64"}),
        ('python_version < "3.12"', set()),
        ('python_full_version >= "3.12.0"', {"linux-64", "linux-aarch64", "win-64", "osx-64", "osx-arm64"}),
        ('extra == "gpu"', set()),
    ],
)
def test_a_marker_holds_on_its_platforms(marker: str, platforms: set[str]) -> None:
    (requirement,) = [it for extra in (None, "gpu") for it in requirements([f"thing; {marker}"], extra=extra)]
    known = ("linux-64", "linux-aarch64", "win-64", "osx-64", "osx-arm64")
    assert {it for it in known if applies_on(requirement, it, ("3.9", "3.12"))} == platforms


def test_a_requirement_without_a_marker_holds_everywhere() -> None:
    assert all(applies_on(it, None, ()) for it in requirements(["numpy>=1.26"]))


def test_requirements_of_an_extra_are_separate() -> None:
    lines = ["numpy", 'nvidia-cudnn-cu12>=9; extra == "and_cuda"', "torch; extra=='other'", "not a requirement at all"]
    assert [it.name for it in requirements(lines)] == ["numpy"]
    assert [it.name for it in requirements(lines, extra="and-cuda")] == ["nvidia-cudnn-cu12"]
    assert extras(lines) == {"and-cuda", "other"}


@pytest.mark.thorough
def test_markers_are_parsed_in_several_threads_at_once() -> None:
    """Before 3.11.8 Python's parser raises SystemError if a collection lets another thread into it."""
    child = Path(__file__).parent / "child_threads.py"
    ran = subprocess.run([sys.executable, str(child)], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == (f"{9 * 4 * 60}\n", "")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_header_ends_where_the_description_begins(newline: str) -> None:
    text = newline.join(["Name: thing", "requires-dist: numpy", "Requires-Dist: scipy", "", "Requires-Dist: nothing"])
    assert header(text, "Requires-Dist") == ["numpy", "scipy"]
    assert header(text, "Name") == ["thing"]
