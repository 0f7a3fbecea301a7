"""``envsolve add --prefix``: packages installed into an existing environment, around its packages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli

from tests.cli.creating import Creating, creating_in, tree
from tests.cli.locked import pins_in
from tests.cli.locking import assert_in_three_parts
from tests.cli.worlds import LINUX
from tests.conftest import Envsolve, Result
from tests.index.packages import IndexFile, wheel
from tests.scripts.fat_binary import fat_binary

pytestmark = [
    pytest.mark.thorough,  # each makes whole environments
    pytest.mark.skipif(sys.platform == "win32", reason="the interpreter of a venv lies elsewhere there"),
]
VENDOR = "2.8.0a0+5228986c39.nv25.6"
TAGS = "py3-none-linux_x86_64"


class Adding:
    """Runs ``envsolve add --prefix env`` on an environment that another tool made."""

    def __init__(self, create: Creating) -> None:
        self.create, self.index = create, create.index

    def __call__(self, *words: str) -> Result:
        where = ("--prefix", "env", "--index-url", self.index.index_url, "--cache-dir", "cache")
        return self.create.envsolve("add", *words, *where)

    def has(self, *wheels: IndexFile) -> None:
        """Create the environment with these packages, which no index needs to have."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "env"], check=True)
        files = []
        for it in wheels:
            files.append(self.create.directory / it.name)
            files[-1].write_bytes(it.content or b"")
        if files:
            self.pip("install", "--no-index", "--no-deps", *map(str, files))
        for record in self.create.prefix.glob("lib/python*/site-packages/*/direct_url.json"):
            record.unlink()  # as if an index had had them

    def pip(self, *words: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.create.prefix / "bin" / "python"), *words]
        subprocess.run(command, check=True, capture_output=True)

    def refused(self, code: str, *words: str) -> Result:
        """The result of a refused command, which changes nothing."""
        before = tree(self.create.prefix)
        done = self(*words)
        assert (done.code, done.out) == (1, ""), done.err
        assert done.err.startswith(f"error: {code}\n"), done.err
        assert_in_three_parts(done.err)
        assert tree(self.create.prefix) == before
        return done


@pytest.fixture
def adding(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adding]:
    with creating_in(envsolve, tmp_path, monkeypatch) as creating:
        yield Adding(creating)


@pytest.mark.usefixtures("installer")
def test_a_vendor_build_stays_and_only_missing_packages_are_installed(adding: Adding) -> None:
    adding.has(wheel("torch", VENDOR, tags=TAGS), wheel("beta", "1.0"))
    adding.index.add("torch", [wheel("torch", "2.9.0")])
    adding.index.add("gamma", [wheel("gamma", "3.0", ["torch>=2.5", "beta", "delta"])])
    adding.index.add("delta", [wheel("delta", "1.0")])
    done = adding("gamma")
    assert (done.code, done.out) == (0, ""), done.err
    assert done.err.endswith("  + delta 1.0\n  + gamma 3.0\n")
    assert adding.create.installed() == {"torch": VENDOR, "beta": "1.0", "gamma": "3.0", "delta": "1.0"}
    again = adding("gamma")
    assert (again.code, again.err) == (0, "note: env has gamma already\n")


def test_diff_prints_what_would_change_and_changes_nothing(adding: Adding) -> None:
    adding.has(wheel("beta", "1.0"))
    before = tree(adding.create.prefix)
    done = adding("alpha", "--diff")
    assert (done.code, done.out, done.err) == (0, "  + alpha 1.0\n", "")
    assert tree(adding.create.prefix) == before


def test_json_has_the_fields_of_sync(adding: Adding) -> None:
    adding.has(wheel("beta", "1.0"))
    came = {"name": "alpha", "before": None, "after": "1.0"}
    for words, outcome, changes in (
        (("--diff",), "would-change", [came]),
        ((), "changed", [came]),
        ((), "up-to-date", []),
        (("--diff",), "up-to-date", []),
    ):
        done = adding("alpha", "--json", *words)
        assert done.code == 0, done.err
        document = json.loads(done.out)
        assert (document["schema_version"], document["kind"], document["validation"]) == (1, "venv", None)
        assert (document["outcome"], document["changes"], document["notes"]) == (outcome, changes, [])
        assert document["prefix"] == str(adding.create.prefix)
    refused = adding("no-such-package", "--json")
    assert (refused.code, json.loads(refused.out)["error"]["code"]) == (1, "package-not-found")


