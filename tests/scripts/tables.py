"""A small table of toolkit components."""

from __future__ import annotations

TOOLKITS = {
    "13.1.0": {"nvidia-cuda-runtime": "13.1.45", "nvidia-cublas": "13.2.0.9"},
    "13.0.2": {"nvidia-cuda-runtime": "13.0.96", "nvidia-cublas": "13.1.0.3"},
    "12.9.1": {
        "nvidia-cuda-runtime-cu12": "12.9.79",
        "nvidia-cublas-cu12": "12.9.1.4",
        "nvidia-cufft-cu12": "11.4.1.4",
    },
    "12.8.1": {
        "nvidia-cuda-runtime-cu12": "12.8.90",
        "nvidia-cublas-cu12": "12.8.4.1",
        "nvidia-cufft-cu12": "11.3.3.83",
    },
    "12.5.1": {
        "nvidia-cuda-runtime-cu12": "12.5.82",
        "nvidia-cublas-cu12": "12.5.3.2",
        "nvidia-cufft-cu12": "11.2.3.61",
    },
    "12.4.1": {"nvidia-cuda-runtime-cu12": "12.4.127", "nvidia-cublas-cu12": "12.4.5.8"},
}


def component_table() -> str:
    """cuda_components.toml with ``TOOLKITS``."""
    text = 'schema_version = 1\nupdated = "2026-11-20"\n'
    for version, parts in TOOLKITS.items():
        cuda = version.rpartition(".")[0]
        text += f'\n[[toolkit]]\nversion = "{version}"\ncuda = "{cuda}"\nevidence = ["docs"]\n\n[toolkit.components]\n'
        text += "".join(f'{name} = "=={part}"\n' for name, part in parts.items())
    return text + '\n[evidence.docs]\nkind = "project-docs"\nreference = "a page"\nseen = "2026-11-19"\n'
