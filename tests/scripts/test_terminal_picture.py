"""The picture in the README shows the current output of envsolve."""

from __future__ import annotations

import platform
import sys

import pytest

from scripts.terminal_picture import PICTURE, picture, shown, text_of


@pytest.mark.thorough
@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the picture shows answers for linux-64"
)
def test_the_picture_shows_the_output() -> None:
    """To update it: python -m scripts.terminal_picture."""
    assert text_of(PICTURE.read_text(encoding="utf-8")) == text_of(picture(shown()))
