"""The catalogue of findings, ``data/findings/*.toml``; its README documents the keys.

Every entry is checked when it is read: an unknown key, a fact that ``facts.toml`` does not declare and a field that can
be empty are refused with ValueError. A test reads all of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

from envsolve.boundary.document import Document, Kept, read_document
from envsolve.findings.condition import Condition, Facts
from envsolve.findings.entry import Entry
from envsolve.findings.rule import Branch, Cause, Rule
from envsolve.findings.template import Sentence, fields_of
from envsolve.model.finding import Finding, Severity

Row = Mapping[str, object]

_SAID = ("title", "cause", "fix", "commands", "more", "check", "shows")
_KEYS = frozenset(
    {
        *_SAID,
        "severity",
        "in_scope",
        "solvable",
        "source",
        "finding",
        "when",
        "unless",
        "number",
        "error",
        "seen",
        "remedy",
        "variant",
    }
)
_OF_STEP = frozenset({"say", "when", "commands"})
_OF_BRANCH = frozenset({"when", "lines", "causes"})
_OF_CAUSE = frozenset({"id", "when"})
_GROUP = re.compile(r"\(\?P<(\w+)>")


def find_findings() -> Path:
    """The directory of the catalogue: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_findings"
    return installed if installed.is_dir() else package.parent / "data" / "findings"


