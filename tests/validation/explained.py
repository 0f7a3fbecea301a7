"""What texts of a framework mean, as ``envsolve validate`` calls ``explain``: nothing but the framework is known."""

from __future__ import annotations

from envsolve.app.explain.explaining import findings_in
from envsolve.diagnose.case import Given
from envsolve.frameworks import AnyFramework, Framework
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding


def explained(framework: AnyFramework, text: str) -> tuple[Finding, ...]:
    """The findings of a text that ``framework`` printed."""
    package = framework.wheels[0] if isinstance(framework, Framework) else framework.name
    return findings_in(text, Given(packages={package: ""}), Matrix())
