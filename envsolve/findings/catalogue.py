"""The catalogue of findings, ``data/findings/*.toml``; its README documents the keys.

Every entry is checked when it is read. A mistake, such as an unknown name or a field that can be empty, is a UsageError
``findings-invalid`` with the file and the id of the entry. A test reads all of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Protocol

from envsolve.boundary.document import Document, TomlFile
from envsolve.errors import MatrixError, UsageError
from envsolve.findings.condition import Condition, Facts
from envsolve.findings.entry import Entry
from envsolve.findings.rule import Branch, Cause, Rule
from envsolve.findings.template import Sentence, fields_of
from envsolve.model.finding import Finding, Severity

Row = Mapping[str, object]
INVALID = "findings-invalid"

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
_KINDS = frozenset(
    {"symptom", "clue", "choice", "error-numbers", "finding", "check", "step", "nearest", "consequences"}
)
_OF_STEP = frozenset({"say", "when", "commands"})
_OF_BRANCH = frozenset({"when", "lines", "causes"})
_OF_CAUSE = frozenset({"id", "when"})
_GROUP = re.compile(r"\(\?P<(\w+)>")


def find_findings() -> Path:
    """The directory of the catalogue: in the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_findings"
    return installed if installed.is_dir() else package.parent / "data" / "findings"


