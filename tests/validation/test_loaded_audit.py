"""The libraries that a framework loaded: the owner of each file, and which are incompatible."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from envsolve.model.finding import Finding, Severity
from envsolve.validation.inventory import Inventory
from envsolve.validation.loaded_audit import audit, loaded_libraries
from envsolve.validation.report import Library, Owner
from tests.validation.compiled import CUDART as CUDART_SOURCE
from tests.validation.compiled import compiled

SITE = Path("/env/lib/python3.11/site-packages")
ENVIRONMENT = Inventory("3.11.7", Path("/env/bin/python"), Path("/env"), (SITE,), (), is_conda=False, owns_prefix=True)
CUDART = {"path": f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12", "component": "cudart", "version": "12.6"}
DRIVER = {"path": "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06", "component": "cuda", "version": None}
OWN = (Library("libcudart.so.12", Path(CUDART["path"] or ""), Owner.ENVIRONMENT, "12.6"),)


def at(path: str, component: str = "cudart", version: str | None = "12.6") -> dict[str, str | None]:
    """The probe's record of a loaded file."""
    return {"path": path, "component": component, "version": version}


def findings(*answers: Mapping[str, str | None], own: tuple[Library, ...] = OWN, preloads: str = "") -> list[Finding]:
    return list(audit([loaded_libraries(answers, ENVIRONMENT)], own, preloads))


def test_owners_are_distinguished() -> None:
    answers = (CUDART, DRIVER, at("/usr/local/cuda-12.2/lib64/libcublas.so.12", "cublas"))
    owners = [library.owner for library in loaded_libraries(answers, ENVIRONMENT)]
    assert owners == [Owner.ENVIRONMENT, Owner.DRIVER, Owner.SYSTEM]


def test_files_of_the_environment_and_the_driver_are_not_findings() -> None:
    assert findings(CUDART, DRIVER) == []


@pytest.mark.parametrize(
    ("version", "severity"),
    [("12.2", Severity.ERROR), ("12.6", Severity.WARNING), ("12.9", Severity.WARNING), (None, Severity.WARNING)],
)
def test_a_foreign_file_in_place_of_that_of_the_environment_is_an_error_if_older(
    version: str | None, severity: Severity
) -> None:
    found = findings(at("/usr/local/cuda/lib64/libcudart.so.12", version=version))
    assert [(it.id, it.severity) for it in found] == [("foreign-library", severity)]
    assert "/usr/local/cuda/lib64" in found[0].fix


def test_foreign_files_of_one_directory_are_one_finding_on_the_oldest() -> None:
    names = ("libcudnn_graph.so.9", "libcudnn.so.9")
    own = tuple(Library(name, SITE / "nvidia/cudnn/lib" / name, Owner.ENVIRONMENT, "9.19.0") for name in names)
    loaded = [
        at(f"/usr/lib/x86_64-linux-gnu/{name}", name, version)
        for name, version in zip(names, (None, "9.14.0"), strict=True)
    ]
    (finding,) = findings(*loaded, own=own)
    assert (finding.id, finding.severity) == ("foreign-library", Severity.ERROR)
    assert finding.title == "libcudnn.so.9 and 1 more from outside the environment"
    assert len(finding.evidence) == 2


def test_libraries_of_several_processes_are_one_finding_for_each_directory() -> None:
    answers = [at(f"/usr/local/cuda/lib64/{name}", name) for name in ("libcufft.so.11", "libcublas.so.12")]
    by_process = [loaded_libraries([it], ENVIRONMENT) for it in (*answers, answers[0])]
    (finding,) = audit(by_process, ())
    assert finding.title == "libcufft.so.11 and 1 more of the machine, not of the environment"


def test_majors_are_compared_within_each_process() -> None:
    by_process = [loaded_libraries([it], ENVIRONMENT) for it in (CUDART, at(f"{SITE}/nvidia/cu13/lib/libcudart.so.13"))]
    assert audit(by_process, OWN) == ()


def test_a_preloaded_library_is_not_blamed_on_ld_library_path(tmp_path: Path) -> None:
    preloaded = tmp_path / "libcudart.so.12"
    (finding,) = findings(at(str(preloaded)), preloads=f"/elsewhere/libother.so:{preloaded}")
    assert finding.commands == ("unset LD_PRELOAD",)
    assert "LD_LIBRARY_PATH" not in finding.cause + finding.fix


def test_a_library_from_outside_of_the_environment_belongs_to_the_machine() -> None:
    found = findings(at("/usr/local/cuda/lib64/libcufft.so.11", "cufft"))
    assert [(it.id, it.severity) for it in found] == [("system-library", Severity.WARNING)]


def test_two_majors_in_one_process_are_an_error() -> None:
    found = findings(CUDART, at(f"{SITE}/nvidia/cu13/lib/libcudart.so.13", version="13.0"))
    assert [(it.id, it.severity) for it in found] == [("two-cuda-majors", Severity.ERROR)]
    assert found[0].title == "cudart is loaded in the versions 12 and 13"


def test_parts_of_one_component_are_not_two_majors() -> None:
    parts = [
        at(f"{SITE}/nvidia/cusolver/lib/{name}", name[3:-6]) for name in ("libcusolver.so.11", "libcusolverMg.so.11")
    ]
    assert findings(*parts) == []


def test_a_stub_of_the_driver_library_is_an_error() -> None:
    found = findings(at("/usr/local/cuda/lib64/stubs/libcuda.so", "cuda", None))
    assert [it.id for it in found] == ["stub-driver-library"]


def test_a_forward_compatibility_library_is_reported() -> None:
    found = findings(at("/usr/local/cuda-13.0/compat/libcuda.so.580.65.06", "cuda", None))
    assert [(it.id, it.severity) for it in found] == [("forward-compatibility-driver", Severity.WARNING)]


def test_a_process_knows_a_library_by_its_real_file_and_programs_by_its_soname(tmp_path: Path) -> None:
    real = compiled(tmp_path / "libcudart.so.12", CUDART_SOURCE.format(number=12020)).rename(
        tmp_path / "libcudart.so.12.2.140"
    )
    (found,) = findings(at(str(real), version="12.2"))
    assert (found.id, found.severity) == ("foreign-library", Severity.ERROR)
    (library,) = loaded_libraries([at(str(real))], ENVIRONMENT)
    assert library.soname == "libcudart.so.12"


def test_parts_of_cudnn_of_two_majors_are_one_finding() -> None:
    names = ("libcudnn.so.8", "libcudnn_ops_infer.so.8", "libcudnn.so.9", "libcudnn_ops.so.9")
    found = findings(*(at(f"{SITE}/nvidia/cudnn/lib/{name}", name[3:-5], None) for name in names))
    assert [(it.id, it.about) for it in found] == [("two-cuda-majors", "cudnn")]
