"""What uv, pip and venv say becomes an error with its own code, a way out, and their words as the cause."""

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
def test_each_failure_has_its_code_and_a_way_out(line: str, code: str) -> None:
    error = tool_failed("wheels-failed", "uv", Ran(2, ("warning: noise", "Using Python 3.11 environment", line)))
    assert error.code == code
    assert error.hints
    assert error.cause == (line.removeprefix("error: ").removeprefix("ERROR: ").removeprefix("cause: "),)
