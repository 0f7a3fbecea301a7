"""Notes: additional information about an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from envsolve import documents

Plain = str | int | None


class Note(NamedTuple):
    """A note: ``code`` is its kind, ``text`` a sentence, ``command`` a command for the user, if any.

    Programs should use the code and the ``fields``, the values in the text by name. The text may change with any
    release.
    """

    code: str
    text: str
    command: str | None = None
    values: tuple[tuple[str, Plain], ...] = ()

    def about(self, **values: Plain) -> Note:
        """Return the note with the values in its text."""
        return self._replace(values=tuple(values.items()))

    @property
    def fields(self) -> dict[str, Plain]:
        """The values in the text, by name."""
        return dict(self.values)

    def of(self, platform: str) -> Note:
        """Return the note for one platform among several."""
        return self._replace(text=f"{platform}: {self.text}")

    def as_json(self) -> documents.Note:
        """Return the note for the JSON output."""
        return {"code": self.code, "text": self.text, "command": self.command, "fields": self.fields}
