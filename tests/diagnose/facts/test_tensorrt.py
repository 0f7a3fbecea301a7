"""TensorRT's messages: engines of other releases, and names of its API that were added and removed."""

from __future__ import annotations

import pytest

from tests.diagnose.facts.library_cases import case_of
from tests.diagnose.facts.wording import diagnoses, of_families, words

TENSORRT = of_families("tensorrt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'tensorrt.tensorrt.Builder' object has no attribute 'max_workspace_size'", "TensorRT 7 is not on PyPI"),
        ("'tensorrt_bindings.tensorrt.IBuilderConfig' object has no attribute 'max_workspace_size'", "tensorrt<10"),
        ("'tensorrt.tensorrt.ICudaEngine' object has no attribute 'num_io_tensors'", "tensorrt>=8.5"),
    ],
)
def test_tensorrt_names_the_release_of_its_api(text: str, expected: str) -> None:
    case = case_of(f"AttributeError: {text}")
    (diagnosis,) = diagnoses(case, TENSORRT)
    assert expected in words(case, diagnosis)


def test_a_name_that_tensorrt_never_had_is_the_programs_own() -> None:
    assert diagnoses(case_of("'tensorrt.tensorrt.Builder' object has no attribute 'my_name'"), TENSORRT) == []


def test_an_engine_of_another_gpu_is_not_of_another_version() -> None:
    text = "The engine plan file is not compatible with this version of TensorRT"
    assert len(diagnoses(case_of(text), TENSORRT)) == 1
    other = "The engine plan file is generated on an incompatible device, expecting compute 6.1 got compute 7.5"
    assert diagnoses(case_of(f"{text}\n{other}"), TENSORRT) == []
