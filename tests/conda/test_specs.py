import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from envsolve.conda.specs import conda_versions, specifier_of


@pytest.mark.parametrize(
    ("versions", "inside", "outside"),
    [
        ("", ["1", "2.5"], []),
        ("*", ["1", "2.5"], []),
        ("=2.5", ["2.5", "2.5.1"], ["2.6", "2.50"]),
        ("=2.5.*", ["2.5", "2.5.1"], ["2.6"]),
        ("2.5.*", ["2.5", "2.5.1"], ["2.6"]),
        ("2.5*", ["2.5", "2.5.1"], ["2.6"]),
        ("2.5", ["2.5"], ["2.5.1"]),
        ("==2.5", ["2.5"], ["2.5.1"]),
        (">=3.12,<3.13.0a0", ["3.12", "3.12.99"], ["3.13", "3.11"]),
        (">=3.12.*", ["3.12", "3.13"], ["3.11"]),
        ("!=1.2.*,>=1", ["1.1", "1.3"], ["1.2.3", "0.9"]),
        ("~=1.4.2", ["1.4.5"], ["1.5", "1.4.1"]),
    ],
)
def test_conda_versions_are_parsed_like_conda_does(versions: str, inside: list[str], outside: list[str]) -> None:
    specifier = specifier_of(versions)
    assert specifier is not None
    assert [it for it in inside if not specifier.contains(it)] == []
    assert [it for it in outside if specifier.contains(it)] == []


@pytest.mark.parametrize("versions", ["1.2|1.4", "2.5.*|2.6.*", ">=1.2,<2|>3", "^1\\.2$"])
def test_alternatives_have_no_specifier(versions: str) -> None:
    assert specifier_of(versions) is None


_VERSIONS = st.lists(st.integers(0, 20), min_size=2, max_size=4).map(lambda parts: ".".join(map(str, parts)))
_CLAUSES = st.one_of(
    st.tuples(st.sampled_from([">=", "<=", ">", "<", "==", "!=", "~="]), _VERSIONS).map("".join),
    _VERSIONS.map(lambda version: f"=={version}.*"),
    _VERSIONS.map(lambda version: f"!={version}.*"),
)


@given(st.lists(_CLAUSES, max_size=3), _VERSIONS)
def test_a_specifier_means_the_same_after_a_round_trip_to_conda(clauses: list[str], version: str) -> None:
    specifier = SpecifierSet(",".join(clauses))
    back = specifier_of(conda_versions(str(specifier)))
    assert back is not None
    assert back.contains(version) == specifier.contains(version)
