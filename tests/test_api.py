"""The Python API: its names and signatures, and that each function returns the JSON of its command."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

import envsolve as public
from envsolve import api
from envsolve.api.arguments import moment
from envsolve.errors import EnvsolveError, OutsideError, UnsolvableError, UsageError
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion
from tests.cli.locking import undisturbed
from tests.cli.test_doctor import CUDA_TORCH, environment
from tests.cli.test_end_to_end import RTX_3090
from tests.cli.test_matrix_update import new_torch
from tests.cli.test_validate import bare, machine, with_torch
from tests.cli.worlds import fill
from tests.conda.conftest import channel_server, mirror, mirrored
from tests.conftest import Envsolve
from tests.fake_driver.builder import FakeDriver
from tests.index.packages import wheel
from tests.index.server import IndexServer
from tests.json_documents import require_documented

__all__ = ["bare", "channel_server", "mirror", "mirrored", "with_torch"]

SNAPSHOT = Path(__file__).parent / "snapshots" / "python-api.txt"
PAGE = Path(__file__).parents[1] / "docs" / "python-api.md"
HOSTS = Path(__file__).parent / "hosts"
CUDART = (
    "Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file"
)
FUNCTIONS = ("detect", "doctor", "explain", "lock", "solve", "status", "validate")
TARGET: Mapping[str, Any] = {"gpus": "8.6", "python": "3.11.7", "platforms": "linux-64", "no_cache": True}
TARGET_WORDS = ("--gpu", "8.6", "--python", "3.11.7", "--platform", "linux-64", "--no-cache")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexServer]:
    """The made-up packages of tests/cli/worlds.py behind the default index."""
    undisturbed(monkeypatch, tmp_path)
    with IndexServer(recorded=False) as server:
        fill(server)
        yield server


def child(code: str, environ: Mapping[str, str] | None = None) -> str:
    """The output of ``code`` in a separate Python."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environ and dict(environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(environ: Mapping[str, str], *arguments: str) -> Any:
    """The JSON of a command in a separate process."""
    line = [sys.executable, "-m", "envsolve", *arguments, "--json"]
    printed = subprocess.run(line, env=dict(environ), capture_output=True, text=True, check=False).stdout
    require_documented([*arguments, "--json"], printed)
    return json.loads(printed)


def timeless(answer: Any) -> Any:
    """An answer without the parts that differ between runs: durations."""
    if isinstance(answer, dict):
        return {key: timeless(value) for key, value in answer.items() if not re.search(r"seconds|_ms$", key)}
    return [timeless(it) for it in answer] if isinstance(answer, list) else answer


def surface() -> Iterator[str]:
    """Every public name: functions with their signatures, results with their fields and descriptions."""
    for name in sorted(public.__all__):
        value = getattr(public, name)
        yield f"envsolve.{name}"
        if name in FUNCTIONS:
            signature = inspect.signature(value)
            yield from (f"    {it.kind.description}: {it}" for it in signature.parameters.values())
            yield f"    -> {signature.return_annotation}"
    for name in sorted(api.__all__):
        value = getattr(api, name)
        if isinstance(value, type):
            yield f"envsolve.api.{name}({', '.join(value._fields)})"  # type: ignore[attr-defined]
            yield from (
                f"envsolve.api.{name}.{it}" for it in sorted(dir(value)) if it in ("as_json", *_properties(value))
            )


def _properties(kind: type) -> list[str]:
    return [name for name in dir(kind) if isinstance(getattr(kind, name), property)]


def test_public_names_and_signatures_equal_the_recorded_ones() -> None:
    text = "".join(f"{line}\n" for line in surface())
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_is_documented_or_linked(name: str) -> None:
    function = getattr(public, name)
    assert function is getattr(api, name)
    own = inspect.getdoc(function) or ""
    assert name == "detect" or "Raises" in own
    documented = own + "".join(inspect.getdoc(getattr(public, it)) or "" for it in re.findall(":func:`(.*?)`", own))
    assert [it for it in inspect.signature(function).parameters if f"``{it}``" not in documented] == []


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import envsolve; print(*sorted(set(sys.modules) - before))"
    assert child(code).split() == ["envsolve"]


