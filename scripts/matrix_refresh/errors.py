"""What can go wrong while the matrix is refreshed; each error is one sentence for the maintainer."""

from __future__ import annotations


class RefreshError(Exception):
    """An index does not answer, a wheel cannot be read, or a file is no matrix."""
