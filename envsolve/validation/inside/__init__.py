"""What runs inside the environment that is validated: its Python (3.7 or newer), the standard library, its frameworks.

Nothing here imports anything of envsolve, which is not installed there.
"""