@pytest.mark.thorough
def test_a_command_does_not_import_the_api() -> None:
    code = (
        "import sys\nfrom envsolve.cli import main\n"
        "try:\n    main(['-f', 'pytorch', '--gpu', '8.6'])\nexcept SystemExit:\n    print(*sys.modules)\n"
    )
    loaded = child(code).split()
    assert "envsolve.app.solve.solving" in loaded
    assert "envsolve.api" not in loaded


@pytest.mark.thorough
@pytest.mark.parametrize("first", ["import envsolve.resolve.solver, envsolve.lockfile, envsolve.validation.report", ""])
def test_functions_are_functions_whatever_is_imported(first: str) -> None:
    code = f"""
        {first}
        import envsolve
        from envsolve import lock, solve, validate
        import envsolve.resolve.solver, envsolve.lockfile.formats, envsolve.validation.report
        from envsolve.resolve.solver import Solver
        for function in (solve, lock, validate, envsolve.solve, envsolve.lock, envsolve.validate):
            assert type(function).__name__ == "function", function
    """
    child(inspect.cleandoc(code))


def test_the_package_exports_its_names_and_no_other() -> None:
    assert set(public.__all__) <= set(dir(public))
    assert public.EnvsolveError is EnvsolveError
    with pytest.raises(AttributeError, match="has no attribute 'solv'"):
        getattr(public, "solv")  # noqa: B009 - as a type checker would not let it pass
    namespace: dict[str, Any] = {}
    exec("from envsolve import *", namespace)  # noqa: S102
    assert not [it for it in public.__all__ if isinstance(namespace[it], ModuleType)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"frameworks": "pytorch", "gpus": "8.6"}, ("-f", "pytorch", "--gpu", "8.6")),
        (
            {"frameworks": ["tf", "jax"], "gpus": ["RTX 3090", "7.0"], "driver": "535.183.01", "python": ">=3.10"},
            (
                "-f",
                "tf",
                "-f",
                "jax",
                "--gpu",
                "RTX 3090",
                "--gpu",
                "7.0",
                "--driver",
                "535.183.01",
                "--python",
                ">=3.10",
            ),
        ),
        ({"frameworks": "pytorch", "gpus": "none"}, ("-f", "pytorch", "--gpu", "none")),
        ({"frameworks": ["jax"], "gpus": "auto"}, ("-f", "jax", "--gpu", "auto")),
        (
            {"frameworks": "pytorch", "gpus": "8.6", "platforms": ["linux-64", "win-64"]},
            ("-f", "pytorch", "--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64"),
        ),
        (
            {"frameworks": "pytorch", "hosts": HOSTS / "gtx-1080-ti-580.65.06.json"},
            ("-f", "pytorch", "--host", str(HOSTS / "gtx-1080-ti-580.65.06.json")),
        ),
        (
            {"frameworks": "torch", "gpus": "8.6", "cuda": "12.*", "sources": "pypi", "prefer": "widest-gpu"},
            ("-f", "torch", "--gpu", "8.6", "--cuda", "12.*", "--source", "pypi", "--prefer", "widest-gpu"),
        ),
        (
            {"frameworks": "pytorch", "gpus": "8.6", "channels": "main", "extra_index_urls": ["https://a.example/"]},
            ("-f", "pytorch", "--gpu", "8.6", "-c", "main", "--extra-index-url", "https://a.example/"),
        ),
        (
            {"frameworks": "pytorch", "gpus": "8.6", "exclude_newer": date(2024, 1, 31)},
            ("-f", "pytorch", "--gpu", "8.6", "--exclude-newer", "2024-01-31"),
        ),
    ],
)
def test_solve_returns_the_json_of_its_command(
    arguments: dict[str, Any], words: tuple[str, ...], envsolve: Envsolve
) -> None:
    answer = public.solve(**arguments)
    assert answer.as_json() == json.loads(envsolve(*words, "--json").out)
    assert [str(it.python) for it in answer.solutions]
    if len(answer.texts) == 1:
        assert answer.text == envsolve(*words).out
    assert public.solve(**arguments, format="pixi").text == envsolve(*words, "--format", "pixi").out


