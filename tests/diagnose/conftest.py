"""Common fixtures for tests of many logs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from envsolve.diagnose.scan import anchors_of
from envsolve.diagnose.tables import Tables


@pytest.fixture(scope="module")
def tables_are_read_once() -> Iterator[None]:
    """Every explanation in this process would read them again, as other processes do."""
    tables = Tables()
    anchors = anchors_of(tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("envsolve.app.explain.explaining.Tables", lambda: tables)
        patch.setattr("envsolve.app.explain.explaining.anchors_of", lambda _: anchors)
        yield
