"""Modules that stand for a framework on PYTHONPATH, to misbehave as a real one cannot be made to."""
