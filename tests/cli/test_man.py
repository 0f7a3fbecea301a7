"""The manual pages: up to date with the commands, complete, and valid roff."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from envsolve.cli.main import cli
from scripts.man_pages.__main__ import DIRECTORY, stale
from scripts.man_pages.pages import pages
from scripts.man_pages.roff import paragraph

ROOT = Path(__file__).parents[2]
TODAY = "2026-11-22"
PAGES = pages({}, TODAY)
GROFF, MANDOC = shutil.which("groff"), shutil.which("mandoc")
PLAIN = [str(GROFF), "-man", "-Tutf8", "-P-cbou"]
"""Without colour, and without what a printer once made bold and underlined letters from."""


def test_man_pages_are_up_to_date() -> None:
    assert stale(DIRECTORY, TODAY) == {}, "run scripts/man"


def test_each_command_has_a_page_and_the_first_page_lists_them() -> None:
    names = cli.list_commands(click.Context(cli))
    assert set(PAGES) == {"envsolve.1", *(f"envsolve-{name}.1" for name in names)}
    assert all(rf"\fBenvsolve\-{name}\fR(1)" in PAGES["envsolve.1"] for name in names)


@pytest.mark.thorough
@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_a_page_lists_every_option_and_its_variable(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    text = PAGES[f"envsolve-{name}.1"].replace(r"\-", "-")
    below = command.commands.values() if isinstance(command, click.Group) else [command]
    for option in (it for one in below for it in one.params if isinstance(it, click.Option) and not it.hidden):
        assert all(rf"\fB{spelled}\fR" in text for spelled in option.opts)
        assert option.envvar is None or rf"\fB{option.envvar}\fR" in text


@pytest.mark.thorough
def test_the_date_of_a_page_changes_only_with_its_content(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert stale(tmp_path, "2027-01-01") == {}
    changed = tmp_path / "envsolve-detect.1"
    changed.write_text(PAGES[changed.name].replace("this machine", "that machine"), "utf-8")
    (tmp_path / "envsolve-gone.1").touch()
    found = stale(tmp_path, "2027-01-01")
    assert found == {changed.name: PAGES[changed.name].replace(TODAY, "2027-01-01"), "envsolve-gone.1": None}


def test_man_pages_are_in_the_wheel_and_the_source_archive() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    (place,) = [source for source, target in targets["wheel"]["shared-data"].items() if target == "share/man/man1"]
    assert ROOT / place == DIRECTORY
    assert "/man" in targets["sdist"]["include"]


@pytest.mark.thorough
@pytest.mark.skipif(GROFF is None, reason="needs groff")
@pytest.mark.parametrize("name", PAGES)
def test_groff_has_no_warnings(name: str) -> None:
    command = [*PLAIN, "-ww"]
    done = subprocess.run(command, input=PAGES[name], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert "EXIT STATUS" in done.stdout


@pytest.mark.skipif(MANDOC is None, reason="needs mandoc")
@pytest.mark.parametrize("name", PAGES)
def test_mandoc_has_no_warnings(name: str) -> None:
    done = subprocess.run(
        [str(MANDOC), "-Tlint"], input=PAGES[name], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(GROFF is None, reason="needs groff")
@pytest.mark.parametrize(
    "text", [".TH is no request", "'tis", r"C:\new\fB", "~/.bashrc ^ `", '"quoted" -- --option', "naïve ✅"]
)
def test_special_characters_of_roff_are_escaped(text: str) -> None:
    page = f'.TH X 1 "{TODAY}"\n.SH NAME\n{paragraph(text)}'
    done = subprocess.run(PLAIN, input=page, capture_output=True, text=True, encoding="utf-8", check=True, timeout=60)
    assert text in done.stdout
