"""Match specs in every spelling that conda reads, compared with rattler after rewriting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.model.match_spec import MatchSpec, parse_match_spec
from tests.model.rattler_judge import judge

_CASES: list[dict[str, Any]] = tomli.loads((Path(__file__).parent / "match_specs.toml").read_text(encoding="utf-8"))[
    "spec"
]
_READ = [case for case in _CASES if "written" in case]
_REFUSED = [case for case in _CASES if "refused" in case]


@pytest.mark.thorough
@pytest.mark.parametrize("case", _READ, ids=lambda case: case["text"])
def test_a_spec_is_written_in_canonical_form(case: dict[str, Any]) -> None:
    written = str(parse_match_spec(case["text"]))
    assert written == case["written"]
    assert str(parse_match_spec(written)) == written


@pytest.mark.parametrize("case", _REFUSED, ids=lambda case: case["text"])
def test_an_invalid_spec_is_refused_with_a_reason(case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_match_spec(case["text"])
    assert case["refused"] in str(refused.value)


def test_rattler_reads_what_is_written_alike_when_strict_and_when_lenient_and_matches_the_same() -> None:
    wanted = [(case.get("admits", []), case.get("refuses", [])) for case in _READ]
    questions = [(case["written"], [*admits, *refuses]) for case, (admits, refuses) in zip(_READ, wanted, strict=True)]
    for case, (admits, refuses), verdict in zip(_READ, wanted, judge(questions), strict=True):
        assert not verdict.strict.startswith("refused"), case
        assert verdict.strict == verdict.lenient, case
        assert verdict.matches == [True] * len(admits) + [False] * len(refuses), case


_VERSIONS = st.from_regex(r"\A[0-9a-b.!_+*-]{1,6}\Z") | st.sampled_from(["1.2", "2024a", "1!2.0", "1.0.post1", "1.2.*"])
_CLAUSES = st.tuples(st.sampled_from(["", "", "=", "==", "!=", ">=", "<=", ">", "<", "~="]), _VERSIONS).map("".join)
_RANGES = st.lists(st.tuples(_CLAUSES, st.sampled_from([",", "|", ", "])).map("".join), max_size=2).map("".join)
_BUILDS = st.sampled_from(["", " py311_0", "=py311*", " *_cpython", "=*", " h1+2", "=^py.*$"])
_SPECS = st.builds(
    "{}{}{}{}{}{}".format,
    st.sampled_from(["", "conda-forge::", "https://127.0.0.1/channel/linux-64::"]),
    st.sampled_from(["numpy", "a_b-c.d", "__cuda"]),
    st.sampled_from(["", " "]),
    _RANGES,
    _CLAUSES,
    _BUILDS,
)


@pytest.mark.thorough
def test_rattler_reads_every_spec_that_envsolve_reads() -> None:
    written: dict[str, None] = {}

    @settings(max_examples=100)
    @given(_SPECS | st.text())
    def draw(text: str) -> None:
        try:
            spec = str(parse_match_spec(text))
        except ValueError:
            return
        assert str(parse_match_spec(spec)) == spec
        written[spec] = None

    draw()
    assert len(written) > 20
    for spec, verdict in zip(written, judge((spec, []) for spec in written), strict=True):
        assert verdict.strict == verdict.lenient, spec
        assert not verdict.strict.startswith("refused"), (spec, verdict)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("numpy==1.26", "1.26"),
        ("numpy=1.26=h1", "1.26"),
        ("numpy=1.26", None),
        ("numpy", None),
        ("numpy ==1|==2", None),
    ],
)
def test_a_spec_knows_its_only_version(text: str, version: str | None) -> None:
    assert parse_match_spec(text).exact_version == version


def test_the_parts_of_a_spec_are_distinguished() -> None:
    spec = parse_match_spec("https://127.0.0.1/channel/noarch::numpy=1.26=py311*[build_number=2]")
    assert spec == MatchSpec(
        "numpy", "==1.26", "py311*", "https://127.0.0.1/channel", "noarch", (("build_number", "2"),)
    )
