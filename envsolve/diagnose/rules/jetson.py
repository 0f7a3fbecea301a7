"""Rules on what fails on processors of ARM and seldom elsewhere: Jetson, DGX Spark, servers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.named import known
from envsolve.model.host import Platform

_SITE = re.compile(r"/(?:site|dist)-packages/(?P<folder>[\w.-]+)/")
_MODULES = {
    "scikit_learn": "sklearn",
    "opencv_python": "cv2",
    "opencv_python_headless": "cv2",
    "opencv_contrib_python": "cv2",
    "pillow": "PIL",
}
"""What is imported of packages whose folder of libraries has another name."""


def static_tls(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A library that needs static TLS when none is left; one finding for each library."""
    named: dict[str, Sighting] = {}
    for it in sightings:
        if file := it.get("library"):
            named.setdefault(posixpath.normpath(file), it)
    for file, it in named.items():
        yield Diagnosis((Cause("static-tls", _fields(case, file)),), (it,))
    slots = tuple(it for it in sightings if it.get("slots"))
    if slots:
        yield Diagnosis((Cause("static-tls-slots"),), slots)


def _fields(case: Case, file: str) -> dict[str, str]:
    site = _SITE.search(file)
    folder = None if site is None else site["folder"].removesuffix(".libs")
    on_arm = case.jetson or case.platform is Platform.LINUX_AARCH64 or "aarch64" in file
    return known(
        library=posixpath.basename(file),
        path=file if posixpath.isabs(file) else None,
        package=folder and folder.replace("_", "-"),
        module=folder and _MODULES.get(folder.lower(), folder),
        arm="On this processor, ARM (aarch64)," if on_arm else None,
    )


RULES: Mapping[str, Rule] = {"static-tls": static_tls}
