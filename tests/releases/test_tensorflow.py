"""Rows of TensorFlow, from wheels built like those of its packages."""

from __future__ import annotations

import pytest

from envsolve.releases.frameworks.tensorflow import TensorFlowReader
from envsolve.releases.requirements import CudaReleases
from scripts.matrix_refresh.errors import RefreshError
from tests.scripts.conftest import RowsOf
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import (
    AND_CUDA,
    BUILD_INFO,
    LINUX,
    MAC_ARM,
    MACHINE_CODE,
    PTX,
    WINDOWS,
    code,
    elf,
    fat_binary,
    noise,
    stub_wheel,
    tensorflow_wheel,
    wheel,
)

CPU = {"is_cuda_build": False, "is_rocm_build": False}
OLD_LINUX = "manylinux2010_x86_64"
WINDOWS_INFO = (
    "# Copyright\r\nimport collections\r\n\r\nbuild_info = collections.OrderedDict([('cuda_compute_capabilities', "
    "['sm_35', 'sm_70', 'compute_80']), ('cuda_version', '64_112'), ('cudnn_version', '64_8'), "
    "('is_cuda_build', True), ('msvcp_dll_names', 'msvcp140.dll,msvcp140_1.dll')])\r\n"
)


@pytest.fixture
def reader(cuda_releases: CudaReleases) -> TensorFlowReader:
    return TensorFlowReader(cuda_releases)


def test_an_extra_brings_the_libraries(index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader) -> None:
    index.add(tensorflow_wheel(requires=AND_CUDA))
    (row,) = rows_of(reader, "2.20.0")
    assert row.values == {
        "version": "2.20.0",
        "source": "pypi",
        "platform": "linux-64",
        "build": "cuda12",
        "package": "tensorflow",
        "pythons": ["3.12"],
        "glibc": "2.28",
        "cuda": "12.5",
        "cudnn": "9",
        "sass": ["6.0", "8.0", "9.0"],
        "ptx": ["9.0"],
        "cuda_libraries": "dependencies",
        "cuda_requires": ">=12.5,<13",
        "cudnn_requires": ">=9.3.0.75,<10",
        "cudnn_package": "nvidia-cudnn-cu12",
        "extras": ["and-cuda"],
    }
    assert row.evidence[0].reference.endswith(": METADATA, tensorflow/python/platform/build_info.py")


