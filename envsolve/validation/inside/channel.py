"""How a probe reports: one JSON object per line, to a separate file that no library writes to.

Each line is written at once, so that nothing is lost if a driver hangs or a library ends the process:

{"stage": "cuInit"}                 the current step
{"note": {...}}                     an intermediate result
{"result": {...}}                   the final result of a probe
{"error": {"type", "text", "trace"}}  an unexpected exception
"""

from __future__ import annotations

import json
import time
import traceback

LONGEST_TEXT = 4000


def shortened(text: str) -> str:
    """``text`` up to the limit: some exceptions contain the source of a kernel, and the reason before or after it."""
    half = LONGEST_TEXT // 2
    return text if len(text) <= LONGEST_TEXT else "{}\n...\n{}".format(text[:half], text[-half:])


class Channel:
    """The file of one probe, open until the process ends."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - as long as the process
        self._started = time.perf_counter()

    def stage(self, name: str) -> None:
        """Report the current step, so that it is known where the probe ended."""
        self._write({"stage": name, "seconds": self._seconds()})

    def note(self, **facts: object) -> None:
        """Report ``facts``, in case the probe does not finish."""
        self._write({"note": facts})

    def finish(self, result: dict[str, object]) -> None:
        """Report the result of the probe."""
        self._write({"result": result, "seconds": self._seconds()})

    def fail(self, error: BaseException) -> None:
        """Report an unexpected exception: its type, its text and where it was raised."""
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        self._write(
            {
                "error": {
                    "type": type(error).__name__,
                    "text": shortened(str(error)),
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
