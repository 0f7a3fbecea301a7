"""Laws for all files: evidence, dates, and the keys in which a row refers to itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from envsolve.matrix.laws.facts import Facts, Law, breach, every_row, raw_evidence, texts

_EVIDENCE_FOR_THE_WHOLE_FILE = ("pci_ids",)


def every_row_has_evidence(facts: Facts) -> Iterator[str]:
    """Every row names evidence, and the evidence is in its file.

    A fact without a source is a rumour. In pci_ids.toml one piece covers all rows.
    """
    for file, document in facts.documents.items():
        known = raw_evidence(document)
        if file in _EVIDENCE_FOR_THE_WHOLE_FILE and not known:
            yield breach(file, "evidence", "is missing")
        for where, row in every_row(document):
            names = texts(row, "evidence")
            if not names or not set(names) <= set(known):
                yield breach(file, where, "names no evidence, or none that is in the file")


def no_evidence_is_unused(facts: Facts) -> Iterator[str]:
    """Every piece of evidence is named by a row.

    Unused evidence has lost its row, or the row has lost its evidence.
    """
    for file, document in facts.documents.items():
        if file in _EVIDENCE_FOR_THE_WHOLE_FILE:
            continue
        used = {name for _, row in every_row(document) for name in texts(row, "evidence")}
        for name in raw_evidence(document):
            if name not in used:
                yield breach(file, f"evidence.{name}", "is used by no row")


def rows_speak_of_keys_they_have(facts: Facts) -> Iterator[str]:
    """``inferred`` names keys that are in the row, ``by_hand`` keys that rows of its table have.

    A missing value was not inferred, but leaving a key out can be decided by hand.
    """
    for file, document in facts.documents.items():
        keys = {name for _, row in every_row(document) for name in row}
        for where, row in every_row(document):
            for key, known in (("inferred", set(row)), ("by_hand", keys)):
                absent = [name for name in texts(row, key) if name not in known]
                if absent:
                    yield breach(file, f"{where}{_identity(row)}", f"{key} names {', '.join(absent)}, not in the row")


def what_is_set_by_hand_says_why(facts: Facts) -> Iterator[str]:
    """A row with ``by_hand`` has a ``note``: whoever refreshes the file must know why a value is left alone."""
    for file, document in facts.documents.items():
        for where, row in every_row(document):
            if row.get("by_hand") and not row.get("note"):
                yield breach(file, f"{where}{_identity(row)}", "by_hand without a note")


def dates_are_not_in_the_future(facts: Facts) -> Iterator[str]:
    """No date is later than today, and every date exists."""
    for file, document in facts.documents.items():
        dated = [("updated", document.get("updated"))]
        dated += [(f"evidence.{name}.seen", row.get("seen")) for name, row in raw_evidence(document).items()]
        for where, text in dated:
            day = _day(text)
            if day is None:
                yield breach(file, where, f"{text} is not a day")
            elif day > facts.today:
                yield breach(file, where, f"{text} is in the future")


def evidence_is_not_newer_than_its_file(facts: Facts) -> Iterator[str]:
    """No evidence was seen after the day its file says it was updated.

    That day is the matrix date in everything that envsolve writes, so it must be current.
    """
    for file, document in facts.documents.items():
        updated = _day(document.get("updated"))
        for name, row in raw_evidence(document).items():
            seen = _day(row.get("seen"))
            if updated is not None and seen is not None and seen > updated:
                yield breach(file, f"evidence.{name}.seen", f"{seen} is later than updated, {updated}")


BOOKKEEPING: tuple[Law, ...] = (
    every_row_has_evidence,
    no_evidence_is_unused,
    rows_speak_of_keys_they_have,
    what_is_set_by_hand_says_why,
    dates_are_not_in_the_future,
    evidence_is_not_newer_than_its_file,
)


def _identity(row: object) -> str:
    """What distinguishes a row from others, if it has such keys."""
    keys = ("version", "source", "build", "platform", "cuda_major", "name", "capability")
    found = [str(row[key]) for key in keys if key in row] if isinstance(row, dict) else []
    return f" ({', '.join(found)})" if found else ""


def _day(text: object) -> date | None:
    try:
        return date.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
