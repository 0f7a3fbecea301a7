"""Which modules of an environment are imported to validate it, and what happens if one fails."""

from __future__ import annotations

import pytest

from envsolve.app.environment.imports import modules_of
from envsolve.validation.metadata import Row


@pytest.mark.parametrize(
    ("paths", "modules"),
    [
        (["demo/__init__.py", "list_versions/__init__.py", "helper.py"], ("demo",)),
        (["sklearn/__init__.py", "sklearn/svm/__init__.py", "scikit_learn-1.7.dist-info/METADATA"], ("sklearn",)),
        (["six.py"], ("six",)),
        (["cv2/__init__.py", "cv2/cv2.abi3.so"], ("cv2",)),
        (["_cffi_backend.cpython-311-x86_64-linux-gnu.so", "cffi/__init__.py"], ("cffi",)),
        (["ujson.cpython-311-x86_64-linux-gnu.so"], ("ujson",)),
        (["google/cloud/storage/__init__.py", "google/cloud/storage/blob/__init__.py"], ("google.cloud.storage",)),
        (["flax/__init__.py", "tests/__init__.py", "docs/conf.py", "examples/__init__.py"], ("flax",)),
        (["yaml/__init__.py", "_yaml/__init__.py", "yaml-stubs/__init__.pyi"], ("yaml",)),
        (["../../bin/tool", "tool-1.0.data/scripts/tool"], ()),
        (["flax/__init__.py", "flaxlib_src/src/flaxlib/__init__.py"], ("flax",)),
        (["tomli/__init__.py", "c787785866c7b801238d__mypyc.cpython-311-x86_64-linux-gnu.so"], ("tomli",)),
        ([], ()),
    ],
)
def test_modules_are_those_in_the_record(paths: list[str], modules: tuple[str, ...]) -> None:
    assert modules_of("demo", [Row(path, None, None) for path in paths]) == modules


def test_without_a_record_there_are_no_modules() -> None:
    assert modules_of("demo", None) == ()
