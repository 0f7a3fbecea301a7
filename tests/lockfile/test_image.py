"""Rules for every format of an image."""

from __future__ import annotations

import pytest

from envsolve.errors import UsageError
from envsolve.lockfile.lock import Lock
from envsolve.model.lock_format import IMAGE_FORMATS
from envsolve.model.package import PackageFile
from tests.lockfile.formats import written
from tests.lockfile.locks import PINS, plain

FOLDER = "file:///srv/simple"
WHEEL = PackageFile("own-1.0-py3-none-any.whl", "file:///home/me/own-1.0-py3-none-any.whl", (("sha256", "7" * 64),))


@pytest.mark.parametrize("format_name", IMAGE_FORMATS)
@pytest.mark.parametrize(
    ("lock", "place"),
    [
        (plain([PINS[1]._replace(index_url=FOLDER)], indexes=(FOLDER,)), FOLDER),
        (plain([PINS[1]._replace(index_url="")], default_index=FOLDER, default_is_plain=False), FOLDER),
        (plain([PINS[0], PINS[1]._replace(index_url=None, files=(WHEEL,))]), WHEEL.url),
    ],
)
def test_a_local_package_is_refused(lock: Lock, place: str, format_name: str) -> None:
    assert "numpy" in written(lock, "requirements")
    with pytest.raises(UsageError, match="local-package-in-image") as refused:
        written(lock, format_name)
    assert "numpy" in refused.value.message
    assert refused.value.cause == (place,)


@pytest.mark.parametrize("format_name", IMAGE_FORMATS)
def test_an_unused_folder_does_not_matter(format_name: str) -> None:
    assert "numpy==" in written(plain(PINS, default_index=FOLDER, default_is_plain=False), format_name)
