"""Facts that were read are merged into the file; those written by a person stay."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from envsolve.releases.reader import ReadEvidence, ReadRow, Value
from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.toml_file import Change, MatrixFile, unread_rows
from tests.laws import examples

TODAY = "2026-12-24"
TEXT = """\
# PyTorch, by hand and from wheels.
#   indented on purpose

schema_version = 1
updated = "2026-11-20"  # the day of the last look
framework = "pytorch"


[evidence.page]
kind = "project-docs"
reference = "a page"
seen = "2026-11-19"

# The last release of 2.
[[release]]
version = "2.9.0"
source = "pypi"
platform = "linux-64"
build = "cu128"
package = "torch"
pythons = ["3.10", "3.11"]
cuda = "12.8"
sass = ["8.0"]  # as the page says
companions = { torchvision = "==0.24.0" }
evidence = ["page"]
note = "a note"

[[release]]
version = "2.9.0"
source = "conda-forge"
platform = "linux-64"
build = "cuda128"
package = "pytorch"
evidence = ["page"]

# The only release of 1.
[[release]]
note = "in an order of its own"
version = "1.0.0"
package = "torch"
build = "cu100"
source = "pypi"
platform = "linux-64"
cudnn = "7.4.2"
cuda = "10.0"
by_hand = ["cuda"]
evidence = ["page"]
inferred = ["cudnn"]

[[known_bad]]
versions = "<1"
reason = "It does not import."
evidence = ["page"]
"""
DATED = """\
[evidence.thing-upload-times]
kind = "wheel"
reference = "upload times of the files on the package index: torch, torch-gpu"
seen = "2026-12-24"

[[dates]]
evidence = ["thing-upload-times"]

[dates.released]
"2.9.0" = "2025-10-15"
"1.0.0" = "2018-12-07"

