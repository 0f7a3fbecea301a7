"""``envsolve init``: a project starts from options or from existing files, and no existing content is lost."""

from __future__ import annotations

import codecs
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli

from envsolve.cli.output import printable
from tests.cli.locked import pins_in
from tests.conftest import Envsolve, Result
from tests.index.packages import sdist
from tests.index.server import IndexServer

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
REQUEST = (
    "-f",
    "pytorch",
    "--gpu",
    "RTX 3090",
    "--driver",
    "535.183.01",
    "--python",
    "3.11.7",
    "--platform",
    "linux-64",
)


A_LOCK = "# Made by envsolve 0.1.0:\nnumpy==2.4.6\n"


class Init:
    """``envsolve init`` in its own directory, with the loopback index."""

    def __init__(self, directory: Path, envsolve: Envsolve, world: IndexServer) -> None:
        self.directory, self._envsolve = directory, envsolve
        self._where = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")

    def __call__(self, *arguments: str) -> Result:
        return self._envsolve("init", *arguments, *self._where, "--cache-dir", "cache")

    def write(self, name: str, text: str) -> None:
        (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.directory / name).read_text(encoding="utf-8")

    @property
    def table(self) -> dict[str, Any]:
        found = tomli.loads(self.read("pyproject.toml"))["tool"]["envsolve"]
        return {key: value for key, value in found.items() if not key.endswith("index-url")}

    @property
    def files(self) -> set[str]:
        found = (it.relative_to(self.directory) for it in self.directory.rglob("*") if it.is_file())
        return {it.as_posix() for it in found if it.parts[0] != "cache"}


@pytest.fixture
def init(tmp_path: Path, envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch) -> Init:
    monkeypatch.chdir(tmp_path)
    return Init(tmp_path, envsolve, world)


@pytest.mark.thorough
def test_init_writes_a_project_and_its_lock(init: Init, envsolve: Envsolve) -> None:
    done = init(*REQUEST, "numpy", "-o", "requirements.txt")
    assert (done.code, done.out) == (0, ""), done.err
    assert init.table == {
        "frameworks": ["pytorch"],
        "python": "3.11.7",
        "requirements": ["numpy"],
        "gpus": ["RTX 3090"],
        "driver": "535.183.01",
        "platforms": ["linux-64"],
        "outputs": ["requirements.txt"],
    }
    assert pins_in(init.read("requirements.txt"))["torch"] == "2.14.1+cu126"
    assert envsolve("lock", "--check", "--cache-dir", "cache").code == 0
    assert envsolve("status").code == 0


def test_other_content_of_the_file_stays(init: Init) -> None:
    before = '# ours\n[project]\nname = "x"  # a name\ndependencies = ["numpy"]\n\n[tool.ruff]\nline-length = 99\n'
    init.write("pyproject.toml", before)
    assert init(*REQUEST).code == 0
    assert init.read("pyproject.toml").startswith(before)
    assert init.table["project-dependencies"] is True
    assert "numpy" in init.read("pylock.toml")


@pytest.mark.thorough
def test_an_existing_file_is_only_overwritten_with_force(init: Init) -> None:
    init.write("requirements.txt", A_LOCK)
    done = init(*REQUEST, "-o", "requirements.txt", "-o", "pylock.toml", "--no-lock")
    assert done.code == 0
    assert init.files == {"pyproject.toml", "requirements.txt"}
    again = init(*REQUEST)
    assert (again.code, again.err.splitlines()[0]) == (2, "error: project-exists")
    assert init(*REQUEST, "-o", "requirements.txt", "-o", "pylock.toml", "--force").code == 0
    assert pins_in(init.read("requirements.txt"))


@pytest.mark.thorough
def test_an_existing_lock_is_not_changed(init: Init) -> None:
    init.write("requirements.txt", A_LOCK)
    done = init(*REQUEST, "-o", "requirements.txt", "-o", "pylock.toml")
    assert done.code == 0
    assert init.read("requirements.txt") == A_LOCK
    assert "left as they are: requirements.txt" in done.err
    assert "torch" in init.read("pylock.toml")