class Catalogue:
    """The files of a directory, each read when it is first needed.

    Raises MatrixError where a file cannot be read or is not TOML, and ValueError for an entry that is wrong.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or find_findings()
        self._shipped = directory is None
        self._read: dict[str, Entry] = {}
        self._expressions: dict[str, Condition] = {}

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        """Every file by its name."""
        paths = sorted(self.directory.glob("*.toml"))
        return {path.stem: read_document(path, Kept(path, wanted=self._shipped)) for path in paths}

    @cached_property
    def _written(self) -> Row:
        """The facts that are expressions of others."""
        return _row(self.documents.get("facts", {}).get("expression"))

    def table(self, name: str) -> Row:
        """A table that expressions look values up in. Raises KeyError where there is none of that name."""
        return _row(_row(self.documents["facts"]["table"])[name])

    @cached_property
    def facts(self) -> Mapping[str, str]:
        """The declared facts and functions, each with the module that has it, or ``expression``."""
        modules = self.documents.get("facts", {})
        declared = [(name, module) for module, names in modules.items() if module != "table" for name in _names(names)]
        twice = sorted(name for name, count in Counter(name for name, _ in declared).items() if count > 1)
        if twice:
            raise ValueError(f"facts.toml declares {', '.join(twice)} twice")
        return dict(declared)

    @cached_property
    def _fields(self) -> frozenset[str]:
        """The clues, and the named groups of the symptoms' patterns."""
        rows = (row for _, row in self.rows("symptom"))
        texts = (text for row in rows for text in _tables(row.get("text")))
        groups = (name for text in texts for name in _GROUP.findall(str(text.get("pattern"))))
        return frozenset((*groups, *(name for name, _ in self.rows("clue"))))

    @cached_property
    def _entries(self) -> Mapping[str, Row]:
        return {**self._checks, **self._once("finding")}

    @cached_property
    def _checks(self) -> Mapping[str, Row]:
        """Findings in the words of the checks of envsolve itself."""
        return self._once("check")

    def _once(self, kind: str) -> dict[str, Row]:
        """The rows of a kind, of which no two may have one id."""
        rows = list(self.rows(kind))
        twice = sorted(name for name, count in Counter(name for name, _ in rows).items() if count > 1)
        if twice:
            raise ValueError(f"two entries {kind}.{', '.join(twice)}")
        return dict(rows)

    @cached_property
    def _steps(self) -> Mapping[str, tuple[Row, ...]]:
        return {name: _tables(rows) for name, rows in self.rows("step")}

    @cached_property
    def _choices(self) -> Mapping[str, tuple[Row, ...]]:
        return {name: _tables(rows) for name, rows in self.rows("choice")}

    @cached_property
    def _rules(self) -> Mapping[str, Row]:
        return {name: row for name, row in self.rows("symptom") if "rules" in row}

    def expression(self, fact: str) -> Condition:
        """What a fact is that is an expression of others, parsed when it is first needed."""
        if fact not in self._expressions:
            text = str(self._written[fact])
            self._expressions[fact] = Condition(text)
            self._declared(self._expressions[fact].names, fact)
        return self._expressions[fact]

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    @property
    def of_texts(self) -> Iterable[str]:
        """The findings that texts have, not only the checks of envsolve itself."""
        return dict(self.rows("finding"))

    @property
    def of_checks(self) -> Iterable[str]:
        """The findings that the checks of envsolve itself have."""
        return self._checks

    def entry(self, identifier: str) -> Entry:
        """The finding or cause of that id. Raises KeyError where there is none."""
        if identifier not in self._read:
            of_error = {key: it for key, it in self._checks.get(identifier, {}).items() if key in ("number", "error")}
            row = {**of_error, **self._entries[identifier]}
            variants = [*self._of_checks(identifier), *self._variants(identifier, row)]
            self._read[identifier] = self._entry(identifier, row)._replace(variants=tuple(variants))
        return self._read[identifier]

    @cached_property
    def error_symptoms(self) -> Mapping[str, str]:
        """The symptom that each number of an error means in a text."""
        return {number: str(symptom) for number, symptom in self.rows("error-numbers")}

    @cached_property
    def numbers(self) -> Mapping[int, str]:
        """The ids of the entries on errors of the driver, by their numbers in cuda.h."""
        return {int(str(row["number"])): name for name, row in self._checks.items() if "number" in row}

    def of_number(self, number: int) -> Entry:
        """The entry on an error of the driver; one that none explains has the entry ``driver-error``."""
        return self.entry(self.numbers.get(number, "driver-error"))

    def causes(self, branch: Branch, facts: Facts) -> Iterator[str]:
        """The causes that a branch names; ``@name`` stands for those of the first row of a choice that holds."""
        for it in branch.causes:
            if it.when is not None and not it.when.holds(facts):
                continue
            if it.id.startswith("@"):
                rows = (self._branch(it.id, row) for row in self._choices[it.id[1:]])
                chosen = next((row for row in rows if row.when is None or row.when.holds(facts)), None)
                yield from () if chosen is None else self.causes(chosen, facts)
            else:
                yield it.id

    def _of_checks(self, identifier: str) -> Iterator[Entry]:
        """What checks of envsolve say of a finding that texts have as well."""
        row = self._checks.get(identifier)
        if row is not None and row is not self._entries[identifier]:
            probed = {**row, "when": f"probed and ({row['when']})" if "when" in row else "probed"}
            yield from self._variants(identifier, {**probed, "variant": row.get("variant")})
            yield self._entry(identifier, probed)

    def _variants(self, identifier: str, row: Row) -> Iterator[Entry]:
        for it in _tables(row.get("variant")):
            when = f"({row['when']}) and ({it['when']})" if "when" in row else it["when"]
            yield self._entry(identifier, {**row, **it, "when": when})

    def step(self, name: str, facts: Facts) -> tuple[str, tuple[str, ...]]:
        """The sentences that hold of a step that findings share, as one text, and their commands."""
        rows = [self._sentence(name, row, frozenset()) for row in self._steps[name]]
        said = [row for row in rows if row.holds(facts)]
        return " ".join(it.said(facts) for it in said), tuple(it for row in said for it in row.commands_said(facts))

    def rule(self, symptom: str) -> Rule | None:
        """The rule on a symptom, None where the catalogue has none."""
        row = self._rules.get(symptom)
        if row is None:
            return None
        each = self._condition(row.get("each"), symptom)
        about = None if row.get("about") is None else str(row["about"])
        self._declared(fields_of(about or ""), symptom)
        return Rule(symptom, about, each, tuple(self._branch(symptom, it) for it in _tables(row["rules"])))

    @property
    def choices(self) -> Iterator[Branch]:
        """The branches that rules share."""
        return (self._branch(name, row) for name, rows in self._choices.items() for row in rows)

    @property
    def rules(self) -> Iterable[str]:
        """The symptoms that have a rule."""
        return self._rules

    def _branch(self, symptom: str, row: Row) -> Branch:
        refuse(symptom, row, _OF_BRANCH)
        named = [it if isinstance(it, dict) else {"id": it} for it in _listed(row.get("causes"))]
        for it in named:
            refuse(symptom, it, _OF_CAUSE)
        return Branch(
            when=self._condition(row.get("when"), symptom),
            lines=strings(row.get("lines")),
            causes=tuple(Cause(str(it["id"]), self._condition(it.get("when"), symptom)) for it in named),
        )

    def _entry(self, identifier: str, row: Row) -> Entry:
        refuse(identifier, row, _KEYS)
        when = self._condition(row.get("when"), identifier)
        known = frozenset[str]() if when is None else when.known

        def sentences(key: str) -> tuple[Sentence, ...]:
            return tuple(self._sentence(identifier, it, known) for it in self._spelled_out(_listed(row.get(key))))

        return Entry(
            id=identifier,
            finding=str(row.get("finding", identifier)),
            severity=Severity(str(row.get("severity", Severity.ERROR.value))),
            in_scope=row.get("in_scope") is not False,
            solvable=row.get("solvable") is True,
            sources=strings(row.get("source")),
            seen=strings(row.get("seen")),
            remedy=self._remedy(identifier, row.get("remedy")),
            error=str(row.get("error", "")),
            number=int(str(row["number"])) if "number" in row else None,
            when=when,
            unless=self._condition(row.get("unless"), identifier),
            **{key: sentences(key) for key in _SAID},  # type: ignore[arg-type]  # fields of sentences
        )

    def _remedy(self, identifier: str, value: object) -> Mapping[str, str]:
        """How the environment for the fix differs; a text whose field is not known says nothing."""
        remedy = {key: str(it) for key, it in value.items()} if isinstance(value, dict) else {}
        self._declared({name for it in remedy.values() for name in fields_of(it)}, identifier)
        return remedy

    def _spelled_out(self, sentences: Iterable[object]) -> Iterator[object]:
        """``sentences`` with those of a step in place of ``@step``."""
        for it in sentences:
            if isinstance(it, str) and it.startswith("@"):
                yield from self._steps[it[1:]]
            else:
                yield it

    def _sentence(self, identifier: str, value: object, known: frozenset[str]) -> Sentence:
        """A sentence as text or as a table."""
        row = value if isinstance(value, dict) else {"say": value}
        refuse(identifier, row, _OF_STEP)
        when = self._condition(row.get("when"), identifier)
        known = known if when is None else known | when.known
        commands = tuple(self._sentence(identifier, it, known) for it in _listed(row.get("commands")))
        try:
            sentence = Sentence(str(row["say"]), when, commands, known)
        except ValueError as error:
            raise ValueError(f"{identifier}: {error}") from None
        self._declared(sentence.names, identifier)
        return sentence

    def _condition(self, value: object, of: str) -> Condition | None:
        if value is None:
            return None
        condition = Condition(str(value))
        self._declared(condition.names, of)
        return condition

    def _declared(self, names: Iterable[str], of: str) -> None:
        whole = {it.partition(".")[0] for it in names}
        unknown = sorted(it for it in whole if it not in self.facts and it not in self._fields)
        if unknown:
            raise ValueError(f"{of} names {', '.join(unknown)}, which facts.toml does not declare")

    def rows(self, kind: str) -> Iterator[tuple[str, Row]]:
        """The rows of one kind in all files: the row's name and what it holds."""
        for stem, document in self.documents.items():
            rows = document.get(kind)
            if stem != "facts" and isinstance(rows, dict):
                yield from rows.items()


