"""The reference is generated from the code: all commands, options, keys, codes, findings and variables."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from docs._ext.envsolve_reference import commands, documents, errors, findings, keys, markdown, variables
from docs._ext.envsolve_reference.source import Source
from envsolve.cli.main import cli
from envsolve.documents import DOCUMENTS
from envsolve.project.keys import ALIASES, KEYS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def source() -> Source:
    return Source(ROOT / "envsolve")


@pytest.fixture(scope="module")
def texts_of_tests() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))


def test_each_command_has_a_page_that_is_in_the_contents() -> None:
    names = cli.list_commands(click.Context(cli))
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "reference" / "commands").glob("*.md")}
    assert set(pages) == set(names)
    assert all(f"```{{generated}} command {name}\n```" in text for name, text in pages.items())
    contents = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^commands/(\S+)$", contents, re.MULTILINE)) == set(names)


@pytest.mark.thorough
@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_the_page_of_a_command_lists_every_option_with_its_variable(name: str) -> None:
    text = commands.command_page(name)
    for context in commands.commands(name):
        for option in commands.options(context):
            assert all(re.search(rf"^::::\{{option\}} .*{spelled}\b", text, re.MULTILINE) for spelled in option.opts)
            assert option.envvar is None or f"Variable: `{option.envvar}`" in text


def test_every_key_is_listed_with_its_meaning_type_place_and_example() -> None:
    text = keys.keys_page()
    for key in KEYS.values():
        section = text.partition(f"(key-{key.name})=\n")[2].partition("\n(key-")[0]
        assert markdown.escaped(key.meaning) in section
        assert f"- Type: {key.kind.value}\n" in section
        assert f"```toml\n{key.name} = {key.example}\n```" in section
        assert all(f"`{alias}`" in section for alias, name in ALIASES.items() if name == key.name)
    assert keys.keys_table().count("\n") == len(KEYS) + 2


def test_every_document_of_json_has_its_schema_in_the_list_and_a_table_of_its_keys() -> None:
    page = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    assert "```{generated} json-schemas\n```" in page
    listed = documents.schemas_table()
    for name, kind in DOCUMENTS.items():
        assert f"[{name}](../schemas/{name}.schema.json) | What " in listed
        assert f"```{{generated}} json-keys {kind.__name__}\n```" in page
    assert [it for it in documents.SECTIONS if f"json-keys {it}\n" not in page] == []


def test_the_table_of_a_document_has_the_keys_of_the_types_inside_it() -> None:
    lines = documents.keys_table("Lock").splitlines()
    assert "| `files[].status` | `new` if the file did not exist: `current`, `new`, `stale` |" in lines
    assert "| `files[].changes[].name` | the package |" in lines
    assert "| `notes` | what else to know; see [its keys](#a-note) |" in lines
    (environment,) = [it for it in lines if it.startswith("| `environment")]
    assert environment.endswith("the environment (may be absent); see [its keys](#an-environment) |")
    stack = documents.keys_table("Stack")
    assert stack.count("`frameworks[].version`") == 1
    assert "`alternatives[].frameworks[]" not in stack


@pytest.mark.thorough
def test_every_expression_with_a_code_or_an_id_is_found(source: Source) -> None:
    assert errors.codes(source)
    assert findings.findings(source)
    assert source.unread == []


@pytest.mark.thorough
def test_every_code_in_a_test_is_in_the_reference(source: Source, texts_of_tests: str) -> None:
    known = {it.code for it in errors.codes(source)} | {it.id for it in findings.findings(source)}
    met = {
        *re.findall(r"error: ([a-z]+(?:-[a-z]+)+)\\n", texts_of_tests),
        *re.findall(r'\.code == "([a-z-]+)"', texts_of_tests),
    }
    assert len(met) > 50
    assert sorted(met - known) == []


def test_the_page_on_python_lists_every_kind_of_error() -> None:
    page = (DOCS / "python-api.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+Error)`[^|]*\| (\d) \|", page, re.MULTILINE)
    assert rows == [(name, str(kind.exit_code)) for name, kind in errors.KINDS.items()]


@pytest.mark.thorough
def test_a_code_has_the_exit_code_of_its_kind(source: Source) -> None:
    found = {it.code: it for it in errors.codes(source)}
    assert found["driver-too-old"].exit_codes == (1,)
    assert found["no-project"].exit_codes == (2,)
    assert found["index-unreachable"].exit_codes == (3,)
    assert found["file-unreadable"].exit_codes == (2, 3)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in found)


@pytest.mark.thorough
def test_every_finding_in_a_test_is_in_the_reference(source: Source) -> None:
    known = {it.id for it in findings.findings(source)}
    cases = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "symptoms").rglob("*.toml"))
    met = {
        it
        for listed in re.findall(r"^findings = \[(.*?)\]", cases, re.MULTILINE)
        for it in re.findall(r'"([^"]+)"', listed)
    }
    assert len(met) > 100
    assert sorted(met - known) == []


@pytest.mark.thorough
def test_every_finding_has_a_title_and_the_commands_that_report_it(source: Source) -> None:
    assert [it.id for it in findings.findings(source) if not it.title or not it.commands] == []


def test_every_variable_of_an_option_is_listed_with_its_commands() -> None:
    found = variables.option_variables()
    assert found["ENVSOLVE_GPU"][0] == "--gpu"
    assert {"solve", "init", "create", "status"} <= set(found["ENVSOLVE_GPU"][1])
    assert found.keys() == {
        str(it.envvar) for context in commands.commands() for it in commands.options(context) if it.envvar
    }


def test_every_variable_of_another_tool_on_the_page_is_read_by_the_source() -> None:
    page = (DOCS / "reference" / "environment-variables.md").read_text(encoding="utf-8")
    named = re.findall(r"`([A-Z][A-Z_]+)`", page.partition("## Other tools")[2])
    source_text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "envsolve").rglob("*.py"))
    assert len(named) > 10
    assert [name for name in named if name not in source_text] == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('raise E("a")', ["a"]),
        ('raise E("a" if x else "b")', ["a", "b"]),
        ('A = "a"\nraise E(A)', ["a"]),
        ('def f(x):\n    what = "a" if x else "b"\n    raise E(f"no-{what}")', ["no-a", "no-b"]),
        ('def f(x):\n    code, text = ("a", "it") if x else ("b", "is")\n    raise E(code)', []),
        ('def f(x):\n    code, text = "a", "it"\n    raise E(code)', ["a"]),
        ('def g(code):\n    raise E(code)\n\ng("a")\ng(code="b")', ["a", "b"]),
        ('T = {1: ("a", "it"), 2: ("b", "is")}\ndef f(x):\n    code, text = T[x]\n    raise E(code)', ["a", "b"]),
        ('T = {1: "a"}\ndef f(x):\n    raise E(T.get(x, "b"))', ["a", "b"]),
        (
            'class K(NamedTuple):\n    x: int\n    code: str\nT = (K(1, "a"), K(2, code="b"))\nraise E(T[0].code)',
            ["a", "b"],
        ),
        ('def h():\n    return "a", 1\ndef f():\n    code, n = h()\n    raise E(code)', ["a"]),
    ],
)
def test_a_string_is_traced_to_its_definition(code: str, found: list[str], tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text(code, encoding="utf-8")
    source = Source(package)
    (call,) = [call for _, call in source.calls_of("E")]
    assert source.strings(call.argument(0, "code"), call.module) == found
    assert bool(source.unread) is (not found)
