"""Wheels next to conda packages: made-up packages with real names, on an index of the loopback server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.app.conda.conda_wheels import PipSide, Wheels, python_among, wheels_beside
from envsolve.app.packages.lock_indexes import Connection, Places
from envsolve.app.packages.requirements import read_requirements
from envsolve.app.request.network import Network
from envsolve.app.request.targets import target_of
from envsolve.errors import OutsideError, UnsolvableError
from envsolve.index.settings import IndexSettings
from envsolve.matrix import Matrix
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Packages, Request
from envsolve.model.requester import Requester
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion, LibcVersion
from envsolve.resolve.solver import Solver
from tests.cli.worlds import CP311, LINUX, fill, releases
from tests.index.packages import sdist, wheel
from tests.index.server import IndexServer

PYTHON = CondaPackage("python", "3.11.9", "hb806964_0_cpython", "linux-64", "")
PROBLEM = Problem((), Platform.LINUX_64, (Machine(None, (), LibcVersion(2, 28)),), True, None, None)
OF_PYTHON = ("python >=3.11,<3.12.0a0", "python_abi 3.11.* *_cp311")

Beside = Callable[..., Wheels]


def conda(name: str, version: str, build: str = "py311h0_0") -> CondaPackage:
    """A package for conda's Python."""
    return CondaPackage(name, version, build, "linux-64", "", depends=OF_PYTHON)


NUMPY = conda("numpy", "1.26.4")


@pytest.fixture(scope="module")
def world() -> Iterator[IndexServer]:
    """The packages of tests/cli/worlds.py and a few more. Tests count the requests and add no packages."""
    with IndexServer(recorded=False) as server:
        fill(server)
        server.add(
            "pandas", [*releases("pandas", ["2.2.0"], ["numpy>=1.26"]), *releases("pandas", ["3.0"], ["numpy>=2"])]
        )
        server.add("sentence-transformers", [wheel("sentence-transformers", "5.4.0", ["torch>=2.2", "numpy[fast]"])])
        server.add("seeing", [wheel("seeing", "1.0", ["torchvision", "torchdata"])])
        server.add("torchdata", [wheel("torchdata", "0.11.0")])
        server.add("torchaudio", [wheel("torchaudio", "2.11.0", ["torch"], tags=CP311)])
        server.add("old", [wheel("old", "1.0", extras=["x"], yanked="it is broken")])
        for version, year in (("1.0", 2024), ("2.0", 2026)):
            server.add("dated", [wheel("dated", version, upload_time=f"{year}-06-01T12:00:00Z")])
        server.add("source", [sdist("source", "1.0", ["numpy>=1.20"])])
        server.add("compiled", [wheel("compiled", "1.0", tags="cp312-cp312-manylinux_2_28_x86_64")])
        server.add("recent", [wheel("recent", "1.0", tags=f"cp311-cp311-{LINUX.replace('28', '35')}")])
        server.add("tensorflow", releases("tensorflow", ["2.9.3"], ["numpy>=1.20"], tags=f"cp310-cp310-{LINUX}"))
        server.add("onnxruntime-gpu", releases("onnxruntime-gpu", ["1.18.1"], ["numpy"], tags=CP311))
        server.fault("/simple/gone/", status=403)
        yield server


@pytest.fixture
def beside(world: IndexServer, matrix: Matrix) -> Beside:
    """Resolve requirements, and the wheels of a stack, next to conda packages."""

    def resolve(
        *requirements: str,
        packages: tuple[CondaPackage, ...] = (PYTHON, NUMPY),
        solution: Solution | None = None,
        existing: Mapping[str, str] | None = None,
        **more: object,
    ) -> Wheels:
        requested = Packages(requirements, pytorch_index_url=f"{world.url}/whl", **more)  # type: ignore[arg-type]
        request = Request(frameworks=() if solution is None else solution.request.frameworks, packages=requested)
        side = PipSide(request, read_requirements(requested), solution, existing or {})
        interpreter = python_among(packages, PROBLEM if solution is None else solution.problem, request.requester)
        connection = Connection(Network(no_cache=True), IndexSettings(), {}, builds=requested.allow_builds)
        try:
            return wheels_beside(
                packages, side, interpreter, matrix, Places((), world.index_url, False, {}), connection
            )
        finally:
            connection.close()

    return resolve


