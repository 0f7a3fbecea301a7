"""Messages of uv, pip and venv become an error with its own code and a hint, with the messages as the cause."""

from __future__ import annotations

import pytest

from envsolve.create.child import Ran
from envsolve.create.failures import tool_failed


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("error: Failed to install: torch-2.14.1.whl: No space left on device (os error 28)", "disk-failed"),
        ("ERROR: Could not install packages due to an OSError: [Errno 122] Disk quota exceeded", "disk-failed"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "checksum-mismatch"),
        ("cause: Hash mismatch for `alpha==1.0`", "checksum-mismatch"),
        ("cause: HTTP status client error (401 Unauthorized) for url (https://host/x.whl)", "index-refused"),
        ("cause: Network connectivity is disabled, but a wheel is needed", "offline"),
        ("The virtual environment was not created successfully because ensurepip is not available.", "venv-failed"),
        ("something that nobody has seen before", "wheels-failed"),
    ],
)
def test_each_failure_has_its_code_and_a_hint(line: str, code: str) -> None:
    error = tool_failed("wheels-failed", "uv", Ran(2, ("warning: noise", "Using Python 3.11 environment", line)))
    assert error.code == code
    assert error.hints
    assert error.cause == (line.removeprefix("error: ").removeprefix("ERROR: ").removeprefix("cause: "),)


def test_an_early_error_message_is_still_reported() -> None:
    lines = tuple(f"    Expected sha256 {number}" for number in range(30))
    error = tool_failed("wheels-failed", "uv", Ran(1, lines, ("cause: Hash mismatch for `alpha==1.0`",)))
    assert error.code == "checksum-mismatch"
    assert error.cause[0] == "Hash mismatch for `alpha==1.0`"
    assert len(error.cause) == 8


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            "error: Package `a` can't be installed because it is marked as `--no-build` but has no wheel",
            "build-refused",
        ),
        (
            "error: In `--require-hashes` mode, all requirements must have a hash, but a==1 has none",
            "lock-without-hashes",
        ),
        ("ERROR: Hashes are required in --require-hashes mode, but they are missing", "lock-without-hashes"),
        ("error: Couldn't parse requirement in `r.txt` at position 0", "lock-unreadable"),
        ("ERROR: Invalid requirement: 'a=1'", "lock-unreadable"),
    ],
)
def test_a_permanent_failure_does_not_suggest_another_try(line: str, code: str) -> None:
    error = tool_failed("wheels-failed", "uv", Ran(2, (line,)), keeps=True)
    assert error.code == code
    assert "again:" not in error.hints[0].text
    assert "try again" not in error.hints[0].text


@pytest.mark.parametrize("line", ["No space left on device", "Failed to extract", "something else"])
def test_reuse_of_downloads_is_promised_only_with_a_cache(line: str) -> None:
    cached, gone = (tool_failed("x", "uv", Ran(2, (line,)), keeps=keeps).hints[0].text for keeps in (True, False))
    assert "completed downloads are reused" in cached
    assert "reused" not in gone
