"""The settings written for uv into a pyproject.toml; the user's own settings are not touched."""

from __future__ import annotations

from typing import Any

import pytest
import tomli

from envsolve.errors import UsageError
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.uv_project import DefaultIndex, LockedTarget, with_settings
from envsolve.model.own_lines import OWN, without_own_lines
from envsolve.model.package import PackageFile, Pin

HOME = "https://home.example/simple"
CUDA = "https://torch.example/whl/cu126"
CPU = "https://torch.example/whl/cpu"
DEFAULT = DefaultIndex(HOME)
LINUX = "platform_machine == 'x86_64' and python_version == '3.11' and sys_platform == 'linux'"
WINDOWS = "platform_machine == 'AMD64' and python_version == '3.11' and sys_platform == 'win32'"
PROJECT = '# mine\n[project]\nname = "demo"  # the name\ndependencies = ["torch", "numpy"]\n'
WHEEL = "https://wheels.example/kernels-1.0-cp311-cp311-linux_x86_64.whl"


def pin(name: str, version: str, index: str | None = HOME, url: str = "") -> Pin:
    return Pin(name, version, (PackageFile(url.rpartition("/")[2], url),), index)


def lock(*pins: Pin, platform: str = "linux-64") -> Lock:
    return Lock(pins, platform, "3.11.4")


def target(*pins: Pin, extra: str = "", requires: tuple[str, ...] = ("torch",)) -> LockedTarget:
    return LockedTarget(extra, (lock(*pins),), requires)


ON_CUDA = target(pin("numpy", "2.0"), pin("torch", "2.8.0+cu126", CUDA))
GPU = target(pin("nvidia-cublas", "12.6"), pin("numpy", "2.0"), pin("torch", "2.8.0+cu126", CUDA), extra="gpu")
NO_GPU = target(pin("numpy", "2.0"), pin("torch", "2.8.0+cpu", CPU), extra="cpu")


def written(text: str, *targets: LockedTarget, default: DefaultIndex = DEFAULT) -> dict[str, Any]:
    """The document with the settings; writing them again changes nothing, and removing them leaves nothing."""
    after = with_settings(text, targets, default)
    assert with_settings(after, targets, default) == after
    assert tomli.loads(without_own_lines(after)) == tomli.loads(text)
    assert "".join(without_own_lines(after).split()) == "".join(text.split())  # a list may be on more lines
    return tomli.loads(after)


def refused(text: str, *targets: LockedTarget) -> str:
    with pytest.raises(UsageError) as raised:
        with_settings(text, targets, DEFAULT)
    assert (raised.value.code, len(raised.value.hints)) == ("uv-settings-refused", 1)
    return raised.value.message


def test_versions_are_constraints_and_an_index_has_its_packages() -> None:
    uv = written(PROJECT, ON_CUDA)["tool"]["uv"]
    assert uv == {
        "constraint-dependencies": [f"numpy==2.0 ; {LINUX}", f"torch==2.8.0+cu126 ; {LINUX}"],
        "index": [{"name": "pytorch-cu126", "url": CUDA, "explicit": True}],
        "sources": {"torch": [{"index": "pytorch-cu126", "marker": LINUX}]},
    }


def test_packages_that_targets_lock_differently_are_in_an_extra_for_each() -> None:
    found = written(PROJECT, GPU, NO_GPU)
    assert found["project"]["optional-dependencies"] == {
        "gpu": [f"nvidia-cublas==12.6 ; {LINUX}", f"torch==2.8.0+cu126 ; {LINUX}"],
        "cpu": [f"torch==2.8.0+cpu ; {LINUX}"],
    }
    uv = found["tool"]["uv"]
    assert uv["conflicts"] == [[{"extra": "gpu"}, {"extra": "cpu"}]]
    assert uv["constraint-dependencies"] == [f"numpy==2.0 ; {LINUX}"]
    assert uv["sources"]["torch"] == [
        {"index": "pytorch-cu126", "marker": LINUX, "extra": "gpu"},
        {"index": "pytorch-cpu", "marker": LINUX, "extra": "cpu"},
    ]


def test_one_version_on_two_platforms_is_one_constraint() -> None:
    both = LockedTarget("", (lock(pin("numpy", "2.0")), lock(pin("numpy", "2.0"), platform="win-64")))
    uv = written(PROJECT, both)["tool"]["uv"]
    assert uv["constraint-dependencies"] == [f"numpy==2.0 ; ({WINDOWS}) or ({LINUX})"]


