"""The program of every probe: ``python run.py PROBE JOB RESULT_FILE``.

PROBE names a module beside this one with a function ``probe(job, channel)``; JOB is a JSON object. Results go to
RESULT_FILE, never to stdout, where frameworks print.

The environment must behave as it does for its user, so nothing is disabled (PYTHONPATH, user site, LD_LIBRARY_PATH).
Only the directory of this file is removed from the search path, where its modules could hide others.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback

TYPE_CHECKING = False  # without importing typing
if TYPE_CHECKING:
    from typing import TextIO

    from .channel import Channel

UNREPORTED = 70
"""The exit code of a probe that could not report its result (EX_SOFTWARE of sysexits.h)."""
PACKAGE = "_envsolve_inside"


def load_package(directory: str) -> None:
    """Load this directory as a package with a unique name, so that its modules hide no others."""
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(directory, "__init__.py"), submodule_search_locations=[directory]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def main(name: str, job: str, result_file: str) -> None:
    """Run the probe ``name`` and end the process, without the clean-up of libraries, which can hang."""
    end_with_parent()
    directory = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.getcwd()) != directory]
    writes_no_bytecode, sys.dont_write_bytecode = (
        sys.dont_write_bytecode,
        True,
    )  # write no bytecode into envsolve's own directory
    load_package(directory)
    channel = importlib.import_module(PACKAGE + ".channel").Channel(result_file)
    try:
        probe = importlib.import_module("{}.{}".format(PACKAGE, name)).probe
        loaded = importlib.import_module(PACKAGE + ".loaded").loaded_libraries
        sys.dont_write_bytecode = writes_no_bytecode
        result = probe(json.loads(job), channel)
        channel.stage("reading which libraries are loaded")
        channel.note(loaded=loaded())
        channel.finish(result)
    except BaseException as error:
        report_error(error, channel)
    flush(sys.stdout)
    flush(sys.stderr)
    os._exit(0)


def end_with_parent() -> None:
    """On Linux, end the process with its parent, so that no probe is left alone with a GPU (prctl(2))."""
    if sys.platform.startswith("linux"):
        import ctypes

        set_parent_death_signal, kill = 1, 9
        try:
            ctypes.CDLL(None).prctl(set_parent_death_signal, kill)
        except (AttributeError, OSError):
            pass


def report_error(error: BaseException, channel: Channel) -> None:
    """Report an error; if the file of the probe cannot be written either, on stderr and with another exit code."""
    try:
        channel.fail(error)
    except BaseException:
        traceback.print_exc()
        flush(sys.stderr)
        os._exit(UNREPORTED)


def flush(stream: TextIO | None) -> None:
    """Flush a stream, which may be closed or missing."""
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):
        pass


if __name__ == "__main__":
    main(*sys.argv[1:4])
