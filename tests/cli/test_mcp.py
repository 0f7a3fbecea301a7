"""The tools of ``envsolve mcp``, called as an agent calls them: with the official client of the protocol."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent, Tool

from tests.cli.locking import Locking
from tests.conftest import Envsolve

TARGET = {"gpus": ["RTX 3090"], "driver": "535.129.03", "platforms": ["linux-64"]}


def tools() -> list[Tool]:
    async def query() -> list[Tool]:
        async with Client(stdio_client(_command())) as client:
            return (await client.list_tools()).tools

    return anyio.run(query)


def called(tool: str, arguments: Mapping[str, object]) -> CallToolResult:
    async def query() -> CallToolResult:
        async with Client(stdio_client(_command())) as client:
            return await client.call_tool(tool, dict(arguments))

    return anyio.run(query)


def data_of(result: CallToolResult) -> Any:
    assert not result.is_error, text_of(result)
    return result.structured_content


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def _command() -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "envsolve", "mcp"], env=dict(os.environ))


@pytest.mark.thorough
def test_every_tool_is_read_only_and_describes_its_arguments() -> None:
    found = {it.name: it for it in tools()}
    assert list(found) == ["detect", "solve", "lock", "status", "explain", "doctor"]
    for tool in found.values():
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        properties = tool.input_schema.get("properties", {})
        assert all("description" in it for name, it in properties.items() if name != "format")


@pytest.mark.thorough
def test_solve_returns_the_json_of_the_command(envsolve: Envsolve) -> None:
    command = ("solve", "-f", "pytorch", "--gpu", "RTX 3090", "--driver", "535.129.03", "--platform", "linux-64")
    data = data_of(called("solve", {"frameworks": ["pytorch"], **TARGET}))
    assert data == json.loads(envsolve(*command, "--json").out)


@pytest.mark.thorough
def test_an_impossible_request_is_an_error_with_its_reason() -> None:
    refused = called("solve", {"frameworks": ["tensorflow>=2.21"], "gpus": ["K80"], "driver": "470.57.02"})
    assert refused.is_error
    assert "error: gpu-not-supported\n" in text_of(refused)
    assert "hint: " in text_of(refused)


@pytest.mark.thorough
def test_an_unknown_argument_is_refused() -> None:
    refused = called("solve", {"frameworks": ["pytorch"], "gpu": ["8.6"]})
    assert refused.is_error
    assert "solve has no argument 'gpu'; its arguments: frameworks, gpus, driver, " in text_of(refused)


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", [{"files": ["a\0b"]}, {"directory": "a\0b"}])
def test_a_value_that_no_command_line_can_have_is_refused(arguments: dict[str, object]) -> None:
    refused = called("status", arguments)
    assert refused.is_error
    assert "a value has a character that no command line can have" in text_of(refused)


@pytest.mark.thorough
def test_lock_returns_the_text_and_writes_nothing(
    locking: Locking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSOLVE_INDEX_URL", locking.url)
    before = sorted(tmp_path.rglob("*"))
    arguments = {"frameworks": [], "requirements": ["alpha"], "format": "requirements", "gpus": ["none"]}
    assert "alpha==" in data_of(called("lock", arguments))["lock"]
    assert [it for it in sorted(tmp_path.rglob("*")) if it not in before and "cache" not in str(it)] == []


@pytest.mark.thorough
def test_a_requirement_is_not_parsed_as_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = called("lock", {"frameworks": ["pytorch"], "requirements": ["--output=made"], **TARGET})
    assert refused.is_error
    assert not (tmp_path / "made").exists()


@pytest.mark.thorough
def test_status_reads_the_files_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.0.0\n")
    data = data_of(called("status", {"files": ["requirements.txt"], "directory": str(tmp_path), "gpus": ["8.6"]}))
    assert [it["path"] for it in data["files"]] == ["requirements.txt"]
    refused = called("status", {"directory": str(tmp_path / "nowhere")})
    assert refused.is_error
    assert "nowhere" in text_of(refused)


@pytest.mark.thorough
def test_explain_accepts_a_text() -> None:
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    data = data_of(called("explain", {"text": text, "gpus": ["RTX 5090"]}))
    assert data["findings"]
    assert data_of(called("explain", {"text": "all is well"}))["findings"] == []


@pytest.mark.thorough
@pytest.mark.parametrize("tool", ["detect", "doctor"])
def test_detect_describes_the_machine(tool: str) -> None:
    assert data_of(called(tool, {}))["schema_version"] == 1


@pytest.mark.parametrize("module", ["mcp", "mcp.server.mcpserver"])
def test_without_the_extra_the_error_names_it(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.delitem(sys.modules, "envsolve.cli.mcp_server", raising=False)
    for name in [it for it in sys.modules if it == module or it.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    done = envsolve("mcp")
    assert (done.code, done.out) == (3, "")
    assert "error: mcp-extra-missing\n  `envsolve mcp` needs the package mcp, 2.3 or newer\n" in done.err
    assert "install 'mcp>=2.3'\n" in done.err
