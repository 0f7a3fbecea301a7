"""NVIDIA Jetson modules: the driver is part of L4T (Linux for Tegra) and has no version of the ordinary series."""

from __future__ import annotations

import re
from pathlib import Path

from envsolve.boundary.display import short_line
from envsolve.boundary.reading import short_text

_RELEASE = re.compile(r"R(\d+)\s*\(release\),\s*REVISION:\s*(\d+(?:\.\d+)*)")
"""``# R36 (release), REVISION: 4.3, GCID: ...`` in /etc/nv_tegra_release."""


def l4t_release(root: Path) -> str | None:
    """The L4T release such as 36.4.3; ``unknown`` if the file has another form; None on anything but a Jetson."""
    text = short_text(root / "etc/nv_tegra_release")
    if text is None:
        return None
    match = _RELEASE.search(text)
    return short_line(f"{match[1]}.{match[2]}") if match is not None else "unknown"


def board_model(root: Path) -> str | None:
    """The board's name from the device tree, such as ``NVIDIA Jetson Orin Nano Developer Kit``."""
    model = short_text(root / "proc/device-tree/model")
    return short_line(model) if model else None
