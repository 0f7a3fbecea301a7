"""Whether a module can be imported, in a process of its own: what one import does to another is not asked."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # without importing typing
if TYPE_CHECKING:
    from .channel import Channel


def probe(job: dict[str, object], channel: Channel) -> dict[str, object]:
    """Import the module that ``job`` names; an exception that it raises ends the probe."""
    channel.stage("import")
    importlib.import_module(str(job["module"]))
    return {}
