from pathlib import Path

import pytest

from envsolve.conda.condarc import Condarc, read_condarc
from envsolve.errors import UsageError


def _home(directory: Path, text: str) -> Path:
    (directory / ".condarc").write_text(text)
    return directory


def test_no_settings_give_nothing(tmp_path: Path) -> None:
    assert read_condarc({}, tmp_path) == Condarc()
    assert read_condarc({}, None) == Condarc()


def test_the_alias_is_where_channels_with_a_bare_name_are(tmp_path: Path) -> None:
    assert (
        read_condarc({}, _home(tmp_path, "channel_alias: http://127.0.0.1/conda\n")).alias == "http://127.0.0.1/conda"
    )


def test_the_variable_overrides_the_file_and_a_named_file_the_one_at_home(tmp_path: Path) -> None:
    home = _home(tmp_path, "channel_alias: http://127.0.0.1/home\n")
    named = tmp_path / "other"
    named.write_text("channel_alias: http://127.0.0.1/named\n")
    assert read_condarc({"CONDARC": str(named)}, home).alias == "http://127.0.0.1/named"
    environ = {"CONDARC": str(named), "CONDA_CHANNEL_ALIAS": "http://127.0.0.1/variable"}
    assert read_condarc(environ, home).alias == "http://127.0.0.1/variable"


def test_a_channel_may_have_its_own_address(tmp_path: Path) -> None:
    found = read_condarc({}, _home(tmp_path, "custom_channels:\n  ours: http://127.0.0.1/chan/\n"))
    assert found.address_of("ours") == "http://127.0.0.1/chan/ours"
    assert found.address_of("ours/label/dev") == "http://127.0.0.1/chan/ours/label/dev"
    assert found.address_of("conda-forge") == "conda-forge"


def test_defaults_are_several_channels_which_settings_can_change(tmp_path: Path) -> None:
    anaconda = "https://repo.anaconda.com/pkgs/"
    usual = [f"{anaconda}main", f"{anaconda}r"]
    assert Condarc().addresses_of(["conda-forge", "defaults"], "linux-64") == ["conda-forge", *usual]
    assert Condarc().addresses_of(["defaults", usual[0]], "win-64") == [*usual, f"{anaconda}msys2"]
    text = "default_channels: [ours, http://127.0.0.1/main]\ncustom_channels: {ours: http://127.0.0.1/chan}\n"
    found = read_condarc({}, _home(tmp_path, text))
    assert found.addresses_of(["defaults"], "win-64") == ["http://127.0.0.1/chan/ours", "http://127.0.0.1/main"]
    none = read_condarc({}, _home(tmp_path, "default_channels: []\n"))
    assert none.addresses_of(["defaults", "conda-forge"], "linux-64") == ["conda-forge"]


def test_other_settings_are_not_parsed(tmp_path: Path) -> None:
    assert read_condarc({}, _home(tmp_path, "channels: [defaults\n")) == Condarc()


_BOMB = "".join(f"a{it}: &a{it} [{', '.join([f'*a{it - 1}'] * 9 if it else ['x'])}]\n" for it in range(12))
BOMBS = [f"{_BOMB}custom_channels: {{a: *a11}}\n", f"{_BOMB}default_channels: [*a11]\n"]
"""As text they would have 9 to the power of 11 letters."""


@pytest.mark.parametrize(
    "text", ["channel_alias: [1, 2]\n", "custom_channels: 3\n", "default_channels: x\n", "channel_alias: {\n", *BOMBS]
)
def test_unreadable_settings_are_one_clear_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_condarc({}, _home(tmp_path, text))
    assert caught.value.code == "conda-settings-invalid"
    assert str(tmp_path) in caught.value.message


def test_invalid_yaml_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_condarc({}, _home(tmp_path, "channels: [a]\nchannel_alias: }\n"))
    assert "line 2" in caught.value.cause[0]