"""
NEWER_WHEEL = ReadEvidence("torch-2-9-0-linux-64", "torch-2.9.0-cp312.whl: METADATA, torch/version.py", "ab" * 32)


def _read(
    version: str = "2.9.0",
    platform: str = "linux-64",
    build: str = "cu128",
    *,
    defaults: Mapping[str, Value] | None = None,
    evidence: tuple[ReadEvidence, ...] = (),
    **values: Value,
) -> ReadRow:
    key: dict[str, Value] = {"version": version, "source": "pypi", "platform": platform, "build": build}
    return ReadRow({**key, "package": "torch", **values}, defaults or {}, evidence)


@pytest.fixture
def file(tmp_path: Path) -> MatrixFile:
    path = tmp_path / "pytorch.toml"
    path.write_text(TEXT, encoding="utf-8")
    return MatrixFile(path)


def _written(file: MatrixFile) -> str:
    """The text after writing, with the previous date: all other changes."""
    file.write(TODAY)
    return file.path.read_text(encoding="utf-8").replace(TODAY, "2026-11-20", 1)


def test_one_field_changes_and_every_other_byte_stays(file: MatrixFile) -> None:
    (change,) = file.merge(_read(sass=["8.0", "9.0"]), TODAY)
    assert change.changes == (Change("sass", ["8.0"], ["8.0", "9.0"]),)
    assert not change.new
    assert _written(file) == TEXT.replace('sass = ["8.0"]', 'sass = ["8.0", "9.0"]')


def test_the_date_is_that_of_the_change(file: MatrixFile) -> None:
    file.merge(_read(sass=["8.0", "9.0"]), TODAY)
    assert file.write(TODAY)
    assert f'updated = "{TODAY}"  # the day of the last look' in file.path.read_text(encoding="utf-8")


def test_an_unchanged_file_is_not_written(file: MatrixFile) -> None:
    before = file.path.stat()
    assert file.merge(_read(cuda="12.8", sass=["8.0"], ptx=[]), TODAY) == []
    assert not file.changed
    assert not file.write(TODAY)
    assert file.path.stat() == before


@pytest.mark.parametrize(
    ("row", "follows", "precedes"),
    [
        (_read("3.0.0", cuda="13.0"), "", "# The last release of 2.\n"),
        (_read("2.9.0", "linux-aarch64"), 'note = "a note"\n\n', '[[release]]\nversion = "2.9.0"\nsource = "conda'),
        (_read("2.9.0", build="cu130"), "", "# The last release of 2.\n"),
        (_read("2.9.0", build="cpu"), 'note = "a note"\n\n', '[[release]]\nversion = "2.9.0"\nsource = "conda'),
        (_read("2.8.0"), '"cuda128"\npackage = "pytorch"\nevidence = ["page"]\n\n', "# The only release of 1.\n"),
        (_read("0.4.1"), 'inferred = ["cudnn"]\n\n', "[[known_bad]]\n"),
    ],
)
def test_a_new_row_is_in_sorted_order(row: ReadRow, follows: str, precedes: str, file: MatrixFile) -> None:
    (change,) = file.merge(row, TODAY)
    assert change.new
    text = _written(file)
    start = text.index("[[release]]\n" + "".join(f'{name} = "{row.values[name]}"\n' for name in row.values))
    end = text.index("\n\n", start) + 2
    assert text[:start].endswith(follows)
    assert text[end:].startswith(precedes)
    assert text[:start] + text[end:] == TEXT, "nothing else changed"


def test_a_new_row_does_not_move_the_tables_of_the_row_before_it(tmp_path: Path) -> None:
    path = tmp_path / "pytorch.toml"
    table = '[release.companions]\ntorchvision = "==0.2.2"\n\n[release . "constraints"]\nnumpy = "<2"\n\n'
    path.write_text(TEXT.replace("[[known_bad]]", f"{table}[[known_bad]]"), encoding="utf-8")
    file = MatrixFile(path)
    file.merge(_read("0.4.1"), TODAY)
    file.merge(_read("1.0.0", build="cu90"), TODAY)
    file.merge(_read("2.0.0"), TODAY)
    rows = tomllib.loads(_written(file))["release"]
    assert [row["version"] for row in rows] == ["2.9.0", "2.9.0", "2.0.0", "1.0.0", "1.0.0", "0.4.1"]
    assert [row["build"] for row in rows if "constraints" in row] == ["cu100"]
    assert rows[3]["companions"] == {"torchvision": "==0.2.2"}


def test_line_ends_are_preserved(tmp_path: Path) -> None:
    path = tmp_path / "pytorch.toml"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    file = MatrixFile(path)
    assert not file.changed
    file.merge(_read(cuda="12.9"), TODAY)
    file.write(TODAY)
    changed = TEXT.replace('cuda = "12.8"', 'cuda = "12.9"').replace("2026-11-20", TODAY, 1)
    assert path.read_bytes() == changed.replace("\n", "\r\n").encode()
    assert not MatrixFile(path).changed


def test_an_unwritable_file_is_one_clear_error_and_unchanged(file: MatrixFile) -> None:
    file.merge(_read(cuda="12.9"), TODAY)
    (file.path.parent / "pytorch.part").mkdir()
    file.path.unlink()
    file.path.mkdir()
    with pytest.raises(RefreshError, match=r"pytorch\.toml cannot be written: Is a directory$"):
        file.write(TODAY)
    assert sorted(path.name for path in file.path.parent.iterdir()) == ["pytorch.part", "pytorch.toml"]


def test_a_folder_in_place_of_a_temporary_file_does_not_matter(file: MatrixFile) -> None:
    (file.path.parent / "pytorch.part").mkdir()
    file.path.chmod(0o640)
    file.merge(_read(cuda="12.9"), TODAY)
    assert 'cuda = "12.9"' in _written(file)
    assert file.path.stat().st_mode & 0o777 == 0o640


def test_a_new_row_has_its_fields_in_the_order_of_the_schema(file: MatrixFile) -> None:
    row = _read("3.0.0", evidence=(NEWER_WHEEL,), ptx=[], glibc="2.28", cuda="13.0", sass=None)
    file.merge(row._replace(defaults={"cuda_libraries": "none", "cudnn": None}), TODAY)
    assert list(file.rows()[0]) == [
        *("version", "source", "platform", "build", "package", "glibc", "cuda", "cuda_libraries", "ptx", "evidence")
    ]


def test_a_file_without_rows_takes_its_first(tmp_path: Path) -> None:
    path = tmp_path / "pytorch.toml"
    path.write_text('schema_version = 1\nupdated = "2026-11-20"\n', encoding="utf-8")
    file = MatrixFile(path)
    file.merge(_read("1.0.0"), TODAY)
    file.merge(_read("2.0.0", evidence=(NEWER_WHEEL,)), TODAY)
    file.write(TODAY)
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    assert [row["version"] for row in document["release"]] == ["2.0.0", "1.0.0"]
    assert list(document["evidence"]) == [NEWER_WHEEL.name]


def test_fields_set_by_hand_are_preserved(file: MatrixFile) -> None:
    assert file.merge(_read("1.0.0", build="cu100", cuda="10.1"), TODAY) == []
    assert not file.changed


def test_a_default_only_fills_missing_fields(file: MatrixFile) -> None:
    file.merge(_read(defaults={"cuda": "12.6", "cuda_libraries": "none", "cudnn": None}), TODAY)
    row = file.rows()[0]
    assert (row["cuda"], row["cuda_libraries"]) == ("12.8", "none")
    assert "cudnn" not in row


def test_a_field_that_the_wheel_lacks_is_removed(file: MatrixFile) -> None:
    file.merge(_read(sass=None), TODAY)
    assert _written(file) == TEXT.replace('sass = ["8.0"]  # as the page says\n', "")


@pytest.mark.parametrize(("read", "after"), [("7", "7.4.2"), ("7.4", "7.4.2"), ("7.4.2", "7.4.2"), ("7.6", "7.6")])
def test_a_more_specific_value_is_preserved(read: str, after: str, file: MatrixFile) -> None:
    file.merge(_read("1.0.0", build="cu100", cudnn=read), TODAY)
    assert file.rows()[2]["cudnn"] == after


def test_half_a_number_is_not_more_specific(file: MatrixFile) -> None:
    file.merge(_read(cuda="12"), TODAY)
    file.merge(_read("1.0.0", build="cu100", cudnn="7.4.20"), TODAY)
    assert file.rows()[0]["cuda"] == "12.8"
    assert file.rows()[2]["cudnn"] == "7.4.20"


@pytest.mark.parametrize(
    ("read", "inferred"), [("7.4.2", None), ("7.6", None), (None, None), ("7", ["cudnn"]), ("7.4", ["cudnn"])]
)
def test_observed_facts_are_no_longer_inferred(read: str | None, inferred: list[str] | None, file: MatrixFile) -> None:
    file.merge(_read("1.0.0", build="cu100", cudnn=read), TODAY)
    assert file.rows()[2].get("inferred") == inferred


def test_a_row_in_another_order_keeps_it(file: MatrixFile) -> None:
    file.merge(_read("1.0.0", build="cu100", pythons=["3.7"], sass=["7.0"], cudnn="7.4.2"), TODAY)
    assert _written(file) == TEXT.replace(
        'package = "torch"\nbuild', 'package = "torch"\npythons = ["3.7"]\nbuild'
    ).replace('cudnn = "7.4.2"\n', 'cudnn = "7.4.2"\nsass = ["7.0"]\n').replace('inferred = ["cudnn"]\n', "")


def test_several_rows_with_one_key_keep_their_pythons(tmp_path: Path) -> None:
    path = tmp_path / "pytorch.toml"
    start = TEXT.index("# The last release of 2.")
    end = TEXT.index("[[release]]", TEXT.index("[[release]]", start) + 1)
    twin = TEXT[start:end].replace('["3.10", "3.11"]', '["3.12"]').replace("# The last release of 2.\n", "")
    path.write_text(TEXT[:end] + twin + TEXT[end:], encoding="utf-8")
    file = MatrixFile(path)
    changes = file.merge(_read(pythons=["3.10", "3.11", "3.12"], cuda="12.9"), TODAY)
    assert [row["pythons"] for row in file.rows()[:2]] == [["3.10", "3.11"], ["3.12"]]
    assert [row["cuda"] for row in file.rows()[:2]] == ["12.9", "12.9"]
    assert [[change.field for change in it.changes] for it in changes] == [["cuda"], ["cuda"]]


def test_evidence_is_cited_once(file: MatrixFile) -> None:
    file.merge(_read(evidence=(NEWER_WHEEL,)), TODAY)
    text = _written(file)
    block = (
        f'[evidence.torch-2-9-0-linux-64]\nkind = "wheel"\nreference = "{NEWER_WHEEL.reference}"\n'
        f'sha256 = "{NEWER_WHEEL.sha256}"\nseen = "{TODAY}"\n\n'
    )
    assert text == TEXT.replace("# The last release of 2.", f"{block}# The last release of 2.").replace(
        'evidence = ["page"]\nnote', 'evidence = ["torch-2-9-0-linux-64", "page"]\nnote'
    )
    again = MatrixFile(file.path)
    assert again.merge(_read(evidence=(NEWER_WHEEL,)), "2027-01-01") == []
    assert not again.changed


def test_another_wheel_replaces_the_cited_one(file: MatrixFile) -> None:
    file.merge(_read(evidence=(NEWER_WHEEL,)), TODAY)
    rebuilt = ReadEvidence(NEWER_WHEEL.name, NEWER_WHEEL.reference.replace("2.9.0", "2.9.0-1"), None)
    file.merge(_read(evidence=(rebuilt,)), "2027-01-01")
    evidence = tomllib.loads(_written(file))["evidence"]
    assert evidence[NEWER_WHEEL.name] == {"kind": "wheel", "reference": rebuilt.reference, "seen": "2027-01-01"}
    assert len(evidence) == 2


@pytest.mark.parametrize("header", ["[evidence.'page']", '[ evidence . "page" ]', '["evidence".page]  # why'])
def test_evidence_is_found_however_its_name_is_quoted(header: str, tmp_path: Path) -> None:
    path = tmp_path / "pytorch.toml"
    path.write_text(TEXT.replace("[evidence.page]", header), encoding="utf-8")
    file = MatrixFile(path)
    file.merge(_read(evidence=(NEWER_WHEEL._replace(name="page"),)), TODAY)
    assert f'{header}\nkind = "wheel"\n' in _written(file)


@pytest.mark.parametrize("written", ['page = { kind = "docs" }\n', 'page.kind = "docs"\n'])
def test_evidence_without_its_own_header_is_named(written: str, tmp_path: Path) -> None:
    path = tmp_path / "pytorch.toml"
    start, end = TEXT.index("[evidence.page]"), TEXT.index("# The last release of 2.")
    path.write_text(f"{TEXT[:start]}[evidence]\n{written}\n{TEXT[end:]}", encoding="utf-8")
    with pytest.raises(RefreshError, match=r"cannot be changed in place: there is no header \[evidence\.page\]$"):
        MatrixFile(path).merge(_read(evidence=(NEWER_WHEEL._replace(name="page"),)), TODAY)


def test_a_citation_with_more_members_of_the_wheel_is_preserved(file: MatrixFile) -> None:
    deeper = NEWER_WHEEL._replace(reference=f"{NEWER_WHEEL.reference}, torch/lib/libtorch_cuda.so")
    file.merge(_read(evidence=(deeper,)), TODAY)
    file.write(TODAY)
    file.merge(_read(evidence=(NEWER_WHEEL,)), "2027-01-01")
    assert not file.changed


def test_diff_changes_nothing(file: MatrixFile) -> None:
    row = _read("3.0.0", cuda="13.0", evidence=(NEWER_WHEEL,))
    (difference,) = file.differences(row)
    assert difference.new
    assert not file.changed
    assert [difference] == file.merge(row, TODAY)


def test_rows_without_a_wheel_are_named(file: MatrixFile) -> None:
    assert unread_rows(file.rows(), [_read()], "pypi") == ["1.0.0 pypi linux-64 cu100 torch"]
    for failed in ("1.0", "1.0.0+cu100"):
        assert unread_rows(file.rows(), [_read()], "pypi", failed=[Version(failed)]) == []
    assert unread_rows(file.rows(), [_read()], "pypi", failed=[Version("1.0.0+cpu")])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("release = [", "pytorch.toml cannot be read: "),
        ('release = [{ version = "1" }]', "pytorch.toml cannot be changed in place: "),
        ("a = 1\nb = 2\r\n", "pytorch.toml cannot be changed in place: some of its lines end in CR LF"),
        ('note = """\n[[release]]\n"""\n', "pytorch.toml cannot be changed in place: "),
        ("[[release]]\na = 1\n\t[release.b]", r"begin a line with the header \[release\.b\]"),
        ('[evidence."a]"]\nkind = "docs"', r"begin a line with the header \[evidence\."),
    ],
)
def test_an_unwritable_file_is_one_clear_error(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "pytorch.toml"
    path.write_bytes(text.encode())
    with pytest.raises(RefreshError, match=says):
        MatrixFile(path)


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RefreshError, match=r"jax\.toml cannot be read: "):
        MatrixFile(tmp_path / "jax.toml")


VALUES = {
    "pythons": st.lists(st.sampled_from(["3.7", "3.12"]), unique=True),
    "glibc": st.sampled_from([None, "2.17", "2.28"]),
    "cuda": st.sampled_from([None, "10", "12.8", "13.0"]),
    "cudnn": st.sampled_from([None, "7", "7.4.2", "9.10"]),
    "sass": st.lists(st.sampled_from(["7.0", "8.0", "9.0a"]), unique=True),
    "ptx": st.none() | st.lists(st.just("9.0"), max_size=1),
}
WHEELS = st.builds(
    lambda name, members: ReadEvidence(name, f"torch.whl: {', '.join(sorted(members))}", None),
    st.sampled_from(["one", "a name with blanks", "page"]),
    st.sets(st.sampled_from(["METADATA", "version.py", "lib.so"]), min_size=1),
)


@st.composite
def read_rows(draw: st.DrawFn) -> ReadRow:
    """Any row a reader may return, mostly of releases that the file has."""
    return _read(
        draw(st.sampled_from(["2.9.0", "1.0.0", "3.0.0", "2.8.0.post1"])),
        draw(st.sampled_from(["linux-64", "win-64"])),
        draw(st.sampled_from(["cu128", "cu100", "cpu"])),
        defaults=draw(st.fixed_dictionaries({}, optional={"cuda_libraries": st.sampled_from([None, "none"])})),
        evidence=tuple(draw(st.lists(WHEELS, max_size=1))),
        **draw(st.fixed_dictionaries({}, optional=VALUES)),
    )


def _cited(row: ReadRow) -> object:
    return row.evidence[0].name if row.evidence else row.key


@settings(max_examples=examples(40), deadline=None)
@given(rows=st.lists(read_rows(), max_size=4, unique_by=(lambda row: row.key, _cited)))
def test_a_repeated_merge_changes_nothing(rows: list[ReadRow]) -> None:
    with TemporaryDirectory() as folder:
        _merge_twice(Path(folder) / "pytorch.toml", rows)


def _merge_twice(path: Path, rows: list[ReadRow]) -> None:
    path.write_text(TEXT, encoding="utf-8")
    first = MatrixFile(path)
    for row in rows:
        first.merge(row, TODAY)
    first.write(TODAY)
    text = path.read_text(encoding="utf-8")
    second = MatrixFile(path)
    assert second.rows() == first.rows(), "what is in memory is what was written"
    assert [change for row in rows for change in second.merge(row, "2027-01-01")] == []
    assert not second.write("2027-01-01")
    assert path.read_text(encoding="utf-8") == text
    for comment in (line for line in TEXT.splitlines() if line.startswith("#")):
        assert comment in text.splitlines()


def test_release_dates_get_their_own_table(tmp_path: Path) -> None:
    path = tmp_path / "thing.toml"
    path.write_text(TEXT, encoding="utf-8")
    file = MatrixFile(path)
    days = {"1.0.0": "2018-12-07", "2.9.0": "2025-10-15", "3.0": "2026-12-01"}
    changes = file.merge_dates(days, ("torch", "torch-gpu"), TODAY)
    assert changes == [Change("1.0.0", None, "2018-12-07"), Change("2.9.0", None, "2025-10-15")]
    file.write(TODAY)
    place = "# The last release of 2."
    expected = TEXT.replace(place, f"{DATED}{place}").replace("2026-11-20", TODAY)
    assert path.read_text(encoding="utf-8") == expected
    assert MatrixFile(path).merge_dates(days, ("torch", "torch-gpu"), TODAY) == []
    later = MatrixFile(path)
    assert later.merge_dates({"2.9.0": "2025-10-16"}, ("torch", "torch-gpu"), TODAY) == [
        Change("2.9.0", "2025-10-15", "2025-10-16")
    ]
    later.write(TODAY)
    assert path.read_text(encoding="utf-8") == expected.replace("2025-10-15", "2025-10-16")
