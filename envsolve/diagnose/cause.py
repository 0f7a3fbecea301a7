"""A diagnosis before it is put into words: the causes a failure may have, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from envsolve.diagnose.case import Sighting


class Remedy(NamedTuple):
    """The environment that would be the fix, as far as it is not that of the case: see ``Request``.

    ``frameworks`` are requirements as typed (``pytorch==2.8.*``), those of the case where there are none.
    """

    frameworks: tuple[str, ...] = ()
    python: str | None = None
    cuda: str | None = None
    platform: str | None = None


class Cause(NamedTuple):
    """One possible cause: its id in the catalogue, and fields for it beside those of the case.

    ``remedy`` is there where another environment can be the fix. ``evidence`` are lines beyond the sightings'.
    """

    id: str
    fields: Mapping[str, str] = {}
    remedy: Remedy | None = None
    evidence: tuple[str, ...] = ()


class Diagnosis(NamedTuple):
    """What one failure may come from: one cause, or up to four that the text allows, the most likely first.

    ``decided``: something that was seen or given speaks for the first.
    """

    causes: tuple[Cause, ...]
    sightings: tuple[Sighting, ...]
    decided: bool = True
