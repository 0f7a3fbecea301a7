"""Modules that replace a framework on PYTHONPATH, to misbehave as a real one cannot be made to."""