class Catalogue:
    """The files of a directory, each read when it is first needed.

    Raises UsageError ``findings-invalid`` if a file is not TOML or an entry is wrong.
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
        try:
            documents = {path.stem: TomlFile(path, cached=self._shipped).content() for path in paths}
        except MatrixError as error:
            raise UsageError(INVALID, error.message, error.cause) from None
        for stem, document in documents.items():
            if stem != "facts" and (unknown := sorted(set(document) - _KINDS)):
                raise UsageError(INVALID, f"{stem}.toml: unknown table: {', '.join(unknown)}")
        return documents

    @cached_property
    def _written(self) -> Row:
        """The facts that are defined as expressions of other facts."""
        return _row(self.documents.get("facts", {}).get("expression"))

    def table(self, name: str) -> Row:
        """A table in which expressions look up values. Raises KeyError if there is none of that name."""
        return _row(_row(self.documents["facts"]["table"])[name])

    @cached_property
    def facts(self) -> Mapping[str, str]:
        """The declared facts and functions, each with its module, or ``expression``."""
        modules = self.documents.get("facts", {})
        declared = [(name, module) for module, names in modules.items() if module != "table" for name in _names(names)]
        twice = sorted(name for name, count in Counter(name for name, _ in declared).items() if count > 1)
        if twice:
            raise UsageError(INVALID, f"facts.toml declares {', '.join(twice)} twice")
        return dict(declared)

    @cached_property
    def _fields(self) -> frozenset[str]:
        """The clues, and the named groups of the symptoms' patterns."""
        return self._groups | self._ids["clue"]

    @cached_property
    def _groups(self) -> frozenset[str]:
        rows = (row for _, row in self.rows("symptom"))
        texts = (text for row in rows for text in _tables(row.get("text")))
        return frozenset(name for text in texts for name in _GROUP.findall(str(text.get("pattern"))))

    @cached_property
    def _ids(self) -> Mapping[str, frozenset[str]]:
        """The ids of the symptoms and of the clues."""
        return {kind: frozenset(name for name, _ in self.rows(kind)) for kind in ("symptom", "clue")}

    @cached_property
    def _entries(self) -> Mapping[str, Row]:
        return {**self._checks, **self._once("finding")}

    @cached_property
    def _checks(self) -> Mapping[str, Row]:
        """Findings in the words for envsolve's own checks."""
        return self._once("check")

    def _once(self, kind: str) -> dict[str, Row]:
        """The rows of a kind. Raises UsageError if two have the same id."""
        rows = list(self.rows(kind))
        twice = sorted(name for name, count in Counter(name for name, _ in rows).items() if count > 1)
        if twice:
            raise UsageError(INVALID, f"two entries {kind}.{', '.join(twice)}")
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
        """The expression that defines a fact, parsed when it is first needed."""
        if fact not in self._expressions:
            with mistakes_in("facts.toml", "expression", fact):
                condition = Condition(str(self._written[fact]))
                self._declared(condition.names)
            self._expressions[fact] = condition
        return self._expressions[fact]

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    @property
    def of_texts(self) -> Iterable[str]:
        """The findings that texts can have."""
        return dict(self.rows("finding"))

    @property
    def of_checks(self) -> Iterable[str]:
        """The findings that envsolve's own checks can have."""
        return self._checks

    def entry(self, identifier: str) -> Entry:
        """The finding or cause with that id. Raises KeyError if there is none."""
        if identifier not in self._read:
            of_error = {key: it for key, it in self._checks.get(identifier, {}).items() if key in ("number", "error")}
            row = {**of_error, **self._entries[identifier]}
            kind = "check" if self._entries[identifier] is self._checks.get(identifier) else "finding"
            with self.reading(kind, identifier):
                variants = [*self._of_checks(identifier), *self._variants(identifier, row)]
                self._read[identifier] = self._entry(identifier, row)._replace(variants=tuple(variants))
        return self._read[identifier]

    @cached_property
    def error_symptoms(self) -> Mapping[str, str]:
        """The symptom in a text for each number of a driver error."""
        return {number: str(symptom) for number, symptom in self.rows("error-numbers")}

    @cached_property
    def numbers(self) -> Mapping[int, str]:
        """The ids of the entries about driver errors, by their numbers in cuda.h."""
        return {int(str(row["number"])): name for name, row in self._checks.items() if "number" in row}

    def of_number(self, number: int) -> Entry:
        """The entry about a driver error; ``driver-error`` if there is none for this number."""
        return self.entry(self.numbers.get(number, "driver-error"))

    def causes(self, branch: Branch, facts: Facts) -> Iterator[str]:
        """The causes that a branch names; ``@name`` stands for those of the first row of a choice that holds."""
        for it in branch.causes:
            if it.when is not None and not it.when.holds(facts):
                continue
            if it.id.startswith("@"):
                rows = self._choice(it.id[1:])
                chosen = next((row for row in rows if row.when is None or row.when.holds(facts)), None)
                yield from () if chosen is None else self.causes(chosen, facts)
            else:
                yield it.id

    def _of_checks(self, identifier: str) -> Iterator[Entry]:
        """The variants of a finding for envsolve's own checks, if texts can have it as well."""
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
        """The text of a step that findings share, from its sentences that hold, and their commands."""
        with self.reading("step", name):
            rows = [self._sentence(row, frozenset()) for row in self._steps[name]]
        sentences = [row for row in rows if row.holds(facts)]
        return " ".join(it.filled(facts) for it in sentences), tuple(
            it for row in sentences for it in row.filled_commands(facts)
        )

    def rule(self, symptom: str) -> Rule | None:
        """The rule for a symptom; None if the catalogue has none."""
        row = self._rules.get(symptom)
        if row is None:
            return None
        with self.reading("symptom", symptom):
            each = self._condition(row.get("each"))
            about = None if row.get("about") is None else str(row["about"])
            self._declared(fields_of(about or ""))
            return Rule(symptom, about, each, tuple(map(self._branch, _tables(row["rules"]))))

    @property
    def choices(self) -> Iterator[Branch]:
        """The branches that rules share."""
        return (branch for name in self._choices for branch in self._choice(name))

    def _choice(self, name: str) -> tuple[Branch, ...]:
        with self.reading("choice", name):
            return tuple(map(self._branch, self._choices[name]))

    @property
    def rules(self) -> Iterable[str]:
        """The symptoms that have a rule."""
        return self._rules

    def _branch(self, row: Row) -> Branch:
        refuse(row, _OF_BRANCH)
        lines = strings(row.get("lines"))
        refuse_unknown("group", (it.removeprefix("!") for it in lines), self._groups)
        return Branch(
            when=self._condition(row.get("when")),
            lines=lines,
            causes=tuple(map(self._cause, _listed(row.get("causes")))),
        )

    def _cause(self, value: object) -> Cause:
        row = value if isinstance(value, dict) else {"id": value}
        refuse(row, _OF_CAUSE, needed=("id",))
        name = str(row["id"])
        if name.startswith("@"):
            refuse_unknown("choice", (name[1:],), self._choices)
        else:
            refuse_unknown("finding", (name,), self)
        return Cause(name, self._condition(row.get("when")))

    def _entry(self, identifier: str, row: Row) -> Entry:
        refuse(row, _KEYS)
        when = self._condition(row.get("when"))
        known = frozenset[str]() if when is None else when.known

        def sentences(key: str) -> tuple[Sentence, ...]:
            return tuple(self._sentence(it, known) for it in self._spelled_out(_listed(row.get(key))))

        seen = strings(row.get("seen"))
        refuse_unknown("symptom", seen, self._ids["symptom"])

        return Entry(
            id=identifier,
            finding=str(row.get("finding", identifier)),
            severity=Severity(str(row.get("severity", Severity.ERROR.value))),
            in_scope=row.get("in_scope") is not False,
            solvable=row.get("solvable") is True,
            sources=strings(row.get("source")),
            seen=seen,
            remedy=self._remedy(row.get("remedy")),
            error=str(row.get("error", "")),
            number=int(str(row["number"])) if "number" in row else None,
            when=when,
            unless=self._condition(row.get("unless")),
            **{key: sentences(key) for key in _SAID},  # type: ignore[arg-type]  # fields of sentences
        )

    def _remedy(self, value: object) -> Mapping[str, str]:
        """How the environment for the fix differs; a text with an unknown field is left out."""
        remedy = {key: str(it) for key, it in value.items()} if isinstance(value, dict) else {}
        self._declared({name for it in remedy.values() for name in fields_of(it)})
        return remedy

    def _spelled_out(self, sentences: Iterable[object]) -> Iterator[object]:
        """``sentences`` with each ``@step`` replaced by the sentences of that step."""
        for it in sentences:
            if isinstance(it, str) and it.startswith("@"):
                refuse_unknown("step", (it[1:],), self._steps)
                yield from self._steps[it[1:]]
            else:
                yield it

    def _sentence(self, value: object, known: frozenset[str]) -> Sentence:
        """A sentence, from a text or a table."""
        row = value if isinstance(value, dict) else {"say": value}
        refuse(row, _OF_STEP, needed=("say",))
        when = self._condition(row.get("when"))
        known = known if when is None else known | when.known
        commands = tuple(self._sentence(it, known) for it in _listed(row.get("commands")))
        sentence = Sentence(str(row["say"]), when, commands, known)
        self._declared(sentence.names)
        return sentence

    def _condition(self, value: object) -> Condition | None:
        if value is None:
            return None
        condition = Condition(str(value))
        self._declared(condition.names)
        refuse_unknown("symptom", condition.arguments_of("saw"), self._ids["symptom"])
        refuse_unknown("clue", condition.arguments_of("clue"), self._ids["clue"])
        return condition

    def _declared(self, names: Iterable[str]) -> None:
        whole = {it.partition(".")[0] for it in names}
        unknown = sorted(it for it in whole if it not in self.facts and it not in self._fields)
        if unknown:
            raise ValueError(f"it names {', '.join(unknown)}, which facts.toml does not declare")

    def reading(self, kind: str, name: str) -> AbstractContextManager[None]:
        """Report mistakes in an entry with its file and its id."""
        return mistakes_in(next(file for file, it, _ in self.rows_of_files(kind) if it == name), kind, name)

    def rows(self, kind: str) -> Iterator[tuple[str, Row]]:
        """The rows of one kind in all files: name and content."""
        yield from ((name, row) for _, name, row in self.rows_of_files(kind))

    def rows_of_files(self, kind: str) -> Iterator[tuple[str, str, Row]]:
        """The rows of one kind in all files: file, name and content."""
        for stem, document in self.documents.items():
            rows = document.get(kind)
            if stem != "facts" and isinstance(rows, dict):
                yield from ((f"{stem}.toml", name, row) for name, row in rows.items())