NOT_OURS = "note: requirements.txt was not written by envsolve, so `envsolve lock` overwrites it only with --force"


@pytest.mark.thorough
@pytest.mark.parametrize("words", [(), ("--no-lock",), ("--no-lock", "--force"), ("--dry-run",)])
def test_for_an_output_that_lock_refuses_nothing_is_promised(
    words: tuple[str, ...], init: Init, envsolve: Envsolve
) -> None:
    init.write("requirements.txt", "numpy\n")
    done = init(*REQUEST, "-o", "requirements.txt", *words)
    assert done.code == 0, done.err
    assert NOT_OURS in done.err
    assert "updates locks" not in done.err
    if "--dry-run" not in words:
        assert envsolve("lock", "--cache-dir", "cache").err.startswith("error: not-a-lock\n")


@pytest.mark.thorough
@pytest.mark.parametrize("words", [("-o", "requirements.txt"), ("-o", "pylock.toml", "--ci", "github")])
def test_existing_locks_and_jobs_cause_no_warning(words: tuple[str, ...], init: Init) -> None:
    init.write("requirements.txt", A_LOCK)
    init.write(".github/workflows/envsolve.yml", "ours\n")
    done = init(*REQUEST, *words)
    assert done.code == 0, done.err
    assert "was not written by envsolve" not in done.err
    assert ("updates locks" in done.err) is ("--ci" not in words)
    assert "--force overwrites any" in done.err


def test_a_dry_run_shows_the_changes(init: Init) -> None:
    init.write("pyproject.toml", '[project]\nname = "x"\n')
    done = init(*REQUEST, "--dry-run")
    assert done.code == 0
    assert init.files == {"pyproject.toml"}
    assert init.read("pyproject.toml") == '[project]\nname = "x"\n'
    assert '+[tool.envsolve]\n+frameworks = ["pytorch"]\n' in done.out
    assert "+++ pylock.toml\n" in done.out


def test_user_settings_are_only_overwritten_with_force(init: Init) -> None:
    init.write("requirements.txt", "somebody's\n")
    assert init(*REQUEST, "-o", "requirements.txt").code == 0
    assert init.read("requirements.txt") == "somebody's\n"
    assert init(*REQUEST, "-o", "requirements.txt", "--force").code == 0
    assert pins_in(init.read("requirements.txt"))


def test_without_a_solution_nothing_is_written(init: Init) -> None:
    done = init("-f", "pytorch>=99", "--gpu", "8.6")
    assert done.code == 1
    assert init.files == set()


def test_a_misspelled_framework_is_not_reported_as_a_missing_file(init: Init) -> None:
    done = init("-f", "jxa")
    assert (done.code, init.files) == (2, set())
    assert done.err.splitlines()[:2] == [
        "error: unknown-framework",
        "  'jxa' is not a framework that envsolve knows",
    ]


