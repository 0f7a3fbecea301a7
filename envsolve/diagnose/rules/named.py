"""What rules in code share: which packages a text names, and fields that are known."""

from __future__ import annotations

from envsolve.diagnose.facts.named import about_gpus, cuda_major, is_of_gpus, of_module, package_of, version_of_package
from envsolve.findings.template import listed

__all__ = ["about_gpus", "cuda_major", "is_of_gpus", "known", "listed", "of_module", "package_of", "version_of_package"]


def known(**fields: str | None) -> dict[str, str]:
    """The fields that are known."""
    return {name: value for name, value in fields.items() if value}
