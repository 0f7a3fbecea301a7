"""Errors while a release is read."""

from __future__ import annotations


class ReleaseError(Exception):
    """The wheels of a release cannot be read, or lack what their reader needs; one sentence for users."""