def stack(
    matrix: Matrix, framework: str, versions: str, source: Source, *, python: str = "3.11", gpu: str = "8.6"
) -> Solution:
    """The stack for one framework from one source on a recent driver."""
    request = Request(
        frameworks=(FrameworkRequest(framework, SpecifierSet(versions)),),
        python=SpecifierSet(f"=={python}.*"),
        gpus=(gpu,),
        driver=DriverVersion.parse("580.65.06"),
        platforms=(Platform.LINUX_64,),
        sources=(source,),
    )
    target = target_of(request, matrix, {})
    found = Solver(matrix).solve(target.request, target.problem)
    assert found is not None
    return found


def pins(wheels: Wheels) -> dict[str, str]:
    return {pin.name: pin.version for pin in wheels.pins}


def refused(beside: Beside, *requirements: str, **more: object) -> UnsolvableError:
    with pytest.raises(UnsolvableError) as caught:
        beside(*requirements, **more)
    return caught.value


def test_conda_packages_are_not_wheels_and_are_not_queried_on_an_index(beside: Beside, world: IndexServer) -> None:
    found = beside("pandas")
    assert pins(found) == {"pandas": "2.2.0"}
    assert found.pins[0].requires == ("numpy",)
    assert found.pins[0].because == ("pandas 3.0 requires numpy>=2, and conda installs numpy 1.26.4",)
    assert world.count("/simple/numpy/") == 0


def test_packages_that_conda_does_not_install_are_wheels(beside: Beside) -> None:
    assert pins(beside("pandas", packages=(PYTHON,))) == {"numpy": "2.4.6", "pandas": "3.0"}


def test_a_requirement_that_conflicts_with_conda_packages_is_refused(beside: Beside) -> None:
    error = refused(beside, "pandas>=3")
    assert error.code == "packages-conflict"
    assert error.message == "the conda packages numpy do not meet the requirements for Python 3.11.9 on linux-64"
    assert error.cause == (
        "the command line requires pandas>=3",
        "pandas 3.0 requires numpy>=2, and conda installs numpy 1.26.4",
    )
    assert error.hints[0].text == "install a required version with conda"


def test_wheels_fit_the_python_and_the_c_library(beside: Beside) -> None:
    assert refused(beside, "compiled").code == refused(beside, "recent").code == "no-wheel"
    newer = PYTHON._replace(version="3.12.2")
    assert pins(beside("compiled", packages=(newer,))) == {"compiled": "1.0"}


def test_a_conda_package_satisfies_a_requirement_on_the_name_of_its_project(beside: Beside) -> None:
    found = beside("sentence-transformers", packages=(PYTHON, NUMPY, conda("pytorch", "2.13.0")))
    assert pins(found) == {"sentence-transformers": "5.4.0"}
    assert found.frameworks == ()
    text = "conda installs numpy 1.26.4 without extras: the lock lacks the dependencies of numpy[fast]"
    assert found.notes == (Note("extra-not-locked", text),)


def test_a_framework_that_only_appears_as_a_wheel_is_reported(beside: Beside) -> None:
    found = beside("sentence-transformers")
    assert pins(found)["torch"] == "2.15.0"
    assert found.frameworks == ("pytorch",)


@pytest.mark.thorough
def test_wheels_built_against_pytorch_are_reported_if_conda_installs_pytorch(beside: Beside) -> None:
    found = beside("seeing", packages=(PYTHON, NUMPY, conda("pytorch", "2.8.0")))
    assert pins(found) == {"seeing": "1.0", "torchdata": "0.11.0", "torchvision": "0.23.0"}
    assert found.companions == {"torchvision"}
    of_conda = (PYTHON, NUMPY, conda("pytorch", "2.8.0"), conda("torchvision", "0.23.0"))
    assert beside("seeing", packages=of_conda).companions == frozenset()
    assert beside("seeing").companions == frozenset()


def test_notes_on_a_pin_are_reported(beside: Beside) -> None:
    assert beside("old[z]==1.0").notes == (
        Note("extra-unknown", "old 1.0 has no extra z").about(name="old", version="1.0", extra="z"),
        Note("yanked", "old 1.0 was withdrawn (yanked): it is broken").about(
            name="old", version="1.0", reason="it is broken"
        ),
    )


