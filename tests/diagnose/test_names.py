"""Names that releases of Python packages added and removed, according to shipped files."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from envsolve.diagnose.names import Span, span_of
from envsolve.findings.catalogue import find_findings

FILES = sorted((find_findings() / "names").glob("*.toml"))


@pytest.mark.parametrize(
    ("module", "attribute", "span"),
    [
        ("trl.trainer.utils", "ConstantLengthDataset", Span(None, "0.19", "0.20")),
        ("huggingface_hub", "cached_download", Span(None, "0.25", "0.26")),
        ("huggingface_hub", "DDUFEntry", Span("0.27", None, None)),
        ("huggingface_hub", "HfFolder", Span(None, "0.36", "1.0")),
        ("trl", "SFTTrainer", None),  # every release has it
        ("trl", "no_such_name", None),
        ("no_such_package", "name", None),
        ("trl", None, None),
    ],
)
def test_the_releases_that_have_a_name(module: str, attribute: str | None, span: Span | None) -> None:
    assert span_of(module, attribute) == span


def test_a_module_came_with_the_package_that_it_is_in() -> None:
    inside = span_of("transformers.models.qwen3.no_such_file", None)
    assert inside == span_of("transformers.models.qwen3", None)
    assert inside is not None
    assert inside.since == "4.51"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_yields_the_releases_that_it_lists(path: Path) -> None:
    document = tomli.loads(path.read_text(encoding="utf-8"))
    assert {*document["since"], *document["until"]} <= {*document["releases"]}
    assert document["releases"][0] not in document["since"]
    assert document["releases"][-1] not in document["until"]
