"""Functions for both Python locks and conda locks."""
