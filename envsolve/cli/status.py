"""``envsolve status``: whether environments and locks on disk run on this machine, or on one that is named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.options import Parsed, file_name, gpu_name, matrix_option, member_of, option, output_options
from envsolve.cli.output import deliver
from envsolve.cli.report import note
from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform
from envsolve.model.request import Request
from envsolve.model.versions import DriverVersion

if TYPE_CHECKING:
    from envsolve.app.status import FileStatus

_USUAL = ("environment.yml", "conda-lock.yml", "pixi.lock", "pylock.toml", "requirements.txt")
_USUAL_PATTERNS = ("*.conda-lock.yml", "conda-*.lock", "pylock.*.toml")
_WORDS = {
    "fits": "runs here",
    "does-not-run": "does not run here",
    "cpu-only": "runs without the GPU",
    "unknown": "cannot be told",
    "no-framework": "holds nothing that depends on GPU and driver",
}


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@option(
    "--gpu",
    "gpus",
    multiple=True,
    type=Parsed("gpu", gpu_name),
    help="auto (default: detect), none (CPU), a product ('RTX 3090') or a compute capability (8.6). Repeatable.",
)
@option("--driver", type=Parsed("version", DriverVersion.parse), help="NVIDIA driver of the machine.")
@option(
    "--host",
    "hosts",
    multiple=True,
    metavar="FILE",
    type=Parsed("file", file_name),
    help="A machine written by `envsolve detect --json`. Repeatable: the files must run on every one.",
)
@option("--platform", type=Parsed("name", member_of(Platform)), help="The machine's platform; default: this one's.")
@option("--json", "as_json", is_flag=True, help="Print JSON.")
@matrix_option
@output_options
def status(**options: Any) -> int:
    """Say which environment files and locks run on this machine, and why others do not; exit 1 if one does not.

    Without FILE: those of the usual names in the current directory.
    """
    from envsolve.app.status import status_of
    from envsolve.matrix import Matrix, find_matrix

    directory = options["matrix_directory"]
    matrix = Matrix(Path(directory) if directory else find_matrix())
    files = options["files"] or _found()
    _require_there(files)
    request = Request(
        frameworks=(),
        gpus=("none",) if set(options["gpus"]) == {"none"} else options["gpus"],
        driver=options["driver"],
        hosts=options["hosts"],
        platforms=() if options["platform"] is None else (options["platform"],),
    )
    found = status_of(files, request, matrix, os.environ)
    deliver(_json(found) if options["as_json"] else _text(found), None)
    for text in dict.fromkeys(text for it in found for text in it.notes):
        note(text, quiet=options["quiet"])
    return 0 if all(it.verdict.is_good for it in found) else 1


def _found() -> tuple[str, ...]:
    """The files of the usual names that are there. Raises UsageError where there are none."""
    here = Path()
    named = [name for name in _USUAL if (here / name).is_file()]
    matched = sorted(path.name for pattern in _USUAL_PATTERNS for path in here.glob(pattern))
    found = tuple(dict.fromkeys((*named, *matched)))
    if not found:
        raise UsageError(
            "nothing-to-check",
            "there is no environment file and no lock here",
            hints=(Hint("name one", "envsolve status environment.yml"),),
        )
    return found


def _require_there(files: tuple[str, ...]) -> None:
    missing = next((name for name in files if not Path(name).is_file()), None)
    if missing is not None:
        raise UsageError("file-unreadable", f"there is no file {missing}", hints=(Hint("check the name"),))


def _text(found: list[FileStatus]) -> str:
    lines = []
    for it in found:
        lines.append(f"{it.path} ({it.platform}): {_WORDS[it.verdict]}")
        lines += [f"  {build}" for build in it.builds]
        lines += [f"  because: {reason}" for reason in it.reasons]
    return "".join(f"{line}\n" for line in lines)


def _json(found: list[FileStatus]) -> str:
    files = [
        {
            "path": it.path,
            "platform": it.platform,
            "status": it.verdict.value,
            "builds": list(it.builds),
            "reasons": list(it.reasons),
            "notes": list(it.notes),
        }
        for it in found
    ]
    answer = {"schema_version": 1, "ok": all(it.verdict.is_good for it in found), "files": files}
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"
