"""Two commands ask for the same where their words do, whichever driver and product of a GPU they name."""

from __future__ import annotations

import pytest

from envsolve.lockfile.recorded_command import words_asked_by

CAPABILITIES = {"RTX 3090": "8.6", "RTX 3080": "8.6", "A100": "8.0"}
MADE = "envsolve --framework pytorch --driver 580.65.06 --gpu 'RTX 3090' --gpu A100 --exact numpy"


def asks_for_the_same(one: str, other: str) -> bool:
    def capability(word: str) -> str:
        return CAPABILITIES.get(word, word)

    return words_asked_by(one, capability) == words_asked_by(other, capability)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("580.65.06", "580.95.05"),
        (" --driver 580.65.06", ""),
        ("'RTX 3090'", "'RTX 3080'"),
        ("'RTX 3090'", '"RTX 3090"'),
        ("'RTX 3090'", "8.6 --gpu 'RTX 3080'"),
        ("--gpu 'RTX 3090' --gpu A100", "--gpu A100 --gpu 'RTX 3090'"),
    ],
)
def test_neither_driver_nor_product_counts(old: str, new: str) -> None:
    assert old in MADE
    assert asks_for_the_same(MADE, MADE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pytorch", "jax"),
        ("A100", "8.9"),
        (" --gpu A100", ""),
        (" --exact", ""),
        (" numpy", " scipy"),
        (" numpy", " numpy scipy"),
        ("--framework pytorch", "--framework pytorch --framework jax"),
        (" numpy", " 'numpy"),
    ],
)
def test_anything_else_counts(old: str, new: str) -> None:
    assert old in MADE
    assert not asks_for_the_same(MADE, MADE.replace(old, new))


def test_of_the_machines_that_a_project_names_the_driver_does_not_count() -> None:
    made = "envsolve lock  # --framework pytorch numpy for a: RTX 3090, driver 580.65.06; b: A100"
    assert asks_for_the_same(made, made.replace("580.65.06", "580.95.05"))
    assert asks_for_the_same(made, made.replace(", driver 580.65.06", ""))
    assert not asks_for_the_same(made, made.replace("; b: A100", ""))
    assert not asks_for_the_same(made, made.replace("numpy", "scipy"))


def test_a_quote_that_somebody_broke_is_a_word_like_any_other() -> None:
    assert asks_for_the_same("envsolve 'numpy", "envsolve 'numpy")
