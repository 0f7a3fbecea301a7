"""``envsolve solve``: print an environment for a request. Also what ``envsolve`` alone does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.options import (
    Parsed,
    file_name,
    gpu_name,
    matrix_option,
    member_of,
    one_word,
    option,
    output_options,
)
from envsolve.cli.output import deliver, write_all
from envsolve.cli.report import note
from envsolve.errors import Hint, UsageError
from envsolve.lock import FORMATS, PLANNED_FORMATS, format_for_file
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import Policy, Request, parse_cuda_versions, parse_versions
from envsolve.model.versions import DriverVersion

if TYPE_CHECKING:
    from envsolve.app.solving import HeldOn, Solved
    from envsolve.matrix import Matrix

PLATFORM = "{platform}"
"""Stands for the platform in the name of an output file."""
_COMMANDS = ("solve", "detect", "matrix", "cache")
_VERSIONS = Parsed("spec", parse_versions)
_WORD = Parsed("address", one_word)
_FILE = Parsed("file", file_name)


@click.command()
@click.argument("requirements", nargs=-1, metavar="[REQUIREMENT]...")
@option(
    "-f",
    "--framework",
    "frameworks",
    multiple=True,
    type=Parsed("spec", str),
    help=(
        "tensorflow, pytorch, jax, cupy, onnxruntime or paddlepaddle, with versions if you like: 'pytorch>=2.5'. "
        "Repeatable."
    ),
)
@option(
    "-r",
    "--requirement",
    "requirement_files",
    multiple=True,
    metavar="FILE",
    help=("Further Python requirements to lock along with the stack."),
)
@option("--python", type=_VERSIONS, help="3.11 or '>=3.10,<3.13'; default: the newest the stack supports.")
@option(
    "--gpu",
    "gpus",
    multiple=True,
    type=Parsed("gpu", gpu_name),
    help=("auto (default: detect), none (CPU), a product ('RTX 3090') or a compute capability (8.6). Repeatable."),
)
@option("--driver", type=Parsed("version", DriverVersion.parse), help="NVIDIA driver of the target.")
@option("--cuda", type=Parsed("spec", parse_cuda_versions), help="Restrict the CUDA toolkit: '12.*', '<13'.")
@option(
    "--host",
    "hosts",
    multiple=True,
    metavar="FILE",
    type=_FILE,
    help=("A machine written by `envsolve detect --json`. Repeatable: the stack must run on every one."),
)
@option(
    "--platform",
    "platforms",
    multiple=True,
    type=Parsed("name", member_of(Platform)),
    help="Target platform; default: this one's. Repeatable: the same releases for each, where possible.",
)
@option(
    "--source",
    "sources",
    multiple=True,
    type=Parsed("name", member_of(Source)),
    help="conda-forge, pypi, pytorch, pytorch-channel or jax-releases, in order of preference. Repeatable.",
)
@option(
    "--prefer",
    type=Parsed("policy", member_of(Policy)),
    default=Policy.NEWEST_FRAMEWORK.value,
    show_default=True,
    help=(
        "Of stacks that all run: newest-framework, newest-cuda, widest-gpu (most GPUs, oldest driver) or locked "
        "(least change against the file of -o)."
    ),
)
@option(
    "--why", multiple=True, metavar="NAME", help="Say why the answer holds it: pytorch, cuda, cudnn, python, driver."
)
@option(
    "--why-not", "why_not", multiple=True, metavar="SPEC", help="Say why not 'pytorch==2.15', 'cuda==13'. Repeatable."
)
@option(
    "-c", "--channel", "channels", multiple=True, type=_WORD, metavar="CHANNEL", help="A conda channel. Repeatable."
)
@option("--index-url", type=_WORD, help="The Python index to use instead of the default one.")
@option(
    "--extra-index-url", "extra_index_urls", multiple=True, type=_WORD, metavar="URL", help="A further Python index."
)
@option(
    "--format",
    "format_name",
    metavar="NAME",
    help=(f"{' or '.join(FORMATS)}; default: what -o's name says, else environment."),
)
@option(
    "-o",
    "--output",
    type=_FILE,
    metavar="FILE",
    help="Write to FILE, whole or not at all, instead of stdout; {platform} in its name stands for each platform.",
)
@option("--json", "as_json", is_flag=True, help="Short for --format json.")
@option("--offline", is_flag=True, help="Do not use the network; this command never does.")
@option("--cache-dir", metavar="DIR", hidden=True)
@option("--no-cache", is_flag=True, hidden=True)
@option("--no-progress", is_flag=True, hidden=True)
@matrix_option
@output_options
def solve(**options: Any) -> int:
    """Print an environment that runs on the GPU and the driver you have.

    With a GPU present or named a CPU build is never chosen; if no GPU build fits, the answer is why not and what fits.
    """
    from envsolve.app.solving import framework_requests, solve_request
    from envsolve.matrix import Matrix, find_matrix

    _refuse_requirements(options)
    directory = options["matrix_directory"]
    matrix = Matrix(Path(directory) if directory else find_matrix())
    if not options["frameworks"]:
        raise UsageError(
            "no-framework", "which framework?", hints=(Hint("name one", "envsolve --framework tensorflow --gpu auto"),)
        )
    request = Request(
        frameworks=framework_requests(options["frameworks"], matrix),
        python=options["python"],
        cuda=options["cuda"],
        gpus=("none",) if set(options["gpus"]) == {"none"} else options["gpus"],
        driver=options["driver"],
        hosts=options["hosts"],
        platforms=tuple(dict.fromkeys(options["platforms"])),
        sources=tuple(dict.fromkeys(options["sources"])),
        channels=options["channels"],
        index_url=options["index_url"],
        extra_index_urls=options["extra_index_urls"],
        format=_format(options),
        prefer=options["prefer"],
    )
    if options["why"] or options["why_not"]:
        return _answer_questions(request, matrix, options)
    solved = solve_request(request, matrix, os.environ, _held_on(options))
    _deliver(solved, options["output"])
    for text in solved.notes:
        note(text, quiet=options["quiet"])
    if options["verbose"]:
        for fact in solved.because:
            note(f"{fact.text} [{fact.source}]", quiet=options["quiet"])
    return 0


def _answer_questions(request: Request, matrix: Matrix, options: dict[str, Any]) -> int:
    """Print what was asked about the answer; the answer itself is not written."""
    from envsolve.app.why import answer_questions
    from envsolve.cli.answers import answers_json, answers_text

    answers = answer_questions(request, options["why"], options["why_not"], matrix, os.environ, _held_on(options))
    text = answers_json(answers) if request.format == "json" else answers_text(answers, sources=options["verbose"] > 0)
    deliver(text, None)  # -o names the file of the answer that is asked about
    return 0


def _held_on(options: dict[str, Any]) -> HeldOn | None:
    """What the file of an earlier answer holds, for the policy that keeps it."""
    output = options["output"]
    if options["prefer"] is not Policy.LOCKED:
        return None
    if output in (None, "-"):
        raise UsageError(
            "nothing-to-keep",
            "--prefer locked keeps what the file of -o holds, and no file is named",
            ("a file that the shell redirects to is empty before envsolve reads it",),
            (Hint("name the file", "envsolve --prefer locked -o environment.yml ..."),),
        )
    from envsolve.lock.held import read_held

    return lambda platform: read_held(Path(str(output).replace(PLATFORM, platform)), platform)


def _deliver(solved: Solved, output: str | None) -> None:
    """Print or write the answer; answers for several platforms that one file cannot hold go to a file each."""
    texts = solved.texts
    if len(texts) > 1 and (output is None or PLATFORM not in output):
        names = " and ".join(platform for platform, _ in texts)
        raise UsageError(
            "several-platforms",
            f"an environment file is for one platform, and the answer is for {names}",
            hints=(
                Hint(f"name a file for each: -o 'environment.{PLATFORM}.yml'"),
                Hint("--format json holds them all"),
            ),
        )
    if output is None or PLATFORM not in output:
        deliver(texts[0][1], output)
    else:
        write_all([(Path(output.replace(PLATFORM, platform)), text) for platform, text in texts])


def _format(options: dict[str, Any]) -> str:
    named, output = options["format_name"], options["output"]
    if options["as_json"]:
        if named not in (None, "json"):
            raise UsageError("contradictory-options", f"--json and --format {named} name two formats: give one of them")
        return "json"
    if named is None:
        return (format_for_file(Path(output)) if output is not None else None) or "environment"
    if named not in FORMATS and named not in PLANNED_FORMATS:
        raise UsageError(
            "unknown-format", f"there is no format {named!r}", (f"known: {', '.join((*FORMATS, *PLANNED_FORMATS))}",)
        )
    return str(named)


def _refuse_requirements(options: dict[str, Any]) -> None:
    if not options["requirements"] and not options["requirement_files"]:
        return
    given = " ".join(options["requirements"] or options["requirement_files"])
    meant = next((word for word in options["requirements"] if word in _COMMANDS), None)
    if meant is not None:
        message = f"the command comes first: envsolve {meant} ..."
        raise UsageError("usage", message, hints=(Hint("see its options", f"envsolve {meant} --help"),))
    raise UsageError(
        "requirements-not-supported",
        f"this version of envsolve solves for frameworks only and cannot lock {given!r} along with them",
        hints=(Hint("to ask for a framework use", "envsolve --framework pytorch"),),
    )
