"""Messages of rattler become errors with a hint."""

from __future__ import annotations

import pytest

from envsolve.conda.failures import outside

_JOB = {"channels": ["conda-forge"]}


@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [
        ("ImportError", "cannot import name 'ChannelConfig' from 'rattler'", "conda-solver-failed"),
        ("TypeError", "solve() got an unexpected keyword argument 'timestamp_policy'", "conda-solver-failed"),
        ("GatewayError", "failed to create directory `/proc/no`: No such file or directory", "cache-unusable"),
        ("GatewayError", "something that nobody has seen before", "channel-unreadable"),
    ],
)
def test_each_failure_has_its_code_and_a_hint(kind: str, text: str, code: str) -> None:
    error = outside(kind, text, _JOB, offline=False)
    assert (error.code, error.cause) == (code, (text,))
    assert error.hints


@pytest.mark.parametrize(
    ("channel", "text", "code"),
    [
        ("ftp://host/own", "'ftp' is not a supported scheme", "channel-not-supported"),
        (
            "s3://bucket/own",
            "failed to presign the S3 GET request for 's3://bucket/own/linux-64/repodata_shards.msgpack.zst'",
            "channel-unreachable",
        ),
    ],
)
def test_the_failing_channel_is_named(channel: str, text: str, code: str) -> None:
    error = outside("GatewayError", text, {"channels": [channel, "conda-forge"]}, offline=False)
    assert (error.code, error.message.startswith(f"the channel {channel} ")) == (code, True)


def test_unreadable_settings_are_named() -> None:
    text = "/home/me/config.toml: Error parsing: line 2, column 2\n  |\n2 | [\n  |  ^\nunquoted keys cannot be empty\n"
    error = outside("ConfigError", text, _JOB, offline=False)
    assert error.cause == (
        "/home/me/config.toml: Error parsing: line 2, column 2",
        "2 | [",
        "unquoted keys cannot be empty",
    )
