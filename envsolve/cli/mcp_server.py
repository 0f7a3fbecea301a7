"""The read-only commands as tools of the Model Context Protocol (https://modelcontextprotocol.io).

A tool runs its command in a separate process and returns the output of ``--json``, so that an agent and a person get
the same answer. A refusal is an error with the three parts that people read.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from envsolve import __version__

_INSTRUCTIONS = (
    "envsolve chooses versions of TensorFlow, PyTorch, JAX and the packages around them that run on an NVIDIA GPU and "
    "its driver. Use solve for the frameworks alone, lock for a file with every package pinned, status to check "
    "existing files against a machine, explain for an error text and doctor for this machine. Nothing is installed or "
    "written. Without gpus and driver, the machine of this server is meant."
)

Names = Annotated[
    list[str],
    Field(description="Frameworks, with versions if wanted: pytorch, 'tensorflow>=2.16', 'jax==0.7.*'"),
]
Gpus = Annotated[
    list[str] | None,
    Field(description="GPUs of the target, all of which it must run on: 'RTX 3090', '8.6'; 'none' for the CPU"),
]
Driver = Annotated[str | None, Field(description="NVIDIA driver of the target, such as 535.129.03")]
Python = Annotated[str | None, Field(description="Python version or range: 3.12, '>=3.10,<3.13'")]
Cuda = Annotated[str | None, Field(description="CUDA version or range: '12.*', '<13'")]
Platforms = Annotated[list[str] | None, Field(description="linux-64, linux-aarch64, win-64, osx-arm64")]
Prefix = Annotated[str | None, Field(description="Directory of an environment; default: the active one")]
LockFormat = Literal["pylock", "requirements", "conda-lock", "explicit", "environment"]


class _Server(MCPServer[Any]):
    """Refuses unknown arguments: if one was ignored, the answer would be for another machine."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        """Call a tool. Raises ToolError."""
        tool = next((it for it in _tools() if it.__name__ == name), None)
        known = list(arguments) if tool is None else list(inspect.signature(tool).parameters)
        unknown = [it for it in arguments if it not in known]
        if unknown:
            there = ", ".join(known) or "none"
            raise ToolError(f"{name} has no argument {unknown[0]!r}; its arguments: {there}")
        return await super().call_tool(name, arguments, context)


def _tools() -> Sequence[Callable[..., Any]]:
    return (detect, solve, lock, status, explain, doctor)


def server() -> MCPServer[Any]:
    """A server with all tools."""
    made = _Server("envsolve", instructions=_INSTRUCTIONS, version=__version__, log_level="ERROR")
    for tool in _tools():
        made.add_tool(tool, annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
    return made


async def detect() -> dict[str, Any]:
    """The driver and the GPUs of this machine, and the source of each fact."""
    return await _data(["detect", "--json"])


async def solve(
    frameworks: Names,
    gpus: Gpus = None,
    driver: Driver = None,
    python: Python = None,
    cuda: Cuda = None,
    platforms: Platforms = None,
) -> dict[str, Any]:
    """The newest builds of the frameworks that run on the GPU and the driver, with Python, CUDA and cuDNN.

    Says why and what else would run if none does.
    """
    return await _data(["solve", "--json", *_target(frameworks, gpus, driver, python, cuda, platforms)])


async def lock(
    frameworks: Names,
    requirements: Annotated[
        list[str] | None, Field(description="Further Python requirements: 'transformers>=4.50', numpy")
    ] = None,
    format: LockFormat = "pylock",  # noqa: A002 - the name of the option
    gpus: Gpus = None,
    driver: Driver = None,
    python: Python = None,
    cuda: Cuda = None,
    platforms: Platforms = None,
) -> dict[str, str]:
    """The text of a lock, every package with its version and digest, and the notes on it. Writes no file."""
    target = _target(frameworks, gpus, driver, python, cuda, platforms)
    text, notes = await _output(["solve", f"--format={format}", *target, "--", *(requirements or ())])
    return {"lock": text, "notes": notes}


async def status(
    files: Annotated[
        list[str] | None, Field(description="Locks and environment files; default: those of the project")
    ] = None,
    directory: Annotated[str | None, Field(description="Directory of the project or the files")] = None,
    gpus: Gpus = None,
    driver: Driver = None,
) -> dict[str, Any]:
    """Whether locks and environment files run on a machine and match their project."""
    return await _data(["status", "--json", *_machine(gpus, driver), "--", *(files or ())], directory=directory)


async def explain(
    text: Annotated[str, Field(description="The error text or log, as long as it is")],
    gpus: Gpus = None,
    driver: Driver = None,
    prefix: Annotated[str | None, Field(description="Directory of the environment in which it happened")] = None,
) -> dict[str, Any]:
    """The cause of an error with CUDA, a driver, a GPU or a framework, and what fixes it."""
    options = [*_machine(gpus, driver), *_each("prefix", [prefix])]
    return await _data(["explain", "--json", *options, "-"], given=text)


async def doctor(prefix: Prefix = None) -> dict[str, Any]:
    """What breaks GPU programs on this machine and in an environment, with fixes. Nothing is changed or imported."""
    return await _data(["doctor", "--json", *_each("prefix", [prefix])])


def _target(
    frameworks: Sequence[str],
    gpus: Sequence[str] | None,
    driver: str | None,
    python: str | None,
    cuda: str | None,
    platforms: Sequence[str] | None,
) -> list[str]:
    return [
        *_each("framework", frameworks),
        *_machine(gpus, driver),
        *_each("python", [python]),
        *_each("cuda", [cuda]),
        *_each("platform", platforms),
    ]


def _machine(gpus: Sequence[str] | None, driver: str | None) -> list[str]:
    return [*_each("gpu", gpus), *_each("driver", [driver])]


def _each(option: str, values: Iterable[str | None] | None) -> list[str]:
    """``--option=value`` for each value: a value that begins with a hyphen is not an option."""
    return [f"--{option}={value}" for value in values or () if value is not None]


async def _data(arguments: Sequence[str], *, given: str = "", directory: str | None = None) -> dict[str, Any]:
    text, _ = await _output(arguments, given=given, directory=directory)
    data: dict[str, Any] = json.loads(text)
    return data


async def _output(arguments: Sequence[str], *, given: str = "", directory: str | None = None) -> tuple[str, str]:
    """What a command prints on stdout and stderr. Raises ToolError with its error."""
    command = [sys.executable, "-m", "envsolve", *arguments]
    try:
        ran = await anyio.run_process(command, input=given.encode(), check=False, cwd=directory)
    except OSError as error:
        raise ToolError(f"{directory!r}: {error.strerror}") from error
    except ValueError as error:  # a NUL byte or a lone surrogate
        raise ToolError("a value has a character that no command line can have") from error
    printed, errors = ran.stdout.decode(), ran.stderr.decode()
    if ran.returncode and (not printed or "error" in json.loads(printed)):
        raise ToolError(errors)
    return printed, errors
