"""A vLLM, of which the probe needs as much as here is."""

__version__ = "0.33.0"
