"""User files with the names of modules: what proves it, and what is not a symptom of it."""

from __future__ import annotations

import pytest

from tests.diagnose.facts.package_cases import causes_of, words_of

IMPORT = """Traceback (most recent call last):
  File "{library}", line 35, in <module>
    {statement}
  File "{own}", line 10, in <module>
    import torch.nn as nn
AttributeError: module 'torch' has no attribute 'Tensor'"""
STANDARD = "/home/user/conda/lib/python3.7/inspect.py"
SITE = r"C:\Users\user\venv\Lib\site-packages\torch\onnx\__init__.py"


@pytest.mark.parametrize(
    ("library", "statement", "own", "expected"),
    [
        (
            STANDARD,
            "import dis",
            "/home/user/project/dis.py",
            "gets /home/user/project/dis.py",
        ),
        (
            SITE,
            "import onnx",
            r"C:\Users\user\work\onnx.py",
            r"gets C:\Users\user\work\onnx.py",
        ),
        (STANDARD, "from random import Random", "/home/user/random.py", "Python's own module"),
        (r"C:\Python39\Lib\inspect.py", "import token", r"D:\project\token.py", "every import token"),
    ],
)
def test_a_library_gets_a_file_of_ones_own(library: str, statement: str, own: str, expected: str) -> None:
    text = IMPORT.format(library=library, statement=statement, own=own)
    assert causes_of(text) == ["module-shadowed"]
    assert expected in words_of(text)


@pytest.mark.parametrize(
    ("library", "statement", "own"),
    [
        (STANDARD, "import dis", "/home/user/conda/lib/python3.7/dis.py"),
        (SITE, "import onnx", "/home/user/venv/lib/python3.11/site-packages/onnx.py"),
        ("/home/user/project/train.py", "import queue", "/home/user/project/queue.py"),
        (STANDARD, "import helpers", "/home/user/project/helpers.py"),
        (STANDARD, "import ast", "/home/user/project/train.py"),
    ],
)
def test_modules_in_their_place_and_own_names_are_not_a_symptom(library: str, statement: str, own: str) -> None:
    assert causes_of(IMPORT.format(library=library, statement=statement, own=own)) == []


CIRCULAR = (
    "cannot import name 'nn' from partially initialized module 'torch' (most likely due to a circular import) ({})"
)
RENAME = "module '{0}' has no attribute 'x' (consider renaming '/home/user/{0}.py' {1}"
STANDARD_NAME = "since it has the same name as the standard library module named 'random'"
LIBRARY_NAME = "if it has the same name as a library you intended to import)"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "causes"),
    [
        ("No module named 'torch.utils'; 'torch' is not a package", ["module-shadowed"]),
        ("No module named 'helpers.torch'; 'helpers' is not a package", []),
        (CIRCULAR.format("/home/user/torch.py"), ["module-shadowed"]),
        (CIRCULAR.format("/venv/lib/python3.11/site-packages/torch/__init__.py"), []),
        ("cannot import name 'nn' from 'torch' (/home/user/venv/lib/python3.11/site-packages/torch.py)", []),
        (RENAME.format("random", STANDARD_NAME), []),
        (f"torch 2.8.0\n{RENAME.format('random', STANDARD_NAME)}", ["module-shadowed"]),
        (RENAME.format("numpy", LIBRARY_NAME), ["module-shadowed"]),
        ('File "/home/user/onnx.py", line 3, in <module>', ["script-named-like-library"]),
        ('File "onnx.py", line 3, in <module>', ["script-named-like-library"]),
        ('File "/home/user/random.py", line 3, in <module>', []),
        ('File "/home/user/datasets.py", line 3, in <module>', []),
        ('File "/home/user/train.py", line 3, in <module>', []),
        ('File "/usr/lib/python3/dist-packages/numpy.py", line 3, in <module>', []),
    ],
)
def test_messages_and_frames_as_evidence(text: str, causes: list[str]) -> None:
    assert causes_of(text) == causes