def test_values_are_equivalent_to_their_texts() -> None:
    texts = public.solve("pytorch", gpus="8.6", driver="580.65.06", python=">=3.12", platforms="linux-64")
    values = public.solve(
        ("pytorch",),
        gpus=[ComputeCapability(8, 6)],
        driver=DriverVersion.parse("580.65.06"),
        python=SpecifierSet(">=3.12"),
        platforms=[Platform.LINUX_64],
    )
    assert values == texts


def test_variables_of_other_tools_apply_and_those_for_options_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CUDA_DRIVER_VERSION", "535.183.01")
    monkeypatch.setenv("ENVSOLVE_PYTHON", "3.10")
    monkeypatch.setenv("ENVSOLVE_DRIVER", "470.256.02")
    answer = public.solve("pytorch", gpus="8.6", platforms="linux-64")
    assert str(answer.solution.python) != "3.10"
    assert [str(it.driver) for it in answer.solution.problem.machines] == ["535.183.01"]


def test_a_refusal_is_an_error_with_the_data_of_the_command(envsolve: Envsolve) -> None:
    with pytest.raises(UnsolvableError) as refused:
        public.solve("pytorch>=2.15", gpus="GTX 1080 Ti", driver="550.163.01", format="json")
    words = ("-f", "pytorch>=2.15", "--gpu", "GTX 1080 Ti", "--driver", "550.163.01", "--json")
    assert {"schema_version": 1, "error": refused.value.as_json()} == json.loads(envsolve(*words).out)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ({}, "no-framework", "which framework"),
        ({"frameworks": "pytorch", "python": 3.1}, "usage", "python: 3.1 is neither a string nor a SpecifierSet"),
        ({"frameworks": "pytorch", "driver": "new"}, "usage", "driver: 'new' is not an NVIDIA driver"),
        ({"frameworks": "pytorch", "platforms": "linux"}, "usage", "platforms: 'linux' is not one of linux-64"),
        ({"frameworks": "pytorch", "channels": "a b"}, "usage", "channels: 'a b' is empty or contains spaces"),
        ({"frameworks": "pytorch", "index_url": ""}, "usage", "index_url: '' is empty"),
        ({"frameworks": "pytorch", "gpus": "a\nb"}, "usage", "control characters"),
        ({"frameworks": "pytorch", "gpus": ["none", "8.6"]}, "contradictory-options", "none"),
        ({"frameworks": "pytroch"}, "unknown-framework", "pytroch"),
        ({"frameworks": "pytorch", "format": "pylock"}, "unknown-format", "'pylock'"),
        ({"frameworks": "pytorch", "prefer": "locked"}, "nothing-to-keep", "locked"),
        ({"frameworks": "pytorch", "matrix": "nowhere"}, "matrix-unreadable", "nowhere"),
    ],
)
def test_invalid_arguments_are_usage_errors(arguments: dict[str, Any], code: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        public.solve(**arguments)
    assert (refused.value.code, says in refused.value.message) == (code, True), refused.value


def test_texts_for_several_platforms_are_returned_one_by_one() -> None:
    answer = public.solve("pytorch", gpus="8.6", platforms=["linux-64", "win-64"])
    assert [platform for platform, _ in answer.texts] == ["linux-64", "win-64"]
    for only in ("text", "solution"):
        with pytest.raises(UsageError, match="several-platforms"):
            getattr(answer, only)


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", ["requirements", "pylock"])
def test_a_python_lock_is_the_text_of_the_command(format_name: str, envsolve: Envsolve, world: IndexServer) -> None:
    made = public.lock(
        "pytorch",
        ["torchvision"],
        **TARGET,
        format=format_name,
        index_url=world.index_url,
        pytorch_index_url=f"{world.url}/whl",
        driver="535.183.01",
    )
    words = ("-f", "pytorch", "torchvision", *TARGET_WORDS, "--format", format_name, "--driver", "535.183.01")
    done = envsolve(*words, "--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    assert (made.text, done.code) == (done.out, 0), done.err
    indexes = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    assert made.as_json() == json.loads(envsolve(*words, *indexes, "--json").out)
    assert [note for note in made.notes if note.text not in done.err] == []
    assert str(made.solutions[0].choices[0].release.version).startswith("2.14")


def test_a_lock_preserves_an_existing_one_except_upgraded_packages(world: IndexServer, tmp_path: Path) -> None:
    world.add("alpha", [wheel("alpha", "1.0")])
    world.add("beta", [wheel("beta", "1.0")])
    existing = tmp_path / "requirements.linux-64.txt"
    arguments: dict[str, Any] = {
        **TARGET,
        "requirements": ["alpha", "beta"],
        "format": "requirements",
        "index_url": world.index_url,
        "existing": tmp_path / "requirements.{platform}.txt",
    }
    existing.write_text(public.lock(**arguments).text, encoding="utf-8")
    world.add("alpha", [wheel("alpha", "1.0"), wheel("alpha", "2.0")])
    world.add("beta", [wheel("beta", "1.0"), wheel("beta", "2.0")])

    def versions(**more: Any) -> list[str]:
        return re.findall(r"^\w+==(\S+)", public.lock(**arguments, **more).text, flags=re.MULTILINE)

    assert versions() == ["1.0", "1.0"]
    assert versions(upgrade="beta") == ["1.0", "2.0"]
    assert versions(upgrade=True) == ["2.0", "2.0"]
    with pytest.raises(UsageError, match="beta>1"):
        versions(upgrade=["beta>1"])


def test_status_returns_the_json_of_its_command(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = public.solve("pytorch", gpus="8.6", driver="580.65.06", platforms="linux-64")
    (tmp_path / "environment.yml").write_text(made.text, encoding="utf-8")
    for driver, ok in (("580.65.06", True), ("450.80.02", False)):
        found = public.status(gpus="8.6", driver=driver, platform="linux-64")
        assert found == public.status("environment.yml", gpus="8.6", driver=driver, platform="linux-64")
        words = ("--gpu", "8.6", "--driver", driver, "--platform", "linux-64", "--json")
        assert found.as_json() == json.loads(envsolve("status", *words).out)
        assert found.ok is ok
    assert repr(found) == "<Status: environment.yml does-not-run>"


def test_status_of_a_project_is_that_of_its_files(envsolve: Envsolve, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "envsolve.toml").write_text(
        'frameworks = ["pytorch"]\ngpus = "8.6"\nplatforms = ["linux-64"]\noutputs = ["environment.yml"]\n', "utf-8"
    )
    here = Path.cwd()
    found = public.status(project=project)
    assert [(it.path, it.verdict) for it in found.files] == [("environment.yml", "missing")]
    assert found.as_json() == json.loads(envsolve("status", "--project", str(project), "--json").out)
    assert Path.cwd() == here


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "nothing-to-check"),
        ({"files": "gone.yml"}, "file-unreadable"),
        ({"project": "."}, "no-project"),
        ({"project": ".", "gpus": "8.6"}, "contradictory-options"),
    ],
)
def test_status_refuses_what_it_cannot_check(
    arguments: dict[str, Any], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        public.status(**arguments)
    assert refused.value.code == code


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", ["conda-lock", "explicit"])
def test_a_conda_lock_is_the_text_of_the_command(
    format_name: str, envsolve: Envsolve, mirrored: Path, tmp_path: Path
) -> None:
    made = public.lock("pytorch", gpus="8.6", platforms="linux-64", format=format_name, cache_dir=tmp_path)
    words = ("-f", "pytorch", "--gpu", "8.6", "--platform", "linux-64", "--format", format_name)
    done = envsolve(*words, "--cache-dir", str(tmp_path))
    assert (made.text, done.code) == (done.out, 0), done.err


def test_a_conda_lock_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("envsolve.conda.session.is_installed", lambda: False)
    with pytest.raises(OutsideError) as refused:
        public.lock("pytorch", gpus="8.6", format="conda-lock", cache_dir=tmp_path)
    assert any("conda" in hint.text for hint in refused.value.hints)


@pytest.mark.parametrize(
    "arguments",
    [{"channels": "conda-forge"}, {"requirement_files": "environment.yml"}, {"format": "environment"}],
)
def test_a_python_lock_refuses_conda_options(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        public.lock("pytorch", gpus="8.6", **arguments)
    assert refused.value.code in ("contradictory-options", "unknown-format")


def test_times_are_parsed_like_by_the_command() -> None:
    assert moment("2026-11-20") == moment(date(2026, 11, 20)) == "2026-11-21T00:00:00Z"
    assert (
        moment("2026-11-20T08:00:00+02:00") == moment(datetime(2026, 11, 20, 6, tzinfo=UTC)) == "2026-11-20T06:00:00Z"
    )
    with pytest.raises(UsageError, match="exclude_newer: 'soon'"):
        moment("soon")


@pytest.mark.thorough
def test_detect_returns_the_json_of_its_command(fake_driver: FakeDriver) -> None:
    environ = fake_driver.environ(driver="535.183.01", cuda="12.2", devices=[RTX_3090])
    document = json.loads(child("import envsolve, json; print(json.dumps(envsolve.detect().as_json()))", environ))
    assert document == command(environ, "detect")
    assert document["driver"] == "535.183.01"


def test_a_detected_machine_is_a_host_file_that_solve_reads(tmp_path: Path) -> None:
    host = public.detect()
    (tmp_path / "host.json").write_text(json.dumps(host.as_json()), encoding="utf-8")
    assert public.solve("jax", hosts=tmp_path / "host.json").solution.problem.platform is host.platform


@pytest.mark.thorough
def test_validate_returns_the_json_of_its_command(fake_driver: FakeDriver, with_torch: Path) -> None:
    environ = machine(fake_driver)
    code = f"import envsolve, json; print(json.dumps(envsolve.validate(prefix={str(with_torch)!r}).as_json()))"
    document = json.loads(child(code, environ))
    assert timeless(document) == timeless(command(environ, "validate", "--prefix", str(with_torch)))
    assert document["ok"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"prefix": "a", "python": "b"},
        {"device": "cpu", "gpus": [0]},
        {"device": "tpu"},
        {"gpus": [-1]},
        {"burn": -1.0},
        {"timeout": float("nan")},
        {"frameworks": "fortran"},
    ],
)
def test_validate_refuses_contradictory_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        public.validate(**arguments)


