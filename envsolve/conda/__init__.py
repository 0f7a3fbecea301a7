"""Conda channels: what their packages are."""