PIXI = """\
[workspace]
channels = ["conda-forge"]
platforms = ["linux-64", "emscripten"]
[dependencies]
python = "3.12.*"
pytorch-gpu = ">=2.4,<3"
cuda-version = "12.6.*"
numpy = "*"
[pypi-dependencies]
rich = { version = ">=13" }
mine = { path = "." }
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "text", "table"),
    [
        (
            "environment.yml",
            "dependencies:\n  - python=3.12\n  - pytorch>=2.4\n  - pandas\n",
            {"requirement-files": ["environment.yml"], "outputs": ["conda-lock.yml"]},
        ),
        (
            "requirements.in",
            "torch>=2.4\nnumpy\n",
            {"requirement-files": ["requirements.in"], "outputs": ["pylock.toml"]},
        ),
        ("requirements.txt", "torch\n", {"requirement-files": ["requirements.txt"], "outputs": ["pylock.toml"]}),
        (
            "pixi.toml",
            PIXI,
            {
                "frameworks": ["pytorch>=2.4,<3"],
                "python": "==3.12.*",
                "cuda": "==12.6.*",
                "requirements": ["numpy", "rich>=13"],
                "platforms": ["linux-64"],
                "channels": ["conda-forge"],
                "outputs": ["conda-lock.yml"],
            },
        ),
    ],
)
def test_existing_settings_are_adopted(name: str, text: str, table: dict[str, Any], init: Init) -> None:
    init.write(name, text)
    done = init("--no-lock")
    assert done.code == 0, done.err
    assert init.table == {"gpus": "auto", **table}
    assert init.read(name) == text
    assert f"imported from {name}" in done.err


def test_a_conda_file_that_is_named_gets_a_conda_lock(init: Init) -> None:
    init.write("dev.yml", "dependencies: [python=3.12, pytorch>=2.4]\n")
    done = init("-r", "dev.yml", "--no-lock")
    assert done.code == 0, done.err
    assert init.table == {"gpus": "auto", "requirement-files": ["dev.yml"], "outputs": ["conda-lock.yml"]}


@pytest.mark.parametrize(
    ("snapshot", "name", "frameworks"),
    [
        ("tensorflow-rtx-3090.yml", "environment.yml", ["tensorflow"]),
        ("tensorflow.conda-lock.yml", "conda-lock.yml", ["tensorflow"]),
        ("python-lock-rtx-3090.requirements.txt", "requirements.txt", ["pytorch"]),
    ],
)
def test_the_request_of_an_earlier_answer_is_adopted(
    snapshot: str, name: str, frameworks: list[str], init: Init
) -> None:
    shutil.copy(SNAPSHOTS / snapshot, init.directory / name)
    assert init("--no-lock").code == 0
    assert init.table["frameworks"] == frameworks
    assert init.table["outputs"] == [name]


def test_dependencies_in_pyproject_are_adopted(init: Init) -> None:
    init.write("pyproject.toml", '[project]\nname = "x"\ndependencies = ["torch"]\n')
    assert init("--no-lock").code == 0
    assert init.table == {"project-dependencies": True, "gpus": "auto", "outputs": ["pylock.toml"]}


def test_without_anything_to_adopt_it_asks(init: Init) -> None:
    done = init()
    assert done.code == 2
    assert done.err.startswith("error: no-framework\n")
    assert init.files == set()


def test_an_existing_envsolve_toml_is_extended(init: Init) -> None:
    init.write("envsolve.toml", "")
    assert init(*REQUEST, "--no-lock").code == 0
    assert init.files == {"envsolve.toml"}
    assert init.read("envsolve.toml").startswith('frameworks = ["pytorch"]\n')


@pytest.mark.parametrize(
    ("system", "name"), [("github", ".github/workflows/envsolve.yml"), ("gitlab", ".gitlab/envsolve.yml")]
)
def test_a_job_that_checks_the_locks_is_written(system: str, name: str, init: Init) -> None:
    assert init(*REQUEST, "--no-lock", "--ci", system).code == 0
    assert "envsolve lock --check" in init.read(name)
    init.write(name, "ours\n")
    assert init(*REQUEST, "--no-lock", "--ci", system).code == 2
    assert init.read(name) == "ours\n"


def test_an_unreadable_file_is_one_error_and_nothing_is_lost(init: Init) -> None:
    init.write("pyproject.toml", "[project\n")
    done = init(*REQUEST)
    assert (done.code, done.err.splitlines()[0]) == (2, "error: file-unreadable")
    assert init.read("pyproject.toml") == "[project\n"


BOM = codecs.BOM_UTF8


def test_line_ends_and_the_byte_order_mark_are_preserved(init: Init) -> None:
    before = BOM + b'[project]\r\nname = "x"\r\n'
    (init.directory / "pyproject.toml").write_bytes(before)
    assert init(*REQUEST, "--no-lock").code == 0
    after = (init.directory / "pyproject.toml").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\r\n") == after.count(b"\n")
    assert init(*REQUEST, "--no-lock", "--force", "--dry-run").out == ""


@pytest.mark.thorough
@pytest.mark.parametrize("words", [(), ("--no-lock",)])
def test_a_project_that_cannot_be_locked_is_not_written(init: Init, words: tuple[str, ...]) -> None:
    vllm = ("-f", "vllm", "--gpu", "none", "--platform", "linux-64")
    done = init(*vllm, *words)
    assert done.code == 1
    assert "the wheels of vllm on the Python index need an NVIDIA GPU" in done.err
    assert "hint: name the GPU with --gpu\n" in done.err
    assert init.files == set()


@pytest.mark.parametrize("words", [("-f", "vllm==0.20.0+cpu", "--gpu", "none"), ("-f", "vllm", "--gpu", "A100")])
def test_a_project_that_another_index_may_solve_is_written(init: Init, words: tuple[str, ...]) -> None:
    assert init(*words, "--platform", "linux-64", "--no-lock").code == 0
    assert init.files == {"pyproject.toml"}


def test_force_preserves_trailing_comments(init: Init) -> None:
    init.write("pyproject.toml", '[tool.envsolve]\nframeworks = ["jax"]\n\n# about ruff\n[tool.ruff]\n')
    assert init(*REQUEST, "--no-lock", "--force").code == 0
    assert init.read("pyproject.toml").endswith('outputs = ["pylock.toml"]\n\n# about ruff\n[tool.ruff]\n')


def test_an_inline_table_of_tools_is_extended(init: Init) -> None:
    init.write("pyproject.toml", "tool = { ruff = { line-length = 99 } }\n")
    assert init(*REQUEST, "--no-lock").code == 0
    assert init.table["frameworks"] == ["pytorch"]
    assert tomli.loads(init.read("pyproject.toml"))["tool"]["ruff"] == {"line-length": 99}


def test_versions_are_written_in_the_usual_style(init: Init) -> None:
    assert init("-f", "pytorch>=2.4,<3", "--python", ">=3.11,<3.13", "--no-lock").code == 0
    assert (init.table["frameworks"], init.table["python"]) == (["pytorch>=2.4,<3"], ">=3.11,<3.13")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.in", "flask\n"),
        ("environment.yml", "dependencies:\n  - flask\n"),
        ("pixi.toml", '[dependencies]\nflask = "*"\n'),
        ("pyproject.toml", '[project]\nname = "x"\ndependencies = ["flask"]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\nflask = "^3"\n'),
    ],
)
def test_a_missing_framework_is_reported(name: str, text: str, init: Init) -> None:
    init.write(name, text)
    done = init("--no-lock")
    assert done.code == 0, done.err
    assert 'note: no framework is listed, so only package requirements count; to add one: frameworks = ["' in done.err


def test_skipped_settings_of_a_pyproject_are_reported(init: Init) -> None:
    dependencies = 'dependencies = ["torch"]\n[tool.uv]\nconstraint-dependencies = ["numpy<2"]\n'
    init.write("pyproject.toml", f'[project]\nname = "x"\n{dependencies}')
    done = init("--no-lock")
    assert done.code == 0, done.err
    assert "note: [tool.uv] constraint-dependencies (numpy) are ignored" in done.err
    assert "no framework" not in done.err


def test_overrides_of_uv_are_adopted_except_those_for_one_package(init: Init) -> None:
    every = """"werkzeug==2.3.0", "six; sys_platform == 'win32'\""""
    one = '{ package = "flask", dependencies = ["six<2"] }'
    tables = f'dependencies = ["torch"]\n[tool.uv]\noverride-dependencies = [{every}, {one}]\n'
    init.write("pyproject.toml", f'[project]\nname = "x"\n{tables}')
    done = init("--no-lock")
    assert done.code == 0, done.err
    assert init.table["overrides"] == ["werkzeug==2.3.0", "six; sys_platform == 'win32'"]
    assert "note: [tool.uv] override-dependencies for one package alone are ignored" in done.err


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are always Unicode")
def test_an_ascii_locale_is_one_clear_error(tmp_path: Path) -> None:
    """In its own process, because Python decides at its start how it names files."""
    text = '[tool.envsolve]\nframeworks = ["pytorch"]\noutputs = ["\u00e9.txt"]\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    environ = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "envsolve", "lock", "--json"],
        cwd=tmp_path,
        env={**environ, "ENVSOLVE_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        check=False,
    )
    (mistake,) = json.loads(done.stdout)["error"]["mistakes"]
    assert done.returncode == 2
    assert mistake.startswith("pyproject.toml:3: tool.envsolve.outputs: ")
    assert mistake.endswith(
        "a file with that name cannot be opened here, because file names are ascii: set PYTHONUTF8=1"
    )


