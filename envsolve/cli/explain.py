"""``envsolve explain``: read an error text or a log, and print cause and fix."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from envsolve.boundary.files import FileError, open_argument
from envsolve.cli import known_values
from envsolve.cli.options import (
    Command,
    FileName,
    Member,
    Parsed,
    matrix_directory,
    matrix_option,
    option,
    output_options,
)
from envsolve.cli.output import deliver, json_text
from envsolve.cli.report import Palette, note_each
from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.versions import CudaVersion, DriverVersion
from envsolve.model.words import gpu_name

if TYPE_CHECKING:
    from envsolve.app.explain.explaining import ExplainRequest
    from envsolve.app.status.results import Explanation

_LONGEST_NAME = 4096
_FILE_NAME = re.compile(r"(?:[\w.~-]*[/\\])*[\w-]+\.[A-Za-z]{1,4}")
_SUFFIXES = (".log", ".txt", ".out", ".err")
_NO_TEXT = {
    b"\x7fELF": "a program or a library",
    b"MZ": "a program or a library",
    b"\xcf\xfa\xed\xfe": "a program or a library",
    b"\xca\xfe\xba\xbe": "a program or a library",
    b"PK\x03\x04": "an archive",
    b"\x1f\x8b": "compressed",
    b"BZh": "compressed",
    b"\xfd7zXZ\0": "compressed",
    b"\x28\xb5\x2f\xfd": "compressed",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%PDF": "a PDF file",
}
"""The first bytes of files that are not text: a screenshot of an error, a library that an error names."""
_HEAD = 1024
_HINT = Hint("give the error text, a log file, or - for standard input", "python train.py 2>&1 | envsolve explain -")


def _python(text: str) -> str:
    if not re.fullmatch(r"[23]\.\d{1,2}(\.\d{1,2})?", text):
        raise ValueError(f"{text!r} is not a version of Python such as 3.12")
    return text


def _cuda(text: str) -> str:
    return str(CudaVersion.parse(text))


def _gpu(text: str) -> str:
    if text.lower() == "none":
        raise ValueError("'none' describes no machine: omit --gpu")
    return gpu_name(text)


def _refuse_cuda(context: click.Context, parameter: click.Parameter, cuda: str | None) -> None:  # noqa: ARG001
    if cuda is None:
        return
    raise UsageError(
        "ambiguous-cuda",
        "--cuda can be the framework's or the machine's",
        hints=(
            Hint("if the framework was built with it", f"--built-cuda {cuda}"),
            Hint("if it is the toolkit on the machine", f"--toolkit {cuda}"),
        ),
    )


@click.command(cls=Command, short_help="Find the cause of an error, and what fixes it.")
@click.argument("words", nargs=-1, metavar="[TEXT|FILE|-]", type=FileName("file"))
@option(
    "-f",
    "--framework",
    "frameworks",
    multiple=True,
    metavar="SPEC",
    type=Parsed("spec", str),
    shell_complete=known_values.frameworks,
    help="The framework, such as pytorch or tensorflow==2.10.0. Repeatable; default: found in the text.",
)
@option(
    "--gpu",
    "gpus",
    multiple=True,
    type=Parsed("gpu", _gpu),
    shell_complete=known_values.gpus,
    help="The GPU of the machine: a product ('RTX 3090'), a compute capability (8.6), or auto for this machine's.",
)
@option("--driver", type=Parsed("version", DriverVersion.parse), help="NVIDIA driver of the machine.")
@option("--host", metavar="FILE", type=FileName("file"), help="The machine, written by `envsolve detect --json`.")
@option("--platform", type=Member("name", Platform), help="Platform of the machine.")
@option("--prefix", metavar="DIR", type=FileName("directory"), help="The environment in which it happened.")
@option("--python", metavar="VERSION", type=Parsed("version", _python), help="The version of Python.")
@option(
    "--built-cuda",
    metavar="VERSION",
    type=Parsed("version", _cuda),
    shell_complete=known_values.toolkits,
    help="The CUDA that the framework was built with.",
)
@option(
    "--toolkit",
    metavar="VERSION",
    type=Parsed("version", _cuda),
    shell_complete=known_values.toolkits,
    help="The CUDA toolkit that is installed on the machine.",
)
@click.option("--cuda", hidden=True, expose_value=False, callback=_refuse_cuda)
@option("--json", "as_json", is_flag=True, help="Print JSON.")
@matrix_option
@output_options
def explain(**options: Any) -> int:
    """Read an error text or a log, and print cause and fix; exit 1 if it contains no known error.

    Without an argument, reads standard input.

    \b
    Examples:
      envsolve explain train.log
      python train.py 2>&1 | envsolve explain
    """
    from envsolve.app.explain.explaining import explain as explained_of

    with _stream(options["words"]) as stream:
        try:
            explained = explained_of(stream, _request(options), os.environ)
        except OSError as error:
            raise _unreadable(" ".join(options["words"]) or "standard input", error.strerror or str(error)) from error
    explained = explained._replace(notes=(*_not_a_file(options["words"]), *explained.notes))
    text = json_text(explained.as_json()) if options["as_json"] else _as_text(explained, full=options["verbose"] > 0)
    deliver(text, None, color=Palette.wanted())
    note_each(explained.notes, options)
    return 0 if explained.findings else 1


def _stream(words: tuple[str, ...]) -> BinaryIO:
    """What to read: standard input, a file, or the text itself. Raises UsageError if there is nothing."""
    if not words and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("nothing-to-explain", "no text to explain", hints=(_HINT,))
    if words in ((), ("-",)):
        if sys.stdin is None:
            raise UsageError("nothing-to-explain", "no standard input to read", hints=(_HINT,))
        return _opened("-", "standard input")
    text = " ".join(words)
    if len(words) == 1 and len(text) <= _LONGEST_NAME and _names_a_file(text):
        return _opened(text, text)
    return io.BytesIO(text.encode("utf-8", "surrogateescape"))


def _opened(name: str, shown: str) -> BinaryIO:
    try:
        stream = open_argument(name)
    except FileError as error:
        raise _unreadable(shown, error.reason) from error
    _require_text(stream, shown)
    return stream


def _require_text(stream: BinaryIO, name: str) -> None:
    """Raise UsageError if a file is plainly not text; a few letters in its bytes could look like the name of a GPU."""
    if not isinstance(stream, io.BufferedReader):
        return
    try:
        head = stream.peek(_HEAD)[:_HEAD]
    except OSError as error:
        raise _unreadable(name, error.strerror or str(error)) from error
    what = next((it for signature, it in _NO_TEXT.items() if head.startswith(signature)), None)
    if what is not None and not _is_utf_8(head):
        stream.close()
        raise UsageError("log-unreadable", f"{name} is {what}, not a text", hints=(_HINT,))


def _is_utf_8(head: bytes) -> bool:
    """Whether it may still be text: a log may begin with the letters MZ."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # it may end within a character
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _names_a_file(text: str) -> bool:
    """Whether ``text`` is a file in this directory, or plainly means one."""
    if "\n" in text or "\0" in text:
        return False
    return os.path.lexists(text) or (text.lower().endswith(_SUFFIXES) and " " not in text)