def test_a_pin_in_the_extra_is_the_cudnn_of_the_row(
    index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    extra = ("nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cudnn-cu12==8.9.7.29")
    index.add(tensorflow_wheel(requires=[f'{it}; extra == "and-cuda"' for it in extra]))
    (row,) = rows_of(reader, "2.20.0")
    assert (row.values["cudnn"], row.values["cudnn_requires"]) == ("8.9.7.29", "==8.9.7.29")
    assert row.values["cuda_requires"] == "==12.4"


def test_without_the_extra_the_user_brings_the_libraries(
    index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    index.add(tensorflow_wheel("2.9.0", {**BUILD_INFO, "cuda_version": "11.2", "cudnn_version": "8"}))
    (row,) = rows_of(reader, "2.9.0")
    assert row.values["build"] == "cuda11"
    assert row.defaults == {"cuda_libraries": "none", "cuda_requires": "==11.2", "cudnn_requires": "==8.*"}


def test_windows_has_other_dlls_and_line_ends(index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader) -> None:
    index.add(tensorflow_wheel("2.6.0", WINDOWS_INFO, tags=f"cp39-cp39-{WINDOWS}"))
    (row,) = rows_of(reader, "2.6.0")
    assert {name: row.values[name] for name in ("platform", "build", "cuda", "cudnn", "sass", "ptx")} == {
        "platform": "win-64",
        "build": "cuda11",
        "cuda": "11.2",
        "cudnn": "8",
        "sass": ["3.5", "7.0", "8.0"],
        "ptx": ["8.0"],
    }


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("written", "cuda"), [("64_100", "10.0"), ("64_112", "11.2"), ("10.1", "10.1"), ("12.5.1", "12.5")]
)
def test_the_toolkit_is_given_by_its_minor(
    written: str, cuda: str, index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    index.add(tensorflow_wheel(info={**BUILD_INFO, "cuda_version": written}))
    assert rows_of(reader, "2.20.0")[0].values["cuda"] == cuda


def test_older_wheels_have_their_code_in_small_libraries(
    index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    folder = "tensorflow_gpu-1.15.0.data/purelib/tensorflow_core"
    device_code = fat_binary(code(MACHINE_CODE, 35), code(MACHINE_CODE, 70), code(PTX, 70))
    members: dict[str, str | bytes] = {
        f"{folder}/python/platform/build_info.py": "is_cuda_build = True\nis_rocm_build = False\n",
        f"{folder}/contrib/rnn/python/ops/_gru_ops.so": noise(2000) + device_code,
        f"{folder}/contrib/rnn/python/ops/_lstm_ops.so": noise(2000, 1),
    }
    index.add(wheel("tensorflow-gpu", "1.15.0", members, tags=f"cp37-cp37m-{OLD_LINUX}"))
    (row,) = rows_of(reader, "1.15.0")
    assert (row.values["build"], row.values["package"]) == ("cuda10", "tensorflow-gpu")
    assert (row.values["sass"], row.values["ptx"]) == (["3.5", "7.0"], ["7.0"])
    assert row.evidence[0].reference.endswith(
        "tensorflow_core/python/platform/build_info.py, tensorflow_core/contrib/rnn/python/ops/_gru_ops.so"
    )


def test_the_first_wheels_link_to_the_libraries_they_were_built_with(
    index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    linked = elf("libcublas.so.10.0", "libcudart.so.10.0", "libcudnn.so.7", "libc.so.6")
    others = {"tensorflow/libtensorflow_framework.so": linked}
    info = "is_cuda_build = True\n"
    index.add(tensorflow_wheel("1.13.1", info, name="tensorflow-gpu", tags=f"cp36-cp36m-{OLD_LINUX}", others=others))
    (row,) = rows_of(reader, "1.13.1")
    assert (row.values["build"], row.values["cuda"], row.values["cudnn"]) == ("cuda10", "10.0", "7")
    assert row.defaults == {"cuda_libraries": "none", "cuda_requires": "==10.0", "cudnn_requires": "==7.*"}


def test_facts_missing_from_a_wheel_are_left_to_the_file(
    index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    index.add(tensorflow_wheel("2.1.0", "is_cuda_build = True\n", tags=f"cp37-cp37m-{OLD_LINUX}"))
    (row,) = rows_of(reader, "2.1.0")
    assert not {"cuda", "cudnn", "sass", "ptx"} & set(row.values)


def test_the_large_library_is_read_only_on_request(
    index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    kernels = fat_binary(code(MACHINE_CODE, 35)) + noise(1 << 20) + fat_binary(code(MACHINE_CODE, 70), code(PTX, 70))
    member = "tensorflow/python/_pywrap_tensorflow_internal.so"
    index.add(tensorflow_wheel("2.1.0", "is_cuda_build = True\n", others={member: kernels}))
    assert "sass" not in rows_of(reader, "2.1.0")[0].values
    (row,) = rows_of(reader, "2.1.0", deep=True)
    assert (row.values["sass"], row.values["ptx"]) == (["3.5", "7.0"], ["7.0"])
    assert row.evidence[0].reference.endswith(member)


def test_a_cpu_build_has_one_row_for_the_package_that_ships_it(
    index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    index.add(
        tensorflow_wheel(requires=AND_CUDA),
        tensorflow_wheel(info=CPU, name="tensorflow-cpu"),
        tensorflow_wheel(info=CPU, tags=f"cp312-cp312-{WINDOWS}"),
        tensorflow_wheel(info=CPU, tags=f"cp312-cp312-{WINDOWS}", name="tensorflow-cpu"),
        tensorflow_wheel(info=CPU, tags=f"cp312-cp312-{MAC_ARM}"),
    )
    rows = rows_of(reader, "2.20.0")
    assert [(row.values["package"], row.values["platform"], row.values["build"]) for row in rows] == [
        ("tensorflow", "linux-64", "cuda12"),
        ("tensorflow", "osx-arm64", "cpu"),
        ("tensorflow-cpu", "linux-64", "cpu"),
        ("tensorflow-cpu", "win-64", "cpu"),
    ]
    assert all("cuda" not in row.values for row in rows[1:])


def test_an_empty_wheel_stands_for_the_package_it_requires(
    index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    requires = (
        'tensorflow-intel==2.12.0; platform_system == "Windows"',
        'tensorflow-macos==2.12.0; platform_system == "Darwin" and platform_machine == "arm64"',
    )
    for python in ("cp39", "cp310"):
        for platform in (WINDOWS, MAC_ARM):
            index.add(stub_wheel("tensorflow", "2.12.0", tags=f"{python}-{python}-{platform}", requires=requires))
    index.add(stub_wheel("tensorflow-intel", "2.12.0", tags=f"cp39-cp39-{WINDOWS}", requires=()))
    (row,) = rows_of(reader, "2.12.0")
    assert (row.values["package"], row.values["platform"], row.values["pythons"]) == ("tensorflow", "win-64", ["3.9"])


def test_a_wheel_without_build_facts_has_no_row(index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader) -> None:
    index.add(stub_wheel("tensorflow", "2.20.0", tags=f"cp312-cp312-{LINUX}", requires=["numpy"]))
    assert rows_of(reader, "2.20.0") == []


@pytest.mark.parametrize(
    "info", ["build_info = {\n 'is_cuda_build': True}\n", "build_info = read()\n", "build_info = 3\n"]
)
def test_an_unknown_build_info_names_the_wheel(
    info: str, index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader
) -> None:
    index.add(tensorflow_wheel(info=info))
    with pytest.raises(RefreshError, match=rf"^tensorflow-2\.20\.0-cp312-cp312-{LINUX}\.whl: build_info"):
        rows_of(reader, "2.20.0")


def test_an_unknown_architecture_names_the_wheel(index: ServedIndex, rows_of: RowsOf, reader: TensorFlowReader) -> None:
    index.add(tensorflow_wheel(info={**BUILD_INFO, "cuda_compute_capabilities": ["8.6"]}))
    with pytest.raises(RefreshError, match=r"\.whl: '8\.6' is not an architecture flag$"):
        rows_of(reader, "2.20.0")
