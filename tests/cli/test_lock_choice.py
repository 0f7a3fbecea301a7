"""Locks where the requirements decide the framework, the Python and each other: everything at its newest."""

from __future__ import annotations

import json
import re
import shlex
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.locked import pins_in, reasons_in
from tests.cli.worlds import LINUX, torch
from tests.conftest import Envsolve, Result
from tests.index.packages import IndexFile, sdist, wheel
from tests.index.server import IndexServer
from tests.resolve.closure.test_builds import PYPROJECT

TARGET = ("--gpu", "8.9", "--driver", "580.95.05", "--platform", "linux-64", "--no-cache")
OLD_DRIVER = ("--driver", "550.54.15")
GLIBC_2_38 = "manylinux_2_38_x86_64"
GLIBC_WHEEL = f"cp312-cp312-{GLIBC_2_38}"
CP311, CP312 = (f"cp3{minor}-cp3{minor}-{LINUX}" for minor in (11, 12))
OLD, NEWER, NEW = "2020-03-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-10-01T00:00:00Z"


def dated(name: str, version: str, time: str, requires: tuple[str, ...] = (), **more: str) -> IndexFile:
    return wheel(name, version, requires, upload_time=time, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _packages(world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch 2.15.0 and 2.8.0 for two Pythons, and packages whose newest releases have requirements."""
    cuda_12 = ("nvidia-cublas-cu12==12.6.4.1", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5")
    world.add("torch", [torch("2.15.0", tags=CP311), torch("2.15.0", tags=CP312), torch("2.8.0", *cuda_12, tags=CP312)])
    world.add("pins", [dated("pins", "1.0", OLD, ("torch>=2",)), dated("pins", "2.0", NEW, ("torch==2.8.0",))])
    world.add("compiled", [dated("compiled", "1.0", OLD), dated("compiled", "2.0", NEW, tags=CP311)])
    world.add("base", [dated("base", "1.0", OLD), dated("base", "2.0", NEW)])
    world.add("deep", [dated("deep", "1.0", NEWER, ("torch",)), dated("deep", "2.0", NEW, ("torch", "base>=2"))])
    world.add("above", [dated("above", "1.0", NEWER), dated("above", "2.0", NEW, ("base<2",))])
    kit = ("engine; python_version < '3.12' and extra == 'gpu'",)
    world.add("kit", [dated("kit", "1.0", OLD), wheel("kit", "2.0", kit, extras=["gpu"], upload_time=NEW)])
    world.add("engine", [dated("engine", "1.0", NEW)])
    world.add("relic", [dated("relic", "1.0", OLD), dated("relic", "2.0", NEW, ("nowhere-to-be-had",))])
    world.add("late", [dated("late", "1.0", NEWER), dated("late", "2.0", NEW, ("nowhere-to-be-had",))])
    world.add("xformers", [dated("xformers", "0.0.35", NEW, ("torch",))])
    world.add("torchcodec", [dated("torchcodec", "0.7.0", NEWER), dated("torchcodec", "0.17.0", NEW)])
    world.add("bitsandbytes", [dated("bitsandbytes", "0.47.0", NEW, ("torch",))])
    world.add("pandas", [dated("pandas", "2.0.3", NEW, ("numpy",))])
    world.add("numpy", [dated("numpy", "1.26.4", NEWER), dated("numpy", "2.4.6", NEW)])
    world.add("foreign", [dated("foreign", "1.0", NEW, tags=CP311)])
    world.add("other", [dated("other", "1.0", NEW, tags=CP312)])
    source = sdist("source", "2.0", upload_time=NEW)
    world.add("source", [dated("source", "1.0", NEWER), dated("source", "2.0", NEW, tags=CP311), source])
    of_extras = ("torch>=2.10,<3; extra == 'torch'", "torch>=2.4; extra == 'all'")
    other_extras = ("torch>=9; extra == 'dev'", "torch<2; extra == 'torch'", "base>=9; extra == 'torch'")
    marked = ("torch>=9; extra == 'torch' and python_version < '3'", "jax>=9; extra == 'jax'")
    world.add("optional", [dated("optional", "1.0", NEWER), dated("optional", "2.0", NEW, of_extras)])
    world.add("permissive", [dated("permissive", "1.0", NEWER), dated("permissive", "2.0", NEW, other_extras + marked)])
    world.add("strict", [dated("strict", "1.0", NEW, ("relic<2",))])
    monkeypatch.chdir(tmp_path)


def lock(envsolve: Envsolve, world: IndexServer, *words: str) -> Result:
    return envsolve(*TARGET, "--format", "requirements", "--index-url", world.index_url, *words)


class Case(NamedTuple):
    """The request, the Python of the lock, and some of its pins; None for a package that the lock does not have."""

    words: tuple[str, ...]
    python: str
    pins: dict[str, str | None]


CASES = {
    "a framework by itself is at its newest": Case(("-f", "pytorch"), "3.14", {"torch": "2.15.0"}),
    "a package that pins torch moves torch": Case(("-f", "pytorch", "pins"), "3.12", {"pins": "2.0", "torch": "2.8.0"}),
    "also where nobody named the framework": Case(("pins",), "3.12", {"pins": "2.0", "torch": "2.8.0"}),
    "a package that pins torch stays old where torch is pinned": Case(
        ("-f", "pytorch==2.15.*", "pins"), "3.12", {"pins": "1.0", "torch": "2.15.0"}
    ),
    "a package without a wheel for the newest Python moves the Python": Case(
        ("-f", "pytorch", "compiled"), "3.11", {"compiled": "2.0", "torch": "2.15.0"}
    ),
    "a Python that is named stays": Case(
        ("-f", "pytorch", "compiled<3", "--python", "3.12"), "3.12", {"compiled": "1.0", "torch": "2.15.0"}
    ),
    "what depends on a framework comes before what does not": Case(
        ("-f", "pytorch", "above", "deep"), "3.12", {"deep": "2.0", "above": "1.0", "base": "2.0"}
    ),
    "an extra that a marker empties moves the Python": Case(
        ("-f", "pytorch", "kit[gpu]"), "3.11", {"kit": "2.0", "engine": "1.0"}
    ),
    "an extra that nothing ever had is left out": Case(("-f", "pytorch", "kit[cpu]"), "3.12", {"kit": "2.0"}),
    "a build that loads the libraries of another CUDA moves the framework": Case(
        ("-f", "pytorch", "xformers"), "3.12", {"xformers": "0.0.35", "torch": "2.8.0"}
    ),
    "a build that was made for one PyTorch stays with it": Case(
        ("-f", "pytorch==2.8.*", "torchcodec"), "3.12", {"torchcodec": "0.7.0", "torch": "2.8.0"}
    ),
    "a build for NumPy 1 gets NumPy 1": Case(
        ("-f", "pytorch", "pandas", "numpy>=1"), "3.12", {"pandas": "2.0.3", "numpy": "1.26.4"}
    ),
    "what a marker leaves out on the target decides nothing": Case(
        ("-f", "pytorch", "base", "foreign; sys_platform == 'win32'"), "3.12", {"base": "2.0", "foreign": None}
    ),
    "source of a version with wheels for another Python is the last resort": Case(
        ("-f", "pytorch", "source", "other", "--allow-builds"), "3.12", {"source": "1.0", "other": "1.0"}
    ),
    "but not where the Python is named": Case(
        ("-f", "pytorch", "source", "--allow-builds", "--python", "3.12"), "3.12", {"source": "2.0"}
    ),
    "an extra named like the framework says how old the framework may be": Case(
        ("-f", "pytorch==2.8.*", "optional"), "3.12", {"optional": "1.0", "torch": "2.8.0"}
    ),
    "and takes nothing from a lock where it is met": Case(
        ("-f", "pytorch", "optional"), "3.12", {"optional": "2.0", "torch": "2.15.0"}
    ),
    "nor from one without the framework": Case(
        ("optional", "pandas", "--python", "3.12"), "3.12", {"optional": "2.0", "torch": None}
    ),
    "other extras, upper bounds and other packages in it say nothing": Case(
        ("-f", "pytorch==2.8.*", "permissive"), "3.12", {"permissive": "2.0", "torch": "2.8.0"}
    ),
    "an override of the framework replaces it": Case(
        ("-f", "pytorch", "optional>=2", "--override", "torch==2.8.*"), "3.12", {"optional": "2.0", "torch": "2.8.0"}
    ),
    "exact versions of both are what the user wants, however they are written": Case(
        ("-f", "pytorch==2.8.0", "optional==2.0"), "3.12", {"optional": "2.0", "torch": "2.8.0"}
    ),
    "as requirements, too": Case(("torch==2.8.0", "optional==2.0"), "3.12", {"optional": "2.0", "torch": "2.8.0"}),
    "what a package wants in an old version may be old": Case(
        ("-f", "pytorch", "strict", "relic"), "3.12", {"strict": "1.0", "relic": "1.0"}
    ),
}
CASES["a framework by itself is at its newest"] = CASES["a framework by itself is at its newest"]._replace(
    words=("-f", "pytorch", "--python", "<3.13"), python="3.12"
)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_requested_packages_are_at_their_newest(name: str, envsolve: Envsolve, world: IndexServer) -> None:
    case = CASES[name]
    done = lock(envsolve, world, *case.words)
    assert done.code == 0, done.err
    pins = pins_in(done.out)
    assert {it: pins.get(it) for it in case.pins} == case.pins
    assert f'\n# python = "{case.python}.0"\n' in done.out


@pytest.mark.thorough
def test_a_failed_build_is_also_reported_beside_a_framework(envsolve: Envsolve, world: IndexServer) -> None:
    members = {"pyproject.toml": PYPROJECT, "backend.py": b"import a_module_of_tomorrow\n"}
    world.add("broken", [sdist("broken", "1.0", static=False, members=members)])
    done = lock(envsolve, world, "-f", "pytorch", "broken", "--allow-builds")
    assert (done.code, done.err.splitlines()[0]) == (3, "error: build-failed")
    assert "No module named 'a_module_of_tomorrow'" in done.err


@pytest.mark.thorough
def test_json_describes_the_lock_with_all_its_packages(envsolve: Envsolve, world: IndexServer) -> None:
    words = ("-f", "pytorch==2.8.*", "base")
    document = json.loads(lock(envsolve, world, *words, "--json").out)
    assert {it["name"]: it["version"] for it in document["packages"]} == pins_in(lock(envsolve, world, *words).out)
    assert [it["version"] for it in document["frameworks"]] == ["2.8.0"]


@pytest.mark.thorough
@pytest.mark.parametrize("words", [("deep", "above"), ("pins", "above", "kit[gpu]")])
def test_the_order_of_the_command_line_does_not_matter(
    words: tuple[str, ...], envsolve: Envsolve, world: IndexServer
) -> None:
    answers = [lock(envsolve, world, "-f", "pytorch", *order) for order in permutations(words)]
    assert [it.code for it in answers] == [0] * len(answers)
    assert len({str(sorted(pins_in(it.out).items())) for it in answers}) == 1


@pytest.mark.thorough
def test_an_existing_lock_preserves_its_versions(envsolve: Envsolve, world: IndexServer) -> None:
    file = ("-o", "requirements.txt")
    first = lock(envsolve, world, "-f", "pytorch==2.15.*", "pins", "--python", "3.12", *file)
    assert first.code == 0, first.err
    assert lock(envsolve, world, "-f", "pytorch", "pins", "--python", "3.12", *file).code == 0
    assert pins_in(Path("requirements.txt").read_text(encoding="utf-8"))["pins"] == "1.0"
    assert lock(envsolve, world, "-f", "pytorch", "pins", "--python", "3.12", "--upgrade", *file).code == 0
    assert pins_in(Path("requirements.txt").read_text(encoding="utf-8"))["pins"] == "2.0"


@pytest.mark.thorough
def test_a_framework_below_its_newest_version_is_reported_with_the_reason(
    envsolve: Envsolve, world: IndexServer
) -> None:
    done = lock(envsolve, world, "-f", "pytorch", "pins")
    assert "note: torch 2.8.0 is used, not 2.15.0: pins 2.0 requires torch==2.8.0\n" in done.err


def test_a_reason_that_admits_newer_versions_is_not_the_only_one(envsolve: Envsolve, world: IndexServer) -> None:
    world.add("torch", [torch("2.13.0", tags=CP312)])
    world.add("trainer", [dated("trainer", "2.0", NEW, ("torch<2.15", "xformers"))])
    world.add("base", [dated("base", "1.0", OLD), dated("base", "2.0", NEWER, ("nowhere",)), dated("base", "3.0", NEW)])
    world.add("above", [dated("above", "2.0", NEW, ("base<3",))])
    done = lock(envsolve, world, "-f", "pytorch", "trainer", "above>=2", "base")
    loads = "xformers<=0.0.35,>=0.0.33.post1 loads the libraries of CUDA 12, this stack has CUDA 13.0"
    limit = "trainer 2.0 requires torch<2.15"
    assert f"note: torch 2.8.0 is used, not 2.15.0: {limit}, and 2.13.0 does not fit: {loads}\n" in done.err
    limit, conflict = "above 2.0 requires base<3", "no package index has nowhere"
    assert f"note: base 1.0 is 79 months older than 3.0: {limit}, and 2.0 does not fit: {conflict}" in done.err


def test_the_second_reason_is_not_the_first_one_again(envsolve: Envsolve, world: IndexServer) -> None:
    """The matrix has torchcodec 0.7 for PyTorch 2.8, 0.10 for 2.10, and 0.17 as a build for CUDA 13."""
    world.add("torch", [torch("2.10.0", "nvidia-cublas-cu12==12.8.4.1", tags=CP312)])
    world.add("torchcodec", [dated("torchcodec", "0.10.0", NEW)])
    done = lock(envsolve, world, "-f", "pytorch", "pins", "torchcodec", "--cuda", "12.*")
    loads = "torchcodec<=0.17.0,>=0.14.0 loads the libraries of CUDA 13, this stack has CUDA 12.8"
    why = "torchcodec 0.10.0 requires torch==2.10.*, as the matrix says; its metadata do not"
    assert f"torchcodec 0.7.0 is 8 months older than 0.17.0: {loads}, and 0.10.0 does not fit: {why}\n" in done.err


def test_what_the_matrix_says_of_a_build_is_not_a_bound_to_ignore(envsolve: Envsolve, world: IndexServer) -> None:
    done = lock(envsolve, world, "-f", "pytorch==2.15.*", "torchcodec==0.7.0")
    assert "cause: torchcodec 0.7.0 requires torch==2.8.*, as the matrix says; its metadata do not\n" in done.err
    assert "--override" not in done.err


@pytest.mark.parametrize("tags", ["py2-none-any", "cp312-cp312-win_amd64"])
def test_a_wheel_for_python_2_or_another_platform_does_not_replace_the_source(
    tags: str, envsolve: Envsolve, world: IndexServer
) -> None:
    world.add("ancient", [dated("ancient", "1.0", NEW, tags=tags), sdist("ancient", "1.0", upload_time=NEW)])
    world.add("modern", [dated("modern", "1.0", OLD), dated("modern", "2.0", NEW, ("ancient",))])
    done = lock(envsolve, world, "-f", "pytorch", "modern")
    assert (done.code, pins_in(done.out).get("modern")) == (0, "2.0"), done.err
    assert "note: ancient 1.0 has only a source distribution: installing it runs its code\n" in done.err


@pytest.mark.parametrize(
    ("requires", "machine", "says"),
    [
        ("torch<2.7", ("--gpu", "12.0"), r"pytorch 2\.6\.0 \(.*\) has no code for compute capability 12\.0: "),
        (
            "torch>=2.15",
            ("--gpu", "8.9", "--driver", "550.54.15"),
            r"pytorch 2\.15\.0 .* needs NVIDIA driver 580\.65\.06 ",
        ),
    ],
)
def test_why_no_build_runs_that_a_package_requires_is_a_cause(
    requires: str, machine: tuple[str, ...], says: str, envsolve: Envsolve, world: IndexServer
) -> None:
    world.add("user", [dated("user", "1.0", NEW, (requires,))])
    words = ("user", *machine, "--platform", "linux-64", "--no-cache", "--format", "requirements")
    done = envsolve("-f", "pytorch", *words, "--source", "pypi", "--index-url", world.index_url)
    assert f"cause: user 1.0 requires {requires}\n" in done.err
    assert re.search(f"cause: {says}", done.err), done.err


def test_a_search_that_takes_too_long_says_what_must_be_built(
    envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("unbuilt", [sdist("unbuilt", "1.0", static=False, upload_time=NEW)])
    world.add("modern", [dated("modern", "1.0", OLD), dated("modern", "2.0", NEW, ("unbuilt",))])
    times, later = iter((0.0,) * 6), 1000.0
    monkeypatch.setattr("envsolve.resolve.closure.resolve.monotonic", lambda: next(times, later))
    done = lock(envsolve, world, "-f", "pytorch", "modern")
    assert done.err.startswith("error: search-too-long\n")
    assert (
        "cause: the newest versions conflict: modern 2.0 requires unbuilt; unbuilt 1.0: it has no wheel, " in done.err
    )
    (hint,) = re.findall(
        "hint: allow building packages from source, which runs their code\n  envsolve (.*)\n", done.err
    )
    assert hint.endswith("--allow-builds modern")


def test_a_limit_inferred_from_the_age_of_a_wheel_says_so(envsolve: Envsolve, world: IndexServer) -> None:
    world.add("aged", [dated("aged", "1.0", OLD, ("numpy",), tags=CP312)])
    done = lock(envsolve, world, "-f", "pytorch", "aged", "numpy>=2")
    assert "cause: aged 1.0 requires numpy<2, as its wheel is older than NumPy 2\n" in done.err


def test_libraries_that_a_build_loads_limit_it_and_are_reported(envsolve: Envsolve, world: IndexServer) -> None:
    done = lock(envsolve, world, "-f", "pytorch==2.8.*", "torchcodec")
    loads = "torchcodec<=0.17.0,>=0.14.0 loads the libraries of CUDA 13, this stack has CUDA 12.8"
    assert f"note: torchcodec 0.7.0 is 8 months older than 0.17.0: {loads}" in done.err


def test_a_second_reason_is_another_one(envsolve: Envsolve, world: IndexServer) -> None:
    versions = {"0.7.0": (), "0.10.0": ("torch==2.9.0",), "0.17.0": ()}
    times = {"0.7.0": OLD, "0.10.0": NEWER, "0.17.0": NEW}
    world.add("torchcodec", [dated("torchcodec", it, times[it], needs) for it, needs in versions.items()])
    loads = "torchcodec<=0.17.0,>=0.14.0 loads the libraries of CUDA 13, this stack has CUDA 12.8"
    needs = " (CUDA 13 needs NVIDIA driver 580.65.06 or newer)"
    for words, driver in (("pytorch==2.8.*",), ""), (("pytorch", *OLD_DRIVER), needs):
        done = lock(envsolve, world, "torchcodec", "-f", *words)
        because = f"{loads}{driver}, and 0.10.0 does not fit: torchcodec 0.10.0 requires torch==2.9.0"
        assert f"note: torchcodec 0.7.0 is 79 months older than 0.17.0: {because}\n" in done.err


def test_a_limit_is_a_cause_before_the_version_of_the_framework(envsolve: Envsolve, world: IndexServer) -> None:
    world.add(
        "torchcodec", [dated("torchcodec", "0.7.0", NEWER, ("torch==2.7.1",)), dated("torchcodec", "0.17.0", NEW)]
    )
    done = lock(envsolve, world, "-f", "pytorch==2.8.*", "torchcodec")
    assert re.findall("cause: (.*)\n", done.err) == [
        "the command line requires torchcodec",
        "torchcodec 0.7.0 requires torch==2.7.1",
        "torchcodec<=0.17.0,>=0.14.0 loads the libraries of CUDA 13, this stack has CUDA 12.8",
    ]


def test_the_driver_for_a_package_of_a_newer_cuda_is_a_hint(envsolve: Envsolve, world: IndexServer) -> None:
    """Of what can be typed, another version is the smaller change."""
    refused = lock(envsolve, world, "-f", "pytorch", "torchcodec==0.17.0", *OLD_DRIVER)
    hints = re.findall("hint: (.*)\n(?:  envsolve (.*)\n)?", refused.err)
    stack = "pytorch 2.15.0 (pypi, cu132) and Python 3.12"
    assert [text for text, _ in hints] == [
        "torchcodec 0.7.0 would fit",
        f"install NVIDIA driver 580.65.06 or newer: everything then fits, with {stack}",
        "relax one of these requirements, or move one into a separate environment",
    ]
    assert pins_in(envsolve(*shlex.split(hints[1][1]))[1])["torchcodec"] == "0.17.0"


def test_the_driver_is_a_hint_also_if_packages_bring_the_framework(envsolve: Envsolve, world: IndexServer) -> None:
    refused = lock(envsolve, world, "deep", "torchcodec==0.17.0", *OLD_DRIVER)
    assert "hint: install NVIDIA driver 580.65.06 or newer: everything then fits, with pytorch 2.15.0" in refused.err
    done = lock(envsolve, world, "deep", "torchcodec", *OLD_DRIVER)
    assert "(CUDA 13 needs NVIDIA driver 580.65.06 or newer)" in done.err


def test_versions_that_a_marker_requires_are_no_reason_for_a_note(envsolve: Envsolve, world: IndexServer) -> None:
    """The user asked for them; and if no Python has a stack for its versions, that is the error."""
    words = ("torch==2.8.0; python_version<'3.13'", "torch==2.15.0; python_version>='3.13'")
    done = lock(envsolve, world, *words)
    assert (pins_in(done.out)["torch"], "torch" in done.err) == ("2.8.0", False), done.err
    refused = lock(envsolve, world, *(it.replace("2.8.0", "1.8.1").replace("2.15.0", "1.9.1") for it in words))
    assert (refused.code, refused.err.startswith("error: python-not-supported\n")) == (1, True)


def test_the_driver_of_the_hint_is_the_oldest_with_which_everything_fits(
    envsolve: Envsolve, world: IndexServer
) -> None:
    """PTX of CUDA 12.8 needs a driver that supports 12.8 in full; another CUDA is not necessary."""
    world.add("ctranslate2", [dated("ctranslate2", "4.8.5", NEW)])
    refused = lock(envsolve, world, "-f", "pytorch", "ctranslate2", "--gpu", "9.0", "--driver", "525.147.05")
    assert "hint: install NVIDIA driver 570.26 or newer: everything then fits, with pytorch 2.8.0" in refused.err


def test_a_driver_that_changes_nothing_is_no_hint(envsolve: Envsolve, world: IndexServer) -> None:
    """Whether it is new enough, or not the reason, or the CUDA that it runs is not what was requested."""
    for words in (("above>=2", "deep>=2"), ("above>=2", "deep>=2", *OLD_DRIVER)):
        assert "NVIDIA driver" not in lock(envsolve, world, "-f", "pytorch", *words).err
    for words in (("pytorch==2.8.*", "torchcodec==0.17.0"), ("pytorch", "torchcodec==0.17.0", "--cuda", "12.*")):
        refused = lock(envsolve, world, "-f", *words, *OLD_DRIVER)
        assert (refused.code, refused.err.count("NVIDIA driver")) == (1, 0)


def test_a_note_on_an_older_version_names_the_driver_for_the_newest(envsolve: Envsolve, world: IndexServer) -> None:
    loads = "torchcodec<=0.17.0,>=0.14.0 loads the libraries of CUDA 13, this stack has CUDA 12.8"
    driver = "CUDA 13 needs NVIDIA driver 580.65.06 or newer"
    for words in (("pytorch",), ("pytorch", "deep")):
        done = lock(envsolve, world, "-f", *words, "torchcodec", *OLD_DRIVER)
        assert f"note: torchcodec 0.7.0 is 8 months older than 0.17.0: {loads} ({driver})\n" in done.err


def test_why_no_stack_has_the_framework_that_a_package_requires_is_a_cause(
    envsolve: Envsolve, world: IndexServer
) -> None:
    """That the stack has another one would only say that it was not chosen."""
    world.add("torch", [torch("1.8.1", tags=CP312), torch("2.15.0", tags=CP312)])
    world.add("ancient", [dated("ancient", "1.0", NEW, ("torch==1.8.1",))])
    refused = lock(envsolve, world, "-f", "pytorch", "ancient", "--source", "pypi")
    assert re.findall("cause: (.*)\n", refused.err) == [
        "the command line requires ancient",
        "ancient 1.0 requires torch==1.8.1",
        "pytorch 1.8.1 (pypi, cu102) has no code for compute capability 8.9: it has sm_37, sm_50, sm_60, sm_70",
    ]
    refused = lock(envsolve, world, "-f", "pytorch==2.15.*", "ancient", "--source", "pypi")
    assert "cause: the stack requires torch==2.15.0\n" in refused.err


def test_a_build_that_loads_libraries_of_another_cuda_is_refused(envsolve: Envsolve, world: IndexServer) -> None:
    done = lock(envsolve, world, "-f", "pytorch==2.15.*", "bitsandbytes")
    assert (done.code, done.out) == (1, "")
    assert "bitsandbytes<0.48.0,>=0.47.0 loads the libraries of CUDA >=11.8,<13, this stack has CUDA 13.2" in done.err


@pytest.mark.thorough
def test_a_partly_supported_build_is_the_last_resort_and_is_reported(envsolve: Envsolve, world: IndexServer) -> None:
    done = lock(envsolve, world, "-f", "pytorch==2.15.*", "xformers")
    assert done.code == 0, done.err
    assert "note: xformers 0.0.35 loads the libraries of CUDA 12: without its C++ library " in done.err


@pytest.mark.thorough
def test_a_bound_in_an_extra_is_named_as_the_reason(envsolve: Envsolve, world: IndexServer) -> None:
    result = lock(envsolve, world, "-f", "pytorch==2.8.*", "optional")
    because = "optional 2.0 requires torch>=2.10, as its extra torch says"
    assert f"note: optional 1.0 is 8 months older than 2.0: {because}\n" in result.err
    indexes = ("--index-url", world.index_url, "--format", "requirements")
    found = json.loads(envsolve("-f", "pytorch==2.8.*", "optional", *TARGET, *indexes, "--json").out)
    (note,) = (it for it in found["notes"] if it["code"] == "held-back")
    assert because in note["fields"]["because"]
    assert "the stack requires torch==2.8.0" in note["fields"]["because"]
    result = lock(envsolve, world, "-f", "pytorch==2.8.*", "optional>=2")
    assert result.code == 1
    assert "cause: optional 2.0 requires torch>=2.10, as its extra torch says\n" in result.err
    (hint,) = re.findall("hint: ignore what only an extra of optional requires\n  envsolve (.*)\n", result.err)
    assert "--override torch==2.8.0 " in hint
    assert pins_in(envsolve(*shlex.split(hint)).out)["optional"] == "2.0"


def test_causes_are_requirements_that_exclude_versions(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "mine"\nversion = "1.0"\ndependencies = ["modern", "base==1.0"]\n', encoding="utf-8"
    )
    world.add("modern", [dated("modern", "1.0", OLD), dated("modern", "2.0", NEW, ("base>=2",))])
    result = lock(envsolve, world, "-f", "pytorch", ".", "modern>=2")
    assert re.findall("cause: (.*)\n", result.err) == [
        "the command line requires modern>=2",
        "modern 2.0 requires base>=2",
        "./pyproject.toml requires base==1.0",
    ]
    result = lock(envsolve, world, "-f", "pytorch", ".", "--allow-builds")
    assert "note: modern 1.0 is 79 months older than 2.0: modern 2.0 requires base>=2\n" in result.err


@pytest.mark.thorough
def test_a_cpu_build_under_another_name_meets_a_bound_in_an_extra(envsolve: Envsolve, world: IndexServer) -> None:
    world.add("tensorflow-cpu", [wheel("tensorflow-cpu", "2.21.0", tags=CP312)])
    world.add("flows", [wheel("flows", "1.0"), wheel("flows", "2.0", ["tensorflow>=2.21; extra == 'tensorflow'"])])
    world.add("later", [wheel("later", "1.0"), wheel("later", "2.0", ["tensorflow>=9; extra == 'tf'"])])
    words = ("-f", "tensorflow", "flows", "later", "--gpu", "none", "--platform", "linux-64", "--no-cache")
    result = envsolve(*words, "--format", "requirements", "--index-url", world.index_url)
    assert result.code == 0, result.err
    found = pins_in(result.out)
    assert found == {"tensorflow-cpu": "2.21.0", "flows": "2.0", "later": "1.0"}


def test_of_builds_for_another_cuda_the_lock_names_the_newest(envsolve: Envsolve, world: IndexServer) -> None:
    """The matrix has torchcodec 0.11 and 0.14 to 0.17 as builds for CUDA 13, each as a range of its own."""
    world.add("torchcodec", [dated("torchcodec", version, NEW) for version in ("0.11.0", "0.17.0")])
    done = lock(envsolve, world, "-f", "pytorch==2.8.*", "torchcodec")
    found = done.out
    assert pins_in(found)["torchcodec"] == "0.7.0"
    assert "note: torchcodec 0.7.0 is 8 months older than 0.17.0: " in done.err
    assert "does not fit" not in done.err
    (reason,) = (because for name, because in reasons_in(found) if name == "torchcodec")
    assert reason.startswith("torchcodec<=0.17.0,>=0.14.0 loads the libraries of CUDA 13, ")


@pytest.mark.thorough
def test_packages_half_a_year_old_are_reported(envsolve: Envsolve, world: IndexServer) -> None:
    done = lock(envsolve, world, "-f", "pytorch", "late")
    assert done.code == 0, done.err
    assert "note: late 1.0 is 8 months older than 2.0: " in done.err
    assert "nowhere-to-be-had" in done.err


@pytest.mark.thorough
def test_packages_years_old_are_refused_with_two_fixes(envsolve: Envsolve, world: IndexServer) -> None:
    done = lock(envsolve, world, "-f", "pytorch", "relic")
    assert (done.code, done.out) == (1, "")
    assert "error: outdated\n  the newest relic that fits this request is 1.0, 79 months older than 2.0\n" in done.err
    assert "cause: relic 2.0 requires nowhere-to-be-had\n" in done.err
    assert "hint: use it anyway\n  envsolve --framework pytorch " in done.err
    command = next(line for line in done.err.splitlines() if line.startswith("  envsolve "))
    assert command.endswith(" relic==1.0")
    taken = lock(envsolve, world, "-f", "pytorch", "relic==1.0")
    assert taken.code == 0, taken.err
    assert pins_in(taken.out)["relic"] == "1.0"


@pytest.mark.thorough
def test_pins_of_an_existing_lock_are_not_refused(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    world.add("relic", [dated("relic", "1.0", OLD), dated("relic", "2.0", NEW)])
    assert lock(envsolve, world, "-f", "pytorch", "relic==1.0", "-o", "requirements.txt").code == 0
    done = lock(envsolve, world, "-f", "pytorch", "relic", "base", "-o", "requirements.txt")
    assert done.code == 0, done.err
    assert "relic 1.0 is 79 months older than 2.0: the existing lock keeps it; -P relic takes a newer one" in done.err
    newer = lock(envsolve, world, "-f", "pytorch", "relic", "base", "-o", "requirements.txt", "-P", "relic")
    assert newer.code == 0, newer.err
    assert pins_in(Path("requirements.txt").read_text())["relic"] == "2.0"


def test_packages_that_the_request_itself_limits_are_not_refused(envsolve: Envsolve, world: IndexServer) -> None:
    done = lock(envsolve, world, "-f", "pytorch", "relic", "base<2")
    assert done.code == 0, done.err
    assert pins_in(done.out)["relic"] == "1.0"
    assert "note: relic 1.0 is 79 months older than 2.0: " in done.err


def test_packages_that_the_machine_itself_limits_are_not_refused(envsolve: Envsolve, world: IndexServer) -> None:
    """The newest PyTorch with code for a GPU of 6.1 is years older than the newest."""
    tag, cuda_12 = CP312, ("nvidia-cublas-cu12==12.6.4.1", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5")
    old = dated("torch", "2.7.1", OLD, ("typing-extensions>=4.10", *cuda_12), tags=tag)
    new = dated("torch", "2.15.0", NEW, ("typing-extensions>=4.10",), tags=tag)
    world.add("torch", [old, new])
    world.add("relic", [dated("relic", "1.0", OLD), dated("relic", "2.0", NEW, ("nowhere-to-be-had",))])
    done = envsolve(
        "-f",
        "pytorch",
        "relic",
        *TARGET,
        "--gpu",
        "6.1",
        "--format",
        "requirements",
        "--index-url",
        world.index_url,
        "--source",
        "pypi",
    )
    assert done.code == 0, done.err
    assert pins_in(done.out)["torch"] == "2.7.1"
    assert "note: relic 1.0 is 79 months older than 2.0: " in done.err


@pytest.fixture
def _years_of_torch(world: IndexServer) -> None:
    """PyTorch 2.7.1 from just before the old releases of packages, and 2.15.0."""
    cuda_12 = ("nvidia-cublas-cu12==12.6.4.1", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5")
    old = dated("torch", "2.7.1", "2020-02-01T00:00:00Z", ("typing-extensions>=4.10", *cuda_12), tags=CP312)
    world.add("torch", [old, dated("torch", "2.15.0", NEW, ("typing-extensions>=4.10",), tags=CP312)])


@pytest.mark.usefixtures("_years_of_torch")
@pytest.mark.parametrize("early", [("torch>=2",), ()], ids=["without a limit", "without the framework"])
def test_a_release_without_the_upper_bound_of_later_ones_is_never_an_answer(
    early: tuple[str, ...], envsolve: Envsolve, world: IndexServer
) -> None:
    world.add("learned", [dated("learned", "1.0", OLD, early), dated("learned", "2.0", NEW, ("torch<2.9",))])
    done = lock(envsolve, world, "-f", "pytorch==2.15.*", "learned", "--source", "pypi")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: outdated\n  the newest learned that fits this request is 1.0, ")
    assert "\ncause: learned 2.0 requires torch<2.9\n" in done.err
    meant = lock(envsolve, world, "-f", "pytorch==2.15.*", "learned==1.0", "--source", "pypi")
    assert pins_in(meant.out)["learned"] == "1.0"


@pytest.mark.thorough
@pytest.mark.usefixtures("_years_of_torch")
def test_one_note_names_the_packages_that_are_older_than_their_framework(
    envsolve: Envsolve, world: IndexServer
) -> None:
    names = ("quiet", "calm", "still", "hushed")
    for number, name in enumerate(names):
        world.add(name, [dated(name, "1.0", f"202{number}-03-01T00:00:00Z", ("torch>=2",))])
    world.add("careful", [dated("careful", "1.0", OLD, ("torch>=2,<3",))])
    rest = "over a year older than torch 2.15.0 and"
    done = lock(envsolve, world, "-f", "pytorch", "quiet", "careful", "--source", "pypi")
    assert pins_in(done.out)["torch"] == "2.15.0"
    assert f"note: quiet 1.0 is {rest} does not limit it: test it with this version\n" in done.err
    assert "careful 1.0" not in done.err
    done = lock(envsolve, world, "-f", "pytorch", *sorted(names), "--source", "pypi")
    named = "quiet 1.0, calm 1.0, still 1.0 and 1 more"
    assert f"note: {named} are {rest} do not limit it: test them with this version\n" in done.err
    assert done.err.count(rest) == 1


@pytest.mark.thorough
def test_a_refusal_of_all_versions_names_the_request(envsolve: Envsolve, world: IndexServer) -> None:
    done = lock(envsolve, world, "-f", "pytorch", "relic>=2")
    assert done.code == 1
    assert "the command line requires relic>=2" in done.err
    assert "package-not-found" in done.err


@pytest.mark.thorough
def test_a_sufficient_newer_c_library_is_named(envsolve: Envsolve, world: IndexServer) -> None:
    """In a note where an older version suits, in a refusal where none does; either way with the command."""
    world.add("grammar", [dated("grammar", "1.0", NEWER), dated("grammar", "2.0", NEW, tags=GLIBC_WHEEL)])
    older = lock(envsolve, world, "-f", "pytorch==2.8.*", "grammar")
    assert "note: grammar 2.0 needs glibc 2.38, and the target has 2.34\n  envsolve " in older.err
    assert "--glibc 2.38" in older.err
    refused = lock(envsolve, world, "-f", "pytorch==2.8.*", "grammar==2")
    assert (refused.code, refused.out) == (1, "")
    assert "grammar 2.0 needs glibc 2.38, and the target has 2.34" in refused.err
    assert "for a machine with glibc 2.38 or newer" in refused.err
    assert "--glibc 2.38" in refused.err
    newer = lock(envsolve, world, "-f", "pytorch==2.8.*", "grammar", "--glibc", "2.38")
    assert pins_in(newer.out)["grammar"] == "2.0"
    assert '\n# glibc = "2.38"\n' in newer.out


@pytest.mark.thorough
def test_source_of_a_version_whose_wheel_needs_a_newer_c_library_is_used_with_builds_alone(
    envsolve: Envsolve, world: IndexServer
) -> None:
    source = sdist("grammar", "2.0", upload_time=NEW)
    world.add("grammar", [dated("grammar", "1.0", NEWER), dated("grammar", "2.0", NEW, tags=GLIBC_WHEEL), source])
    words = ("-f", "pytorch==2.8.*", "--python", "3.12")
    assert pins_in(lock(envsolve, world, *words, "grammar").out)["grammar"] == "1.0"
    refused = lock(envsolve, world, *words, "grammar==2.0")
    assert refused.code == 1
    assert "grammar 2.0 needs glibc 2.38, and the target has 2.34" in refused.err
    assert pins_in(lock(envsolve, world, *words, "grammar==2.0", "--allow-builds").out)["grammar"] == "2.0"


def test_what_wheels_of_older_releases_require_is_no_reason_for_source(envsolve: Envsolve, world: IndexServer) -> None:
    """The matrix knows wheels of torchrl for one PyTorch each, all older than the source distribution here."""
    world.add("torchrl", [sdist("torchrl", "99.0", requires=["torch"], upload_time=NEW)])
    result = lock(envsolve, world, "-f", "pytorch==2.8.*", "torchrl")
    assert pins_in(result.out)["torchrl"] == "99.0", result.err
    assert "torchrl 99.0 has only a source distribution" in result.err
    assert "torchrl 99.0 is a source distribution: a wheel of" not in result.err


def test_packages_that_need_a_newer_c_library_are_named(envsolve: Envsolve, world: IndexServer) -> None:
    world.add("grammar", [dated("grammar", "1.0", NEW, tags="cp312-cp312-manylinux_2_34_x86_64")])
    note = "glibc 2.34 is assumed, and grammar 1.0 cannot be installed with 2.28 (RHEL 8)"
    assert note in lock(envsolve, world, "-f", "pytorch==2.8.*", "grammar").err
    assert note not in lock(envsolve, world, "-f", "pytorch==2.8.*", "grammar", "--glibc", "2.35").err
