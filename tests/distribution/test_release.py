"""What a release needs: one version everywhere. The script of the release workflow that checks it is run here."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from envsolve import __version__
from tests.distribution.tools import ROOT, SHELL, started

posix = pytest.mark.skipif(os.name == "nt", reason="bash here may be that of WSL")


@pytest.mark.thorough
@posix
@pytest.mark.parametrize(
    ("tag", "version", "heading", "passes"),
    [
        ("v1.2.3", "1.2.3", "## 1.2.3 (2027-01-31)", True),
        ("v1.2.3", "1.2.4", "## 1.2.3 (2027-01-31)", False),
        ("v1.2.3", "1.2.3", "## 1.2.3 (unreleased)", False),
        ("v1.2.3", "1.2.3", "## 1.2.33 (2027-01-31)", False),
        ("v1.2.3", "1.2.3", "## 1x2x3 (2027-01-31)", False),
    ],
)
def test_a_release_needs_its_version_and_its_day_in_the_changelog(
    tag: str, version: str, heading: str, passes: bool, tmp_path: Path
) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    (script,) = (it["run"] for it in workflow["jobs"]["build"]["steps"] if it.get("name", "").startswith("Check that"))
    (tmp_path / "envsolve").mkdir()
    (tmp_path / "envsolve/__init__.py").write_text(f'__version__ = "{version}"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\n- new\n", encoding="utf-8")
    done = started(*SHELL, script, cwd=tmp_path, environ={**os.environ, "GITHUB_REF_NAME": tag})
    assert (done.returncode == 0) == passes, done.stderr


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.fullmatch(rf"{re.escape(__version__)} \((unreleased|20\d\d-\d\d-\d\d)\)", headings[0])
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(20\d\d-\d\d-\d\d\)", it) for it in headings[1:])
