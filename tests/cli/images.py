"""Creating images from the command line, in the format of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from envsolve.lockfile.formats import module_of
from tests.cli.locking import Locking
from tests.conda.packages import MINOR
from tests.conftest import Result

TARGET = ("--platform", "linux-64", "--no-cache")
GPU = ("--gpu", "8.6", "--python", "3.11.7", *TARGET)


class Image(NamedTuple):
    """A format of images, the usual name of its files, and other endings of its names."""

    format_name: str
    file_name: str
    ending: str

    def __call__(self, locking: Locking, *arguments: str, output: str = "") -> Result:
        """A file for the Python that runs the tests."""
        common = ("--gpu", "none", "--python", MINOR, "--index-url", locking.url)
        words = arguments or ("alpha",)
        return locking.envsolve(*words, *common, *TARGET, "-o", output or self.file_name)

    def pins(self, path: Path) -> list[str]:
        """The packages in a file of the format."""
        requirements = module_of(self.format_name).requirements_in(path.read_text()) or ""
        return [line.split(" ")[0] for line in requirements.splitlines() if "==" in line]


DOCKERFILE, APPTAINER = Image("dockerfile", "Dockerfile", "Dockerfile"), Image("apptainer", "env.def", "def")


def run_in_venv(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """The output of ``command`` in a shell; a venv in ``directory`` replaces the image."""
    venv = directory / "image"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    environ = {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "HOME": str(directory), "NO_PROXY": "127.0.0.1"}
    environ |= {"PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)


def with_another_hash(text: str) -> str:
    """The text of a file with another digest for beta."""
    start = text.index("--hash=sha256:", text.index("\nbeta==")) + len("--hash=sha256:")
    return f"{text[:start]}{'0' * 64}{text[start + 64 :]}"
