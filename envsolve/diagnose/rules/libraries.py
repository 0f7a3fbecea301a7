"""Symptoms of the catalogue whose lines on cuDNN are still judged in code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Diagnosis, Rule
from envsolve.diagnose.decide import diagnoses
from envsolve.diagnose.facts import libraries
from envsolve.diagnose.facts.seen_libraries import whole_messages
from envsolve.diagnose.rules import cudnn
from envsolve.findings.catalogue import shipped


def missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Libraries that are not found."""
    of_cudnn = tuple(it for it in sightings if libraries.library_group(case, (it,)) == "cudnn")
    if of_cudnn:
        yield from cudnn.missing(case, of_cudnn)
    others = tuple(it for it in sightings if it not in of_cudnn)
    rule = shipped().rule("library-missing")
    if others and rule is not None:
        yield from diagnoses(rule, shipped(), case, others)


def older_than_built(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """JAX's comparison of each library with the one it was built against."""
    compared = tuple(whole_messages(sightings))
    of_cudnn = tuple(it for it in compared if (it.get("part") or "").lower() == "cudnn")
    others = tuple(it for it in compared if it not in of_cudnn)
    rule = shipped().rule("library-older-than-built")
    if others and rule is not None:
        yield from diagnoses(rule, shipped(), case, others)
    if of_cudnn and not case.saw("cudnn-version-mismatch"):
        yield from cudnn.version_mismatch(case, of_cudnn)


RULES: Mapping[str, Rule] = {"library-missing": missing, "library-older-than-built": older_than_built}
