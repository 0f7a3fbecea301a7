"""Version order and stretches say the same as packaging does, on versions and specifiers drawn at random."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envsolve.model.version_order import Key, is_prerelease, key_of, stretches

_NUMBERS = st.sampled_from([0, 1, 2, 9, 10])
_RELEASES = st.lists(_NUMBERS, min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@st.composite
def _versions(draw: st.DrawFn, *, local: bool = True) -> str:
    epoch = draw(st.sampled_from(["", "", "", "1!"]))
    pre = draw(st.sampled_from(["", "", "a1", "b0", "rc2"]))
    post = draw(st.sampled_from(["", "", ".post0", ".post3"]))
    dev = draw(st.sampled_from(["", "", ".dev0", ".dev4"]))
    label = draw(st.sampled_from(["", "", "+cu126", "+1", "+cu126.abi"])) if local else ""
    return f"{epoch}{draw(_RELEASES)}{pre}{post}{dev}{label}"


@st.composite
def _clauses(draw: st.DrawFn) -> str:
    operator = draw(st.sampled_from(["==", "!=", "<=", ">=", "<", ">", "~="]))
    if operator in ("==", "!=") and draw(st.booleans()):
        return f"{operator}{draw(_RELEASES)}.*"
    return f"{operator}{draw(_versions(local=operator in ('==', '!=')))}"


@given(st.lists(_versions(), max_size=12))
def test_keys_sort_as_versions_do(texts: list[str]) -> None:
    ours = sorted(texts, key=_key)
    assert [Version(text) for text in ours] == sorted(map(Version, texts))


@given(_versions(), _versions())
def test_keys_are_equal_where_versions_are(one: str, other: str) -> None:
    assert (_key(one) == _key(other)) == (Version(one) == Version(other))


@given(_versions())
def test_prereleases_are_told_as_packaging_tells_them(text: str) -> None:
    assert is_prerelease(_key(text)) == Version(text).is_prerelease


@given(st.lists(_clauses(), max_size=3), st.lists(_versions(), min_size=1, max_size=8))
def test_stretches_admit_what_packaging_admits(clauses: list[str], versions: list[str]) -> None:
    text = ",".join(clauses)
    try:
        specifier = SpecifierSet(text)
    except InvalidSpecifier:
        return
    admitted = stretches(text)
    if admitted is None:
        return
    for version in versions:
        assert _lies_in(_key(version), admitted) == specifier.contains(version, prereleases=True), version


@pytest.mark.parametrize(
    "specifier", [">=1.2,<2", "==1.2.*,!=1.2.3", "~=1.4.5", ">1,<=3", "==2.6.0+cu126", "<2.0rc1", ""]
)
def test_ordinary_specifiers_do_without_packaging(specifier: str) -> None:
    assert stretches(specifier) is not None


@pytest.mark.parametrize("specifier", ["===1.0", ">1.0.post1", "<1.0.dev3"])
def test_the_odd_ones_are_left_to_packaging(specifier: str) -> None:
    assert stretches(specifier) is None


@pytest.mark.parametrize("specifier", ["1.0", ">=", "latest", ">=1.0 <2"])
def test_what_is_no_specifier_is_refused(specifier: str) -> None:
    with pytest.raises(ValueError, match="not a version specifier"):
        stretches(specifier)


def test_what_is_no_version_has_no_key() -> None:
    assert key_of("2004d-final") is None


def _key(text: str) -> Key:
    key = key_of(text)
    assert key is not None
    return key


def _lies_in(key: Key, admitted: tuple[tuple[Key | None, Key | None], ...]) -> bool:
    return any((low is None or low <= key) and (high is None or key < high) for low, high in admitted)
