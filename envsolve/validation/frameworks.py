"""How long the proof of a framework may take."""

from __future__ import annotations

TIMEOUT = 120.0
"""Seconds for import, device and operations, on a disk and a machine that are slow."""
TIMEOUT_WITH_JIT = 600.0
"""Seconds where a build holds only PTX for the GPU: the driver compiles it all when it is first loaded."""
