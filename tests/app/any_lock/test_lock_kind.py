"""A request without a format gets a lock of the same kind as the stack that envsolve prints for it."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.app.any_lock.lock_kind import usual_format
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Packages, Request


def request(*frameworks: str) -> Request:
    requested = tuple(FrameworkRequest(name, SpecifierSet()) for name in frameworks)
    return Request(requested, gpus=("8.6",), platforms=(Platform.LINUX_64,))


CASES = {
    "a framework that channels have": (request("tensorflow"), "conda-lock"),
    "a framework that is a wheel alone": (request("paddlepaddle"), "pylock"),
    "wheels by their source": (request("tensorflow")._replace(sources=(Source.PYPI,)), "pylock"),
    "a channel by its source": (request("pytorch")._replace(sources=(Source.PYPI, Source.CONDA_FORGE)), "conda-lock"),
    "a channel by its name": (request("paddlepaddle")._replace(channels=("own",)), "conda-lock"),
    "an index": (request("tensorflow")._replace(index_url="https://own/simple"), "pylock"),
    "requirements alone": (request()._replace(packages=Packages(("numpy", "torch"))), "pylock"),
    "a file of requirements": (request()._replace(packages=Packages(files=("requirements.in",))), "pylock"),
    "overrides": (request("tensorflow")._replace(packages=Packages(overrides=("numpy<2",))), "pylock"),
    "a file of conda's": (request()._replace(packages=Packages(files=("environment.yml",))), "conda-lock"),
}


@pytest.mark.parametrize(("requested", "format_name"), CASES.values(), ids=CASES)
def test_the_kind_follows_from_the_request(requested: Request, format_name: str, matrix: Matrix) -> None:
    assert usual_format(requested, matrix, {}) == format_name