def test_targets_for_different_machines_have_extras_without_versions() -> None:
    windows = LockedTarget("laptop", (lock(pin("numpy", "1.26"), pin("torch", "2.7"), platform="win-64"),))
    found = written(PROJECT, GPU, windows)
    uv = found["tool"]["uv"]
    assert found["project"]["optional-dependencies"] == {"gpu": [], "laptop": []}
    assert uv["constraint-dependencies"][:2] == [f"numpy==2.0 ; {LINUX}", f"numpy==1.26 ; {WINDOWS}"]
    assert uv["sources"] == {"torch": [{"index": "pytorch-cu126", "marker": LINUX}]}


def test_packages_that_the_project_does_not_require_are_in_the_extra_of_its_target() -> None:
    jax = target(pin("jax", "0.8"), pin("jax-cuda12-plugin", "0.8"), extra="gpu", requires=("jax[cuda12]",))
    found = written(PROJECT, jax)
    assert found["project"]["optional-dependencies"] == {"gpu": [f"jax[cuda12]==0.8 ; {LINUX}"]}
    assert found["tool"]["uv"]["constraint-dependencies"] == [f"jax-cuda12-plugin==0.8 ; {LINUX}"]
    assert "conflicts" not in found["tool"]["uv"]


def test_packages_that_only_another_extra_requires_are_missing() -> None:
    text = PROJECT.replace('"torch", ', "") + '[project.optional-dependencies]\ncpu = ["torch"]\n'
    extras = written(text, GPU, NO_GPU)["project"]["optional-dependencies"]
    assert extras["cpu"] == [f"torch==2.8.0+cpu ; {LINUX}", "torch"]
    alone = written(text, target(pin("torch", "2.8"), extra="gpu"))["project"]["optional-dependencies"]
    assert alone == {"gpu": [f"torch==2.8 ; {LINUX}"], "cpu": ["torch"]}
    assert "gpu" not in str(written(text, target(pin("torch", "2.8"))))


def test_url_wheels_and_overrides_are_written_for_uv_too() -> None:
    by_address = target(pin("kernels", "1.0", None, WHEEL), pin("numpy", "2.0"))._replace(overrides=("numpy<3",))
    text = PROJECT.replace('"torch"', '"torch", "kernels"')
    uv = written(text, by_address)["tool"]["uv"]
    assert uv["sources"] == {"kernels": [{"url": WHEEL, "marker": LINUX}]}
    assert uv["override-dependencies"] == ["numpy<3"]
    assert uv["constraint-dependencies"] == [f"numpy==2.0 ; {LINUX}"]


def test_requirements_by_url_are_left_to_the_project() -> None:
    text = PROJECT.replace('"torch"', f'"torch", "kernels @ {WHEEL}"')
    assert written(text, target(pin("kernels", "1.0", None, WHEEL))) == tomli.loads(text)


def test_the_default_index_is_written_if_the_project_names_it() -> None:
    uv = written(PROJECT, ON_CUDA, default=DefaultIndex(HOME, is_named=True))["tool"]["uv"]
    assert uv["index"][0] == {"url": HOME, "default": True}
    assert "numpy" not in uv["sources"]


