"""A site of a small matrix, and a browser for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.tiny import tiny_matrix


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a complete site of a small matrix."""
    from envsolve.site.build import build_site

    matrix, directory = tmp_path_factory.mktemp("matrix"), tmp_path_factory.mktemp("site")
    tiny_matrix(matrix)
    build_site(directory, matrix, 1, lambda *_: None)
    return directory


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium (Debian's package of that name), headless."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
