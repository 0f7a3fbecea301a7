"""A small CI job that checks that a project's locks are current and that they can be installed.

This needs no GPU if the project names its machines. The job contains nothing of the project but the commands, so it
stays valid when the project changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Literal

from envsolve.model.installing_envsolve import REMARK, REQUIREMENT, REQUIREMENT_WITH_CONDA

System = Literal["github", "gitlab"]
"""The CI system."""
FILES: dict[System, PurePosixPath] = {
    "github": PurePosixPath(".github/workflows/envsolve.yml"),
    "gitlab": PurePosixPath(".gitlab/envsolve.yml"),
}
"""The path of the job's file. GitLab needs in .gitlab-ci.yml: ``include: .gitlab/envsolve.yml``."""
_PYTHON = "3.12"
"""The Python for envsolve itself. The Python of a lock may be another, which uv downloads."""
_CONDA_LOCKS = re.compile(r"(?:conda-lock\.ya?ml|\.lock)\Z")
_PLAIN = re.compile(r"[A-Za-z./][A-Za-z0-9 ./_=<>,\[\]@$\"+-]*(?<! )\Z")
"""Text that YAML always reads as a string (yaml.org/spec/1.2.2, 7.3.3)."""
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
_PLACE = "/tmp/locked"  # noqa: S108 - of a runner that is thrown away

_HEAD = """\
# Whether the locks are current, and whether they install. Neither needs a GPU: the project names those it is for
# (gpus and driver, or hosts, in [tool.envsolve]).
# {remark}
"""
_GITHUB = """\
name: envsolve
on:
  push:
    branches: [main, master]
  pull_request:
  workflow_dispatch:
permissions:
  contents: read
env:
  ENVSOLVE_URL: ${{{{ vars.ENVSOLVE_URL }}}}
jobs:
  locks:
    runs-on: ubuntu-24.04
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v7
        with:
          persist-credentials: false
      - uses: actions/setup-python@v7
        with:
          python-version: "{python}"
{commands}
"""
_GITLAB = """\
envsolve:
  image: python:{python}-slim
  interruptible: true
  timeout: 30 minutes
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  script:
{commands}
"""
_TEMPLATES: dict[System, tuple[str, str]] = {"github": (_GITHUB, "      - run: "), "gitlab": (_GITLAB, "    - ")}


def ci_snippet(system: System, commands: Iterable[str]) -> str:
    """Return the file of a job that runs ``commands`` in order, and stops at the first that fails."""
    template, step = _TEMPLATES[system]
    steps = "\n".join(f"{step}{_text(command)}" for command in commands)
    return _HEAD.format(remark=REMARK) + template.format(python=_PYTHON, commands=steps)


def ci_commands(locks: Sequence[str]) -> tuple[str, ...]:
    """Return the commands for a project with ``locks`` to install, each a file for ``envsolve create``.

    Each is installed with its hashes. On a GPU, kernels would test an environment.
    """
    import shlex

    package = REQUIREMENT_WITH_CONDA if any(map(_CONDA_LOCKS.search, locks)) else REQUIREMENT
    creates = f"envsolve create {_PLACE} --force --no-validate --lock"
    return (
        f"python -m pip install {package} uv",
        "envsolve lock --check",
        *(f"{creates} {shlex.quote(lock)}" for lock in locks),
    )


def _text(command: str) -> str:
    """``command`` as a YAML string, in quotes if necessary."""
    if _PLAIN.match(command) and command.lower() not in _WORDS:
        return command
    quoted = json.dumps(command, ensure_ascii=False)
    return "".join(it if it.isprintable() else f"\\U{ord(it):08X}" for it in quoted)
