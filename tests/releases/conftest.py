"""The index and its readers, for the tests of the scripts that refresh the matrix."""

from __future__ import annotations

from tests.scripts.conftest import _no_proxy, cuda_releases, index, rows_of, session

__all__ = ["_no_proxy", "cuda_releases", "index", "rows_of", "session"]
