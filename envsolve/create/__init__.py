"""From a lock to an environment: conda packages by rattler, venvs and wheels by uv or pip, whole or not at all."""
