"""How a probe tells what it sees: one JSON object a line, into a file of its own that no library writes to.

Each line is written at once, so that what is known is not lost when a driver hangs or a library ends the process:

    {"stage": "cuInit"}                 what is being done now
    {"note": {...}}                     something learned on the way
    {"result": {...}}                   the end of a probe that came to its end
    {"error": {"type", "text", "trace"}}  an exception that it did not expect
"""

from __future__ import annotations

import json
import time
import traceback

LONGEST_TEXT = 4000
"""Characters of an exception that are kept: some hold the source of a kernel."""


class Channel:
    """The file of one probe, open until the process ends."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - as long as the process
        self._started = time.perf_counter()

    def stage(self, name: str) -> None:
        """Say what is being done from now on, for whoever has to tell where it ended."""
        self._write({"stage": name, "seconds": self._seconds()})

    def note(self, **facts: object) -> None:
        """Keep ``facts`` even where the probe does not come to its end."""
        self._write({"note": facts})

    def finish(self, result: dict[str, object]) -> None:
        """The result of the probe, a dict."""
        self._write({"result": result, "seconds": self._seconds()})

    def fail(self, error: BaseException) -> None:
        """An exception that the probe did not expect: its type, its text and where it was raised."""
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        self._write(
            {
                "error": {
                    "type": type(error).__name__,
                    "text": str(error)[:LONGEST_TEXT],
                    "trace": ["{}:{} {}".format(it.filename, it.lineno, it.name) for it in frames],
                },
                "seconds": self._seconds(),
            }
        )

    def _seconds(self) -> float:
        return round(time.perf_counter() - self._started, 4)

    def _write(self, line: dict[str, object]) -> None:
        self._file.write(json.dumps(line, default=str) + "\n")
        self._file.flush()