MINE = f"""{PROJECT}
[project.optional-dependencies]  # mine
cpu = ["torch"]  # mine
[tool.uv]  # mine
package = false
constraint-dependencies = ["six<2"]  # mine
conflicts = [ # mine
    [{{ extra = "cpu" }}, {{ extra = "gpu" }}, {{ extra = "tpu" }}],
]
[[tool.uv.index]]
name = "mine"
url = "{CUDA}/"
explicit = true
[tool.uv.sources]
six = {{ git = "https://git.example/six" }}  # mine
[tool.other]
key = '''
[tool.uv]
'''
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_user_entries_stay_and_their_index_is_used(end: str) -> None:
    text = MINE.replace("\n", end)
    after = with_settings(text, (GPU, NO_GPU), DEFAULT)
    assert after.count("\r\n") == (after.count("\n") if end == "\r\n" else 0)
    found = written(text, GPU, NO_GPU)
    uv = found["tool"]["uv"]
    assert uv["constraint-dependencies"] == [f"numpy==2.0 ; {LINUX}", "six<2"]
    assert uv["conflicts"] == tomli.loads(text)["tool"]["uv"]["conflicts"]
    assert [it["name"] for it in uv["index"]] == ["mine", "pytorch-cpu"]
    assert uv["sources"]["torch"][0]["index"] == "mine"
    assert found["project"]["optional-dependencies"]["cpu"] == [f"torch==2.8.0+cpu ; {LINUX}", "torch"]


def test_an_existing_source_for_the_same_index_is_enough() -> None:
    index = f'[[tool.uv.index]]\nname = "mine"\nurl = "{CUDA}"\n[tool.uv.sources]\n'
    text = PROJECT + index + 'torch = [{ index = "mine", marker = "sys_platform == \'linux\'" }]\n'
    assert "torch" not in "".join(it for it in with_settings(text, (ON_CUDA,), DEFAULT).splitlines() if "sources" in it)
    assert written(text, ON_CUDA)["tool"]["uv"]["sources"] == tomli.loads(text)["tool"]["uv"]["sources"]


def test_other_locks_replace_written_settings() -> None:
    before = with_settings(MINE, (GPU, NO_GPU), DEFAULT)
    after = with_settings(before, (target(pin("numpy", "2.1")),), DEFAULT)
    assert tomli.loads(after) == written(MINE, target(pin("numpy", "2.1")))
    assert "cu126" not in after.replace(CUDA, "")


REFUSED = {
    "no project": ("[tool.other]\n", (ON_CUDA,), "it has no table [project]"),
    "another constraint": (
        f'{PROJECT}[tool.uv]\nconstraint-dependencies = ["numpy<2"]\n',
        (ON_CUDA,),
        "constraint-dependencies in [tool.uv] has 'numpy<2', but the lock has 2.0",
    ),
    "another source": (
        f'{PROJECT}[tool.uv.sources]\ntorch = {{ git = "https://git.example/torch" }}\n',
        (ON_CUDA,),
        f"[tool.uv.sources] takes torch from another place than the lock: {CUDA}",
    ),
    "a source for another machine alone": (
        f"{PROJECT}[tool.uv.sources]\ntorch = [{{ index = 'x', marker = \"sys_platform == 'win32'\" }}]\n",
        (ON_CUDA,),
        f"[tool.uv.sources] takes torch from another place than the lock: {CUDA}",
    ),
    "another index of the name": (
        f'{PROJECT}[[tool.uv.index]]\nname = "pytorch-cu126"\nurl = "https://other.example"\n',
        (ON_CUDA,),
        "[[tool.uv.index]] already has another index pytorch-cu126",
    ),
    "what uv would leave out": (
        PROJECT,
        (target(pin("jax", "0.8"), requires=("jax[cuda12]",)),),
        "the lock has jax[cuda12], which [project] dependencies do not require, so that uv leaves it out",
    ),
    "other versions for all than for one": (
        PROJECT,
        (target(pin("numpy", "2.0")), target(pin("numpy", "1.26"), extra="old")),
        "numpy is locked in other versions for old than for the targets that share their outputs",
    ),
    "inline tables": (
        f"{PROJECT}[tool]\nuv = {{ package = false }}\n",
        (ON_CUDA,),
        "its tables are written in a way that leaves no room for lines of envsolve",
    ),
    "indexes in a list": (
        f'{PROJECT}[tool.uv]\nindex = [{{ name = "x", url = "https://x.example" }}]\n',
        (ON_CUDA,),
        "its tables are written in a way that leaves no room for lines of envsolve",
    ),
    "a lock for no machine": (PROJECT, (LockedTarget("", (Lock(()),)),), "the lock does not record its platform"),
    "no TOML": ("[project", (ON_CUDA,), "it is not TOML"),
}


@pytest.mark.parametrize(("text", "targets", "says"), REFUSED.values(), ids=REFUSED)
def test_conflicting_settings_are_reported(text: str, targets: tuple[LockedTarget, ...], says: str) -> None:
    assert f"cannot write [tool.uv] of pyproject.toml: {says}" in refused(text, *targets)


def test_a_constraint_for_another_machine_does_not_conflict() -> None:
    text = f"{PROJECT}[tool.uv]\nconstraint-dependencies = [\"numpy<2 ; sys_platform == 'win32'\"]\n"
    assert len(written(text, ON_CUDA)["tool"]["uv"]["constraint-dependencies"]) == 3


def test_written_lines_are_marked_and_comments_stay() -> None:
    after = with_settings(MINE, (GPU, NO_GPU), DEFAULT)
    new = [it for it in after.splitlines() if it and it not in MINE.splitlines() and not it.endswith(OWN)]
    assert new == ["cpu = [", '"torch"]  # mine', "constraint-dependencies = [", '"six<2"]  # mine']  # two lists, cut
    assert after.count("# mine") == MINE.count("# mine")
