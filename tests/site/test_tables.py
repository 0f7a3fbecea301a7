"""The tables of the site match the matrix."""

from __future__ import annotations

import re
from html import unescape

import pytest

from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.site.tables import (
    Popovers,
    branches_table,
    dropped_by_frameworks,
    extensions_table,
    releases_table,
    toolkits_table,
)


def rows_of(table: str) -> list[list[str]]:
    """The texts of the cells of each row, the header first."""
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def row_named(table: str, *names: str) -> dict[str, str]:
    header, *rows = rows_of(table)
    row = next(it for it in rows if tuple(it[: len(names)]) == names)
    return dict(zip(header, row, strict=True))


def test_extensions_have_their_newest_versions_with_code(matrix: Matrix) -> None:
    row = row_named(extensions_table(matrix, Popovers()), "bitsandbytes ?")

    rows = [it for it in matrix.build_rows("bitsandbytes") if it.code is not None]
    for text in ("12.0", "8.6", "3.5"):
        gpu = ComputeCapability.parse(text)
        newest = next((it for it in rows if it.code is not None and it.code.runs_as(gpu)), None)
        assert set(row[text].split(",")) == ({""} if newest is None else {str(it) for it in newest.versions})


@pytest.mark.thorough
def test_a_build_has_machine_code_or_ptx_or_nothing_for_a_gpu(matrix: Matrix) -> None:
    row = row_named(releases_table("pytorch", matrix), "2.14.1", "pytorch", "cu126")

    assert (row["CUDA"], row["platforms"]) == ("12.6", "linux-64, win-64")
    assert (row["8.6"], row["12.0"], row["3.7"]) == ("sm", "", "")


def test_drivers_and_toolkits_show_dropped_gpus(matrix: Matrix) -> None:
    branch = row_named(branches_table(matrix, ""), "R590")
    toolkit = row_named(toolkits_table(matrix), "13.0")

    assert "7.0 Volta" in branch["dropped"]
    assert "6.1 Pascal" in branch["dropped"]
    assert toolkit["Linux driver"] == "580.65.06"
    assert {"7.0", "6.1"} <= set(toolkit["dropped"].split(", "))


@pytest.mark.thorough
def test_a_framework_shows_gpus_that_no_build_supports_any_more(matrix: Matrix) -> None:
    rows = rows_of(dropped_by_frameworks(matrix))[1:]

    assert rows == sorted(rows, key=lambda it: it[0], reverse=True)
    days = {name: [it[0] for it in rows if it[1] == name] for name in matrix.framework_names}
    assert days["pytorch"]
    for day, name, version, dropped in rows:
        builds = [it for it in matrix.framework(name, None).releases if str(it.version) == version]
        assert builds[0].released in (day, None)
        assert not any(it.code.runs_as(ComputeCapability.parse(text)) for text in dropped.split(", ") for it in builds)
