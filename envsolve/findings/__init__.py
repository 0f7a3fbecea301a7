"""Findings as data: the catalogue in ``data/findings``, and the small language of its conditions."""
