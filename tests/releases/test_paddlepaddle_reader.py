"""PaddlePaddle's wheels: the content of version.py, and the machine code of one large library."""

from __future__ import annotations

import pytest

from envsolve.matrix import Matrix
from envsolve.releases.errors import ReleaseError
from envsolve.releases.frameworks import readers
from envsolve.releases.reader import ReadRow
from tests.scripts.fake_wheel import rows_of, wheel_file
from tests.scripts.fat_binary import fat_binary

GPU = b"full_version     = '2.6.2'\ncuda_version     = '11.8'\ncudnn_version    = '8.6.0'\n"
CPU = b"cuda_version     = 'False'\ncudnn_version    = 'False'\n"


def row(project: str, says: bytes, library: bytes = b"", *, platform: str = "linux-64") -> ReadRow:
    contents = {
        "paddle-1.dist-info/METADATA": b"Name: paddle\n\n",
        "paddle/version/__init__.py": says,
        "paddle/base/libpaddle.so": library,
    }
    (found,) = rows_of(readers(Matrix())["paddlepaddle"], {wheel_file(project, "2.6.2", platform): contents})
    return found


def test_a_gpu_wheel_is_for_one_toolkit_and_brings_nothing() -> None:
    found = row("paddlepaddle-gpu", GPU, b"\0GLIBC_2.18\0" + fat_binary((61, 70, 75, 80, 86)))
    values = found.values
    assert (values["build"], values["cuda"], values["cudnn"]) == ("cuda118", "11.8", "8.6.0")
    assert (values["sass"], values["ptx"]) == (["6.1", "7.0", "7.5", "8.0", "8.6"], None)
    assert values["glibc"] == "2.18"
    assert found.defaults == {"cuda_libraries": "none", "cuda_requires": "==11.8", "cudnn_requires": ">=8.6,<9"}


def test_false_is_no_cuda() -> None:
    values = row("paddlepaddle", CPU, platform="osx-arm64").values
    assert (values["build"], values["package"]) == ("cpu", "paddlepaddle")
    assert "cuda" not in values


@pytest.mark.parametrize(("project", "says"), [("paddlepaddle-gpu", CPU), ("paddlepaddle", GPU)])
def test_a_name_that_its_wheel_contradicts_is_refused(project: str, says: bytes) -> None:
    with pytest.raises(ReleaseError, match="name does not say"):
        row(project, says, fat_binary((80,)))
