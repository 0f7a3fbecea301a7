"""The command line that stands for a request: for headers, and for the ways out that an error offers."""

from __future__ import annotations

import shlex

from envsolve.model.request import Request


def command_of(request: Request) -> str:
    """The envsolve command a person would type for ``request``, quoted for a POSIX shell."""
    words = ["envsolve"]
    for framework in request.frameworks:
        words += ["--framework", str(framework)]
    for option, value in (("--python", request.python), ("--cuda", request.cuda), ("--driver", request.driver)):
        if value is not None:
            words += [option, str(value)]
    for option, values in (
        ("--gpu", request.gpus),
        ("--host", request.hosts),
        ("--source", tuple(source.value for source in request.sources)),
        ("--channel", request.channels),
        ("--extra-index-url", request.extra_index_urls),
    ):
        for item in values:
            words += [option, item]
    if request.index_url is not None:
        words += ["--index-url", request.index_url]
    if request.platform is not None:
        words += ["--platform", request.platform.value]
    if request.format != "environment":
        words += ["--format", request.format]
    return shlex.join(words)