@cache
def shipped() -> Catalogue:
    """The catalogue of envsolve itself."""
    return Catalogue()


class Topic(Protocol):
    """A subject of findings: a framework or a package."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def facts(self) -> Mapping[str, object]:
        """The facts of every finding about it."""


def make_finding(
    identifier: str,
    evidence: Iterable[str] = (),
    *,
    about: str | Topic | None = None,
    severity: Severity | None = None,
    seen: Iterable[str] = (),
    sources: Iterable[str] = (),
    broken: Iterable[str] = (),
    **facts: object,
) -> Finding:
    """The finding of the check ``identifier`` in the words of the catalogue, with ``facts`` for its fields.

    ``seen`` are sentences about this case, which follow the cause. ``severity`` and ``sources`` replace those of the
    catalogue. ``broken`` are packages to install again. The topic in ``about`` may have facts, too.
    """
    entry = shipped().entry(identifier)
    of_topic: Mapping[str, object] = {} if about is None or isinstance(about, str) else about.facts
    known = {"probed": True, **of_topic, **facts}.get
    it = entry.variant(known)
    words = it.words(known)
    return Finding(
        id=it.finding,
        title=words.title,
        severity=severity or it.severity,
        cause=" ".join(filter(None, (words.cause, *seen))),
        fix=words.fix,
        commands=words.commands,
        more=words.more,
        evidence=tuple(evidence),
        in_scope=it.in_scope,
        about=about if about is None or isinstance(about, str) else about.name,
        sources=tuple(sources) or entry.sources,
        broken=tuple(broken),
    )


@contextmanager
def mistakes_in(file: str, kind: str, name: str) -> Iterator[None]:
    """Report a ValueError about an entry as a UsageError with its file and its id."""
    try:
        yield
    except ValueError as error:
        raise UsageError(INVALID, f"{file}: {kind}.{name}: {error}") from None


def refuse(row: Row, keys: frozenset[str], needed: Iterable[str] = ()) -> None:
    """Raise ValueError if ``row`` has a key other than ``keys``, or lacks one of ``needed``."""
    refuse_unknown("key", row, keys)
    missing = [key for key in needed if key not in row]
    if missing:
        raise ValueError(f"it lacks the key {', '.join(missing)}")


def refuse_unknown(kind: str, names: Iterable[str], known: Container[str]) -> None:
    """Raise ValueError if some of ``names`` are not ``known``."""
    unknown = sorted({name for name in names if name not in known})
    if unknown:
        raise ValueError(f"unknown {kind}: {', '.join(unknown)}")


def _names(value: object) -> tuple[str, ...]:
    """The names in a list, or the keys of a table."""
    return tuple(value) if isinstance(value, list | dict) else ()


def _row(value: object) -> Row:
    return value if isinstance(value, dict) else {}


def _tables(value: object) -> tuple[Row, ...]:
    return tuple(value) if isinstance(value, list) else ()


def strings(value: object) -> tuple[str, ...]:
    """One string or several as a tuple; empty for None."""
    return tuple(map(str, _listed(value)))


def _listed(value: object) -> list[object]:
    """One value or several as a list; empty for None."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
