"""The real logs of ``tests/symptoms``: each file is a text that a user posted, and the expected answer of envsolve."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import tomli

from envsolve.app.explain.explaining import ExplainRequest, explain
from envsolve.app.status.results import Explanation
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion

KNOWN_BESIDE = {"gpu", "driver", "platform", "python", "built_cuda", "toolkit", "frameworks"}
DIRECTORY = Path(__file__).parent.parent / "symptoms"


class SymptomLog(NamedTuple):
    """One log: its source, its text, additional facts, and what the answer must and must not contain."""

    name: str
    source: str
    text: str
    request: ExplainRequest
    findings: tuple[str, ...]
    says: tuple[str, ...]
    never: tuple[str, ...]

    def explained(self) -> Explanation:
        return explain(io.BytesIO(self.text.encode()), self.request, {})


def symptom_logs() -> tuple[SymptomLog, ...]:
    return tuple(_read(path) for path in sorted(DIRECTORY.rglob("*.toml")))


def _read(path: Path) -> SymptomLog:
    document = tomli.loads(path.read_text(encoding="utf-8"))
    return SymptomLog(
        name=path.relative_to(DIRECTORY).with_suffix("").as_posix(),
        source=document["source"],
        text=document["text"],
        request=_request(document.get("context", {})),
        findings=tuple(document["findings"]),
        says=tuple(document.get("says", ())),
        never=tuple(document.get("never", ())),
    )


def _request(context: Mapping[str, object]) -> ExplainRequest:
    def text(key: str) -> str | None:
        return str(context[key]) if key in context else None

    assert context.keys() <= KNOWN_BESIDE
    gpus = context.get("gpu", ())
    frameworks = context.get("frameworks", ())
    driver, platform = text("driver"), text("platform")
    return ExplainRequest(
        gpus=(gpus,) if isinstance(gpus, str) else tuple(map(str, gpus)) if isinstance(gpus, list) else (),
        driver=None if driver is None else DriverVersion.parse(driver),
        platform=None if platform is None else Platform(platform),
        python=text("python"),
        built_cuda=text("built_cuda"),
        toolkit=text("toolkit"),
        frameworks=tuple(map(str, frameworks)) if isinstance(frameworks, list) else (),
    )
