"""A definition file as Apptainer reads it: github.com/apptainer/apptainer, pkg/build/types/parser/deffile.go."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

LONGEST_SECTION = 64 * 1024
"""Bytes; bufio.MaxScanTokenSize of Go. The scanner must see where the next section begins, too."""
SECTIONS = {"help", "setup", "files", "labels", "environment", "pre", "post", "runscript", "test", "startscript"}
_ARGUMENT = re.compile(r"\{\{\s*\w+\s*\}\}")


def definition(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The header and the sections, those of the same name joined. AssertionError if the builder would refuse it."""
    assert len(re.findall("(?mi)^bootstrap:", text)) == 1  # each begins another stage
    lines = text.removesuffix("\n").split("\n")
    assert not any(_ARGUMENT.search(line) for line in lines if not line.lstrip().startswith("#"))
    parts: list[list[str]] = [[]]
    for line in lines:
        if line.split()[:1] and line.split()[0].startswith("%"):
            parts.append([])
        parts[-1].append(line)
    assert all(len("\n".join(part).encode()) + 100 < LONGEST_SECTION for part in parts)
    header = dict(_header(line) for line in parts[0] if line.strip() and not line.strip().startswith("#"))
    sections: dict[str, str] = {}
    for name, *body in parts[1:]:
        key = name.removeprefix("%")
        assert key in SECTIONS
        sections[key] = sections.get(key, "") + "".join(f"{line}\n" for line in body)
    return header, sections


def written_by_post(text: str, directory: Path) -> str:
    """The requirements that the shell of ``%post`` writes, without the installation."""
    copied = directory / "requirements.txt"
    copied.unlink(missing_ok=True)
    script = definition(text)[1]["post"].replace("/opt/requirements.txt", str(copied))
    lines = [line for line in script.split("\n") if "pip install" not in line]
    subprocess.run(["/bin/sh", "-e"], input="\n".join(lines), text=True, check=True, timeout=60)
    return copied.read_text(encoding="utf-8")


def _header(line: str) -> tuple[str, str]:
    key, value = line.split("#", maxsplit=1)[0].split(":", 1)
    return key.strip().lower(), value.strip()