@cache
def shipped() -> Catalogue:
    """The catalogue of envsolve itself."""
    return Catalogue()


def make_finding(
    identifier: str,
    facts: Mapping[str, object] = {},
    evidence: Iterable[str] = (),
    *,
    about: str | None = None,
    severity: Severity | None = None,
    seen: Iterable[str] = (),
    sources: Iterable[str] = (),
) -> Finding:
    """The finding of the check ``identifier`` in the catalogue's words, which name ``facts``.

    ``seen`` are sentences on this very case, and follow its cause. ``severity`` and ``sources`` are those of the
    catalogue where the check has none of its own.
    """
    entry = shipped().entry(identifier)
    known = {"probed": True, **facts}.get
    it = entry.variant(known)
    said = it.said(known)
    return Finding(
        id=it.finding,
        title=said.title,
        severity=severity or it.severity,
        cause=" ".join(filter(None, (said.cause, *seen))),
        fix=said.fix,
        commands=said.commands,
        more=said.more,
        evidence=tuple(evidence),
        in_scope=it.in_scope,
        about=about,
        sources=tuple(sources) or entry.sources,
    )


def refuse(of: str, row: Row, keys: frozenset[str]) -> None:
    """Raise ValueError for a key of ``row`` that is none of ``keys``."""
    unknown = sorted(set(row) - keys)
    if unknown:
        raise ValueError(f"{of} has an unknown key: {', '.join(unknown)}")


def _names(value: object) -> tuple[str, ...]:
    """The names in a list or the keys of a table."""
    return tuple(value) if isinstance(value, list | dict) else ()


def _row(value: object) -> Row:
    return value if isinstance(value, dict) else {}


def _tables(value: object) -> tuple[Row, ...]:
    return tuple(value) if isinstance(value, list) else ()


def strings(value: object) -> tuple[str, ...]:
    """A string or several, none for None."""
    return tuple(map(str, _listed(value)))


def _listed(value: object) -> list[object]:
    """One value or several, none for None."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
