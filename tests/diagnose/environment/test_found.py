"""Which environment is examined, and what its files show if its Python does not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envsolve.diagnose.environment.found import FoundEnvironment, find_environment
from envsolve.diagnose.environment.from_files import inventory_from_files
from envsolve.errors import OutsideError, UsageError
from envsolve.model.finding import Severity
from envsolve.validation.child import Children
from envsolve.validation.environment import take_inventory
from tests.diagnose.environment.on_disk import Patient

ENVIRON = {"PATH": os.environ.get("PATH", os.defpath)}


def _found(prefix: Path | None = None, python: Path | None = None, **variables: str) -> FoundEnvironment:
    with Children() as children:
        named = [None if it is None else str(it) for it in (prefix, python)]
        return find_environment(named[0], named[1], {**ENVIRON, **variables}, children)


def _program(patient: Patient, text: str) -> Path:
    program = patient.root / "bin/python"
    program.parent.mkdir(exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)
    return program


def _venv(root: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    return root


@pytest.mark.thorough
def test_an_environment_that_runs_is_queried(tmp_path: Path) -> None:
    venv = _venv(tmp_path / "venv")
    found = _found(venv)
    assert found.findings == ()
    assert found.inventory.prefix == venv


def test_the_files_of_a_virtual_environment_give_the_same_inventory(tmp_path: Path) -> None:
    patient = Patient(_venv(tmp_path / "venv") / "unused")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    patient.site = tmp_path / "venv/lib" / version / "site-packages"
    patient.install("numpy", "2.1.0", "numpy/__init__.py")
    patient.install("NVIDIA.cudnn_cu12", "9.10.2.21")
    (tmp_path / "more").mkdir()
    patient.write("more.pth", f"{tmp_path}/more\n{tmp_path}/gone\nimport os\n")
    from_files = inventory_from_files(tmp_path / "venv")
    queried = _found(tmp_path / "venv").inventory
    assert from_files.python == queried.python
    assert from_files.executable == queried.executable
    assert from_files.distributions == queried.distributions
    assert [it.name for it in from_files.distributions] == ["nvidia-cudnn-cu12", "numpy"]
    assert from_files.search_path == tuple(it for it in queried.search_path if it in (patient.site, tmp_path / "more"))
    assert (from_files.is_conda, from_files.owns_prefix) == (queried.is_conda, queried.owns_prefix) == (False, True)


@pytest.mark.thorough
def test_the_files_of_the_interpreter_of_the_tests_give_the_same_inventory() -> None:
    with Children() as children:
        queried = take_inventory(Path(sys.executable), ENVIRON, children)
    from_files = inventory_from_files(queried.prefix)
    assert set(queried.distributions) == set(from_files.distributions)
    assert from_files.python == queried.python


@pytest.mark.parametrize(
    ("files", "python"),
    [
        ({"pyvenv.cfg": "home = /usr/bin\nversion = 3.12.4\n"}, "3.12.4"),
        ({"pyvenv.cfg": "home = /usr/bin\nversion_info = 3.12.4.final.0\n"}, "3.12.4"),
        ({"conda-meta/python-3.12.4-h1.json": "{}"}, "3.12.4"),
        ({"pyvenv.cfg": "nothing\n"}, "3.12"),
    ],
)
def test_the_version_of_python_is_in_one_of_several_files(empty: Patient, files: dict[str, str], python: str) -> None:
    for name, text in files.items():
        (empty.root / name).parent.mkdir(exist_ok=True)
        (empty.root / name).write_text(text)
    assert inventory_from_files(empty.root).python == python


def test_a_directory_that_never_was_an_environment_has_no_packages(tmp_path: Path) -> None:
    found = inventory_from_files(tmp_path)
    assert (found.python, found.distributions, found.search_path, found.owns_prefix) == ("", (), (), False)


def test_a_venv_with_the_packages_of_its_base_has_those_too(empty: Patient, tmp_path: Path) -> None:
    base = Patient(tmp_path / "base")
    base.install("numpy", "1.26.4")
    (empty.root / "pyvenv.cfg").write_text(f"home = {base.root}/bin\ninclude-system-site-packages = true\n")
    assert [it.name for it in inventory_from_files(empty.root).distributions] == ["numpy"]


def test_a_python_that_was_removed_is_reported_and_the_packages_are_listed(stack: Patient) -> None:
    (stack.root / "pyvenv.cfg").write_text("home = /nonexistent/bin\nversion = 3.12.4\n")
    (stack.root / "bin").mkdir()
    (stack.root / "bin/python").symlink_to("/nonexistent/bin/python3.12")
    found = _found(stack.root)
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("interpreter-broken", Severity.ERROR)
    assert f"{stack.root}/bin/python is a link to /nonexistent/bin/python3.12, which is not there" in finding.cause
    assert any("pyvenv.cfg names /nonexistent/bin" in it for it in finding.evidence)
    assert finding.commands == (f"python3.12 -m venv --upgrade {stack.root}",)
    assert "torch" in {it.name for it in found.inventory.distributions}


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'encodings'\" >&2\nexit 1\n", "standard library"),
        (
            "#!/bin/sh\necho 'error while loading shared libraries: libpython3.12.so.1.0: cannot open' >&2\nexit 127\n",
            "it needs libpython3.12.so.1.0, which the loader does not find",
        ),
        ("\x7fELF of another machine", "it is a program for another processor"),
        ("#!/bin/sh\necho 'Fatal: something else' >&2\nexit 1\n", "Fatal: something else"),
    ],
)
def test_why_a_python_does_not_run_is_reported(stack: Patient, program: str, message: str) -> None:
    _program(stack, program)
    (finding,) = _found(stack.root).findings
    assert finding.id == "interpreter-broken"
    assert message in finding.cause


@pytest.mark.thorough
@pytest.mark.parametrize("named", ["prefix", "python", "active"])
def test_a_program_without_permission_is_not_reported_as_removed(stack: Patient, named: str) -> None:
    program = _program(stack, "#!/bin/sh\n")
    program.chmod(0o644)
    if named == "active":
        found = _found(VIRTUAL_ENV=str(stack.root))
    else:
        found = _found(stack.root) if named == "prefix" else _found(python=program)
    (finding,) = found.findings
    assert f"{program} is there, and may not be run by this user (its mode is -rw-r--r--)" in finding.cause
    assert "there is no interpreter" not in finding.cause
    assert "is not there" not in "".join(finding.evidence)
    assert finding.commands == (f"chmod u+rx {program}",)
    assert not found.runs


def test_a_program_without_permission_is_not_reported_as_missing_outside_of_environments_either(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o640)
    with pytest.raises(OutsideError, match="is there, and may not be run by this user") as raised:
        _found(python=program)
    assert raised.value.code == "python-not-usable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every directory")
@pytest.mark.parametrize("named", ["prefix", "python", "active"])
def test_a_program_in_a_closed_directory_is_not_reported_as_removed(stack: Patient, named: str) -> None:
    (stack.root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    program = _program(stack, "#!/bin/sh\n")
    program.parent.chmod(0)
    try:
        variables = {"VIRTUAL_ENV": str(stack.root)} if named == "active" else {}
        found = _found(stack.root if named == "prefix" else None, program if named == "python" else None, **variables)
    finally:
        program.parent.chmod(0o755)
    (finding,) = found.findings
    assert f"cannot be looked at: {program.parent} is closed to this user" in finding.cause
    assert "there is no interpreter" not in finding.cause


def test_a_directory_in_the_place_of_the_program_is_reported(stack: Patient) -> None:
    (stack.root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    (stack.root / "bin/python").mkdir(parents=True)
    (finding,) = _found(stack.root).findings
    assert f"{stack.root}/bin/python is a directory and no program" in finding.cause


@pytest.mark.thorough
def test_how_an_environment_was_found_is_reported(tmp_path: Path) -> None:
    venv = _venv(tmp_path / "venv")
    assert _found(venv).origin == "--prefix"
    assert _found(python=venv / "bin/python").origin == "--python"
    assert _found(VIRTUAL_ENV=str(venv)).origin == "VIRTUAL_ENV"
    assert _found(PATH=f"{venv}/bin").origin == "PATH"
    assert _found(PATH=str(tmp_path)).origin == "the Python that runs envsolve"


@pytest.mark.thorough
def test_an_error_suggests_a_nearby_environment(tmp_path: Path) -> None:
    _venv(tmp_path / "my env")
    with pytest.raises(UsageError) as raised:
        _found(tmp_path)
    assert [it.command for it in raised.value.hints] == [f"envsolve doctor --prefix '{tmp_path}/my env'"]
    with pytest.raises(UsageError) as raised:
        _found(tmp_path / "gone/too")
    assert [it.command for it in raised.value.hints] == ["envsolve doctor"]


def test_a_hanging_python_is_given_up(stack: Patient) -> None:
    _program(stack, '#!/bin/sh\ncase "$1" in -c) exit 1;; *) exec sleep 60;; esac\n')
    with Children() as children:
        (finding,) = find_environment(str(stack.root), None, ENVIRON, children, timeout=0.3).findings
    assert "did not answer within 0.3 seconds" in finding.cause


@pytest.mark.thorough
def test_python_home_is_named_if_it_is_the_cause(tmp_path: Path) -> None:
    venv = _venv(tmp_path / "venv")
    (finding,) = _found(venv, PYTHONHOME="/nonexistent").findings
    assert "PYTHONHOME=/nonexistent sends it to the standard library of another Python" in finding.cause
    assert finding.commands == ("unset PYTHONHOME",)


def test_an_old_python_is_not_a_fault(stack: Patient) -> None:
    _program(stack, '#!/bin/sh\ncase "$1" in -c) echo \'[3, 6]\' > "$3";; *) exit 1;; esac\n')
    (finding,) = _found(stack.root).findings
    assert (finding.id, finding.severity) == ("interpreter-too-old", Severity.INFO)


def test_an_active_environment_without_its_python_is_still_the_one_examined(stack: Patient) -> None:
    (stack.root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    found = _found(VIRTUAL_ENV=str(stack.root))
    assert found.inventory.prefix == stack.root
    assert [it.id for it in found.findings] == ["interpreter-broken"]


@pytest.mark.thorough
def test_a_program_by_its_path_leads_to_its_environment(stack: Patient) -> None:
    program = _program(stack, "#!/bin/sh\nexit 1\n")
    assert _found(python=program).inventory.prefix == stack.root


@pytest.mark.thorough
def test_a_directory_that_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        _found(tmp_path)
    with pytest.raises(UsageError):
        _found(tmp_path / "gone")
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(OutsideError):
        _found(python=program)


def test_a_conda_environment_of_compilers_is_not_broken(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/history").touch()
    (tmp_path / "conda-meta/gcc-13.3.0-0.json").write_text('{"name": "gcc", "version": "13.3.0", "files": []}')
    with Children() as children:
        found = find_environment(str(tmp_path), None, {}, children)
    assert [it.id for it in found.findings] == ["environment-without-python"]


@pytest.mark.thorough
def test_a_link_to_the_python_of_another_environment_is_found(tmp_path: Path) -> None:
    other = _venv(tmp_path / "other")
    patient = Patient(tmp_path / "mine")
    patient.install("numpy", "2.1.0", "numpy/__init__.py")
    (patient.root / "bin").mkdir()
    (patient.root / "bin/python").symlink_to(other / "bin/python")
    found = _found(patient.root)
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("python-of-other-environment", Severity.ERROR)
    assert finding.commands == (f"python3 -m venv --upgrade {patient.root}",)
    assert [it.name for it in found.inventory.distributions] == ["numpy"]
    assert found.inventory.prefix == patient.root
    assert not found.runs


def test_a_directory_with_only_a_link_to_a_python_is_examined_there(tmp_path: Path) -> None:
    other = _venv(tmp_path / "other")
    (tmp_path / "mine/bin").mkdir(parents=True)
    (tmp_path / "mine/bin/python").symlink_to(other / "bin/python")
    found = _found(tmp_path / "mine")
    assert [it.id for it in found.findings] == ["python-of-other-environment"]
    assert (found.inventory.prefix, found.runs) == (Path(sys.base_prefix), True)
