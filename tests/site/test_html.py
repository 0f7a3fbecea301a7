"""HTML made of values."""

from __future__ import annotations

import pytest

from envsolve.site.html import Html, link_parts, linked, page, slug, tag


def test_text_is_escaped_and_html_is_not() -> None:
    inner = tag("b", "a < b & c")

    assert tag("p", inner, "<i>") == "<p><b>a &lt; b &amp; c</b>&lt;i&gt;</p>"
    assert isinstance(inner, Html)


def test_attributes_are_written_like_in_html() -> None:
    element = tag("input", class_="one", aria_label='say "x"', hidden=True, disabled=False, title=None)

    assert element == '<input class="one" aria-label="say &quot;x&quot;" hidden>'


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("see docs.nvidia.com/cuda/notes, section 2", ["https://docs.nvidia.com/cuda/notes"]),
        ("pytorch/pytorch#186591", ["https://github.com/pytorch/pytorch/issues/186591"]),
        ("conda-forge/cupy-feedstock recipe", ["https://github.com/conda-forge/cupy-feedstock"]),
        ("(https://example.org/a).", ["https://example.org/a"]),
        ("torch-2.15.0-cp315-none-any.whl: METADATA, torch/version.py", []),
    ],
)
def test_a_source_with_a_url_is_linked(text: str, addresses: list[str]) -> None:
    parts = link_parts(text)

    assert "".join(part for part, _ in parts) == text
    assert [address for _, address in parts if address] == addresses


def test_a_link_allows_no_injection() -> None:
    assert linked("<b> example.org/x") == '&lt;b&gt; <a href="https://example.org/x" rel="noreferrer">example.org/x</a>'


def test_data_cannot_end_its_script() -> None:
    text = page("t", ["b"], script="show()", data='{"a":"</script>"}')

    assert text.count("</script>") == 2
    assert "</script>" not in text[text.index("<script") : text.index("show()") - len("<script>") - len("</script>")]


def test_a_slug_leaves_out_the_brand() -> None:
    assert slug("NVIDIA GeForce RTX 3090") == "rtx-3090"
    assert slug("GeForce GT 620M/630M") == "gt-620m-630m"
    assert slug("NVIDIA") == "nvidia"