def test_files_uploaded_after_the_cutoff_are_ignored(beside: Beside) -> None:
    assert pins(beside("dated", exclude_newer="2025-01-01T00:00:00Z")) == {"dated": "1.0"}
    assert pins(beside("dated")) == {"dated": "2.0"}


def test_source_distributions_are_built_if_allowed(beside: Beside) -> None:
    assert pins(beside("source", allow_builds=True)) == {"source": "1.0"}
    assert refused(beside, "source").code == "no-wheel"


def test_constraints_apply_to_wheels_beside_conda_packages(beside: Beside, tmp_path: Path) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text("numpy<1.25\n")
    error = refused(beside, "pandas", constraints=(str(limits),))
    assert [
        it for it in error.cause if it.endswith("limits.txt limits numpy to <1.25, and conda installs numpy 1.26.4")
    ]


def test_pins_of_an_existing_lock_are_preserved(beside: Beside) -> None:
    assert pins(beside("pandas", packages=(PYTHON,), existing={"numpy": "1.26.4", "pandas": "2.2.0"})) == {
        "numpy": "1.26.4",
        "pandas": "2.2.0",
    }


def test_markers_are_evaluated_for_the_python_of_conda(beside: Beside) -> None:
    assert pins(beside("old==1.0; python_version == '3.11'", "pandas; python_version >= '3.12'")) == {"old": "1.0"}


def test_no_requirements_mean_no_queries(beside: Beside, world: IndexServer, matrix: Matrix) -> None:
    before = len(world.requests)
    of_conda = stack(matrix, "pytorch", "", Source.CONDA_FORGE)
    assert beside() == beside(solution=of_conda) == beside("old; python_version < '3'") == Wheels(())
    assert len(world.requests) == before


def test_wheels_of_a_stack_are_its_builds_from_their_own_indexes(
    beside: Beside, world: IndexServer, matrix: Matrix
) -> None:
    found = beside("torchvision", solution=stack(matrix, "pytorch", "==2.14.1", Source.PYTORCH, gpu="6.1"))
    assert pins(found) == {
        "nvidia-cublas-cu12": "12.6.4.1",
        "nvidia-cudnn-cu12": "9.10.2.21",
        "nvidia-nccl-cu12": "2.27.5",
        "torch": "2.14.1+cu126",
        "torchvision": "0.29.2+cu126",
        "typing-extensions": "4.16.0",
    }
    assert {pin.index_url for pin in found.pins if pin.name.startswith("torch")} == {f"{world.url}/whl/cu126"}
    assert found.frameworks == ()


def test_a_wheel_without_its_own_cuda_uses_the_cuda_of_conda(beside: Beside, matrix: Matrix) -> None:
    solution = stack(matrix, "tensorflow", "==2.9.3", Source.PYPI, python="3.10", gpu="7.5")
    toolkit = CondaPackage("cudatoolkit", "11.2.2", "hc23eb0c_13", "linux-64", "")
    packages = (PYTHON._replace(version="3.10.14"), toolkit, NUMPY)
    found = beside(solution=solution, packages=packages)
    assert pins(found) == {"tensorflow": "2.9.3"}
    assert found.pins[0].via == ("the stack",)


def test_a_conda_package_that_breaks_a_wheel_is_refused(beside: Beside, matrix: Matrix) -> None:
    solution = stack(matrix, "tensorflow", "==2.9.3", Source.PYPI, python="3.10", gpu="7.5")
    packages = (PYTHON._replace(version="3.10.14"), conda("numpy", "2.1.3"))
    assert refused(beside, solution=solution, packages=packages).cause == (
        "tensorflow 2.9.3 requires numpy>=1.20, and conda installs numpy 2.1.3",
        "tensorflow 2.9.3 breaks without numpy<2, and conda installs numpy 2.1.3",
        "the stack requires tensorflow==2.9.3",
    )


