"""Locks of conda channels."""
