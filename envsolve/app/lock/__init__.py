"""Locks of package indexes."""
