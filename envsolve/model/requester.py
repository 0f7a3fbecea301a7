"""Where a request comes from: the command line or a project file.

Messages name settings accordingly: ``--driver`` or ``driver in pyproject.toml``.
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
"""The options whose names differ from the project keys."""
_LISTS = ("frameworks", "overrides", "sources", "channels", "extra-index-urls", "outputs")


class Requester(NamedTuple):
    """The origin of a request: the project file ``file``, or the command line if that is "".

    ``typed`` are the project keys that options override for this run. ``command`` are the words of the command before
    its options, such as ``create .venv``; none for ``envsolve solve``. ``implied`` are the frameworks that only
    requirements name, which a command does not name again.
    """

    file: str = ""
    typed: frozenset[str] = frozenset()
    command: tuple[str, ...] = ()
    implied: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.file or COMMAND_LINE

    def name_of(self, key: str) -> str:
        """Return how a message names ``key``: ``--driver`` or ``driver in pyproject.toml``."""
        return f"{key} in {self.file}" if self.is_from_project(key) else _OPTIONS.get(key, f"--{key}")

    def setting(self, key: str, *values: str) -> str:
        """Return the text that sets ``key`` to ``values``: ``--gpu none`` or ``gpus = "none" in pyproject.toml``.

        Without values the key is a flag, which is set to true.
        """
        if not self.is_from_project(key):
            return " ".join(f"{self.name_of(key)} {value}" for value in values) or self.name_of(key)
        quoted = ", ".join(f'"{value}"' for value in values)
        written = f"[{quoted}]" if key in _LISTS or len(values) > 1 else quoted or "true"
        return f"{key} = {written} in {self.file}"

    def is_from_project(self, key: str) -> bool:
        """Whether the project sets ``key`` and no option overrides it."""
        return bool(self.file) and key not in self.typed


def key_of(option: str) -> str:
    """Return the project key that corresponds to ``option``."""
    return next((key for key, it in _OPTIONS.items() if it == option), option.removeprefix("--"))
