"""The catalogue: which mistakes are refused, and laws for every entry of the shipped one."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import get_args, get_type_hints

import pytest
import tomli

from envsolve.diagnose.case import Case
from envsolve.diagnose.facts import parts
from envsolve.diagnose.tables import Tables
from envsolve.errors import UsageError
from envsolve.findings.catalogue import Catalogue, shipped
from envsolve.findings.entry import Entry
from envsolve.findings.template import Sentence

FACTS = 'general = ["driver", "gpu"]\nfunctions = ["saw", "clue"]'
LONGEST_SENTENCE = 40
"""Words, commands and paths included."""
CATALOGUE = shipped()
README = CATALOGUE.directory / "README.md"
ENTRIES = [it for name in CATALOGUE for it in (CATALOGUE.entry(name), *CATALOGUE.entry(name).variants)]
PROVIDED_ELSEWHERE = {"check", "case", "expression"}
"""Facts that the caller gives, properties of Case and expressions: no module of envsolve/diagnose/facts has them."""


def written(directory: Path, text: str) -> Catalogue:
    (directory / "facts.toml").write_text(FACTS, encoding="utf-8")
    (directory / "family.toml").write_text(text, encoding="utf-8")
    return Catalogue(directory)


def mistake_in(catalogue: Catalogue) -> str:
    """The error for a catalogue with a mistake, when all of it is read."""
    with pytest.raises(UsageError) as caught:
        read_all(catalogue)
    assert (caught.value.code, caught.value.exit_code) == ("findings-invalid", 2)
    return caught.value.message


def read_all(catalogue: Catalogue) -> None:
    """Read every entry, as explain does when it needs one."""
    tables = Tables(catalogue)
    for text in (*tables.texts, *tables.clues):
        _ = text.expression
    for symptom in catalogue.rules:
        catalogue.rule(symptom)
    for name in catalogue:
        catalogue.entry(name)
    assert all(branch.causes is not None for branch in catalogue.choices)


@pytest.mark.thorough
def test_the_shipped_catalogue_has_no_mistake() -> None:
    read_all(CATALOGUE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('colour = "red"', "unknown key: colour"),
        ('cause = { say = "B.", if = "gpu" }', "unknown key: if"),
        ('cause = { when = "gpu" }', "it lacks the key say"),
        ('unless = "drivers"', "it names drivers, which facts.toml does not declare"),
        ('cause = "It is {gpus|A}."', "it names gpus, which facts.toml does not declare"),
        ('cause = "It is {gpu}."', "gpu can be empty"),
        ('cause = { say = "It is {gpu}.", when = "driver" }', "gpu can be empty"),
        ('fix = { say = "Do it.", commands = ["do {gpu}"] }', "gpu can be empty"),
        ('fix = "@step"', "unknown step: step"),
        ('severity = "awful"', "awful"),
        ('when = "gpu ="', "'gpu =' is not a condition"),
        ("when = \"saw('b')\"", "unknown symptom: b"),
        ("when = \"clue('b')\"", "unknown clue: b"),
        ('seen = "b"', "unknown symptom: b"),
    ],
)
def test_a_mistake_in_a_finding_is_reported_with_its_file_and_id(text: str, expected: str, tmp_path: Path) -> None:
    catalogue = written(tmp_path, f'[finding.a]\ntitle = "A"\n{text}\n')
    message = mistake_in(catalogue)
    assert message.startswith("family.toml: finding.a: ")
    assert expected in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rnak = 3", "unknown key: rnak"),
        ('explains = []\nrank = "first"', "invalid literal"),
        ('explains = "b"', "unknown finding: b"),
        ("", "unknown finding: a"),
        ('rules = [{ causes = ["b"] }]', "unknown finding: b"),
        ('rules = [{ causes = ["@b"] }]', "unknown choice: b"),
        ('rules = [{ causes = [{ when = "gpu" }] }]', "it lacks the key id"),
        ('rules = [{ cause = ["b"] }]', "unknown key: cause"),
        ('rules = [{ lines = ["!b"] }]', "unknown group: b"),
        ("rules = [{ when = \"saw('b')\" }]", "unknown symptom: b"),
        ('text = [{ anchors = ["a"], pattern = "a", source = "b", wrap = true }]', "unknown key: wrap"),
        ('text = [{ pattern = "a", source = "b" }]', "it lacks the key anchors"),
        ('text = [{ anchors = ["a"], source = "b" }]', "it lacks the key pattern"),
        (
            'rules = []\ntext = [{ anchors = ["a"], pattern = "a(", source = "b" }]',
            "missing ), unterminated subpattern",
        ),
    ],
)
def test_a_mistake_in_a_symptom_is_reported_with_its_file_and_id(text: str, expected: str, tmp_path: Path) -> None:
    message = mistake_in(written(tmp_path, f"[symptom.a]\n{text}\n"))
    assert message.startswith("family.toml: symptom.a: ")
    assert expected in message


def test_a_mistake_in_a_choice_and_in_a_clue_is_reported(tmp_path: Path) -> None:
    catalogue = written(tmp_path, '[[choice.a]]\ncauses = ["b"]\n')
    assert mistake_in(catalogue) == "family.toml: choice.a: unknown finding: b"
    catalogue = written(tmp_path, '[clue.a]\n[[clue.a.text]]\npattern = "a"\n')
    assert mistake_in(catalogue) == "family.toml: clue.a: it lacks the key anchors, source"


def test_the_readme_lists_every_family() -> None:
    listed = re.findall(r"^\| `([\w-]+)\.toml` \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == sorted(path.stem for path in CATALOGUE.directory.glob("*.toml"))


def test_the_example_of_the_readme_recognises_its_log(tmp_path: Path) -> None:
    family, log = re.findall(r"^```toml\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "facts.toml").write_bytes((CATALOGUE.directory / "facts.toml").read_bytes())
    (tmp_path / "kernels.toml").write_text(family, encoding="utf-8")
    catalogue = Catalogue(tmp_path)
    read_all(catalogue)
    (text,) = Tables(catalogue).texts
    assert text.expression.search(tomli.loads(log)["text"])
    assert list(catalogue) == tomli.loads(log)["findings"]


def test_an_unknown_table_is_reported(tmp_path: Path) -> None:
    assert mistake_in(written(tmp_path, "[symptoms.a]\nrank = 3\n")) == "family.toml: unknown table: symptoms"


def test_a_file_that_is_not_toml_is_reported(tmp_path: Path) -> None:
    assert mistake_in(written(tmp_path, "[symptom.a\n")) == "family.toml is not TOML"


def test_a_fact_that_is_declared_twice_is_reported(tmp_path: Path) -> None:
    catalogue = written(tmp_path, '[finding.a]\ntitle = "{gpu|A}"\n')
    (tmp_path / "facts.toml").write_text('general = ["driver", "gpu"]\nmachine = ["gpu"]\n', encoding="utf-8")
    assert mistake_in(catalogue) == "facts.toml declares gpu twice"


def test_two_entries_of_one_id_are_reported(tmp_path: Path) -> None:
    catalogue = written(tmp_path, '[finding.a]\ntitle = "A"\n')
    (tmp_path / "other.toml").write_text('[finding.a]\ntitle = "B"\n', encoding="utf-8")
    assert mistake_in(catalogue) == "two entries finding.a"


def test_a_variant_and_a_step_are_reported_where_they_hold(tmp_path: Path) -> None:
    text = """
    [[step.update]]
    say = "Update {driver|the driver}."
    commands = ["update"]
    [finding.a]
    title = "A"
    cause = ["One.", { say = "It is {gpu}.", when = "gpu" }]
    fix = ["@update"]
    [[finding.a.variant]]
    when = "driver == 'old'"
    title = "B"
    """
    entry = written(tmp_path, text).entry("a")
    plain = entry.words(lambda _: None)
    assert (plain.title, plain.cause, plain.fix, plain.commands) == ("A", "One.", "Update the driver.", ("update",))
    other = entry.words({"driver": "old", "gpu": "T4"}.get)
    assert (other.title, other.cause, other.fix) == ("B", "One. It is T4.", "Update old.")


def test_every_number_of_an_error_means_a_symptom() -> None:
    assert set(CATALOGUE.error_symptoms.values()) - set(Tables().symptoms) == set()


@pytest.mark.thorough
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda it: it.id)
def test_an_entry_is_whole_and_its_sentences_are_short(entry: Entry) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.id)
    assert entry.title
    assert entry.cause
    assert entry.fix or entry.commands
    assert all(re.match(r"https?://", source) for source in entry.sources)
    prose = (*entry.title, *entry.cause, *entry.fix)
    assert [it.text for it in prose if re.search(r"\s{2}|\s[.,;](?!\w)", it.text)] == []
    assert [long for it in prose for long in _long(it)] == []


def _long(sentence: Sentence) -> list[str]:
    parts = re.split(r"(?<=[.?!])\s", sentence.text)
    return [part for part in parts if len(part.split()) > LONGEST_SENTENCE]


def test_a_title_always_has_words() -> None:
    assert [it.id for it in ENTRIES if it.title[-1].when is not None] == []


def test_every_declared_fact_has_its_function_and_the_other_way_round() -> None:
    groups = set(CATALOGUE.facts.values()) - PROVIDED_ELSEWHERE
    for group in groups:
        module = import_module(f"envsolve.diagnose.facts.{group}")
        public = {name for name, it in vars(module).items() if _is_own(module.__name__, name, it)}
        assert public == {name for name, of in CATALOGUE.facts.items() if of == group}, group
    assert [name for name, group in CATALOGUE.facts.items() if group == "case" and not hasattr(Case, name)] == []


def _is_own(module: str, name: str, value: object) -> bool:
    return not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == module


def test_every_part_that_is_named_is_one_of_its_fact() -> None:
    rows = [it for name in CATALOGUE.rules if (rule := CATALOGUE.rule(name)) for it in rule.branches]
    named = {name for entry in ENTRIES for it in entry.sentences for name in it.names}
    conditions = [it for row in (*rows, *CATALOGUE.choices) for it in (row.when, *(cause.when for cause in row.causes))]
    conditions += [it for entry in ENTRIES for it in (entry.when, entry.unless)]
    named |= {name for it in conditions if it is not None for name in it.names}
    assert [name for name in sorted(named) if "." in name and _type_of(name) is None] == []


def _type_of(name: str) -> type | None:
    """The type of a fact, or of its part; None for a part that the fact does not have."""
    whole, _, part = name.rpartition(".")
    if not whole:
        group = CATALOGUE.facts.get(part)
        if group in (None, "check"):  # the named group of a pattern, which a check may have, too
            return str
        if group == "expression":
            return _type_in(ast.parse(CATALOGUE.expression(part).text.replace("\\", ""), mode="eval").body)
        found = getattr(Case if group == "case" else import_module(f"envsolve.diagnose.facts.{group}"), part)
    elif (of := _type_of(whole)) is None:
        return None
    elif hasattr(parts, part):
        found = getattr(parts, part)
        taken = [it for name, it in get_type_hints(found).items() if it is not Case and name != "return"]
        assert of in (*taken, *get_args(taken[0])), name
    else:
        found = getattr(of, part, None)
        if part in of.__annotations__:
            return _plain(get_type_hints(of)[part])
    function = getattr(found, "fget", None) or getattr(found, "func", found)
    return None if found is None else _plain(get_type_hints(function)["return"])


def _type_in(node: ast.expr) -> type | None:
    """The type of an expression with a value: of several parts the last."""
    match node:
        case ast.BoolOp(values=[*_, last]):
            return _type_in(last)
        case ast.Call(func=ast.Name(id=name)):
            return _type_of(name)
        case ast.Constant(value=value):
            return type(value)
        case ast.Name() | ast.Attribute():
            return _type_of(ast.unparse(node))
    return bool


def _plain(hint: object) -> type:
    """A type without None."""
    known = [it for it in get_args(hint) if it is not NoneType] or [hint]
    assert isinstance(known[0], type)
    return known[0]


@pytest.mark.thorough
def test_every_fact_of_a_family_is_named() -> None:
    texts = [path.read_text(encoding="utf-8") for path in CATALOGUE.directory.glob("*.toml") if path.stem != "facts"]
    special = [name for name, group in CATALOGUE.facts.items() if group not in {"case", "general", "functions"}]
    texts += [CATALOGUE.expression(name).text for name in special if CATALOGUE.facts[name] == "expression"]
    assert [name for name in special if not any(re.search(rf"\b{name}\b", text) for text in texts)] == []
