"""Notes: what somebody should know beside an answer."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """One note: ``code`` is its kind, ``text`` a sentence, ``command`` what to type, if anything.

    Programs go by the code. The text may change with any release.
    """

    code: str
    text: str
    command: str | None = None

    def of(self, platform: str) -> Note:
        """The same note, told of one platform among several."""
        return self._replace(text=f"{platform}: {self.text}")

    def as_json(self) -> dict[str, object]:
        """The note as every document of JSON has it."""
        return self._asdict()
