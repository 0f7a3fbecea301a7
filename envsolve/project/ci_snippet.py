"""A small job for continuous integration: whether a project's locks are current, and whether they install.

Neither needs a GPU, as long as the project names the machines it is for. Nothing of the project stands in the job but
the commands, so that it stays right when the project changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Literal

from envsolve.model.installing_envsolve import REMARK, REQUIREMENT, REQUIREMENT_WITH_CONDA

System = Literal["github", "gitlab"]
"""Whose continuous integration."""
FILES: dict[System, PurePosixPath] = {
    "github": PurePosixPath(".github/workflows/envsolve.yml"),
    "gitlab": PurePosixPath(".gitlab/envsolve.yml"),
}
"""Where the file of a job is. GitLab needs it in .gitlab-ci.yml: ``include: .gitlab/envsolve.yml``."""
_PYTHON = "3.12"
"""What envsolve itself runs in. The Python of a lock is another one, which uv fetches."""
_CONDA_LOCKS = re.compile(r"(?:conda-lock\.ya?ml|\.lock)\Z")
_PLAIN = re.compile(r"[A-Za-z./][A-Za-z0-9 ./_=<>,\[\]@$\"+-]*(?<! )\Z")
"""Words that YAML takes for nothing else than a text, whatever stands in them (yaml.org/spec/1.2.2, 7.3.3)."""
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
    """The file of a job that runs ``commands`` one after the other, and stops at the first that fails."""
    template, step = _TEMPLATES[system]
    steps = "\n".join(f"{step}{_text(command)}" for command in commands)
    return _HEAD.format(remark=REMARK) + template.format(python=_PYTHON, commands=steps)


def ci_commands(locks: Sequence[str]) -> tuple[str, ...]:
    """What to run for a project whose ``locks`` are to be installed, each a file that ``envsolve create`` takes.

    Each is installed with the digests in it. Kernels would prove an environment where there is a GPU.
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
    """``command`` as a text of YAML, in quotes where it could be anything else."""
    if _PLAIN.match(command) and command.lower() not in _WORDS:
        return command
    quoted = json.dumps(command, ensure_ascii=False)
    return "".join(it if it.isprintable() else f"\\U{ord(it):08X}" for it in quoted)
