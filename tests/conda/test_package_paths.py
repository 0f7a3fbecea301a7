"""A conda package that would write outside of its environment is found before any of it is linked."""

from __future__ import annotations

import pytest

from envsolve.conda.package_paths import EscapeError, require_inside


@pytest.mark.parametrize(
    "name",
    ["../x", "lib/../../x", "..", "/etc/x", "..\\x", "lib\\..\\..\\x", "\\x", "C:\\x", "C:x", "site-packages/../../x"],
)
def test_a_path_that_leads_outside_is_refused(name: str) -> None:
    with pytest.raises(EscapeError) as raised:
        require_inside("evil-1.0-0", ["lib/fine.so", name])
    assert "evil-1.0-0" in str(raised.value)


def test_harmless_names_are_allowed() -> None:
    require_inside("own-1.0-0", ["lib/..x", "lib/x..", "share/a b", "site-packages/x.py", "share/...", "lib/a:b"])
