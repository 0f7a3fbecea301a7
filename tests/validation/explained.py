"""What texts of a framework mean, as ``envsolve validate`` asks ``explain``: nothing but the framework is known."""

from __future__ import annotations

from envsolve.app.explaining import findings_in
from envsolve.diagnose.case import Given
from envsolve.frameworks import Framework
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding


def explained(framework: Framework, text: str) -> tuple[Finding, ...]:
    """The findings of a text that ``framework`` printed."""
    return findings_in(text, Given(packages={framework.wheels[0]: ""}), Matrix())
