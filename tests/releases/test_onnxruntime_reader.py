"""ONNX Runtime's wheels: the CUDA provider has what the small files lack."""

from __future__ import annotations

import pytest

from envsolve.releases.errors import ReleaseError
from envsolve.releases.frameworks.onnxruntime import OnnxRuntimeReader
from envsolve.releases.reader import ReadRow
from tests.scripts.fake_wheel import cuda_releases, rows_of, wheel_file
from tests.scripts.fat_binary import fat_binary

EXTRAS = """\
Requires-Dist: nvidia-cuda-nvrtc-cu12~=12.0; extra == "cuda"
Requires-Dist: nvidia-cufft-cu12~=11.0; extra == "cuda"
Requires-Dist: nvidia-cudnn-cu12~=9.0; extra == "cudnn"
"""
LINUX = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
WINDOWS = "onnxruntime/capi/onnxruntime_providers_cuda.dll"


def row(project: str, contents: dict[str, bytes], *, platform: str = "linux-64", requires: str = "") -> ReadRow:
    metadata = {"onnxruntime-1.dist-info/METADATA": f"Name: onnxruntime\n{requires}\n".encode()}
    file = wheel_file(project, "1.22.0", platform)
    (found,) = rows_of(OnnxRuntimeReader(cuda_releases()), {file: metadata | contents})
    return found


def test_the_extras_require_the_libraries() -> None:
    says = {"onnxruntime/capi/build_and_package_info.py": b"package_name = 'onnxruntime-gpu'\ncuda_version = '12.8'\n"}
    provider = {LINUX: b"\0libcublas.so.12\0libcudnn.so.9\0" + fat_binary((60, 90), (90,), isa=(8, 7))}
    values = row("onnxruntime-gpu", says | provider, requires=EXTRAS).values
    assert (values["build"], values["cuda"], values["cuda_requires"]) == ("cuda12", "12.8", ">=12.0,<13")
    assert (values["cuda_libraries"], values["extras"]) == ("dependencies", ["cuda", "cudnn"])
    assert (values["cudnn_requires"], values["cudnn_package"]) == (">=9.0,<10", "nvidia-cudnn-cu12")
    assert (values["sass"], values["ptx"]) == (["6.0", "9.0"], ["9.0"])


def test_ptx_gives_the_toolkit_if_no_file_does() -> None:
    provider = {LINUX: b"\0libcublas.so.11\0libcudnn.so.8\0" + fat_binary((37, 80), (37, 80), isa=(7, 4))}
    found = row("onnxruntime-gpu", provider)
    assert (found.values["build"], found.values["cuda"], found.values["cuda_libraries"]) == ("cuda11", "11.4", "none")
    assert found.defaults == {"cuda_requires": ">=11.4,<12", "cudnn_requires": ">=8,<9"}


def test_windows_has_other_file_names() -> None:
    says = {"onnxruntime/capi/version_info.py": b'use_cuda = True\ncuda_version = "11.8.0"\ncudnn_version = "8"\n'}
    provider = {WINDOWS: b"cublas64_11.dll\0cudnn64_8.dll\0" + fat_binary((52,), (52,), isa=(7, 8))}
    values = row("onnxruntime-gpu", says | provider, platform="win-64").values
    assert (values["cuda"], values["glibc"]) == ("11.8", None)


def test_a_file_that_contradicts_the_library_is_refused() -> None:
    says = {"onnxruntime/capi/build_and_package_info.py": b"cuda_version = '12.8'\n"}
    provider = {LINUX: b"\0libcublas.so.11\0" + fat_binary((80,))}
    with pytest.raises(ReleaseError, match=r"says CUDA 12\.8, and loads cuBLAS 11"):
        row("onnxruntime-gpu", says | provider)


def test_a_wheel_without_the_provider_is_a_cpu_build() -> None:
    values = row("onnxruntime", {}, platform="osx-arm64").values
    assert (values["build"], values["package"]) == ("cpu", "onnxruntime")
    assert "cuda" not in values


def test_extras_without_existing_packages_bring_nothing() -> None:
    provider = {LINUX: b"\0libcublas.so.13\0libcudnn.so.9\0" + fat_binary((75,), (120,), isa=(9, 0))}
    extras = EXTRAS.replace("cu12~=12.0", "cu13~=13.0").replace("cu12~=11.0", "cu13~=12.0").replace("cu12", "cu13")
    found = row("onnxruntime-gpu", provider, requires=extras)
    assert (found.values["cuda_libraries"], "extras" in found.values) == ("none", False)
    assert found.defaults["cuda_requires"] == ">=13.0,<14"
