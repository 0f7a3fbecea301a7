"""The options in a command are those that a file records as values."""

from __future__ import annotations

import pytest

from envsolve.app.request.command import recorded_command, recorded_options
from envsolve.lockfile.options import Options, options_in
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Packages, Policy, Request, parse_versions
from envsolve.model.versions import DriverVersion

REQUESTS = {
    "nothing": Request(()),
    "machines and files": Request(
        (),
        gpus=("RTX 3090", "8.0"),
        driver=DriverVersion.parse("580.65.06"),
        format="pylock",
        packages=Packages(("numpy>=2",), files=("a.txt",), constraints=("b.txt",)),
    ),
    "values": Request(
        (FrameworkRequest("jax", parse_versions("==0.4.*")), FrameworkRequest("pytorch", parse_versions(">=2"))),
        python=parse_versions("3.11.7"),
        cuda=parse_versions("<13"),
        sources=(Source.PYTORCH, Source.PYPI),
        channels=("own", "conda-forge"),
        index_url="https://example.org/simple",
        extra_index_urls=("https://example.org/a", "https://example.org/b c"),
        prefer=Policy.WIDEST_GPU,
        packages=Packages(
            overrides=("torch==2.11.*", "six; sys_platform == 'win32'"),
            exclude_newer="2026-10-01",
            allow_builds=True,
            exact=True,
            pytorch_index_url="https://c",
        ),
    ),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_command_is_equivalent_to_its_values(request_: Request) -> None:
    assert sorted(options_in(recorded_command(request_))) == sorted(recorded_options(request_))


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (
            "envsolve lock  # --framework jax --python 3.11 for desk: 8.6; ci: none",
            {"frameworks": "jax", "python": "3.11"},
        ),
        ("envsolve --python 3.11 'numpy", {}),
        ("envsolve --python", {"python": ""}),
        ("", {}),
    ],
)
def test_commands_of_a_project_and_broken_commands_are_recognised(command: str, options: dict[str, str]) -> None:
    found: Options = tuple((key, (value,)) for key, value in options.items())
    assert options_in(command) == found
