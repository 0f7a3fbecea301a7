"""Explains error texts, and finds environments without the error."""
