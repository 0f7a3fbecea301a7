"""Findings as data: the catalogue in ``data/findings`` and the small language in which it says when something holds."""