@pytest.mark.usefixtures("installer")
def test_conflicting_packages_change_with_their_dependents_and_nothing_else_does(adding: Adding) -> None:
    adding.has(wheel("alpha", "1.0", ["beta<2"]), wheel("beta", "1.0"), wheel("other", "1.0"))
    adding.index.add("alpha", [wheel("alpha", "1.0", ["beta<2"]), wheel("alpha", "1.1", ["beta"])])
    adding.index.add("other", [wheel("other", "2.0")])
    adding.index.add("gamma", [wheel("gamma", "3.0", ["beta>=2", "other"])])
    done = adding("gamma")
    assert (done.code, done.err) == (0, "  ~ alpha 1.0 -> 1.1\n  ~ beta 1.0 -> 2.0\n  + gamma 3.0\n")
    assert adding.create.installed() == {"alpha": "1.1", "beta": "2.0", "gamma": "3.0", "other": "1.0"}


def test_a_requirement_that_excludes_the_framework_is_refused_by_name(adding: Adding) -> None:
    adding.has(wheel("torch", VENDOR, tags=TAGS))
    adding.index.add("torch", [wheel("torch", "2.9.0")])
    adding.index.add("gamma", [wheel("gamma", "3.0", ["torch>=2.8"])])
    done = adding.refused("packages-conflict", "gamma")
    assert f"gamma 3.0 requires torch>=2.8, and torch {VENDOR} is installed" in done.err
    assert "torch stays: it is a framework" in done.err


def test_compiled_packages_of_a_framework_stay_and_others_may_change(adding: Adding) -> None:
    torch = wheel("torch", VENDOR, ["nvidia-nccl-cu12", "sympy"], tags=TAGS)
    adding.has(torch, wheel("nvidia-nccl-cu12", "2.27", tags=TAGS), wheel("sympy", "1.0"))
    adding.index.add("sympy", [wheel("sympy", "2.0")])
    adding.index.add("nvidia-nccl-cu12", [wheel("nvidia-nccl-cu12", "2.28", tags=TAGS)])
    adding.index.add("gamma", [wheel("gamma", "3.0", ["sympy>=2"])])
    adding.index.add("delta", [wheel("delta", "1.0", ["nvidia-nccl-cu12>=2.28"])])
    assert "  ~ sympy 1.0 -> 2.0\n" in adding("gamma").err
    done = adding.refused("packages-conflict", "delta")
    assert "requires nvidia-nccl-cu12>=2.28, and nvidia-nccl-cu12 2.27 is installed" in done.err


def test_a_compiled_package_of_a_known_framework_changes_within_its_range(adding: Adding) -> None:
    adding.has(wheel("onnxruntime", "1.32.0", ["numpy>=2"], tags=TAGS), wheel("numpy", "2.4", tags=TAGS))
    adding.index.add("numpy", [wheel("numpy", version, tags=TAGS) for version in ("1.26", "2.2", "2.4")])
    done = adding.refused("packages-conflict", "numpy<2")
    assert "onnxruntime stays: it is a framework" in done.err
    done = adding("numpy<2.3")
    assert (done.code, done.err) == (0, "  ~ numpy 2.4 -> 2.2\n")
    assert adding.create.installed() == {"onnxruntime": "1.32.0", "numpy": "2.2"}


@pytest.mark.parametrize("version", ["2.1.2+cpu", "2.1.2+cu121"])
def test_matrix_facts_about_a_framework_limit_changes(adding: Adding, version: str) -> None:
    adding.has(wheel("torch", version, tags=TAGS), wheel("numpy", "1.25", tags=TAGS))
    adding.index.add("numpy", [wheel("numpy", version, tags=TAGS) for version in ("1.26", "2.2")])
    adding.index.add("gamma", [wheel("gamma", "3.0", ["numpy>1.25"])])
    assert adding("gamma", "--diff").out == "  + gamma 3.0\n  ~ numpy 1.25 -> 1.26\n"
    assert "numpy<2" in adding.refused("packages-conflict", "numpy>=2").err


