"""Each law: a tiny matrix satisfies it, one change breaks it, and the error names the place and the mistake."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest

from envsolve.errors import MatrixError
from envsolve.matrix import Matrix
from envsolve.matrix.laws import LAWS, judge, latest_date
from tests.matrix.tiny import DOCS, tiny_matrix

TODAY = date(2026, 11, 20)


class Break(NamedTuple):
    """One change to the tiny matrix, the law it breaks, and the text of the error."""

    law: str
    file: str
    old: str
    new: str
    says: str


BREAKS = [
    Break(
        "toolkit-of-a-build-is-known",
        "thing",
        'cuda = "12.9"',
        'cuda = "12.7"',
        "thing.toml: release 2.0 (pypi, cuda12, linux-64): CUDA 12.7 is not in cuda.toml",
    ),
    Break("toolkit-of-a-build-is-known", "thing", '"==12.9"', '"==12.7"', "has no CUDA ==12.7"),
    Break("cudnn-that-a-build-asks-for-is-known", "thing", '"==9.10.2.21"', '"==9.9.0.52"', "cuDNN ==9.9.0.52"),
    Break("cudnn-that-a-build-asks-for-is-known", "thing", '">=8.9,<9"', '">=9,<10"', "for CUDA 11 is not in"),
    Break("cudnn-that-a-build-asks-for-is-known", "cudnn", ', "win-64"]', "]", "but not from conda-forge"),
    Break("cudnn-that-a-build-asks-for-is-known", "cudnn", 'pypi = "nvidia-cudnn-cu12"\n', "", "but not from pypi"),
    Break("cudnn-a-build-was-compiled-with-is-known", "thing", 'cudnn = "9.10"', 'cudnn = "9.1"', "cuDNN 9.1 for"),
    Break("machine-code-is-what-the-toolkit-compiles", "thing", '["8.0", "9.0"', '["3.7", "9.0"', "no target 3.7"),
    Break("ptx-is-what-the-toolkit-knows", "thing", 'ptx = ["8.0"]', 'ptx = ["9.0"]', "has no target 9.0, which ptx"),
    Break(
        "suffixed-code-is-what-the-toolkit-makes", "thing", '["7.5", "8.0"]', '["7.5", "8.0a"]', "has no target 8.0a"
    ),
    Break("components-belong-to-a-known-toolkit", "cuda", 'version = "12.9"', 'version = "12.8"', "12.9.1: CUDA 12.9"),
    Break("code-targets-are-listed-once-and-in-order", "thing", '["7.5", "8.0"]', '["8.0", "7.5"]', "sass is not in"),
    Break("code-targets-are-listed-once-and-in-order", "thing", 'ptx = ["8.0"]', 'ptx = ["8.0", "8.0"]', "ptx is not"),
    Break("pythons-are-listed-once-and-in-order", "thing", '["3.9", "3.10"]', '["3.10", "3.9"]', "(3.10, 3.9)"),
    Break("pythons-are-listed-once-and-in-order", "thing", '["3.9", "3.10"]', '["3.9", "3.9"]', "each once"),
    Break("releases-stand-newest-first", "thing", 'version = "2.0"', 'version = "0.9"', "is below the older 0.9"),
    Break("days-of-release-are-in-order", "thing", '"1.0" = ', '"1.1" = ', "released.1.1: is no version of the file"),
    Break("days-of-release-are-in-order", "thing", '"2026-10-07"', '"2026-11-21"', "is later than updated, 2026-11-20"),
    *(
        Break(
            "days-of-release-are-in-order",
            "thing",
            '"2.0" = "2026-10-07"\n"1.0" = "2026-10-06"\n\n[[release]]\nversion = "2.0"',
            f'"{later}" = "2026-10-05"\n"1.0" = "2026-10-06"\n\n[[release]]\nversion = "{later}"',
            f"released.{later}: 2026-10-05 is before 2026-10-06, the day of 1.0",
        )
        for later in ("1.0.1", "1.1")
    ),
    Break(
        "no-two-rows-are-one-build",
        "thing",
        'platform = "osx-arm64"\nbuild = "cpu"',
        'platform = "osx-arm64"\nbuild = "cpu"\npackage = "thing"\npythons = ["3.8", "3.9"]\nevidence = ["docs"]\n\n'
        '[[release]]\nversion = "1.0"\nsource = "pypi"\nplatform = "osx-arm64"\nbuild = "cpu"',
        "(pypi, cpu, osx-arm64): appears twice for Python 3.9",
    ),
    Break("companions-and-constraints-can-be-read", "thing", '"==2.1"', '"2.1"', "companions.thingvision: '2.1'"),
    Break("companions-and-constraints-can-be-read", "thing", '"numpy<2"', '"numpy<<2"', "constraints: 'numpy<<2'"),
    Break("glibc-is-a-matter-of-linux", "thing", 'build = "cpu"', 'build = "cpu"\nglibc = "2.28"', "names glibc 2.28"),
    Break("known-bad-rows-mean-a-build", "thing", 'versions = "<2"', 'versions = "<1"', "covers no build: <1 win-64"),
    Break(
        "known-bad-rows-mean-a-build",
        "thing",
        'platforms = ["win-64"]\nreason',
        'platforms = ["win-64", "linux-64"]\nreason',
        "thing.toml: known_bad[1]: covers no build of linux-64: <2 win-64 linux-64",
    ),
    Break(
        "known-bad-rows-mean-a-build",
        "thing",
        'platforms = ["win-64"]\nreason',
        'builds = ["cuda11", "cuda12"]\nreason',
        "covers no build of cuda12: <2 cuda11 cuda12",
    ),
    Break(
        "known-bad-rows-mean-a-build",
        "thing",
        'platforms = ["win-64"]\nreason',
        'sources = ["conda-forge", "pytorch"]\nreason',
        "covers no build of pytorch: <2 conda-forge pytorch",
    ),
    Break("platform-limits-mean-a-version-and-hold", "thing", 'versions = ">=2"', 'versions = ">=3"', "no release is"),
    Break("platform-limits-mean-a-version-and-hold", "thing", 'versions = ">=2"', 'versions = ">=1"', "but there is"),
    Break("disagreements-mean-a-version", "thing", 'versions = "==2.0"', 'versions = "==2.1"', "no release is ==2.1"),
    Break("disagreements-mean-a-version", "thing", 'versions = "==2.0"\n', "", "versions is missing"),
    Break("names-mean-one-framework", "thing", '["thg"]', '["thg", "other"]', "'other' is a name of other too"),
    Break("toolkits-stand-newest-first-and-once", "cuda", '"12.9"', '"10.2"', "toolkit 11.8: is below 10.2"),
    Break("driver-floors-do-not-fall", "cuda", '"525.60.13"', '"418.39"', "linux_floor 418.39 is older than 450.80.02"),
    Break("driver-floors-do-not-fall", "cuda", '"528.33"', '"418.96"', "windows_floor 418.96 is older than 452.39"),
    Break("full-drivers-do-not-fall", "cuda", '"520.61.05"', '"580"', "linux_full 575.51.03 is older than 580 of 11.8"),
    Break("full-drivers-do-not-fall", "cuda", '"522.06"', '"580"', "windows_full 576.02 is older"),
    Break(
        "driver-branches-ascend-with-their-cuda",
        "cuda",
        'branch = 520\ncuda = "11.8"',
        'branch = 520\ncuda = "13.0"',
        "driver_branch 575: supports CUDA 12.9, less than 13.0 of the older 520",
    ),
    Break("driver-branches-ascend-with-their-cuda", "cuda", "branch = 520", "branch = 575", "appears twice"),
    Break(
        "first-releases-belong-to-their-branch", "cuda", 'first_linux = "575', 'first_linux = "576', "first_linux 576"
    ),
    Break(
        "first-releases-belong-to-their-branch",
        "cuda",
        'first_windows = "522.06"',
        'first_windows = "576.02"',
        "first_windows 576.02",
    ),
    Break(
        "first-releases-belong-to-their-branch",
        "cuda",
        'first_windows = "522.06"',
        'first_windows = "575.01"',
        "driver_branch 520: first_windows 575.01 is of another",
    ),
    Break(
        "first-releases-belong-to-their-branch",
        "cuda",
        'first_windows = "522.06"',
        'first_windows = "519.99"',
        "driver_branch 520: first_windows 519.99 is of another",
    ),
    Break(
        "gpu-generations-begin-before-they-end", "cuda", '"6.5"', '"12.0"', "first_cuda 12.0 is newer than last_cuda"
    ),
    Break("gpu-generations-begin-before-they-end", "cuda", '"6.5"', '"new"', "first_cuda new is not a CUDA version"),
    Break("gpu-generations-begin-before-they-end", "cuda", "branch = 340", "branch = 480", "first_branch 480 is newer"),
    Break(
        "gpu-generations-begin-before-they-end",
        "cuda",
        'capability = "9.0"',
        'capability = "12.0"',
        "architecture 12.0: appears twice",
    ),
    Break(
        "toolkits-compile-for-generations-of-their-time",
        "cuda",
        'last_cuda = "11.8"',
        'last_cuda = "12.9"',
        "architecture 3.7: is not in compiles_for of CUDA 12.9, against first_cuda 6.5, last_cuda 12.9",
    ),
    Break("capabilities-have-a-generation", "gpus", '"8.0"', '"8.6"', "gpu 'NVIDIA A100': cuda.toml has no"),
    Break("capabilities-have-a-generation", "pci_ids", '"8.0"', '"8.6"', "device 20b0 (A100)"),
    Break(
        "capabilities-have-a-generation", "cuda", '["7.5", ', '["7.2", ', "toolkit 12.9: there is no architecture 7.2"
    ),
    Break("a-product-stands-once", "gpus", '"GeForce RTX 5090"', '"NVIDIA A100"', "appears twice"),
    Break("a-product-stands-once", "gpus", '["12.0"]', '["9.0"]', "12.0 is not among capabilities"),
    Break("cudnn-rows-stand-newest-first-and-once", "cudnn", '"9.10.2.21"', '"8.8.0.121"', "is below the older"),
    Break(
        "cudnn-rows-stand-newest-first-and-once",
        "cudnn",
        '"8.9.7.29"\ncuda_major = 11',
        '"9.10.2.21"\ncuda_major = 12',
        "release 9.10.2.21 (CUDA 12): appears twice",
    ),
    Break(
        "cudnn-code-lies-in-the-vendors-range", "cudnn", '["5.0", "8.0"', '["3.7", "8.0"', "code for 3.7, outside of"
    ),
    Break(
        "cudnn-code-lies-in-the-vendors-range",
        "cudnn",
        'sass = ["5.0", "8.0", "12.0"]\n',
        'sass = ["5.0", "8.0", "12.0"]\nsass_aarch64 = ["3.7", "8.0", "12.0"]\n',
        "release 9.10.2.21 (CUDA 12): has code for 3.7, outside of",
    ),
    Break("cudnn-code-lies-in-the-vendors-range", "cudnn", '"12.0"\n', '"9.0"\n', "code for 12.0, outside of"),
    Break("cudnn-code-lies-in-the-vendors-range", "cudnn", '"9.0"', '"3.7"', "5.0 is newer than 3.7"),
    Break("cudnn-is-for-a-cuda-that-is-known", "cudnn", "cuda_major = 11", "cuda_major = 10", "there is no CUDA 10"),
    Break(
        "no-evidence-is-unused",
        "gpus",
        "[evidence.docs]",
        '[evidence.lost]\nkind = "issue"\nreference = "a"\nseen = "2026-11-19"\n\n[evidence.docs]',
        "gpus.toml: evidence.lost: is used by no row",
    ),
    Break("every-row-has-evidence", "pci_ids", DOCS, "", "pci_ids.toml: evidence: is missing"),
    Break(
        "rows-speak-of-keys-they-have",
        "thing",
        'inferred = ["glibc"]',
        'inferred = ["glibc", "extras"]',
        "thing.toml: release[1] (2.0, pypi, cuda12, linux-64): inferred names extras, not in the row",
    ),
    Break(
        "rows-speak-of-keys-they-have", "thing", 'by_hand = ["glibc"]', 'by_hand = ["extras"]', "by_hand names extras"
    ),
    Break("what-is-set-by-hand-says-why", "thing", 'note = "a note"\n', "", "by_hand without a note"),
    Break(
        "dates-are-not-in-the-future", "cuda", '"2026-11-20"', '"2026-11-21"', "updated: 2026-11-21 is in the future"
    ),
    Break("dates-are-not-in-the-future", "cuda", '"2026-11-19"', '"2026-02-30"', "2026-02-30 is not a day"),
    Break(
        "evidence-is-not-newer-than-its-file", "cuda", '"2026-11-20"', '"2026-11-18"', "later than updated, 2026-11-18"
    ),
]
OTHER = """\
schema_version = 1
updated = "2026-11-20"
framework = "other"

