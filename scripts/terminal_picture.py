"""Writes docs/terminal.svg, the picture in the README, from real output of envsolve.

.venv-test/bin/python -m scripts.terminal_picture
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

PICTURE = Path(__file__).parents[1] / "docs" / "terminal.svg"
WIDTH = 112
COMMANDS = (
    'envsolve -f pytorch --gpu "GTX 1080 Ti" --driver 580.65.06 --platform linux-64 -o environment.yml',
    "tail -5 environment.yml",
    "envsolve status --gpu B200 --driver 570.195.03 --platform linux-64 environment.yml",
    "envsolve -f 'pytorch>=2.15' --gpu V100 --platform linux-64",
)


def shown(commands: tuple[str, ...] = COMMANDS) -> list[str]:
    """The commands, each with its output without colours."""
    lines = []
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("ENVSOLVE_", "CONDA_", "UV_"))}
    path = os.pathsep.join((str(Path(sys.executable).parent), environ.get("PATH", "")))
    with TemporaryDirectory() as directory:
        for command in commands:
            done = subprocess.run(  # only the commands above
                ["sh", "-c", command],
                cwd=directory,
                env={**environ, "PATH": path, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            lines += [f"$ {command}", *done.stdout.splitlines()]
    return lines


def picture(lines: list[str]) -> str:
    """``lines`` as an SVG of a terminal."""
    from rich.console import Console
    from rich.text import Text

    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123  # a stream, not a path
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        for line in lines:
            text = Text(line)
            if line.startswith("$ "):
                text.stylize("bold green", 0, 1)
                text.stylize("bold", 1)
            text.highlight_regex(r"^(note|hint|fix|seen):", "cyan")
            text.highlight_regex(r"^(error|cause):", "bold red")
            text.highlight_regex(r"\s#.*$", "dim")
            console.print(text, highlight=False)
        return console.export_svg(title="envsolve", unique_id="envsolve")


def text_of(svg: str) -> str:
    """The words in a picture, without the spaces between them, which it positions itself."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return re.sub(r"\s+", "", unescape("".join(found)).replace("\xa0", " "))


if __name__ == "__main__":
    PICTURE.write_text(picture(shown()), encoding="utf-8")