def test_the_cuda_of_a_known_framework_stays(adding: Adding) -> None:
    torch = wheel("torch", "2.8.0+cu128", ["nvidia-nccl-cu12"], tags=TAGS)
    vision = wheel("torchvision", "0.23.0", ["torch"], tags=TAGS)
    adding.has(torch, vision, wheel("nvidia-nccl-cu12", "2.27.3", tags=TAGS))
    adding.index.add("nvidia-nccl-cu12", [wheel("nvidia-nccl-cu12", "2.28", tags=TAGS)])
    adding.index.add("torchvision", [wheel("torchvision", "0.24.0", tags=TAGS)])
    for package, requirement in (("nvidia-nccl-cu12", "nvidia-nccl-cu12>2.27.3"), ("torchvision", "torchvision>=0.24")):
        done = adding.refused("packages-conflict", requirement)
        assert f"{package} stays: torch 2.8.0+cu128 may need this version" in done.err


def test_requirements_of_a_framework_on_its_packages_still_apply(adding: Adding) -> None:
    adding.has(wheel("torch", VENDOR, ["sympy<2"], tags=TAGS), wheel("sympy", "1.0"))
    adding.index.add("sympy", [wheel("sympy", "1.5"), wheel("sympy", "2.0")])
    adding.index.add("gamma", [wheel("gamma", "3.0", ["sympy>1.0"])])
    assert adding("gamma", "sympy<2").err == "  + gamma 3.0\n  ~ sympy 1.0 -> 1.5\n"
    done = adding.refused("packages-conflict", "sympy>=2")
    assert f"the installed torch {VENDOR} requires sympy<2" in done.err


def test_packages_that_no_index_has_stay_unchanged(adding: Adding) -> None:
    adding.has(wheel("beta", "1.0+local"))
    adding.refused("packages-conflict", "beta>=2")


def test_extras_of_installed_packages_bring_their_requirements(adding: Adding) -> None:
    adding.has(wheel("omega", "1.0", ['beta>=2; extra == "more"'], extras=["more"]))
    done = adding("omega[more]")
    assert (done.code, done.err) == (0, "  + beta 2.0\n")


