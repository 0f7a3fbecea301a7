"""The recipe for conda-forge: what it requires, and a package that rattler-build makes of it and the source archive.

The channel is local: the Python of the tests, pip and hatchling. The tests in the recipe need all of conda-forge.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml
import zstandard
from packaging.requirements import Requirement

from envsolve import __version__
from tests.conda.packages import MINOR, package, python_package
from tests.conda.server import ChannelServer
from tests.distribution.tools import ROOT, call, tool, uv

RECIPE = ROOT / "scripts/conda_recipe/recipe.yaml"
NAMES = {"build": "python-build", "ahocorasick-rs": "ahocorasick_rs"}
"""The names on conda-forge that are not those on a Python index."""
_BUILD = """\
import sys
from rattler_build import Stage0Recipe, VariantConfig

recipe, channel, python, output = sys.argv[1:]
made = Stage0Recipe.from_file(recipe).run_build(
    variant_config=VariantConfig({"python_min": [python]}), channels=[channel], output_dir=output
)
print(made[0].packages[0])
"""


def read_recipe() -> dict[str, Any]:
    recipe: dict[str, Any] = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    return recipe


def test_it_has_this_version_and_the_requirements_of_the_package_and_its_extra() -> None:
    recipe = read_recipe()
    assert recipe["context"]["version"] == __version__
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["conda"]])
    required = {f"{NAMES.get(it.name, it.name)} {it.specifier}" for it in named}
    assert set(recipe["requirements"]["run"]) == required | {"python >=${{ python_min }}"}
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]


@pytest.mark.wheel
@pytest.mark.skipif(os.name == "nt", reason="the Python of the channel is a link")
def test_rattler_build_makes_the_package_of_the_source_archive(tmp_path: Path) -> None:
    copy = tmp_path / "scripts" / "conda_recipe"
    shutil.copytree(RECIPE.parent, copy)
    call(sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    tools = tmp_path / "tools"
    call(uv(), "pip", "install", "--quiet", "--target", tools, "pip", "hatchling", cwd=tmp_path)
    files = {f"site-packages/{it.relative_to(tools)}": it.read_bytes() for it in tools.rglob("*") if it.is_file()}
    with ChannelServer(recorded=False) as server:
        shelf = server.channel("tools")
        shelf.add(python_package(), package("hatchling", "1.99", files, ["python"], noarch="python"), package("pip"))
        words = (_BUILD, copy / "recipe.yaml", server.url_of("tools"), MINOR, tmp_path / "output")
        output = call(*tool("py-rattler-build", "python"), "-c", *words, cwd=tmp_path)
    made = zipfile.ZipFile(output.splitlines()[-1])
    names = {member: names_in(made, member) for member in made.namelist() if member.endswith(".tar.zst")}
    (content,) = (it for member, it in names.items() if member.startswith("pkg-"))
    (info,) = (it for member, it in names.items() if member.startswith("info-"))
    assert {"site-packages/envsolve/__init__.py", "site-packages/envsolve/_compat_matrix/pytorch.toml"} <= set(content)
    assert "share/man/man1/envsolve.1" in content
    assert json.loads(info["info/link.json"])["noarch"]["entry_points"] == ["envsolve = envsolve.cli:main"]
    index = json.loads(info["info/index.json"])
    assert (index["name"], index["version"], index["noarch"]) == ("envsolve", __version__, "python")


def names_in(archive: zipfile.ZipFile, member: str) -> dict[str, bytes]:
    """The files of one part of a conda package, with their content."""
    content = zstandard.ZstdDecompressor().stream_reader(archive.read(member)).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {it.name: found.read() for it in tar if (found := tar.extractfile(it)) is not None}
