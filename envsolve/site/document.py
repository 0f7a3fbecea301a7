"""The data of the selector: every answer in one document of plain lists and texts, without duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from envsolve import __version__
from envsolve.app.matrix.matrix import matrix_date
from envsolve.app.request.command import command_of
from envsolve.matrix.load import Matrix
from envsolve.model.versions import DriverVersion
from envsolve.site.answers import CPU, GPU, Outcome, Stack, refusal_of, request_for
from envsolve.site.data import KINDS, Answers
from envsolve.site.html import link_parts
from envsolve.site.machines import DRIVER, PLATFORMS, GpuKind


class Manager(NamedTuple):
    """A tool that installs an environment: its format and file, and what the page shows for it."""

    name: str
    format: str
    file: str
    shown: str
    remark: str


_LOCKS = "It writes every package with its hashes. Below are the frameworks alone."
_ALONE = "It writes the file below."
MANAGERS = (
    Manager("pip", "requirements", "requirements.txt", "requirements.txt", _LOCKS),
    Manager("uv", "pylock", "pylock.toml", "requirements.txt", _LOCKS),
    Manager("conda", "environment", "environment.yml", "environment.yml", _ALONE),
    Manager("pixi", "pixi", "pixi.toml", "pixi.toml", _ALONE),
    Manager("docker", "dockerfile", "Dockerfile", "requirements.txt", _LOCKS),
)
WORDS = {
    "chooseGpu": "Choose a GPU or no GPU, or paste what nvidia-smi prints.",
    "unknownGpu": "No NVIDIA GPU is known by this name or compute capability.",
    "noGpu": "no GPU: builds for the CPU",
    "chooseFramework": "Choose a framework.",
    "unknownDriver": "A driver is a number such as 580.65.06, 566.36 or 580.",
}


def document_of(answers: Answers) -> dict[str, Any]:
    """The document for the selector: plain lists and texts, each text, source and outcome once."""
    matrix = answers.matrix
    encoder = _Encoder()
    index: dict[str, dict[str, list[list[int]]]] = {}
    for them, platform, formats in product(answers.sets, PLATFORMS, KINDS):
        by_kind = (answers.runs((them, platform, formats, it)) for it in (*answers.kinds, None))
        runs = [[it for count, outcome in of_kind for it in (count, encoder.number(outcome))] for of_kind in by_kind]
        index.setdefault(",".join(them), {})[f"{platform} {formats[0]}"] = runs
    lives = [matrix.cuda.life_of(kind.capability) for kind in answers.kinds]
    names = [life.name if life else "" for life in lives]
    return {
        "digest": digest_of(matrix),
        "matrix_date": matrix_date(matrix, (*answers.frameworks, "cuda")),
        "version": __version__,
        "words": WORDS,
        "together": max(map(len, answers.sets)),
        "frameworks": answers.frameworks,
        "managers": list(map(_manager, MANAGERS)),
        "steps": {platform: answers.steps(platform) for platform in PLATFORMS},
        "gpus": {**dict(_names(answers.kinds)), CPU: len(answers.kinds)},
        "ambiguous": {name: encoder.number(refusal_of(error)) for name, error in answers.ambiguous.items()},
        "kinds": [
            (str(kind.capability), name, sorted(set(names)).index(name))
            for kind, name in zip(answers.kinds, names, strict=True)
        ],
        "commands": {
            key: [
                *(_command(key.split(","), it, "environment") for it in (None, DriverVersion((), DRIVER))),
                _command(key.split(","), None, "environment", CPU),
            ]
            for key in index
        },
        "index": index,
        **encoder.tables(),
    }


def _names(kinds: Sequence[GpuKind]) -> Iterator[tuple[str, int]]:
    """Names for a GPU, each with the number of its kind."""
    for number, kind in enumerate(kinds):
        yield from ((name, number) for name in kind.products)
        if not kind.forward:
            yield str(kind.capability), number


def _manager(it: Manager) -> dict[str, object]:
    """A manager with the formats of its kind, and the options for its format."""
    formats = KINDS[0] if it.format in KINDS[0] else KINDS[1]
    option = _command(["any"], None, it.format).removeprefix(_command(["any"], None, "environment"))
    place = formats.index(it.format) if it.format in formats else 0
    return {**it._asdict(), "kind": formats[0], "place": place, "option": option}


def _command(frameworks: Sequence[str], driver: DriverVersion | None, format_name: str, gpu: str = "the GPU") -> str:
    """The command line with placeholders for GPU, driver and platform. Words with spaces are quoted."""
    request = request_for(frameworks, PLATFORMS[0], gpu, driver, format_name)
    return command_of(request).replace("the GPU", GPU).replace(PLATFORMS[0], "@platform@")


class _Encoder:
    """Assigns a number to each outcome, text and source."""

    def __init__(self) -> None:
        self._outcomes: dict[Outcome, int] = {}
        self._texts: dict[str, int] = {}
        self._sources: dict[str, int] = {}

    def number(self, outcome: Outcome) -> int:
        """The number of an outcome."""
        return self._outcomes.setdefault(outcome, len(self._outcomes))

    def tables(self) -> dict[str, list[Any]]:
        """The outcomes, texts and sources by number; texts and sources in parts, with their links."""
        outcomes = [self._encoded(it) for it in self._outcomes]
        sources = [[it for part in link_parts(text) for it in part] for text in self._sources]
        return {"outcomes": outcomes, "texts": list(self._texts), "sources": sources}

    def _encoded(self, outcome: Outcome) -> list[Any]:
        """Four lists for a stack; a refusal begins with the number of a text."""
        because = [it for text, source in outcome.because for it in (self._text(text), self._source(source))]
        if isinstance(outcome, Stack):
            files = [[self._text(line) for line in text.split("\n")] for _, text in outcome.files]
            releases = [self._text(label) for _, label in outcome.releases]
            return [files, [self._text(it) for it in outcome.notes], because, releases]
        ways = [self._text(text) for way in outcome.ways for text in way]
        return [self._text(outcome.code), self._text(outcome.message), because, ways]

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _source(self, text: str) -> int:
        return self._sources.setdefault(text, len(self._sources))


def digest_of(matrix: Matrix) -> str:
    """The SHA-256 of all files of the matrix."""
    files = sorted(matrix.directory.rglob("*.toml"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
