"""A vLLM, as far as the probe needs it."""

__version__ = "0.33.0"
