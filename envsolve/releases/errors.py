"""What can go wrong while a release is read."""

from __future__ import annotations


class ReleaseError(Exception):
    """The wheels of a release cannot be read, or do not say what their reader needs; one sentence for people."""
