"""The simulated loader, and the static checks, on real wheels.

The directory of modules is that of ENVSOLVE_SITE_PACKAGES, or where an installed framework is found:

    ENVSOLVE_SITE_PACKAGES=/path/to/site-packages scripts/test -m framework tests/validation/test_static_real_wheels.py
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from envsolve.binary.elf import MAGIC, read_library
from envsolve.binary.library_code import read_device_code
from envsolve.binary.loader import Libraries, Process
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.validation.inventory import Inventory
from tests.binary.layouts import listed, real_loader
from tests.diagnose.environment.static_environment import examined

pytestmark = pytest.mark.framework

FRAMEWORKS = ("torch", "tensorflow", "jax_plugins", "cupy", "onnxruntime", "paddle")
OWN = "libtorch_cuda.so", "libtensorflow_cc.so.2", "libonnxruntime_providers_cuda.so"


@pytest.fixture(scope="module")
def site() -> Path:
    named = os.environ.get("ENVSOLVE_SITE_PACKAGES")
    if named is not None:
        return Path(named).resolve()
    for name in FRAMEWORKS:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations))).parent
    pytest.skip("no framework is installed, and ENVSOLVE_SITE_PACKAGES names no directory that has one")


def _libraries(site: Path) -> Iterator[Path]:
    for path in sorted(site.rglob("*.so*")):
        if path.is_file():
            with path.open("rb") as file:
                if file.read(4) == MAGIC:
                    yield path


@pytest.mark.parametrize("planted", [(), ("libcudart.so.12", "libcudnn.so.9", "libcusparse.so.12", "libnccl.so.2")])
def test_every_library_is_found_where_the_real_loader_finds_it(
    site: Path, planted: tuple[str, ...], tmp_path: Path
) -> None:
    for path in _libraries(site):
        if path.name in planted and not (tmp_path / path.name).exists():
            (tmp_path / path.name).symlink_to(path)
    library_path = str(tmp_path) if planted else None
    libraries, compared = Libraries(real_loader()), 0
    for path in _libraries(site):
        process = Process(libraries, library_path=library_path)
        missing = {it.name for it in process.start(path) if it.path is None}
        real = listed(path, Path.cwd(), library_path)
        interpreter = {str(real_loader().interpreter), real_loader().interpreter.name}
        found = {file for _, file in real if file is not None}
        assert {it.path for it in process.loaded[2:]} - interpreter == found - interpreter, path
        assert missing == {name for name, file in real if file is None}, path
        compared += len(real)
    assert compared


def test_downloaded_libraries_are_intact(site: Path) -> None:
    for path in _libraries(site):
        assert not read_library(path).is_truncated


def test_the_device_code_is_what_the_matrix_says_of_the_wheel(site: Path, matrix: Matrix) -> None:
    found = [path for name in OWN for path in site.rglob(name)]
    if not found:
        pytest.skip("no library here is one that the matrix tells the code of")
    known = {
        (tuple(map(str, release.code.sass)), tuple(map(str, release.code.ptx)))
        for name in ("pytorch", "tensorflow", "onnxruntime")
        for release in matrix.framework(name, Platform.LINUX_64).releases
    }
    for path in found:
        code = read_device_code(path)
        assert (tuple(map(str, code.sass)), tuple(map(str, code.ptx))) in known, path


def test_the_static_checks_find_no_damage_and_nothing_foreign(site: Path) -> None:
    inventory = Inventory("3", Path(sys.executable), site.parent, (site,), (), False, True)
    report = examined(inventory, [ComputeCapability(8, 0)])
    assert all(it.path.is_file() for it in report.libraries)
    assert not [it for it in report.findings if it.id in ("library-damaged", "foreign-library")]
