"""Which symbols each PyTorch has, read from wheels on a loopback index, as a maintainer runs it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from scripts.refresh_torch_symbols import refresh
from tests.binary.device_library import library_for_torch
from tests.matrix.tiny import tiny_matrix
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import BuiltFile, wheel

TAGS = "cp312-cp312-manylinux_2_28_x86_64"
DEVICE, ERROR, TENSOR, UNUSED = "_ZN3c106DeviceC1Ev", "_ZN3c105ErrorC1Ev", "_ZN2at6TensorC1Ev", "_ZN2at6Tensor3addEv"


def torch(version: str, c10: tuple[str, ...], cpu: tuple[str, ...]) -> BuiltFile:
    libraries = {"c10": library_for_torch(has=c10), "torch_cpu": library_for_torch(has=cpu)}
    return wheel("torch", version, {f"torch/lib/lib{name}.so": it for name, it in libraries.items()}, tags=TAGS)


def test_the_symbols_of_libc10_and_those_that_an_extension_needs_are_listed(index: ServedIndex, tmp_path: Path) -> None:
    index.add(torch("2.8.0", (DEVICE,), ()), torch("2.8.1", (DEVICE, ERROR), (UNUSED,)))
    index.add(torch("2.9.0", (ERROR,), (TENSOR, UNUSED)), torch("1.3.0", (DEVICE,), ()))
    index.add(wheel("ops", "1.0", {"ops/_C.so": library_for_torch(needs=(TENSOR, ERROR))}, tags=TAGS))
    matrix = tiny_matrix(tmp_path).directory
    arguments = ["--matrix", str(matrix), "--index-url", index.endpoint, "--cache-dir", str(tmp_path / "cache")]
    for packages in (["ops"], []):  # what is listed stays listed
        done = CliRunner().invoke(refresh, [*packages, *arguments])
        assert done.exit_code == 0, done.output
        made = Matrix(matrix)
        assert made.check() == []
        needed = {it: made.torch_for([it], Platform.LINUX_64) for it in (DEVICE, ERROR, TENSOR, UNUSED)}
        texts = {name: need and str(need) for name, need in needed.items()}
        assert texts == {DEVICE: "torch<2.9", ERROR: None, TENSOR: "torch>=2.9", UNUSED: None}
        assert made.torch_for([DEVICE], Platform.WIN_64) is None
