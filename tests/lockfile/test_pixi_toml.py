"""pixi.toml: the bytes, that pixi's requirements mean what conda's do, and what a machine must have.

pixi's own JSON schema (prefix-dev/pixi, schema/schema.json) judges every case where ENVSOLVE_TEST_PIXI_SCHEMA names it;
that of pixi 0.77 accepted all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
import tomli

from envsolve.app.solve.solving import stacks_of
from envsolve.errors import UsageError
from envsolve.lockfile import pixi_toml
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.conda_specs import conda_specs
from envsolve.lockfile.options import options_in
from envsolve.lockfile.stack import lock_of
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request, parse_framework, parse_versions
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion
from envsolve.resolve.solver import Solver
from tests.lockfile.judges import rattler

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
BOTH = (Platform.LINUX_64, Platform.WIN_64)


class Case(NamedTuple):
    """The requirements."""

    frameworks: tuple[str, ...]
    gpu: str
    driver: str | None
    platforms: tuple[Platform, ...] = (Platform.LINUX_64,)
    sources: tuple[Source, ...] = ()
    python: str | None = None


CASES = {
    "tensorflow": Case(("tensorflow",), "RTX 3090", "535.183.01"),
    "pytorch-wheels-two-platforms": Case(("pytorch",), "8.6", "580.65.06", BOTH, (Source.PYTORCH,)),
    "two-frameworks": Case(("pytorch", "jax"), "7.0", "580.65.06"),
    "two-platforms": Case(("pytorch",), "8.6", "580.65.06", BOTH),
    "jax-wheels": Case(("jax",), "12.0", "580.65.06", sources=(Source.PYPI,)),
    "jax-releases": Case(("jax==0.4.13",), "7.5", "470.256.02", sources=(Source.JAX_RELEASES,)),
    "wheel-without-cuda": Case(("cupy==13.6.0",), "8.0", "535.183.01", sources=(Source.PYPI,)),
    "page-of-links": Case(("pytorch==1.7.1",), "8.0", "450.80.02", sources=(Source.PYTORCH,)),
    "named-by-its-folder": Case(("pytorch==1.1.0",), "7.0", "411.31", (Platform.WIN_64,), (Source.PYTORCH,)),
    "pytorch-channel": Case(("pytorch",), "8.6", "535.183.01", sources=(Source.PYTORCH_CHANNEL,)),
    "cpu": Case(("tensorflow",), "none", None, python=">=3.11.4,<3.12"),
}


def answers(case: Case, matrix: Matrix, **more: Any) -> list[Answer]:
    """The stack for each platform of ``case``."""
    requested = tuple(FrameworkRequest(*parse_framework(text)) for text in case.frameworks)
    request = Request(
        requested,
        gpus=(case.gpu,),
        driver=None if case.driver is None else DriverVersion.parse(case.driver),
        platforms=case.platforms,
        sources=case.sources,
        python=None if case.python is None else parse_versions(case.python),
        **more,
    )
    targets, solutions, _ = stacks_of(request, matrix, {}, Solver(matrix))
    command = f"envsolve --framework {' --framework '.join(case.frameworks)} --format pixi"
    return [
        Answer(solution, target.hosts, command, "2026-11-20", "VERSION", options=options_in(command))
        for solution, target in zip(solutions, targets, strict=True)
    ]


def written(answers: Sequence[Answer]) -> str:
    """The manifest of stacks."""
    return pixi_toml.write([lock_of(answer, sets_library_path=True) for answer in answers])


def read(name: str, matrix: Matrix, **more: Any) -> Mapping[str, Any]:
    """The manifest of one of CASES, parsed as TOML."""
    return tomli.loads(written(answers(CASES[name], matrix, **more)))


@pytest.mark.parametrize("name", ["tensorflow", "pytorch-wheels-two-platforms"])
def test_the_output_equals_the_recorded_one(name: str, matrix: Matrix) -> None:
    text = written(answers(CASES[name], matrix))
    path = SNAPSHOTS / f"{name}.pixi.toml"
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.thorough
def test_each_dependency_is_equivalent_to_its_match_spec(matrix: Matrix) -> None:
    requested, read_back = [], []
    for case in CASES.values():
        given = answers(case, matrix)
        manifest = tomli.loads(written(given))
        for answer in given:
            own = manifest.get("target", {}).get(answer.solution.problem.platform, {}).get("dependencies", {})
            for name, locked in {**manifest.get("dependencies", {}), **own}.items():
                fields = {"version": locked} if isinstance(locked, str) else locked
                read_back.append(f"{name} {fields['version']} {fields.get('build', '')}")
            requested += [spec for spec, _ in conda_specs(answer.solution)]
    read_by_rattler = "[sorted({str(MatchSpec(spec)).replace(' *', '') for spec in specs}) for specs in asked]"
    both = rattler(read_by_rattler, [requested, read_back])
    assert isinstance(both, list)
    assert len(both[0]) > 20
    assert both[0] == both[1]


def test_a_python_with_its_patch_is_one_range(matrix: Matrix) -> None:
    assert read("cpu", matrix)["dependencies"]["python"] == "3.11.*,<3.12,>=3.11.4"


def test_common_packages_of_all_platforms_are_written_once(matrix: Matrix) -> None:
    manifest = read("two-platforms", matrix)
    assert list(manifest["dependencies"]) == ["python"]
    builds = {platform: locked["dependencies"]["pytorch"]["build"] for platform, locked in manifest["target"].items()}
    assert builds == {"linux-64": "cuda130*", "win-64": "cuda128*"}


@pytest.mark.parametrize(
    ("name", "platforms"),
    [
        ("tensorflow", [("linux-64", "12.0", "8.6")]),
        ("two-platforms", [("linux-64", "13.0", "8.6"), ("win-64", "12.0", "8.6")]),
        ("jax-releases", [("linux-64", "11.0", "7.5")]),
        ("named-by-its-folder", [("win-64", "10.0", "7.0")]),
        ("cpu", ["linux-64"]),
    ],
)
def test_a_machine_needs_its_gpu_and_the_cuda_of_its_oldest_driver(
    name: str, platforms: list[tuple[str, str, str] | str], matrix: Matrix
) -> None:
    """A toolkit of CUDA 11 or later runs on the first driver of its major: pixi must not require a newer one."""
    workspace = read(name, matrix)["workspace"]
    assert workspace["platforms"] == [
        it if isinstance(it, str) else {"platform": it[0], "cuda": {"driver": it[1], "arch": it[2]}} for it in platforms
    ]
    assert ("requires-pixi" in workspace) is (name != "cpu")


def test_before_cuda_11_a_driver_runs_its_own_cuda_and_older(matrix: Matrix) -> None:
    answer = answers(CASES["named-by-its-folder"], matrix)[0]
    assert answer.solution.toolkit is not None
    toolkit = answer.solution.toolkit._replace(version=CudaVersion(10, 2), windows_full=None)
    text = written([answer._replace(solution=answer.solution._replace(toolkit=toolkit))])
    assert tomli.loads(text)["workspace"]["platforms"][0]["cuda"]["driver"] == "10.2"


def test_a_driver_that_compiles_kernels_must_fully_support_the_toolkit(matrix: Matrix) -> None:
    given = answers(CASES["tensorflow"], matrix)
    solution = given[0].solution
    assert solution.toolkit is not None
    full = solution.toolkit.linux_full
    manifest = tomli.loads(written([given[0]._replace(solution=solution._replace(minimum_driver=full))]))
    assert manifest["workspace"]["platforms"][0]["cuda"]["driver"] == str(solution.toolkit.version) == "12.9"


def test_a_machine_without_the_gpu_states_both_versions(matrix: Matrix) -> None:
    first, second = answers(CASES["tensorflow"], matrix), answers(CASES["two-frameworks"], matrix)
    assert "#   CONDA_OVERRIDE_CUDA=12.0 CONDA_OVERRIDE_CUDA_ARCH=8.6\n" in written(first)
    assert "CONDA_OVERRIDE_CUDA_ARCH=7.0\n" in written(second)
    assert "CONDA_OVERRIDE" not in written(answers(CASES["cpu"], matrix))


def test_a_platform_may_be_a_table_with_only_a_name() -> None:
    platforms = '[{ name = "osx-arm64" }, { name = "gpu", platform = "linux-64", cuda = "12.0" }, "win-64"]'
    text = f'[workspace]\nchannels = []\nplatforms = {platforms}\n[dependencies]\nzlib = "==1.3"\n'
    assert all(pixi_toml.read(text, it) for it in (Platform.OSX_ARM64, Platform.LINUX_64, Platform.WIN_64))
    assert pixi_toml.read(text, Platform.LINUX_AARCH64) is None


@pytest.mark.skipif("ENVSOLVE_TEST_PIXI_SCHEMA" not in os.environ, reason="ENVSOLVE_TEST_PIXI_SCHEMA names no schema")
@pytest.mark.parametrize("name", CASES)
def test_the_schema_of_pixi_accepts_every_manifest(name: str, matrix: Matrix) -> None:
    schema = json.loads(Path(os.environ["ENVSOLVE_TEST_PIXI_SCHEMA"]).read_text("utf-8"))
    jsonschema.validate(read(name, matrix), schema)


@pytest.mark.parametrize(
    ("machine", "build", "expected"),
    [
        ("2.17", None, "2.17"),
        ("2.35", None, None),
        ("2.35", "2.34", "2.34"),
        (None, "2.31", "2.31"),
        ("2.28", "2.28", None),
    ],
)
def test_glibc_is_written_if_pixi_would_assume_another(
    machine: str | None, build: str | None, expected: str | None, matrix: Matrix
) -> None:
    answer = answers(CASES["tensorflow"], matrix)[0]
    solution = answer.solution
    problem = solution.problem
    glibc, needed = (None if text is None else LibcVersion.parse(text) for text in (machine, build))
    machines = tuple(it._replace(glibc=glibc) for it in problem.machines)
    choices = tuple(it._replace(release=it.release._replace(glibc=needed)) for it in solution.choices)
    changed = solution._replace(problem=problem._replace(machines=machines), choices=choices)
    text = written([answer._replace(solution=changed)])
    assert tomli.loads(text)["workspace"]["platforms"][0].get("glibc") == expected
    assert (f'#   libc = "{expected}"' in text) is (expected is not None)


def test_a_wheel_of_pytorch_comes_from_its_own_index(matrix: Matrix) -> None:
    target = read("pytorch-wheels-two-platforms", matrix)["target"]
    indexes = {platform: locked["pypi-dependencies"]["torch"]["index"] for platform, locked in target.items()}
    assert indexes == {
        "linux-64": "https://download.pytorch.org/whl/cu130",
        "win-64": "https://download.pytorch.org/whl/cu126",
    }


def test_wheels_have_their_extras_indexes_and_urls(matrix: Matrix) -> None:
    jax = read("jax-wheels", matrix)["pypi-dependencies"]
    assert jax["jax"]["extras"] == ["cuda13"]
    assert jax["nvidia-nvjitlink"] == "==13.0.*"
    assert read("jax-releases", matrix)["pypi-options"]["find-links"][0]["url"].endswith("jax_cuda_releases.html")
    assert read("page-of-links", matrix)["pypi-options"]["find-links"][0]["url"].endswith("torch_stable.html")
    folder = read("named-by-its-folder", matrix)
    assert folder["pypi-dependencies"]["torch"]["url"].endswith("/cu100/torch-1.1.0-cp37-cp37m-win_amd64.whl")
    assert "pypi-options" not in folder


def test_a_wheel_without_cuda_gets_the_library_path(matrix: Matrix) -> None:
    text = written(answers(CASES["wheel-without-cuda"], matrix))
    environ = tomli.loads(text)["target"]["linux-64"]["activation"]["env"]
    assert environ == {"LD_LIBRARY_PATH": "$CONDA_PREFIX/lib"}
    assert "export" not in text
    assert "target" not in read("tensorflow", matrix)


def test_custom_indexes_and_channels_are_named(matrix: Matrix) -> None:
    more = {"index_url": "http://127.0.0.1:8080/simple", "extra_index_urls": ("http://127.0.0.1:8081/simple",)}
    options = read("jax-wheels", matrix, **more)["pypi-options"]
    assert options == {"index-url": more["index_url"], "extra-index-urls": ["http://127.0.0.1:8081/simple"]}
    assert "pypi-options" not in read("tensorflow", matrix, **more)
    channels = read("pytorch-channel", matrix, channels=("https://example.org/conda-forge",))["workspace"]["channels"]
    assert channels == ["pytorch", "nvidia", "https://example.org/conda-forge"]


def test_both_requirements_on_a_package_apply(matrix: Matrix) -> None:
    answer = answers(CASES["jax-releases"], matrix)[0]
    solution = answer.solution
    twice = tuple(
        choice._replace(
            release=choice.release._replace(constraints=("numpy<2", "numpy<2", "numpy>=1.22", "numpy[mkl]"))
        )
        for choice in solution.choices
    )
    manifest = tomli.loads(written([answer._replace(solution=solution._replace(choices=twice))]))
    assert manifest["pypi-dependencies"]["numpy"] == {"version": "<2,>=1.22", "extras": ["mkl"]}


def test_stacks_of_different_channels_are_refused(matrix: Matrix) -> None:
    linux = answers(CASES["pytorch-channel"], matrix)[0]
    windows = answers(CASES["two-platforms"], matrix)[1]
    with pytest.raises(UsageError, match=r"channels-differ.*pytorch, nvidia, conda-forge for linux-64"):
        written([linux, windows])
