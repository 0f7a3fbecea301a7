"""What differs between two recorded commands is told word by word."""

from __future__ import annotations

import pytest

from envsolve.app.command_changes import command_changes


@pytest.mark.parametrize(
    ("made", "wanted", "told"),
    [
        (
            "envsolve --framework pytorch --python 3.15",
            "envsolve --framework pytorch --framework jax --python 3.14",
            "it was made for --python 3.15, and the project asks for --python 3.14; --framework jax is new",
        ),
        (
            "envsolve --framework pytorch",
            "envsolve --framework 'pytorch>=2'",
            "it was made for --framework pytorch, and the project asks for --framework 'pytorch>=2'",
        ),
        ("envsolve --exact numpy", "envsolve 'numpy<3'", "it was made for numpy, and the project asks for numpy<3; "),
        ("envsolve --exact numpy", "envsolve numpy", "--exact is not asked for any more"),
        ("envsolve numpy", "envsolve numpy rich", "rich is new"),
        ("envsolve numpy rich", "envsolve numpy", "rich is not asked for any more"),
        (
            "envsolve --gpu 8.6",
            "envsolve --gpu 8.6 --gpu 9.0",
            "--gpu 9.0 is new",
        ),
        (
            "envsolve --gpu 8.6 --gpu 9.0",
            "envsolve --gpu 12.0",
            "--gpu 12.0 is new; --gpu 8.6 is not asked for any more; --gpu 9.0 is not asked for any more",
        ),
        (
            "envsolve --channel a --channel b",
            "envsolve --channel b --channel a",
            "--channel b --channel a comes in this order now",
        ),
        (
            "envsolve --driver 535.183.01 --gpu 8.6 --python 3.12",
            "envsolve --driver 580.65.06 --gpu 8.6",
            "--python 3.12 is not asked for any more",
        ),
        (
            "envsolve lock  # --framework jax for desk: 8.6, driver 535.183.01; ci: none",
            "envsolve lock  # --framework jax for desk: 9.0, driver 580.65.06; laptop: none",
            "it was made for desk: 8.6, and the project asks for desk: 9.0; laptop: none is new; ci: none is not",
        ),
        ("envsolve lock  # envsolve for desk: 8.6", "envsolve lock  # envsolve for desk: 8.6; ci: none", "ci: none is"),
        ("envsolve --driver 1.2 numpy", "envsolve numpy", ""),
        ("envsolve 'numpy", "envsolve numpy", "it was made with `envsolve 'numpy`, and now that is `envsolve numpy`"),
    ],
)
def test_the_words_that_differ_are_told(made: str, wanted: str, told: str) -> None:
    found = command_changes(made, wanted)
    assert found.startswith(told)
    assert bool(found) is bool(told)
