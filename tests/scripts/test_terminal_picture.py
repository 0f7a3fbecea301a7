"""The picture in the README is what envsolve prints today."""

from __future__ import annotations

import platform
import sys

import pytest

from scripts.terminal_picture import PICTURE, picture, shown, text_of


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the picture shows answers for linux-64"
)
def test_the_picture_shows_what_is_printed() -> None:
    """To bring it up to date: python -m scripts.terminal_picture."""
    assert text_of(PICTURE.read_text(encoding="utf-8")) == text_of(picture(shown()))