@pytest.mark.parametrize("name", ["\u03bb", "\U0001f600", "\udce9"])
def test_unprintable_characters_on_standard_output_are_escaped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdout", stream)
    shown = printable(json.dumps({"a": f"\u00e9{name}"}, ensure_ascii=False))
    shown.encode("cp1252")
    assert "\u00e9" in shown
    assert json.loads(shown) == {"a": f"\u00e9{name}"}


def test_keys_and_schema_are_mentioned(envsolve: Envsolve) -> None:
    keys = envsolve("init", "--keys")
    assert keys.code == 0
    assert 'frameworks = ["pytorch>=2.5", "jax"]\n    The frameworks, optionally with versions.\n' in keys.out
    schema = envsolve("init", "--schema")
    assert schema.out == (Path(__file__).parents[2] / "docs" / "envsolve.schema.json").read_text(encoding="utf-8")


MACHINE = ("--gpu", "8.6", "--driver", "535.183.01", "--python", "3.11", "--platform", "linux-64")
NOT_LOCKABLE = """\
torch>=2.5
-e .
only-source  # the most wanted one
./vendor/thing ; python_version > "3"
numpy=>2
no_such.package>=1
-r more.in
typing-extensions
"""


@pytest.fixture
def hopeless(init: Init, world: IndexServer) -> Init:
    """A directory with requirements, most of which cannot be locked."""
    world.add("only-source", [sdist("only-source", "1.0", static=False)])
    init.write("requirements.txt", NOT_LOCKABLE)
    init.write("more.in", "\nother_source\n")
    world.add("other-source", [sdist("other-source", "1.0", static=False)])
    return init


