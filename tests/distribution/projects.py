"""A project with a lock that needs no package index: an environment.yml for an A100."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.distribution.tools import call

_PYPROJECT = """\
[tool.envsolve]
frameworks = ["pytorch"]
python = "3.12"
gpus = "A100"
driver = "{driver}"
platforms = "linux-64"
outputs = ["environment.yml"]
"""


def locked_project(directory: Path) -> Path:
    """A new project in ``directory`` whose lock is current."""
    directory.mkdir()
    set_driver(directory, "580.65.06")
    call(sys.executable, "-m", "envsolve", "lock", cwd=directory)
    return directory


def set_driver(project: Path, driver: str) -> None:
    """Change the driver that the project is for; the lock stays."""
    (project / "pyproject.toml").write_text(_PYPROJECT.format(driver=driver), encoding="utf-8")
