"""``envsolve solve``: print an environment for a request. It is the default command of ``envsolve``."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.boundary.secrets import without_secrets
from envsolve.cli import known_values
from envsolve.cli.options import (
    TYPED,
    Command,
    FileName,
    Member,
    Parsed,
    dry_run_option,
    matrix_of,
    matrix_option,
    network_of,
    option,
    output_options,
    package_name,
)
from envsolve.cli.output import deliver, deliver_each
from envsolve.cli.progress import Progress
from envsolve.cli.replacing import force_option, refuse_to_replace
from envsolve.cli.report import note, note_each, note_facts
from envsolve.errors import Hint, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, framework_of_word, split_dependent
from envsolve.lockfile.formats import format_of_name
from envsolve.model.host import ASSUMED_GLIBC, Platform
from envsolve.model.lock_format import (
    CONDA_FORMATS,
    PLATFORM,
    PYTHON_FORMATS,
    SOLVED_FORMATS,
    STACK_FORMATS,
    format_for_file,
)
from envsolve.model.reference import editable
from envsolve.model.release import Source
from envsolve.model.request import Audit, Packages, Policy, Request, parse_cuda_versions, parse_versions
from envsolve.model.versions import DriverVersion, LibcVersion
from envsolve.model.words import gpu_name, one_word, parse_moment

if TYPE_CHECKING:
    from envsolve.app.solve.solving import ExistingVersions, Solved
    from envsolve.matrix import Matrix

_VERSIONS = Parsed("spec", parse_versions)
_WORD = Parsed("address", one_word)
_FILE = FileName("file")


@click.command(cls=Command, short_help="Print an environment for this machine, or the one you name.")
@click.argument("requirements", nargs=-1, metavar="[REQUIREMENT]...")
@option(
    "-f",
    "--framework",
    "frameworks",
    multiple=True,
    type=Parsed("spec", str),
    shell_complete=known_values.frameworks,
    help=(
        f"A framework from `envsolve matrix list`, or {' or '.join(DEPENDENT_FRAMEWORKS)}, optionally with versions: "
        "'pytorch>=2.5'. Repeatable."
    ),
)
@option(
    "-r",
    "--requirement",
    "requirement_files",
    multiple=True,
    metavar="FILE",
    type=_FILE,
    help="More Python requirements to lock with the stack. Repeatable.",
)
@option(
    "-e",
    "--editable",
    "editables",
    multiple=True,
    metavar="DIR",
    help="A project to install in place, with its requirements. Repeatable.",
)
@option(
    "--constraint",
    "constraint_files",
    multiple=True,
    metavar="FILE",
    type=_FILE,
    help="Limits on versions in a lock; adds no packages. Repeatable.",
)
@option(
    "--override",
    "overrides",
    multiple=True,
    type=Parsed("spec", str),
    help="Replace every requirement on a package, also of other packages: 'torch==2.11.*'. Repeatable.",
)
@option(
    "--build-constraint",
    "build_constraint_files",
    multiple=True,
    metavar="FILE",
    type=_FILE,
    help="Limits on the versions of what builds require, with --allow-builds. Repeatable.",
)
@option("--python", type=_VERSIONS, help="3.11 or '>=3.10,<3.13'; default: the newest the stack supports.")
@option(
    "--gpu",
    "gpus",
    multiple=True,
    type=Parsed("gpu", gpu_name),
    shell_complete=known_values.gpus,
    help=("auto (default: detect), none (CPU), a product ('RTX 3090') or a compute capability (8.6). Repeatable."),
)
@option("--driver", type=Parsed("version", DriverVersion.parse), help="NVIDIA driver of the target.")
@option(
    "--glibc",
    type=Parsed("version", LibcVersion.parse),
    help=f"glibc of a Linux target; default: this machine's, or {ASSUMED_GLIBC} where a GPU is named.",
)
@option(
    "--cuda",
    type=Parsed("spec", parse_cuda_versions),
    shell_complete=known_values.toolkits,
    help="Restrict the CUDA toolkit: '12.*', '<13'.",
)
@option(
    "--host",
    "hosts",
    multiple=True,
    metavar="FILE",
    type=_FILE,
    help=(
        "A machine, from `envsolve detect --json`, or a cloud's, such as aws:p4d.24xlarge. Repeatable: the stack must "
        "run on all of them."
    ),
)
@option(
    "--platform",
    "platforms",
    multiple=True,
    type=Member("name", Platform),
    help="Target platform; default: this one's. Repeatable: the same releases for each, where possible.",
)
@option(
    "--source",
    "sources",
    multiple=True,
    type=Member("name", Source),
    help="conda-forge, pypi, pytorch, pytorch-channel or jax-releases, in order of preference. Repeatable.",
)
@option(
    "--prefer",
    type=Member("policy", Policy),
    default=Policy.NEWEST_FRAMEWORK.value,
    show_default=True,
    help=(
        "How to choose between working stacks: newest-framework, newest-cuda, widest-gpu (most GPUs, oldest driver) "
        "or locked (least change against the file of -o)."
    ),
)
@option(
    "--why",
    multiple=True,
    metavar="NAME",
    shell_complete=known_values.facts,
    help="Explain the choice of pytorch, cuda, cudnn, python or driver.",
)
@option(
    "--why-not",
    "why_not",
    multiple=True,
    metavar="SPEC",
    help="Explain why not 'pytorch==2.15', 'cuda==13' or flash-attn. Repeatable.",
)
@option(
    "-c",
    "--channel",
    "channels",
    multiple=True,
    type=_WORD,
    metavar="CHANNEL",
    shell_complete=known_values.channels,
    help="A conda channel. Repeatable.",
)
@option("--index-url", type=_WORD, help="The Python index to use instead of the default one.")
@option(
    "--extra-index-url",
    "extra_index_urls",
    multiple=True,
    type=_WORD,
    metavar="URL",
    help="An additional Python index.",
)
@option(
    "--pytorch-index-url",
    type=_WORD,
    metavar="URL",
    help="A mirror of https://download.pytorch.org/whl, with its folders cpu, cu126 and so on.",
)
@option("--exclude-newer", metavar="DATE", type=Parsed("date", parse_moment), help="Ignore later releases.")
@option(
    "--audit",
    type=Member("mode", Audit),
    default=Audit.AUTO.value,
    help="How far to read CUDA code in wheels that the matrix does not know: auto (64 MB a wheel), full, off.",
)
@option("--allow-builds", is_flag=True, help="Allow building packages from source. This runs their code (locks only).")
@option(
    "--extensions",
    is_flag=True,
    help="Allow wheels of extensions (flash-attn and others) that third parties publish; the lock names them.",
)
@option("--pre", is_flag=True, help="Allow pre-releases (locks only).")
@option("--exact", is_flag=True, help="List every conda package of an environment file with its build.")
@option("-U", "--upgrade", is_flag=True, help="Ignore the versions pinned in the existing output file.")
@option(
    "-P",
    "--upgrade-package",
    "upgraded",
    multiple=True,
    metavar="NAME",
    type=Parsed("name", package_name),
    help="Ignore the pinned version of one package. Repeatable.",
)
@option(
    "--format",
    "format_name",
    metavar="NAME",
    shell_complete=known_values.formats,
    help=f"{', '.join(SOLVED_FORMATS)}; default: by the name of -o, else environment.",
)
@option(
    "-o",
    "--output",
    type=_FILE,
    metavar="FILE",
    help="Write to FILE (atomically) instead of stdout; {platform} in its name stands for each platform.",
)
@force_option
@dry_run_option
@option("--json", "as_json", is_flag=True, help="Print JSON that describes the answer, for a lock with all packages.")
@option("--offline", is_flag=True, help="Do not use the network, only the cache.")
@option("--refresh", is_flag=True, help="Fetch cached index data again.")
@option(
    "--cache-dir",
    metavar="DIR",
    type=FileName("directory"),
    help="Use DIR as the cache directory; `envsolve cache dir` prints the default.",
)
@option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@option("--no-progress", is_flag=True, help="Do not show progress.")
@matrix_option
@output_options
def solve(**options: Any) -> int:
    """Print an environment that runs on the GPU and the driver you have.

    With a GPU present or named a CPU build is never chosen; if no GPU build fits, the answer is why not and what fits.

    \b
    Examples:
      envsolve --framework tensorflow --gpu auto > environment.yml
      envsolve -f pytorch transformers --gpu 'RTX 4090' --driver 580.65.06 -o pylock.toml
    """
    _refuse_requirements_alone(options)
    format_name = _format(options)
    _require_exact_environment(options, format_name)
    code = _print(format_name, options)
    _note_format(options, format_name)
    return code


def _print(format_name: str, options: dict[str, Any]) -> int:
    request, matrix = request_from(options, format_name)
    if format_name in (*PYTHON_FORMATS, *CONDA_FORMATS) or options["exact"]:
        from envsolve.cli.solve_lock import print_lock

        return print_lock(request, matrix, options)
    return _print_environment(request, matrix, options)


def _print_environment(request: Request, matrix: Matrix, options: dict[str, Any]) -> int:
    from envsolve.app.any_lock.environment_file import environment_file
    from envsolve.app.lock.lock_request import LockRequest
    from envsolve.app.matrix.unknown_releases import knowing_new_releases

    if options["why"] or options["why_not"]:
        return _answer_questions(request, matrix, options)
    refuse_to_replace(request, matrix, options)
    existing, network = _existing_versions(options), network_of(options)
    progress = Progress(wanted=not options["no_progress"] and not options["quiet"])
    lock_request = LockRequest(request, network, show=progress.show, counted=progress.packages)

    def solve(matrix: Matrix) -> Solved:
        return environment_file(lock_request, matrix, os.environ, existing)

    try:
        solved = knowing_new_releases(solve, request, matrix, network, os.environ, progress.show)
    finally:
        progress.clear()
    _deliver(solved, options["output"])
    note_each(solved.notes, options)
    if existing is None and options["upgraded"]:
        from envsolve.app.lock.existing_locks import notes_on_upgraded

        note_each(notes_on_upgraded(options["upgraded"], (), ()), options)
    note_facts(solved.because, options)
    return 0


def request_from(options: dict[str, Any], format_name: str) -> tuple[Request, Matrix]:
    """The request of the command line, and the matrix for it."""
    from envsolve.app.solve.solving import framework_requests

    words, matrix = _words(options, format_name), matrix_of(options)
    frameworks, _ = split_dependent(options["frameworks"])
    try:
        return words._replace(frameworks=framework_requests(frameworks, matrix)), matrix
    except UsageError as error:
        if error.code == "unknown-framework" and not error.hints:
            error.hints = (Hint("a package goes beside a framework, without -f: -f pytorch PACKAGE"),)
        raise


def _words(options: dict[str, Any], format_name: str) -> Request:
    """The request of the command line without frameworks, which need the matrix."""
    packages = _packages(options)
    if not options["frameworks"] and not packages.requirements and not packages.files:
        raise UsageError(
            "no-framework",
            "no framework given",
            hints=(Hint("name one", f"envsolve --framework tensorflow {shlex.join(_typed() or ['--gpu', 'auto'])}"),),
        )
    return Request(
        frameworks=(),
        python=options["python"],
        cuda=options["cuda"],
        gpus=("none",) if set(options["gpus"]) == {"none"} else options["gpus"],
        driver=options["driver"],
        glibc=options["glibc"],
        hosts=options["hosts"],
        platforms=tuple(dict.fromkeys(options["platforms"])),
        sources=tuple(dict.fromkeys(options["sources"])),
        channels=options["channels"],
        index_url=options["index_url"],
        extra_index_urls=options["extra_index_urls"],
        format=format_name,
        prefer=options["prefer"],
        packages=packages,
    )


def _answer_questions(request: Request, matrix: Matrix, options: dict[str, Any]) -> int:
    """Print the answers to --why and --why-not; the environment itself is not written."""
    from envsolve.app.any_lock.why import answer_questions
    from envsolve.cli.answers import answers_json, answers_text

    questions, network = (options["why"], options["why_not"]), network_of(options)
    answers = answer_questions(request, *questions, matrix, os.environ, _existing_versions(options), network)
    text = answers_json(answers) if request.format == "json" else answers_text(answers, sources=options["verbose"] > 0)
    deliver(text, None)  # -o names the file of the answer in question
    note_each(dict.fromkeys(it for part in answers for it in part.notes), options)
    return 0


def _existing_versions(options: dict[str, Any]) -> ExistingVersions | None:
    """What the file of an earlier answer holds, for the policy that keeps it."""
    output = options["output"]
    if options["prefer"] is not Policy.LOCKED:
        return None
    if output in (None, "-"):
        raise UsageError(
            "nothing-to-keep",
            "--prefer locked needs an existing lock, and there is no -o",
            ("the shell empties a file before envsolve can read it",),
            (Hint("give the file with -o", "envsolve --prefer locked -o environment.yml ..."),),
        )
    from envsolve.app.lock.existing_locks import as_far_as_read, locks_named, versions_in_answer

    there = locks_named(output)
    kept = Packages(upgrade=options["upgrade"], upgraded=options["upgraded"])
    return versions_in_answer(as_far_as_read(there) if options["force"] else there, kept)


def _deliver(solved: Solved, output: str | None) -> None:
    """Print or write the answer; answers for several platforms that do not fit in one file get a file each."""
    texts = solved.texts
    if len(texts) > 1 and (output is None or PLATFORM not in output):
        names = " and ".join(platform for platform, _ in texts)
        raise UsageError(
            "several-platforms",
            f"an environment file is for one platform, but the request is for {names}",
            hints=(
                Hint(f"write one file for each: -o 'environment.{PLATFORM}.yml'"),
                Hint("or use --format json for all of them"),
            ),
        )
    deliver_each(texts, output)


def _format(options: dict[str, Any]) -> str:
    named, output = options["format_name"], options["output"]
    if options["as_json"] and named in (None, *STACK_FORMATS):
        return "environment" if options["exact"] else "json"
    if named is None:
        return (None if output is None else format_of_name(Path(output))) or "environment"
    if named not in SOLVED_FORMATS:
        raise UsageError("unknown-format", f"unknown format {named!r}", (f"known: {', '.join(SOLVED_FORMATS)}",))
    return str(named)


def _note_format(options: dict[str, Any], format_name: str) -> None:
    """Note that the name of the output suggests another format, or none."""
    output = options["output"]
    if output in (None, "-"):
        return
    by_name = format_for_file(Path(output))
    if by_name is None and options["format_name"] is None:
        text = f"the name {output} has no known format: it is written as an environment.yml (--format chooses another)"
        note(text, quiet=options["quiet"])
    elif by_name not in (None, format_name):
        text = f"{output} gets the format {format_name}, although its name says {by_name}"
        note(text, quiet=options["quiet"])


def _require_exact_environment(options: dict[str, Any], format_name: str) -> None:
    if options["exact"] and format_name != "environment":
        raise UsageError(
            "contradictory-options",
            f"--exact is for environment files, but the format is {format_name!r}",
            hints=(Hint("omit it: a lock always pins every package exactly"),),
        )


def _packages(options: dict[str, Any]) -> Packages:
    return Packages(
        requirements=(
            *split_dependent(options["frameworks"])[1],
            *options["requirements"],
            *map(editable, options["editables"]),
        ),
        files=options["requirement_files"],
        constraints=options["constraint_files"],
        overrides=options["overrides"],
        build_constraints=options["build_constraint_files"],
        exclude_newer=options["exclude_newer"],
        allow_builds=options["allow_builds"],
        pre=options["pre"],
        extensions=options["extensions"],
        upgrade=options["upgrade"],
        upgraded=options["upgraded"],
        pytorch_index_url=options["pytorch_index_url"],
        exact=options["exact"],
        audit=options["audit"],
    )


def _refuse_requirements_alone(options: dict[str, Any]) -> None:
    """Raise UsageError for words without a framework, a file or a format: most likely a misplaced command."""
    words = options["requirements"]
    if not words or any(options[it] for it in ("frameworks", "requirement_files", "format_name", "output")):
        return
    message = f"{words[0]!r} is a requirement, which needs --framework, -r, --format or -o beside it"
    others = [it for it in _typed() if it not in words]
    known = click.get_current_context().find_root().command
    if framework_of_word(words[0].lower()) is not None:
        hint = Hint("name a framework with -f", shlex.join(["envsolve", "-f", *words, *others]))
    elif isinstance(known, click.Group) and words[0] in known.list_commands(click.get_current_context()):
        hint = Hint("a command comes first", f"envsolve {words[0]} ...")
    else:
        hint = Hint("lock it alone", shlex.join(["envsolve", "--format", "pylock", *others, *words]))
    raise UsageError("usage", message, hints=(hint,))


def _typed() -> list[str]:
    """What is typed after the command."""
    return list(map(without_secrets, click.get_current_context().meta[TYPED]))
