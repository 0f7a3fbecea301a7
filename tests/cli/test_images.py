"""Images from the command line: behaviour common to every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.images import APPTAINER, DOCKERFILE, GPU, Image
from tests.cli.locking import Locking, assert_in_three_parts
from tests.conda.packages import MINOR
from tests.conftest import Envsolve
from tests.index.packages import wheel
from tests.index.server import IndexServer

BOTH = pytest.mark.parametrize("image", [DOCKERFILE, APPTAINER], ids=lambda it: it.format_name)


@BOTH
@pytest.mark.parametrize("platform", ["win-64", "osx-arm64"])
def test_images_are_for_linux(image: Image, platform: str, locking: Locking, tmp_path: Path) -> None:
    output = f"{tmp_path}/{{platform}}.{image.ending}"
    done = locking("--platform", platform, "--format", image.format_name, "-o", output)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: platform-not-supported\n")
    assert_in_three_parts(done.err)
    assert not list(tmp_path.glob(f"*.{image.ending}"))


@BOTH
def test_the_format_does_not_create_environments(image: Image, locking: Locking) -> None:
    done = locking.envsolve("create", "env", "alpha", "--format", image.format_name, "--index-url", locking.url)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: unknown-format\n")


@pytest.mark.thorough
@BOTH
def test_status_checks_the_stack_in_it(image: Image, envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    path = tmp_path / f"gpu.{image.ending}"
    indexes = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    assert envsolve("torch", "--driver", "535.183.01", *GPU, *indexes, "-o", str(path)).code == 0
    for machine, says in ((("8.6", "535.183.01"), "fits"), (("12.0", "580.65.06"), "does-not-run")):
        gpu, driver = machine
        done = envsolve("status", str(path), "--gpu", gpu, "--driver", driver, "--platform", "linux-64", "--json")
        (found,) = json.loads(done.out)["files"]
        assert found["status"] == says, found


@pytest.mark.thorough
@BOTH
def test_a_project_can_list_it_among_its_outputs(image: Image, locking: Locking, tmp_path: Path) -> None:
    settings = f'requirements = ["alpha"]\ngpus = ["none"]\nplatforms = ["linux-64"]\nindex-url = "{locking.url}"\n'
    outputs = f'python = "{MINOR}"\noutputs = ["requirements.txt", "gpu.{image.ending}"]\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.envsolve]\n{settings}{outputs}")
    assert locking.envsolve("lock", "--no-cache").code == 0
    assert image.pins(tmp_path / f"gpu.{image.ending}") == ["alpha==2.0", "beta==2.0"]
    assert locking.envsolve("lock", "--check", "--no-cache").code == 0
    locking.index.add("beta", [wheel("beta", "3.0")])
    assert locking.envsolve("lock", "--check", "-U", "--no-cache").code == 1
