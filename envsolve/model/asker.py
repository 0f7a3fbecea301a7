"""Who asks for what a request holds: a command line, or the file of a project.

A text says ``--driver`` to who typed it, and ``driver in pyproject.toml`` to who wrote it there.
"""

from __future__ import annotations

from typing import NamedTuple

COMMAND_LINE = "the command line"
_OPTIONS = {
    "frameworks": "--framework",
    "requirement-files": "--requirement",
    "constraint-files": "--constraint",
    "overrides": "--override",
    "build-constraint-files": "--build-constraint",
    "gpus": "--gpu",
    "hosts": "--host",
    "platforms": "--platform",
    "sources": "--source",
    "channels": "--channel",
    "extra-index-urls": "--extra-index-url",
    "outputs": "--output",
}
"""The options that are not named as the keys of a project are."""
_LISTS = ("frameworks", "overrides", "sources", "channels", "extra-index-urls", "outputs")


class Asker(NamedTuple):
    """Whose words they are: those of the project in ``file``, or a command line's where that is "".

    ``typed`` are the keys of the project that options stand for this once.
    """

    file: str = ""
    typed: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.file or COMMAND_LINE

    def named(self, key: str) -> str:
        """What says ``key``: ``--driver``, or ``driver in pyproject.toml``."""
        return f"{key} in {self.file}" if self.is_of_project(key) else _OPTIONS.get(key, f"--{key}")

    def saying(self, key: str, *values: str) -> str:
        """What is written to have ``values``: ``--gpu none``, or ``gpus = "none" in pyproject.toml``.

        Without any it is a key that is true.
        """
        if not self.is_of_project(key):
            return " ".join(f"{self.named(key)} {value}" for value in values) or self.named(key)
        quoted = ", ".join(f'"{value}"' for value in values)
        written = f"[{quoted}]" if key in _LISTS or len(values) > 1 else quoted or "true"
        return f"{key} = {written} in {self.file}"

    def is_of_project(self, key: str) -> bool:
        """Whether the project says ``key``, and no option in its place."""
        return bool(self.file) and key not in self.typed


def key_of(option: str) -> str:
    """The key of a project that says what ``option`` does."""
    return next((key for key, it in _OPTIONS.items() if it == option), option.removeprefix("--"))
