"""Write results: to standard output, or to a file that is written completely or not at all."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from envsolve.boundary.display import escaped, escaped_character
from envsolve.boundary.files import FileError, read_bytes
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import EnvsolveError, Hint, OutsideError, UsageError
from envsolve.model.lock_format import PLATFORM

_TO_A_FILE = Hint("write to a file with -o")
TO_A_PLACE = Hint("redirect standard output to a disk with free space: envsolve ... > FILE")


def deliver(text: str, output: str | None, *, color: bool | None = None) -> None:
    """Print ``text``, or write it to the file ``output``, without secrets; ``-`` means standard output.

    ``color`` keeps or drops the colour in what is printed; with None a terminal keeps it. Raises OutsideError if
    standard output cannot be written, UsageError if the file cannot. BrokenPipeError passes: whoever closed the pipe
    has read enough.
    """
    if output not in (None, "-"):
        write_whole(Path(str(output)), without_secrets(text))
        return
    try:
        click.echo(printable(escaped(text)), nl=False, color=color)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_failed(error) from error


def json_text(data: object) -> str:
    """``data`` as one JSON document with a final newline."""
    import json

    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def deliver_json(document: Mapping[str, object]) -> None:
    """Print an object of JSON; errors as in :func:`deliver`."""
    deliver(json_text(document), None)


def printable(text: str) -> str:
    r"""``text`` with characters that standard output cannot encode as ``\\uXXXX``, which JSON reads as the same text.

    In old encodings of Windows these are most non-English characters, in UTF-8 undecodable bytes of file names.
    """
    encoding = codecs.lookup(sys.stdout.encoding or "utf-8").name
    encoding = "utf-8" if encoding == "ascii" else encoding  # as click does for the C locale
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(it if _has_bytes(it, encoding) else escaped_character(it) for it in text)
    return text


def _has_bytes(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def deliver_each(texts: Sequence[tuple[str, str]], output: str | None) -> None:
    """Deliver the text for each platform: to separate files if ``output`` names the platform, otherwise the only text.

    Errors as in :func:`deliver`.
    """
    if output is None or PLATFORM not in output:
        deliver(texts[0][1], output)
    else:
        write_all([(Path(output.replace(PLATFORM, platform)), text) for platform, text in texts])


def output_failed(error: OSError) -> OutsideError:
    """The error if standard output cannot be written, e.g. because a disk is full."""
    forget_stdout()
    message = f"the answer could not be printed: {error.strerror or error}"
    return OutsideError("output-failed", message, hints=(_way_out(),))


def _way_out() -> Hint:
    """The hint for the running command: not every command can write a file itself."""
    return _TO_A_FILE if _has_output() else TO_A_PLACE


def _has_output() -> bool:
    """Whether the running command has the option -o for its result."""
    context = click.get_current_context(silent=True)
    return context is not None and any(parameter.name == "output" for parameter in context.command.params)


def forget_stdout() -> None:
    """Drop buffered output: otherwise the interpreter would try to write it at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` atomically by a file with ``text``; a link stays and its target is replaced.

    A special file (a pipe, a device) is written to directly. Raises UsageError if the directory cannot be written,
    OutsideError if the disk fails; then an old file is unchanged.
    """
    write_all([(path, text)])


def write_all(files: Sequence[tuple[Path, str]], *, in_folders: bool = False) -> None:
    """Write several files like :func:`write_whole`: none is replaced before all are on the disk.

    With ``in_folders`` missing directories are created. With --dry-run nothing is written, and each file gets a note
    whether it would be new, changed or unchanged.
    """
    if is_dry_run():
        _note_each(files, in_folders=in_folders)
        return
    written: list[tuple[Path, Path]] = []
    path = files[0][0]
    try:
        for path, text in files:
            if path.exists() and not path.is_file():
                path.write_text(text, encoding="utf-8")
            else:
                if in_folders:
                    path.parent.mkdir(parents=True, exist_ok=True)
                target = path.resolve()
                temporary = target.parent / f".envsolve-{os.urandom(8).hex()}"
                written.append((temporary, target))  # before it is created, so that no interrupt leaves it behind
                _make(temporary, text, _mode(target))
        for temporary, path in written:
            temporary.replace(path)
    except OSError as error:
        raise _not_written(path, error) from error
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)


def require_directory(path: Path) -> None:
    """Raise UsageError, before a long search, if ``path`` has no directory to be written to."""
    if not os.path.isdir(path.parent):  # noqa: PTH112 - no error for a name that is none
        raise _not_written(path, FileNotFoundError(errno.ENOENT, "its directory does not exist"))


def _not_written(path: Path, error: OSError) -> EnvsolveError:
    message = f"{path} cannot be written: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        hint = Hint(f"free disk space{', or choose another place for -o' if _has_output() else ''}")
        return OutsideError("disk-failed", message, hints=(hint,))
    place = "choose a file for -o in an existing, writable directory"
    hint = Hint(place if _has_output() else "check the permissions of the file and of its directory")
    return UsageError("output-not-writable", message, hints=(hint,))


def is_dry_run() -> bool:
    """Whether the running command has --dry-run and got it."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("dry_run"))


def _note_each(files: Sequence[tuple[Path, str]], *, in_folders: bool) -> None:
    """Print what writing ``files`` would do, on stderr. Raises UsageError if a directory is missing and not created."""
    from envsolve.cli.report import note

    quiet = bool(click.get_current_context().params.get("quiet"))
    for path, text in files:
        if not (in_folders or path.resolve().parent.is_dir()):
            raise _not_written(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        note(f"{path} {_would(path, text)}", quiet=quiet)


def _would(path: Path, text: str) -> str:
    content = text.encode("utf-8")
    try:
        there = read_bytes(path, len(content))
    except FileError:  # longer, a pipe, or not readable: in any case different
        return "would be changed"
    return "would be new" if there is None else "is unchanged" if there == content else "would be changed"


def _make(temporary: Path, text: str, mode: int) -> None:
    """Create a new file. The module tempfile, which does the same, takes 3 ms to import."""
    number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    temporary.chmod(mode)


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or the default of a new file."""
    try:
        return path.stat().st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
