"""The law of the site, in a real browser: for any choice it shows the answer of the command line.

Finding every outcome for three frameworks takes minutes, so these tests are thorough. They need Chromium.
"""

from __future__ import annotations

import gzip
import json
import random
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from envsolve.app.solve.solving import answers_to
from envsolve.errors import EnvsolveError
from envsolve.lockfile.wheels import requirements_of
from envsolve.matrix import Matrix
from envsolve.matrix.names import gpu_rows
from envsolve.model.host import ASSUMED_GLIBC, Platform
from envsolve.model.request import Request
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver
from envsolve.site.answers import request_for
from envsolve.site.data import Answers, all_outcomes, parts
from envsolve.site.document import MANAGERS, Manager
from envsolve.site.machines import PLATFORMS
from envsolve.site.pages import pages
from tests.conftest import Envsolve
from tests.laws import examples

pytestmark = pytest.mark.thorough
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")

FRAMEWORKS = ("jax", "pytorch", "tensorflow")
CHOICES = 2000
HEAVIEST = 1_500_000
"""Bytes of the page, compressed."""
MILLISECONDS = 50
NO_WAY = "list all options"
"""What the command line says below a refusal that has no way out."""
READ = """addresses => addresses.map(address => {
    const before = performance.now();
    history.replaceState(null, "", address);
    show();
    const took = performance.now() - before;
    const texts = (name) => [...document.querySelectorAll("#answer " + name)].map((it) => it.textContent);
    return {
        took, command: texts(".command code")[0], file: texts(".file")[0], releases: texts(".releases")[0],
        notes: texts(".notes > li"), message: texts(".message")[0], code: texts(".refused h2")[0],
        because: [...document.querySelectorAll("#answer .because > li")].map(
            (it) => (it.querySelector("summary") || it).textContent),
        ways: [...document.querySelectorAll("#answer .ways > li")].map((it) => it.firstChild.textContent),
        commands: texts(".ways .command"),
    };
})"""


class Choice:
    """One random state of the selector."""

    def __init__(self, drawn: random.Random, products: list[str], capabilities: list[str]) -> None:
        self.gpu = drawn.choice(drawn.choices((products, capabilities, ["none"]), (12, 3, 1))[0])
        numbers = [str(drawn.randint(380, 625)), f"{drawn.randint(0, 140):02}", f"{drawn.randint(0, 20):02}"]
        has_driver = drawn.random() < 0.85 and self.gpu != "none"
        self.driver = ".".join(numbers[: drawn.randint(1, 3)]) if has_driver else ""
        self.platform: Platform = drawn.choices(PLATFORMS, (6, 1, 3))[0]
        self.frameworks = tuple(sorted(drawn.sample(FRAMEWORKS, drawn.randint(1, 3))))
        self.manager: Manager = drawn.choice(MANAGERS)

    @property
    def address(self) -> str:
        """The part of the page's address for it."""
        pairs = [
            ("gpu", self.gpu),
            ("driver", self.driver),
            ("platform", self.platform),
            ("manager", self.manager.name),
        ]
        return "#" + urlencode([*pairs, *(("framework", it) for it in self.frameworks)])

    @property
    def words(self) -> list[str]:
        """The options of the command line."""
        words = [word for name in self.frameworks for word in ("-f", name)]
        words += ["--driver", self.driver] if self.driver else []
        words += ["--glibc", str(ASSUMED_GLIBC)] if self.gpu == "none" and self.platform.is_linux else []
        return [*words, "--gpu", self.gpu, "--platform", self.platform]

    @property
    def request(self) -> Request:
        """The request for pip files, for which only the command line makes complete locks."""
        driver = DriverVersion.parse(self.driver) if self.driver else None
        return request_for(self.frameworks, self.platform, self.gpu, driver, "requirements")


@pytest.fixture(scope="module")
def index(matrix: Matrix, tmp_path_factory: pytest.TempPathFactory) -> Path:
    every = parts(str(matrix.directory), FRAMEWORKS, len(FRAMEWORKS))
    answers = Answers(matrix, all_outcomes(every, lambda *_: None))
    address, text = next(pages(answers))
    path = tmp_path_factory.mktemp("site") / address
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def page(index: Path, browser: Any) -> Iterator[Any]:
    """The page, opened as a file; any browser error fails the test."""
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if "file://" not in request.url else None)
    page.goto(index.as_uri())
    yield page
    page.close()
    assert complaints == []