def _not_a_file(words: tuple[str, ...]) -> tuple[Note, ...]:
    """The note for one word that looks like the name of a missing file."""
    if len(words) != 1 or not _FILE_NAME.fullmatch(words[0]) or _names_a_file(words[0]):
        return ()
    return (Note("not-a-file", f"there is no file {words[0]}: it was read as text"),)


def _unreadable(name: str, why: str) -> UsageError:
    return UsageError("log-unreadable", f"{name} cannot be read: {why}", hints=(_HINT,))


def _request(options: dict[str, Any]) -> ExplainRequest:
    from envsolve.app.explain.explaining import ExplainRequest

    if options["host"] is not None and options["gpus"]:
        raise UsageError("contradictory-options", "--host and --gpu both set the GPUs: give only one")
    return ExplainRequest(
        gpus=options["gpus"],
        driver=options["driver"],
        host=options["host"],
        platform=options["platform"],
        prefix=options["prefix"],
        python=options["python"],
        built_cuda=options["built_cuda"],
        toolkit=options["toolkit"],
        frameworks=options["frameworks"],
        matrix_directory=matrix_directory(options),
    )


def _as_text(explained: Explanation, *, full: bool) -> str:
    from envsolve.cli.finding_text import finding_lines, printable

    lines: list[str] = []
    for finding in explained.findings:
        lines += [*finding_lines(finding, full=full), ""]
    if not explained.findings:
        lines += ["no known GPU environment error found in this text"]
        lines += [f"recognised: {printable(text)}" for text in explained.recognised]
    lines += [f"to find out more, collect: {printable(text)}" for text in explained.collect]
    return "".join(f"{line}\n" for line in lines).rstrip("\n") + "\n"
