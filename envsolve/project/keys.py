"""Every key of ``[tool.envsolve]`` and of its targets: the only list, used for reading, editors and the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from envsolve.model.host import Platform
from envsolve.model.need import parse_need
from envsolve.model.reference import gives_address
from envsolve.model.release import Source
from envsolve.model.request import Audit, Policy, parse_cuda_versions, parse_framework, parse_versions
from envsolve.model.versions import DriverVersion, LibcVersion
from envsolve.model.words import gpu_name, member_of, one_word, parse_moment


class Kind(Enum):
    """The type of a value in TOML."""

    TEXT = "a string"
    TEXTS = "a list of strings"
    TEXT_OR_TEXTS = "a string or a list of strings"
    FLAG = "true or false"
    OUTPUTS = "a list of file names, or of tables with the keys file and format"
    TARGETS = "a table of targets"


class Scope(Enum):
    """Where a key is allowed."""

    PROJECT = "project"
    BOTH = "both"


class Key(NamedTuple):
    """A key: the type of its value, the parser for strings in it, and its meaning.

    ``parse`` raises ValueError with a sentence for users. ``choices`` are all allowed words, if they are few. With
    ``is_file`` the key names files that are read.
    """

    name: str
    kind: Kind
    meaning: str
    example: str
    scope: Scope = Scope.BOTH
    parse: Callable[[str], object] = str
    choices: tuple[str, ...] = ()
    is_file: bool = False


def _line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError(f"{text!r} is empty or contains control characters")
    return text


def _gpu(text: str) -> str:
    return gpu_name(_line(text))


def _framework(text: str) -> str:
    parse_framework(text)
    return text


def requirement(text: str) -> str:
    """Return ``text`` if it is a valid requirement. Raises ValueError otherwise."""
    if gives_address(_line(text)):
        return text
    try:
        parse_need(text)
    except ValueError as error:
        raise ValueError(str(error) if repr(text) in str(error) else f"{text!r}: {error}") from None
    return text


def _address(text: str) -> str:
    if "://" not in one_word(text):
        raise ValueError(f"{text!r} is not a URL such as https://example.org/simple")
    return text


_ALL = (
    Key(
        "frameworks",
        Kind.TEXTS,
        "The frameworks, optionally with versions.",
        '["pytorch>=2.5", "jax"]',
        parse=_framework,
    ),
    Key("python", Kind.TEXT, "The Python: a version or a range.", '">=3.11,<3.14"', parse=parse_versions),
    Key("cuda", Kind.TEXT, "Bounds of the CUDA toolkit.", '"12.*"', parse=parse_cuda_versions),
    Key(
        "requirements",
        Kind.TEXTS,
        "More Python requirements to lock with the stack. A target adds its own to those of the project.",
        '["pandas>=2"]',
        parse=requirement,
    ),
    Key(
        "requirement-files",
        Kind.TEXTS,
        "Files with more requirements, as for pip's -r.",
        '["requirements.in"]',
        parse=_line,
        is_file=True,
    ),
    Key(
        "constraint-files",
        Kind.TEXTS,
        "Files with limits on versions; they add no packages.",
        '["constraints.txt"]',
        parse=_line,
        is_file=True,
    ),
    Key(
        "build-constraint-files",
        Kind.TEXTS,
        "Files with limits on the versions of what builds require, such as setuptools.",
        '["build-constraints.txt"]',
        parse=_line,
        is_file=True,
    ),
    Key(
        "overrides",
        Kind.TEXTS,
        "Requirements that replace every other requirement on the same package. A target adds its own.",
        '["numpy>=2"]',
        parse=requirement,
    ),
    Key(
        "exclude",
        Kind.TEXTS,
        "Requirements to leave out, by name, or by address if they have none. What other packages require stays.",
        '["flash-attn", "./vendor/thing"]',
        parse=_line,
    ),
    Key(
        "project-dependencies",
        Kind.FLAG,
        "Also lock the dependencies of the table [project] in the same pyproject.toml; default: false.",
        "true",
        Scope.PROJECT,
    ),
    Key(
        "extras",
        Kind.TEXTS,
        "Extras of [project.optional-dependencies] to lock too.",
        '["train"]',
        Scope.PROJECT,
        parse=one_word,
    ),
    Key(
        "dependency-groups",
        Kind.TEXTS,
        "Groups of the table [dependency-groups] to lock too.",
        '["dev"]',
        Scope.PROJECT,
        parse=one_word,
    ),
    Key(
        "gpus",
        Kind.TEXT_OR_TEXTS,
        "The GPUs to run on: auto (this machine's), none (CPU), product names or compute capabilities; default: auto.",
        '["A100", "V100"]',
        parse=_gpu,
    ),
    Key("driver", Kind.TEXT, "The NVIDIA driver of the machine.", '"535.129.03"', parse=DriverVersion.parse),
    Key("glibc", Kind.TEXT, "The C library (glibc) of the machine, on Linux.", '"2.28"', parse=LibcVersion.parse),
    Key(
        "hosts",
        Kind.TEXTS,
        "Machines, from `envsolve detect --json`; they replace gpus and driver.",
        '["hosts/node1.json"]',
        parse=_line,
        is_file=True,
    ),
    Key(
        "platforms",
        Kind.TEXT_OR_TEXTS,
        "The platforms to lock for; default: this machine's.",
        '["linux-64"]',
        parse=member_of(Platform),
        choices=tuple(Platform),
    ),
    Key(
        "sources",
        Kind.TEXTS,
        "Who packages the frameworks, in order of preference.",
        '["pypi"]',
        parse=member_of(Source),
        choices=tuple(Source),
    ),
    Key(
        "prefer",
        Kind.TEXT,
        "How to choose between working stacks.",
        '"widest-gpu"',
        parse=member_of(Policy),
        choices=tuple(it for it in Policy if it is not Policy.LOCKED),
    ),
    Key("channels", Kind.TEXTS, "conda channels, in order.", '["conda-forge"]', parse=one_word),
    Key(
        "index-url",
        Kind.TEXT,
        "The Python index instead of the default one.",
        '"https://example.org/simple"',
        parse=_address,
    ),
    Key("extra-index-urls", Kind.TEXTS, "Further Python indexes.", '["https://example.org/more"]', parse=_address),
    Key(
        "pytorch-index-url", Kind.TEXT, "A mirror of PyTorch's own index.", '"https://example.org/whl"', parse=_address
    ),
    Key("exclude-newer", Kind.TEXT, "Ignore later releases.", '"2026-11-20"', parse=parse_moment),
    Key(
        "audit",
        Kind.TEXT,
        "How far CUDA code in wheels that the matrix does not know is read before they are locked.",
        '"full"',
        parse=member_of(Audit),
        choices=tuple(Audit),
    ),
    Key("allow-builds", Kind.FLAG, "Allow building packages from source. This runs their code.", "false"),
    Key(
        "extensions",
        Kind.FLAG,
        "Allow wheels with GPU code that others than their projects publish, such as builds of flash-attn.",
        "true",
    ),
    Key("pre", Kind.FLAG, "Allow pre-releases.", "false"),
    Key(
        "outputs",
        Kind.OUTPUTS,
        "The files that `envsolve lock` writes; the name or the key format sets the format.",
        '["pylock.toml", { file = "gpu.lock", format = "explicit" }]',
    ),
    Key(
        "uv-settings",
        Kind.FLAG,
        "Also write the locked versions and their indexes into [tool.uv] of pyproject.toml, for `uv lock`.",
        "true",
    ),
    Key(
        "targets",
        Kind.TARGETS,
        "Machines by name, each with its own keys. A target without outputs shares those of the project.",
        '{ cluster = { gpus = ["A100"], driver = "535.129.03" } }',
        Scope.PROJECT,
    ),
)

KEYS: Mapping[str, Key] = {key.name: key for key in _ALL}
TARGET_KEYS: Mapping[str, Key] = {key.name: key for key in _ALL if key.scope is Scope.BOTH}

ALIASES: Mapping[str, str] = {"gpu": "gpus", "framework": "frameworks", "platform": "platforms", "output": "outputs"}
"""Keys in the singular, as the command-line options are, each with the key it means."""

MACHINE_KEYS = frozenset({"gpus", "driver", "glibc", "hosts", "platforms"})
"""Keys about a machine. The others are about the request, which is the same for targets that share outputs."""

OUTPUT_KEYS = ("file", "format")