def test_the_page_shows_the_answer_of_the_command_line_for_any_choice(
    page: Any, matrix: Matrix, envsolve: Envsolve
) -> None:
    drawn, products = random.Random(16), [str(row["name"]) for row in gpu_rows(matrix.document("gpus"))]  # noqa: S311
    capabilities = [str(it.capability) for it in matrix.cuda.architectures]
    choices = [Choice(drawn, products, capabilities) for _ in range(examples(CHOICES))]
    solver = Solver(matrix)

    shown = page.evaluate(READ, [it.address for it in choices])

    for choice, found in zip(choices, shown, strict=True):
        code, out, _ = envsolve("solve", *choice.words, "--json")
        document = json.loads(out)
        if choice.manager.format in ("environment", "pixi"):
            check_conda(choice, found, code, document, envsolve)
        else:
            check_pip(choice, found, document, matrix, solver)
    assert sorted(it["took"] for it in shown)[len(shown) // 2] < MILLISECONDS


def check_conda(choice: Choice, found: Any, code: int, document: Any, envsolve: Envsolve) -> None:
    """The outcome is that of ``solve --json``, and the file is the one that the command prints."""
    if code:
        error = document["error"]
        assert (found["code"], found["message"]) == (error["code"], error["message"]), choice.address
        ways = [it["text"] for it in error["hints"] if it["text"] != NO_WAY]
        assert found["ways"] == ways, choice.address
        commands = [(it["command"] or "").replace(" --format json", "") for it in error["hints"]]
        assert set(found["commands"]) <= set(commands), choice.address
        if error["conflict"]:
            assert found["because"] == [it["requirement"] for it in error["conflict"]], choice.address
        return
    labels = [f"{it['framework']} {it['version']} ({it['source']}, {it['build']})" for it in document["frameworks"]]
    assert found["releases"] == ", ".join(labels), choice.address
    assert found["notes"] == [it["text"] for it in document_notes(choice, envsolve)], choice.address
    assert found["because"] == [it["fact"] for it in document["because"]], choice.address
    printed = envsolve("solve", *choice.words, "--format", choice.manager.format)
    assert found["file"] == printed.out, choice.address
    typed = f"{document['request'].replace(' --format json', option_of(choice))} -o {choice.manager.file}"
    assert found["command"] == typed, choice.address


def document_notes(choice: Choice, envsolve: Envsolve) -> list[dict[str, str]]:
    """The notes of the command line, on stderr."""
    err = envsolve("solve", *choice.words).err
    return [{"text": line.removeprefix("note: ")} for line in err.splitlines() if line.startswith("note: ")]


def option_of(choice: Choice) -> str:
    """The arguments for the format, of which environment is the default."""
    return "" if choice.manager.format == "environment" else f" --format {choice.manager.format}"


def check_pip(choice: Choice, found: Any, document: Any, matrix: Matrix, solver: Solver) -> None:
    """The outcome is that of the solver; if conda has one as well, ``solve --json`` has it among the alternatives."""
    if found["message"] is not None:
        with pytest.raises(EnvsolveError) as refused:
            answers_to(choice.request, matrix, {}, solver)
        assert (found["code"], found["message"]) == (refused.value.code, refused.value.message), choice.address
        assert found["ways"] == [it.text for it in refused.value.hints], choice.address
        return
    (answer,), notes = answers_to(choice.request, matrix, {}, solver)
    releases = [it.release for it in answer.solution.choices]
    assert found["releases"] == ", ".join(it.label for it in releases), choice.address
    assert found["notes"] == [it.text for it in notes], choice.address
    assert found["because"] == [it.text for it in answer.solution.because], choice.address
    for it in releases:
        for requirement in requirements_of(it, answer.solution.python):
            assert f"\n{requirement}" in found["file"], choice.address
    assert shlex.split(found["command"])[-2:] == ["-o", choice.manager.file]
    if "error" not in document:
        known = [document, *document["alternatives"]]
        assert [str(it.version) for it in releases] in [
            [framework["version"] for framework in it["frameworks"]] for it in known
        ], choice.address


def test_the_page_is_small_and_fast(index: Path, page: Any) -> None:
    assert len(gzip.compress(index.read_bytes(), 9)) < HEAVIEST
    page.goto(f"{index.as_uri()}#gpu=NVIDIA+GeForce+RTX+3090&driver=535.129.03&framework=pytorch")
    page.reload()

    assert "torch" in page.inner_text(".file")
    assert page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") < 1000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "choice", ["gpu=NVIDIA+GeForce+RTX+3090&manager=pip", "gpu=Tesla+K80&driver=384&manager=conda"]
)
def test_the_page_is_accessible(choice: str, scheme: str, page: Any, index: Path) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{index.as_uri()}#{choice}&framework=pytorch")
    page.reload()

    results = axe.Axe().run(page)

    assert len(results.response["passes"]) > 20
    assert results.response["violations"] == []


def test_output_of_nvidia_smi_fills_the_form(page: Any) -> None:
    printed = (
        "| NVIDIA-SMI 535.129.03   Driver Version: 535.129.03   CUDA Version: 12.2 |\n"
        "|   0  NVIDIA GeForce RTX 3090        Off | 00000000:01:00.0 Off |\n"
    )
    page.get_by_label("pytorch").check()
    page.get_by_text("Paste what nvidia-smi prints", exact=True).click()
    page.get_by_label("Output of nvidia-smi").fill(printed)

    page.wait_for_selector(".file")

    assert page.input_value("#gpu") == "NVIDIA GeForce RTX 3090"
    assert page.input_value("#driver") == "535.129.03"
    assert "Ampere, compute capability 8.6" in page.inner_text("#family")


def test_a_suggestion_is_one_click_away(page: Any, index: Path) -> None:
    page.goto(f"{index.as_uri()}#gpu=NVIDIA+GeForce+RTX+5080&driver=550.54.14&manager=conda&framework=pytorch")
    page.reload()
    page.get_by_text("install NVIDIA driver 570.26 or newer").click()

    page.wait_for_selector(".file")

    assert page.input_value("#driver") == "570.26"
    assert "driver=570.26" in page.url


def test_the_keyboard_reaches_every_choice(page: Any) -> None:
    page.focus("#gpu")
    page.keyboard.type("NVIDIA GeForce RTX 3090")
    for _ in ("no GPU", "driver", "the output of nvidia-smi", "jax"):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")

    assert "framework=jax" in page.url
    assert page.inner_text(".releases").startswith("jax ")
