"""A library of PyTorch that an extension misses: whether the PyTorch that is there can have it."""

from __future__ import annotations

import pytest

from envsolve.diagnose.rules.torch_libraries import extension_fields
from tests.diagnose.rules.driver_cases import Known, case_of, seen

SPLIT = "libtorch_cuda_cu.so"
FIRST = "extension_first"


@pytest.mark.parametrize(
    ("torch", "file", "may_have_it"),
    [
        ("1.8.1+cu102", SPLIT, False),
        ("1.8.1+cu111", SPLIT, True),
        ("1.13.1+cu117", SPLIT, True),
        ("2.0.1+cu118", SPLIT, False),
        ("1.7.1+cu110", SPLIT, False),
        ("2.8.0+cpu", "libc10_cuda.so", False),
        ("2.8.0+cu128", "libc10_cuda.so", True),
        ("2.8.0+cpu", "libc10.so", True),
        ("", SPLIT, True),
    ],
)
def test_the_order_of_imports_is_told_only_of_a_library_that_may_be_there(
    torch: str, file: str, may_have_it: bool
) -> None:
    fields = extension_fields(case_of(Known(packages={"torch": torch})), seen("library-missing", library=file))
    assert (FIRST in fields) == may_have_it


def test_the_wheel_page_is_that_of_the_installed_build() -> None:
    known = Known(packages={"torch": "1.8.1+cu102"}, clues={"extension": "torch_scatter"})
    fields = extension_fields(case_of(known), seen("library-missing", library=SPLIT))
    assert (fields["extension"], fields["pyg_torch"], fields["pyg_cuda"]) == ("torch-scatter", "1.8.0", "cu102")


def test_a_toolkit_of_another_cuda_is_said_to_play_no_part() -> None:
    known = Known(packages={"torch": "1.8.1+cu102"}, clues={"toolkit": "11.2"})
    assert extension_fields(case_of(known), seen("library-missing", library=SPLIT))["toolkit"] == "11.2"