@pytest.mark.parametrize(
    ("framework", "versions", "ours", "over"),
    [
        ("pytorch", "==2.8.0", "pytorch", "torch 2.8.0"),
        ("jax", "==0.7.0", "jax", "jax 0.7.0"),
        ("onnxruntime", "==1.18.1", "onnxruntime", "onnxruntime-gpu 1.18.1"),
    ],
)
def test_a_wheel_does_not_replace_the_conda_package_of_the_same_framework(
    framework: str, versions: str, ours: str, over: str, beside: Beside, matrix: Matrix
) -> None:
    version = versions.removeprefix("==")
    solution = stack(matrix, framework, versions, Source.PYPI)
    error = refused(beside, solution=solution, packages=(PYTHON, NUMPY, conda(ours, version)))
    assert error.message == f"conda installs {ours} {version}, and pip would overwrite it with {over}"


def test_a_module_installed_by_conda_satisfies_both_of_its_package_names(beside: Beside, matrix: Matrix) -> None:
    solution = stack(matrix, "onnxruntime", "", Source.CONDA_FORGE)
    ours = conda("onnxruntime", "1.18.1", "py311h0_0_cuda")
    assert pins(beside("onnxruntime-gpu", "onnxruntime", solution=solution, packages=(PYTHON, ours))) == {}


def test_a_stack_that_no_lock_can_represent_is_refused(beside: Beside, matrix: Matrix) -> None:
    solution = stack(matrix, "jax", "==0.4.13", Source.JAX_RELEASES)
    assert refused(beside, solution=solution).code == "source-not-lockable"


def test_a_failing_index_is_reported(beside: Beside) -> None:
    with pytest.raises(OutsideError) as caught:
        beside("gone")
    assert caught.value.code == "index-refused"


@pytest.mark.parametrize(
    ("version", "build", "python"),
    [
        ("3.11.9", "hb806964_0_cpython", (3, 11, 9)),
        ("3.13.5", "hf636f53_102_cp313", (3, 13, 5)),
        ("3.15.0rc1", "h0_0_cp315", (3, 15, 0)),
        ("3.12", "", (3, 12, 0)),
    ],
)
def test_wheels_fit_the_python_of_conda(version: str, build: str, python: tuple[int, int, int]) -> None:
    among = [NUMPY, PYTHON._replace(version=version, build=build)]
    assert python_among(among, PROBLEM, Requester()) == (python, Platform.LINUX_64, LibcVersion(2, 28))


@pytest.mark.parametrize("build", ["h92d6c8b_2_cp313t", "0_73_pypy", "2_graalpy311_231_native"])
def test_a_python_requirement_for_other_wheels_is_refused(build: str) -> None:
    with pytest.raises(UnsolvableError) as caught:
        python_among([PYTHON._replace(build=build)], PROBLEM, Requester())
    assert caught.value.code == "python-not-supported"
    assert build in caught.value.message


def test_wheels_need_a_python() -> None:
    with pytest.raises(UnsolvableError) as caught:
        python_among([NUMPY], PROBLEM, Requester("pyproject.toml"))
    assert caught.value.code == "no-python"
    assert caught.value.hints[0].text.endswith(': python = "3.12" in pyproject.toml')


def test_hashes_apply_to_a_wheel_beside_conda_packages(beside: Beside, tmp_path: Path) -> None:
    file = tmp_path / "requirements.in"
    file.write_text("pandas==2.2.0 --hash=sha256:00\n", encoding="utf-8")
    assert refused(beside, files=(str(file),)).code == "hash-mismatch"


def test_hashes_of_an_index_do_not_apply_to_conda_packages(beside: Beside, tmp_path: Path) -> None:
    file = tmp_path / "requirements.in"
    file.write_text("numpy==1.26.4 --hash=sha256:00\n", encoding="utf-8")
    error = refused(beside, files=(str(file),))
    assert error.code == "hash-mismatch"
    assert error.message == "conda installs numpy, and the required hashes are those of a wheel"
    assert error.cause[-1] == "numpy 1.26.4: none of its files has a required hash (--hash)"


@pytest.mark.thorough
def test_a_companion_for_another_cuda_than_the_stack_is_refused(matrix: Matrix, beside: Beside) -> None:
    solution = stack(matrix, "pytorch", "==2.14.1", Source.PYTORCH, gpu="6.1")
    with pytest.raises(UnsolvableError, match="a torchaudio that works with torch") as refused:
        beside("torchaudio", solution=solution)
    assert refused.value.code == "release-not-on-index"
    assert beside("torchvision", "torchdata", solution=solution)
