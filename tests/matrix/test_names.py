from __future__ import annotations

import pytest

from envsolve.errors import UsageError
from envsolve.matrix import Matrix


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("GTX 1080 Ti", "6.1"),
        ("gtx 1080 ti", "6.1"),
        ("GTX1080Ti", "6.1"),
        ("NVIDIA GeForce GTX 1080 Ti", "6.1"),
        ("RTX 3090", "8.6"),
        ("rtx3090", "8.6"),
        ("RTX 4090", "8.9"),
        ("RTX 5090", "12.0"),
        ("K80", "3.7"),
        ("Tesla K80", "3.7"),
        ("V100", "7.0"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("T4", "7.5"),
        ("A100", "8.0"),
        ("H100", "9.0"),
        ("H200", "9.0"),
        ("B200", "10.0"),
        ("GB10", "12.1"),
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("H100 mig", "9.0"),
    ],
)
def test_a_product_is_found_under_informal_and_driver_names(matrix: Matrix, text: str, capability: str) -> None:
    assert [str(found) for found in matrix.gpus.find(text).capabilities] == [capability]


def test_a_name_of_several_chips_is_refused_with_all_of_them(matrix: Matrix) -> None:
    with pytest.raises(UsageError) as refused:
        matrix.gpus.find("GT 730")
    assert refused.value.code == "ambiguous-gpu"
    assert "2.1, 3.0, 3.5" in refused.value.message


def test_a_misspelt_name_gets_a_suggestion(matrix: Matrix) -> None:
    with pytest.raises(UsageError) as refused:
        matrix.gpus.find("RTX 3009")
    assert refused.value.code == "unknown-gpu"
    assert "did you mean" in refused.value.hints[0].text


@pytest.mark.parametrize(
    ("text", "example"), [("RTX 5909", "--gpu 12.0"), ("V1000 SXM2 16GB", "--gpu 7.0"), ("zz9", "8.6")]
)
def test_the_capability_in_a_hint_is_that_of_the_suggestion(matrix: Matrix, text: str, example: str) -> None:
    with pytest.raises(UsageError) as refused:
        matrix.gpus.find(text)
    assert refused.value.hints[-1].text.endswith(example)


@pytest.mark.parametrize("text", ["", "NVIDIA", "!!", "Radeon RX 7900", "MIG 1g.5gb"])
def test_a_gpu_that_is_not_nvidias_is_unknown(matrix: Matrix, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        matrix.gpus.find(text)
    assert refused.value.code == "unknown-gpu"


@pytest.mark.parametrize(("device", "capability"), [("1b06", "6.1"), ("2204", "8.6"), ("20b0", "8.0")])
def test_a_pci_id_names_a_gpu(matrix: Matrix, device: str, capability: str) -> None:
    assert str(matrix.pci_ids[device][1]) == capability