@pytest.mark.thorough
def test_doctor_returns_the_json_of_its_command(fake_driver: FakeDriver, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "env", "2.8.0+cu128", CUDA_TORCH)
    environ = fake_driver.environ(driver="550.163.01", cuda="12.4", devices=[RTX_3090])
    code = f"import envsolve, json; d = envsolve.doctor(prefix={str(prefix)!r}); print(json.dumps([d.as_json(), d.ok]))"
    document, ok = json.loads(child(code, environ))
    assert timeless(document) == timeless(command(environ, "doctor", "--prefix", str(prefix)))
    assert document["ok"] is ok
    assert document["inventory"]


def test_explain_returns_the_json_of_its_command_for_texts_and_files(envsolve: Envsolve, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"epoch 1\n{CUDART}\n", encoding="utf-8")
    document = json.loads(envsolve("explain", "--json", str(log)).out)
    with log.open("rb") as stream:
        answers = [public.explain(it) for it in (log, log.read_text("utf-8"), log.read_bytes(), stream)]
        assert not stream.closed
    assert [it.as_json() for it in answers] == [document] * 4
    assert answers[0].findings[0].id == "cuda-library-missing"


def test_explain_accepts_facts_about_the_machine(envsolve: Envsolve) -> None:
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    arguments: dict[str, Any] = {
        "gpus": "RTX 5090",
        "driver": "580.65.06",
        "frameworks": "torch==2.6.0",
        "python": "3.12",
        "built_cuda": "12.6",
        "toolkit": "12.4",
        "platform": "linux-64",
    }
    words = (
        "--gpu",
        "RTX 5090",
        "--driver",
        "580.65.06",
        "-f",
        "torch==2.6.0",
        "--python",
        "3.12",
        "--toolkit",
        "12.4",
        "--built-cuda",
        "12.6",
        "--platform",
        "linux-64",
    )
    assert public.explain(text, **arguments).as_json() == json.loads(envsolve("explain", "--json", text, *words).out)