@pytest.mark.thorough
def test_all_requirements_that_no_lock_can_represent_are_one_error_with_a_command_that_drops_them(
    hopeless: Init, envsolve: Envsolve
) -> None:
    done = hopeless(*MACHINE)
    assert (done.code, hopeless.files) == (1, {"requirements.txt", "more.in"})
    assert done.err.startswith("error: requirements-not-lockable\n  6 requirements cannot be locked\n")
    causes = [it.removeprefix("cause: ") for it in done.err.splitlines() if it.startswith("cause: ")]
    assert sorted(it.split(": ")[0] for it in causes) == [
        "more.in:2",
        *(f"requirements.txt:{it}" for it in range(2, 7)),
    ]
    assert "requirements.txt:3: only-source must be built to read its requirements" in causes
    assert "requirements.txt:6: no-such-package is on no index" in causes
    (command,) = [it for it in done.err.splitlines() if "--exclude" in it]
    found = envsolve(*shlex.split(command)[1:])
    assert found.code == 0, found.err
    excluded = hopeless.table["exclude"]
    assert set(excluded) == {".", "./vendor/thing", "numpy", "only-source", "other-source", "no-such-package"}
    assert "note: only-source is excluded (requirements.txt:3)\n" in found.err
    assert {it["name"] for it in tomli.loads(hopeless.read("pylock.toml"))["packages"]} >= {
        "torch",
        "typing-extensions",
    }
    assert hopeless.read("requirements.txt") == NOT_LOCKABLE
    assert envsolve("status").code == 0
    assert envsolve("lock", "--check", "--cache-dir", "cache").code == 0


def test_a_single_error_keeps_its_code_and_suggests_how_to_drop_the_requirement(init: Init, envsolve: Envsolve) -> None:
    init.write("requirements.txt", "numpy\n-e .\n")
    done = init(*MACHINE)
    assert (done.code, done.err.splitlines()[0]) == (2, "error: direct-reference-invalid")
    assert "requirements.txt:2: '-e .'" in done.err
    (command,) = [it for it in done.err.splitlines() if "--exclude" in it]
    assert envsolve(*shlex.split(command)[1:]).code == 0


