"""Files that a run keeps for the next one; each is there as a whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path


def keep(path: Path, value: object) -> None:
    """Write ``value`` as JSON, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    temporary.write_text(json.dumps(value, indent=1), encoding="utf-8")
    temporary.replace(path)


def kept(path: Path) -> object:
    """What was kept, or None: nothing was, or a crash of the machine left it cut short."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