def test_explain_accepts_an_exception() -> None:
    try:
        raise ImportError("libcudnn.so.9: cannot open shared object file: No such file or directory")
    except ImportError as error:
        explanation = public.explain(error)
    assert explanation.findings
    assert not public.explain("all is well").findings


@pytest.mark.parametrize(
    ("text", "arguments", "code"),
    [
        (Path("gone.log"), {}, "log-unreadable"),
        ("", {"gpus": "none"}, "usage"),
        ("", {"gpus": "8.6", "host": "host.json"}, "contradictory-options"),
        ("", {"python": ">=3.11"}, "usage"),
        ("", {"built_cuda": "twelve"}, "usage"),
        ("", {"toolkit": "twelve"}, "usage"),
        ("", {"prefix": "nowhere"}, "no-environment"),
        ("", {"host": "nowhere.json"}, "host-file-unreadable"),
    ],
)
def test_explain_refuses_unreadable_input(text: Any, arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as refused:
        public.explain(text, **arguments)
    assert refused.value.code == code


def test_results_are_immutable_values() -> None:
    answer = public.explain(CUDART)
    assert answer == public.explain(CUDART)
    with pytest.raises(AttributeError):
        answer.notes = ()  # type: ignore[misc]


@pytest.mark.thorough
def test_every_code_block_of_the_page_runs(
    world: IndexServer, mirrored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", world.index_url)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), namespace)  # noqa: S102
    assert (tmp_path / "environment.yml").read_text("utf-8").startswith("# Made by envsolve")


@pytest.mark.thorough
def test_a_stack_newer_than_the_matrix_is_inferred(world: IndexServer) -> None:
    world.add("torch", [new_torch()])
    where = {"index_url": world.index_url, "pytorch_index_url": f"{world.url}/whl"}
    arguments: Mapping[str, Any] = {**TARGET, "python": "3.12", "driver": "580.65.06", **where}
    made = public.solve("torch==2.16", **arguments)
    assert "    - torch==2.16.0 " in made.text
    assert "inferred" in {note.code for note in made.notes}
    with pytest.raises(UnsolvableError):
        public.solve("torch==2.16", **arguments, offline=True)
    with pytest.raises(UnsolvableError):
        public.solve("torch==2.17", **{**arguments, "sources": "pypi"})


def test_results_print_as_one_short_line() -> None:
    found = public.solve("pytorch==2.13.*", gpus="RTX 3090", driver="550.54.15", platforms="linux-64")
    release = found.solution.choices[0].release
    assert repr(found) == f"<Environment: linux-64 pytorch {release.version} {release.build}>"
    assert repr(public.explain("nothing to see")) == "<Explanation: no findings>"
    assert repr(public.explain(CUDART)) == f"<Explanation: {public.explain(CUDART).findings[0].id}>"


@pytest.mark.thorough
def test_a_user_program_passes_the_strictest_type_check(tmp_path: Path) -> None:
    """The program of docs/python-api.md, and one that reads every result with its types."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    known = "import torch_that_is_not_here"
    (tmp_path / "page.py").write_text("\n".join(blocks).replace(known, f"{known}  # type: ignore"), encoding="utf-8")
    (tmp_path / "program.py").write_text(inspect.cleandoc(PROGRAM), encoding="utf-8")
    assert checked_types(tmp_path, "page.py", "program.py") == ""
    wrong = 'import envsolve\nenvsolve.status().as_json()["fils"]\nenvsolve.solve(gpu="8.6")\n'
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    output = checked_types(tmp_path, "wrong.py")
    assert "wrong.py:2" in output
    assert "wrong.py:3" in output


PROGRAM = """
    import envsolve
    from envsolve.api import Diagnosis, Environment, LockFiles, Status
    from envsolve.errors import UnsolvableError

    version: str = envsolve.__version__

    def versions(found: Environment | LockFiles) -> dict[str, str]:
        return {it["framework"]: it["version"] for it in found.as_json()["frameworks"]}

    def main() -> int:
        try:
            made: Environment = envsolve.solve("pytorch", gpus="8.6")
            lock: LockFiles = envsolve.lock("pytorch", ["numpy"])
        except UnsolvableError as error:
            print(*[hint.command or hint.text for hint in error.hints])
            return error.exit_code
        status: Status = envsolve.status(["pylock.toml"])
        found: Diagnosis = envsolve.doctor()
        print(versions(made), versions(lock), [it.verdict.value for it in status.files], found.host.driver)
        return 0 if status.as_json()["ok"] and found.ok else 1
"""


def checked_types(directory: Path, *files: str) -> str:
    """The output of mypy for programs of a user, in a directory without settings; "" without errors."""
    line = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", os.devnull, *files]
    environ = {**os.environ, "MYPYPATH": str(Path(public.__file__).parents[1])}
    done = subprocess.run(line, cwd=directory, env=environ, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
