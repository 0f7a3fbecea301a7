"""From a lock to an environment: conda packages with rattler, wheels with uv or pip, complete or not at all."""
