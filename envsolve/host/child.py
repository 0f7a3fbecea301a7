"""Query a library of the driver in a child process: it may crash, hang, exit, print or use up all memory.

It may do so as soon as it is loaded, so this process never loads it. The child has no input, its output is discarded,
and it answers with one line of JSON through a separate pipe.

On Linux the child is a fork of this process, which takes a millisecond; a new interpreter takes thirty. A process with
several threads is not forked: the child could wait for a thread that it does not have, and a library that is in use
here would not start again there.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from envsolve.boundary.programs import GRACE, LONGEST_OUTPUT, run_program
from envsolve.host.trouble import Trouble

LARGEST_CHILD = 512 << 20
"""Bytes of memory that a child may use beyond its initial size. Not address space: libcuda reserves much of it."""

Facts = dict[str, object]
Query = Callable[[Sequence[str]], Facts]
"""A function of a module that queries the first library of these names that loads."""

_LOOK_EVERY = 0.02
"""Seconds between two checks of a child."""
_CHUNK = 1 << 16
_NEW_INTERPRETER = (
    "import importlib, json, sys; sys.path[:], module, function, names = json.loads(sys.argv[1]); "
    "from envsolve.host.child import serve; serve(1, getattr(importlib.import_module(module), function), names)"
)


class Ended(NamedTuple):
    """What a child wrote, and how it ended.

    ``exit_code`` is negative for a signal, and None if envsolve stopped the child because it was ``too_large`` or took
    too long.
    """

    answer: bytes
    exit_code: int | None
    too_large: bool = False


def query_child(query: Query, names: Sequence[str], environ: Mapping[str, str], seconds: float) -> Ended:
    """Run ``query`` in a child for at most ``seconds``. Then the child and everything it started are ended.

    Raises OSError if no child can be started.
    """
    if sys.platform == "win32":
        finished = run_program(_new_interpreter(query, names), environ, seconds)
        return Ended(finished.output.encode(), finished.exit_code)
    receiving, sending = os.pipe()
    try:
        if _has_one_thread():
            process = _copy(sending, query, names)
        else:
            process = _spawn(sending, _new_interpreter(query, names), environ)
        os.close(sending)
        try:
            return _watch(process, receiving, time.monotonic() + seconds)
        finally:
            _end(process)
    finally:
        os.close(receiving)


def serve(answers: int, query: Query, names: Sequence[str]) -> NoReturn:
    """Run as the child: write the answer to the descriptor ``answers``, and exit without the driver's clean-up."""
    code = 1
    try:
        import json

        answers = _seclude(answers)
        content = json.dumps(_answer(query, names)).encode() + b"\n"
        while content:
            content = content[os.write(answers, content) :]
        code = 0
    finally:
        os._exit(code)


def _answer(query: Query, names: Sequence[str]) -> Facts:
    try:
        return query(names)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return {"problem": (Trouble.PROBE_FAILED, f"{type(error).__name__}: {error}", None)}


def _seclude(answers: int) -> int:
    """Close everything that this process inherited except ``answers``, which may get another number.

    It also changes to the root directory: relative entries of the library path then find nothing of the user's.
    """
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.setsid()
    os.chdir(os.sep)
    while answers <= 2:  # noqa: PLR2004 - the standard streams
        answers = os.dup(answers)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    for descriptor in _descriptors():
        if descriptor > 2 and descriptor != answers:  # noqa: PLR2004
            with contextlib.suppress(OSError):
                os.close(descriptor)
    return answers


def _descriptors() -> list[int]:
    """The open descriptors, if the system lists them."""
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - names are wanted
    except OSError:
        return []


def _has_one_thread() -> bool:
    """Whether this process may be forked. Only Linux lists all threads, including those that libraries started."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - names are wanted
    except OSError:
        return False


def _new_interpreter(query: Query, names: Sequence[str]) -> list[str]:
    """The command that starts a new interpreter as the child. It imports from the same place as this one."""
    import json

    path = [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100 - an empty one is the current directory
    argument = json.dumps([path, query.__module__, query.__name__, list(names)])
    return [sys.executable, "-I", "-c", _NEW_INTERPRETER, argument]


if sys.platform != "win32":

    def _copy(answers: int, query: Query, names: Sequence[str]) -> int:
        import ctypes  # noqa: F401 - here rather than in every copy
        import json  # noqa: F401

        process = os.fork()
        if process == 0:
            serve(answers, query, names)
        return process

    def _spawn(answers: int, command: list[str], environ: Mapping[str, str]) -> int:
        streams = [
            (os.POSIX_SPAWN_DUP2, answers, 1),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_RDWR, 0),
        ]
        return os.posix_spawn(command[0], command, environ, file_actions=streams)

    def _watch(process: int, receiving: int, deadline: float) -> Ended:
        """Read one line, or what there is when the child ends or must be stopped."""
        answer = bytearray()
        ready = select.poll()
        ready.register(receiving, select.POLLIN)
        most = _memory(process) + LARGEST_CHILD
        is_open = True
        while time.monotonic() < deadline:
            if _memory(process) > most:
                return Ended(bytes(answer), None, too_large=True)
            if not is_open:
                code = _exit_code(process)
                if code is not None:
                    return Ended(bytes(answer), code)
                time.sleep(_LOOK_EVERY)
            elif ready.poll(_LOOK_EVERY * 1000):
                piece = os.read(receiving, _CHUNK)
                is_open = bool(piece)
                answer += piece
                if piece.endswith(b"\n") or len(answer) > LONGEST_OUTPUT:
                    return Ended(bytes(answer), 0)
        return Ended(bytes(answer), None)

    def _exit_code(process: int) -> int | None:
        """How the child ended, a signal as a negative number; None as long as it runs. It is not collected yet."""
        ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def _memory(process: int) -> int:
        """The bytes of memory that the child has in use; 0 where the system does not say."""
        try:
            with open(f"/proc/{process}/statm", "rb") as numbers:  # noqa: PTH123 - read fifty times a second
                return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0

    def _end(process: int) -> None:
        """Kill the child and all that it started, and collect it. One that sleeps inside the kernel is left behind."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                kill(process, signal.SIGKILL)
        deadline = time.monotonic() + GRACE
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(process, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.0001)