def test_an_unreadable_address_is_listed_with_the_others(init: Init, envsolve: Envsolve) -> None:
    wheel = "file:///nope/gone-1.0-py3-none-any.whl"
    repositories = "".join(f"git+http://127.0.0.1:9/{it}.git\n" for it in ("one", "two"))
    init.write("requirements.txt", f"numpy\n./vendor\n{wheel}\n{repositories}no-such-package\n")
    done = init(*MACHINE)
    assert done.err.startswith("error: requirements-not-lockable\n  5 requirements cannot be locked\n")
    for text in (
        "requirements.txt:2: './vendor': there is no folder ./vendor",
        f"requirements.txt:3: gone @ {wheel} cannot be fetched: there is no such file\n",
        "requirements.txt:4: cannot read git+http://127.0.0.1:9/one.git: ",
        "requirements.txt:5: cannot read git+http://127.0.0.1:9/two.git: ",
        "requirements.txt:6: no-such-package is on no index",
    ):
        assert f"\ncause: {text}" in done.err
    (command,) = [it for it in done.err.splitlines() if "--exclude" in it]
    assert envsolve(*shlex.split(command)[1:]).code == 0


def test_remaining_errors_are_reported_with_them(init: Init) -> None:
    init.write("requirements.txt", "--pre\nnumpy=>2\n--no-binary numpy\n./vendor\n")
    done = init(*MACHINE)
    assert (done.code, init.files) == (1, {"requirements.txt"})
    for text in (
        "requirements.txt:2: 'numpy=>2' is not a requirement",
        "requirements.txt:4: './vendor': there is no folder ./vendor",
        "and without them: requirements.txt:1: envsolve does not know the option --pre",
        "and without them: requirements.txt:3: envsolve does not know the option --no-binary",
    ):
        assert f"\ncause: {text}" in done.err


def test_lock_reports_all_mistakes_of_a_file_and_the_key_that_drops_them(init: Init, envsolve: Envsolve) -> None:
    init.write("requirements.txt", "numpy\n")
    assert init(*MACHINE).code == 0
    init.write("requirements.txt", "numpy\n./a\n./b\n")
    done = envsolve("lock", "--cache-dir", "cache")
    assert done.err.count("there is no folder") == 2
    assert 'exclude = ["./a", "./b"]\n' in done.err
    text = init.read("pyproject.toml")
    init.write("pyproject.toml", text.replace("[tool.envsolve]\n", '[tool.envsolve]\nexclude = ["./a", "./b", "c"]\n'))
    done = envsolve("lock", "--cache-dir", "cache")
    assert done.code == 0, done.err
    assert "note: ./b is excluded (requirements.txt:3)\n" in done.err
    assert 'note: exclude = ["c"] has no effect: nothing requires it\n' in done.err


@pytest.mark.thorough
def test_requirements_of_packages_are_never_dropped(init: Init) -> None:
    init.write("requirements.txt", "torch\ntyping-extensions\n")
    assert init(*MACHINE, "--exclude", "typing_extensions").code == 0
    names = {it["name"] for it in tomli.loads(init.read("pylock.toml"))["packages"]}
    assert {"torch", "typing-extensions"} <= names


def test_repositories_and_folders_in_an_environment_file_are_one_error(init: Init) -> None:
    init.write("mine/pyproject.toml", '[project]\nname = "mine"\nversion = "1"\n')
    pip = ["-e ./mine", "git+https://git.example.org/team/tool.git@v0.7.1"]
    init.write("environment.yml", json.dumps({"dependencies": ["python=3.11", {"pip": pip}]}, indent=1))
    done = init(*MACHINE, "--offline")
    assert done.err.startswith("error: requirements-not-lockable\n  2 requirements cannot be locked\n")
    assert "environment.yml:6: mine is from a folder, which the format 'conda-lock' does not support" in done.err
    assert "environment.yml:7: tool is from a repository, which the format 'conda-lock' does not support" in done.err
    assert " --exclude mine --exclude tool " in done.err