[[release]]
version = "1.0"
source = "pypi"
platform = "linux-64"
build = "cpu"
package = "other"
pythons = ["3.12"]
evidence = ["docs"]

[evidence.docs]
kind = "project-docs"
reference = "a page"
seen = "2026-11-19"
"""


def broken(matrix: Matrix) -> dict[str, tuple[str, ...]]:
    """The laws that ``matrix`` breaks."""
    return {verdict.law: verdict.violations for verdict in judge(matrix, TODAY) if verdict.violations}


def test_the_tiny_matrix_satisfies_every_law(tmp_path: Path) -> None:
    matrix = tiny_matrix(tmp_path)
    assert matrix.check() == []
    assert broken(matrix) == {}


@pytest.mark.parametrize("case", BREAKS, ids=lambda case: f"{case.law} {case.says[-30:]}")
def test_a_broken_law_names_the_place_and_the_mistake(case: Break, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(OTHER, encoding="utf-8")
    found = broken(tiny_matrix(tmp_path, case.file, case.old, case.new))
    assert any(case.says in violation for violation in found.get(case.law, ())), found


@pytest.mark.parametrize("stated", ["9", "9.10", "9.10.2", "9.10.2.21"])
def test_a_build_may_state_its_cudnn_partly(stated: str, tmp_path: Path) -> None:
    assert broken(tiny_matrix(tmp_path, "thing", 'cudnn = "9.10"', f'cudnn = "{stated}"')) == {}


@pytest.mark.parametrize("first", ["520.01", "574.99"])
def test_a_windows_branch_continues_under_other_numbers_until_the_next(first: str, tmp_path: Path) -> None:
    """Like R580: 581 and 582."""
    assert broken(tiny_matrix(tmp_path, "cuda", 'first_windows = "522.06"', f'first_windows = "{first}"')) == {}


def test_every_law_has_a_case_that_breaks_it() -> None:
    assert {law.__name__.replace("_", "-") for law in LAWS} == {case.law for case in BREAKS}
    for law in LAWS:
        first, _, rest = (law.__doc__ or "").partition("\n")
        assert first.endswith((".", ":")), law.__name__
        assert rest == "" or rest.startswith("\n"), law.__name__


def test_unloadable_files_are_not_checked(tmp_path: Path) -> None:
    matrix = tiny_matrix(tmp_path, "thing", 'version = "2.0"', 'version = "two"')
    with pytest.raises(MatrixError, match="mistake"):
        judge(matrix, TODAY)


@pytest.mark.thorough
def test_the_shipped_matrix_satisfies_every_law(matrix: Matrix) -> None:
    assert [violation for verdict in judge(matrix, latest_date()) for violation in verdict.violations] == []
