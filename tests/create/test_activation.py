"""Variables set by the activation of an environment are reset by its deactivation."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from envsolve.create.activation import write_library_path, write_xla_flags

FOLDER = "etc/conda/{}/envsolve-library-path.sh"


@pytest.mark.parametrize("before", [None, "/own/lib"])
def test_the_library_path_is_prepended_and_removed(before: str | None, tmp_path: Path) -> None:
    write_library_path(tmp_path)
    activate, deactivate = (tmp_path / FOLDER.format(it) for it in ("activate.d", "deactivate.d"))
    program = f'. "{activate}"; echo "$LD_LIBRARY_PATH"; . "{deactivate}"; echo "${{LD_LIBRARY_PATH-unset}}"'
    environ = {"CONDA_PREFIX": str(tmp_path)} | ({} if before is None else {"LD_LIBRARY_PATH": before})
    ran = subprocess.run(["/bin/sh", "-u", "-c", program], env=environ, capture_output=True, text=True, check=True)
    expected = f"{tmp_path}/lib" + (f":{before}" if before else "")
    assert ran.stdout.splitlines() == [expected, before or "unset"]


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ("nvvm/libdevice/libdevice.10.bc", ""),
        ("targets/x86_64-linux/nvvm/libdevice/libdevice.10.bc", "/targets/x86_64-linux"),
        ("lib/libdevice.10.bc", "/lib"),
    ],
    ids=["at the top", "of a target", "of cudatoolkit"],
)
def test_xla_gets_the_directory_of_libdevice(there: str, found: str, tmp_path: Path) -> None:
    (tmp_path / there).parent.mkdir(parents=True)
    (tmp_path / there).write_bytes(b"BC")
    assert write_xla_flags(tmp_path)
    script = tmp_path / "etc/conda/activate.d/envsolve-xla-flags.sh"
    environ = {"CONDA_PREFIX": str(tmp_path), "XLA_FLAGS": "--own"}
    program = f'. "{script}"; echo "$XLA_FLAGS"'
    ran = subprocess.run(["/bin/sh", "-u", "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == f"--xla_gpu_cuda_data_dir={tmp_path}{found} --own"
    assert (tmp_path / found.strip("/") / "nvvm" / "libdevice" / "libdevice.10.bc").read_bytes() == b"BC"


def test_without_libdevice_xla_gets_nothing(tmp_path: Path) -> None:
    assert not write_xla_flags(tmp_path)
    assert not (tmp_path / "etc").exists()
