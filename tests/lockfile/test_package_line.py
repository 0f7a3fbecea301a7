"""The line of a package in a lock: the one that an editor would find."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.lockfile.package_line import package_line

_SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


@pytest.mark.parametrize(
    ("file", "name", "begins"),
    [
        ("pylock.python-lock-rtx-3090.toml", "torch", 'name = "torch"'),
        ("python-lock-rtx-3090.requirements.txt", "torch", "torch=="),
        ("tensorflow.conda-lock.yml", "tensorflow", "- name: tensorflow"),
        ("tensorflow-rtx-3090.yml", "tensorflow", "- tensorflow="),
        ("tensorflow.linux-64.exact.yml", "ca-certificates", "- ca-certificates="),
        ("tensorflow.linux-64.explicit.txt", "tensorflow", "https://"),
        ("tensorflow.pixi.toml", "tensorflow", "tensorflow ="),
        ("python-lock-plain.Dockerfile", "filelock", "filelock=="),
    ],
)
def test_a_package_is_found_in_every_format(file: str, name: str, begins: str) -> None:
    text = (_SNAPSHOTS / file).read_text(encoding="utf-8")
    line = package_line(text, name)
    assert line is not None
    found = text.splitlines()[line - 1].strip()
    assert found.startswith(begins), found
    assert name in found.replace("_", "-")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("numpy==1\ntorchvision==1\ntorch==2\n", 3),
        ("# torch\npytorch-lightning==1\nTorch [extra] >= 2 ; python_version > '3'\n", 3),
        ("\ntorch @ https://example.org/torch-2.whl\n", 2),
        ("  torch\n", 1),
        ("numpy==1  # via torch\n", None),
        ("- pypi: https://example.org/numpy-1.whl\n- pypi: https://example.org/torch-2.0-cp311.whl\n", 2),
        ('[[package]]\nname = "accelerate"\n[package.dependencies]\ntorch = ">=2"\n[[package]]\nname = "torch"\n', 6),
        ("", None),
    ],
)
def test_another_package_containing_the_name_does_not_count(text: str, line: int | None) -> None:
    assert package_line(text, "torch") == line


def test_names_are_normalised() -> None:
    assert package_line("a==1\nTyping_Extensions==4\n", "typing-extensions") == 2
