"""Code that runs inside the environment, with its Python (3.7 or newer), the standard library and its frameworks.

Nothing here imports anything from envsolve, which is not installed there.
"""
