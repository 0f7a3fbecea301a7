"""What differs between the command that a file says it was made with and the one that a project comes to now.

Both are texts of :func:`envsolve.app.command.recorded_command`. The driver does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envsolve.lockfile.recorded_command import Word, words_of


def command_changes(made: str, wanted: str) -> str:
    """The words that differ, as a sentence; "" where none does."""
    try:
        before, now = words_of(made), words_of(wanted)
    except ValueError:  # an odd quote, in a file that somebody edited
        return f"it was made with `{made}`, and now that is `{wanted}`"
    gone = [word for word in before if word not in now]
    new = [word for word in now if word not in before]
    changed = [(old, word) for old in gone for word in new if old.key == word.key]
    once = [pair for pair in changed if all(_is_one(word, (gone, new)) for word in pair)]
    told = [f"it was made for {old.text}, and the project asks for {word.text}" for old, word in once]
    told += [f"{word.text} is new" for word in new if word not in [pair[1] for pair in once]]
    told += [f"{word.text} is not asked for any more" for word in gone if word not in [pair[0] for pair in once]]
    return "; ".join(told) or "; ".join(_reordered(before, now))


def _is_one(word: Word, sides: tuple[Sequence[Word], Sequence[Word]]) -> bool:
    return all([it.key for it in side].count(word.key) == 1 for side in sides)


def _reordered(before: Sequence[Word], now: Sequence[Word]) -> Iterator[str]:
    for option in dict.fromkeys(word.option for word in now):
        values = [word for word in now if word.option == option]
        if values != [word for word in before if word.option == option]:
            yield f"{' '.join(word.text for word in values)} comes in this order now"