def test_constraints_of_the_image_apply(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    adding.has(wheel("torch", VENDOR, tags=TAGS))
    Path("constraint.txt").write_text(f"beta<2\ntorch=={VENDOR}\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(Path("constraint.txt").absolute()))
    assert "  + alpha 1.0\n  + beta 1.0\n" in adding("alpha").err


@pytest.mark.usefixtures("installer")
def test_an_error_says_that_nothing_changed(adding: Adding) -> None:
    adding.has(wheel("beta", "1.0"))
    adding.index.add("gamma", [wheel("gamma", "3.0")._replace(content=b"no wheel")])
    done = adding("gamma")
    assert (done.code, done.out) == (3, "")
    assert f"{adding.create.prefix}: nothing in it has changed" in done.err
    assert adding.create.installed() == {"beta": "1.0"}


def test_unverified_code_is_noted(adding: Adding) -> None:
    adding.has(wheel("torch", VENDOR, tags=TAGS))
    adding.index.add("gamma", [wheel("gamma", "3.0", ["torch"], tags=TAGS)])
    done = adding("gamma")
    assert done.err == (
        f"note: CUDA code of gamma was not verified: the matrix does not know the installed torch {VENDOR}\n"
        "  + gamma 3.0\n"
    )


def test_code_is_chosen_for_the_gpu_and_the_installed_framework(adding: Adding) -> None:
    adding.has(wheel("torch", "2.8.0+cu128", tags=TAGS))
    tags = f"cp{sys.version_info[0]}{sys.version_info[1]}-cp{sys.version_info[0]}{sys.version_info[1]}-{LINUX}"
    for version, code in (("1.0", fat_binary((70, 80))), ("2.0", fat_binary((80,), (80,)))):
        members = {"kernels/_C.so": b"\x7fELF" + code}
        adding.index.add("kernels", [wheel("kernels", version, ["torch"], tags=tags, members=members)])
    arguments = ("kernels", "--diff", "--gpu")
    assert adding(*arguments, "7.5").out == "  + kernels 1.0\n"
    assert adding(*arguments, "9.0").out == "  + kernels 2.0\n"


def test_an_older_compatible_version_is_installed_with_a_note(adding: Adding) -> None:
    adding.has(wheel("beta", "1.0"))
    adding.index.add("gamma", [wheel("gamma", "3.0", ["beta"]), wheel("gamma", "4.0", ["beta>=2"])])
    done = adding("gamma", "--diff")
    assert (done.code, done.out) == (0, "  + gamma 3.0\n")
    because = "gamma 4.0 requires beta>=2, and beta 1.0 is installed"
    assert done.err == f"note: gamma 3.0 is used, not 4.0: {because}; require gamma>=4.0 if that may change\n"
    assert adding("gamma<4", "--diff").err == ""
    assert adding("gamma>=4.0", "--diff").out == "  ~ beta 1.0 -> 2.0\n  + gamma 4.0\n"


def test_a_new_framework_is_a_build_for_the_gpu(adding: Adding) -> None:
    adding.has(wheel("beta", "1.0"))
    adding.index.add("torch", [wheel("torch", "2.12.0", tags=TAGS)])
    adding.index.index("/whl/cu126/", "pytorch").add("torch", [wheel("torch", "2.12.0+cu126", tags=TAGS)])
    done = adding("torch==2.12.0", "--diff", "--gpu", "6.1", "--pytorch-index-url", f"{adding.index.url}/whl")
    assert (done.code, done.out) == (0, "  + torch 2.12.0+cu126\n"), done.err


def test_a_build_that_the_index_lacks_is_skipped(adding: Adding) -> None:
    adding.has(wheel("beta", "1.0"))
    adding.index.add("torch", [wheel("torch", "2.12.0", tags=TAGS)])
    adding.index.index("/whl/cu126/", "pytorch").add("torch", [wheel("torch", "2.11.0+cu126", tags=TAGS)])
    options = ("--diff", "--gpu", "6.1", "--pytorch-index-url", f"{adding.index.url}/whl")
    assert adding("torch<=2.12.0", *options).out == "  + torch 2.11.0+cu126\n"
    assert "torch==2.12.0+cu126" in adding.refused("version-not-found", "torch==2.12.0", *options).err


def test_an_installed_framework_is_not_searched_for(adding: Adding) -> None:
    adding.has(wheel("torch", VENDOR, tags=TAGS))
    assert adding("torch", "--gpu", "6.1").err == "note: env has torch already\n"
    adding.index.add("gamma", [wheel("gamma", "3.0", ["torch"])])
    assert adding("torch", "gamma", "--gpu", "6.1").err == "  + gamma 3.0\n"


def test_a_wheel_by_url_replaces_the_installed_one(adding: Adding) -> None:
    adding.has(wheel("beta", "1.0"))
    address = f"{adding.index.url}/files/beta/beta-2.0-py3-none-any.whl"
    assert adding(f"beta @ {address}").err == "  ~ beta 1.0 -> 2.0\n"
    assert adding.create.installed() == {"beta": "2.0"}
    assert adding(f"beta @ {address}").err == "  ~ beta 2.0 (installed again)\n"


def test_conda_packages_stay_and_wheels_are_added(adding: Adding) -> None:
    Path("environment.yml").write_text("dependencies:\n  - python\n  - gamma\n")
    adding.create.lock("made.conda-lock.yml", "-r", "environment.yml")
    assert adding.create("env", "--lock", "made.conda-lock.yml").code == 0
    done = adding("alpha")
    assert (done.code, done.err) == (0, "  + alpha 1.0\n  + beta 2.0\n")
    assert "conda installs gamma 1.0" in adding.refused("packages-conflict", "gamma>=2").err
    assert list(adding.create.prefix.glob("conda-meta/gamma-*.json"))


def test_an_environment_of_envsolve_can_still_be_recreated(adding: Adding) -> None:
    assert adding.create.request().code == 0
    adding.index.add("gamma", [wheel("gamma", "3.0")])
    assert adding("gamma").code == 0
    assert adding.create("env", "beta", "--index-url", adding.index.index_url, "--gpu", "none", "--force").code == 0
    assert adding.create.installed() == {"beta": "2.0"}


def test_a_project_is_locked_around_an_environment(adding: Adding) -> None:
    adding.has(wheel("torch", VENDOR, tags=TAGS), wheel("beta", "1.0"))
    adding.index.add("torch", [wheel("torch", "2.9.0")])
    adding.index.add("gamma", [wheel("gamma", "3.0", ["torch>=2.5", "beta", "delta"])])
    adding.index.add("delta", [wheel("delta", "1.0")])
    lines = [
        "[tool.envsolve]",
        'frameworks = ["pytorch>=2.5"]',
        'requirements = ["gamma", "beta"]',
        f'index-url = "{adding.index.index_url}"',
        'outputs = ["requirements.txt", "pylock.toml"]',
    ]
    Path("pyproject.toml").write_text("\n".join(lines))
    run = adding.create.envsolve
    done = run("lock", "--around", "env", "--cache-dir", "cache")
    assert done.code == 0, done.err
    text = Path("requirements.txt").read_text()
    assert pins_in(text) == {"delta": "1.0", "gamma": "3.0"}
    assert f'around = ["beta==1.0", "torch=={VENDOR}"]' in text
    assert {it["name"] for it in tomli.loads(Path("pylock.toml").read_text())["packages"]} == {"delta", "gamma"}
    adding.index.add("delta", [wheel("delta", "1.0"), wheel("delta", "2.0")])
    again = run("lock", "--around", "env", "--cache-dir", "cache", "--refresh", "--check")
    assert (again.code, again.err) == (0, "note: requirements.txt, pylock.toml: up to date\n")
    assert run("status").code == 0
    refused = adding.create("other", "--lock", "requirements.txt")
    assert refused.code == 2
    assert f"requirements.txt lacks what it was made around: beta==1.0, torch=={VENDOR}" in refused.err
    adding.pip("install", "--no-deps", "--require-hashes", "-r", "requirements.txt")
    assert adding.create.installed() == {"torch": VENDOR, "beta": "1.0", "gamma": "3.0", "delta": "1.0"}


def test_a_lock_around_an_environment_has_only_its_python_and_wheels(adding: Adding) -> None:
    adding.has()
    for key, text in (('python = "<3"', "has Python"), ('outputs = ["conda-lock.yml"]', "is for its wheels")):
        outputs = "" if key.startswith("outputs") else 'outputs = ["requirements.txt"]'
        Path("pyproject.toml").write_text(f'[tool.envsolve]\nrequirements = ["alpha"]\n{key}\n{outputs}\n')
        done = adding.create.envsolve("lock", "--around", "env")
        assert (done.code, done.out) == (2, "")
        assert text in done.err


def test_options_of_the_other_mode_are_refused(adding: Adding) -> None:
    for words in (
        ("add", "alpha", "--index-url", "http://127.0.0.1/"),
        ("add", "alpha", "--prefix", "env", "--lock", "pylock.toml"),
        ("remove", "alpha", "--prefix", "env"),
    ):
        done = adding.create.envsolve(*words)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("error: contradictory-options\n"), done.err


def test_a_framework_installed_as_its_cpu_package_stays(adding: Adding) -> None:
    adding.has(wheel("onnxruntime", "1.99.0", tags=TAGS))
    lines = [
        "[tool.envsolve]",
        'frameworks = ["onnxruntime"]',
        'requirements = ["beta"]',
        'gpus = ["none"]',
        f'index-url = "{adding.index.index_url}"',
        'outputs = ["pylock.toml"]',
    ]
    Path("pyproject.toml").write_text("\n".join(lines))
    done = adding.create.envsolve("lock", "--around", "env", "--cache-dir", "cache")
    assert done.code == 0, done.err
    assert 'around = ["onnxruntime==1.99.0"]' in Path("pylock.toml").read_text()
