"""The indexes configured for uv and pip, read from real files below a directory of the test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from envsolve.errors import UsageError
from envsolve.index.settings import IndexSettings, default_index, read_settings

MIRROR = "https://mirror.example.org/simple"
TEAM = "https://user:secret@team.example.org/simple"
GPU = "https://wheels.example.org/gpu"
OTHER = "https://other.example.org/simple"


class Machine:
    """A home, a project, an environment and a system, all of them empty at first."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self.project = place / "work" / "project"
        self.prefix = place / "prefix"
        self.root = place / "system"
        self.project.mkdir(parents=True)

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def pip_of_the_system(self, text: str) -> Path:
        return self.write(self.root / "etc" / "pip.conf", text)

    def pip_of_the_user(self, text: str) -> Path:
        return self.write(self.home / ".config" / "pip" / "pip.conf", text)

    def pip_of_the_prefix(self, text: str) -> Path:
        return self.write(self.prefix / "pip.conf", text)

    def uv_of_the_system(self, text: str) -> Path:
        return self.write(self.root / "etc" / "uv" / "uv.toml", text)

    def uv_of_the_user(self, text: str) -> Path:
        return self.write(self.home / ".config" / "uv" / "uv.toml", text)

    def pyproject(self, text: str) -> Path:
        return self.write(self.project / "pyproject.toml", text)

    def settings(self, platform: str = "linux", **environ: str) -> IndexSettings:
        return read_settings(environ, self.home, self.project, prefix=self.prefix, root=self.root, platform=platform)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def refused(machine: Machine, **environ: str) -> str:
    """The complete error text, which never contains a password."""
    with pytest.raises(UsageError) as caught:
        machine.settings(**environ)
    error = caught.value
    words = " ".join((str(error), *error.cause, *(hint.text for hint in error.hints)))
    assert "secret" not in words
    return words


def test_no_configuration_gives_no_settings(machine: Machine) -> None:
    assert machine.settings() == IndexSettings()


def test_without_configuration_no_reader_is_imported(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom envsolve.index.settings import read_settings\n"
        "place = Path(sys.argv[1])\nread_settings({}, place, place, prefix=place, root=place)\nprint(*sys.modules)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert loaded.isdisjoint({"configparser", "tomli", "distlib", "packaging.utils", "hashlib"})
    start = time.perf_counter()
    for _ in range(20):
        read_settings({}, tmp_path, tmp_path, prefix=tmp_path, root=tmp_path)
    assert (time.perf_counter() - start) / 20 < 5e-3


def test_the_default_index_is_the_one_other_tools_know() -> None:
    assert default_index() == PYPI_SIMPLE_ENDPOINT.rstrip("/")


def test_files_are_read_in_order(machine: Machine) -> None:
    """Each file names a different index; the first is removed in turn."""
    url = "https://{}.example.org/simple".format
    system = machine.uv_of_the_system(f"index-url = '{url('uv-system')}'\n")
    files = machine.pip_of_the_user(f"[global]\nindex-url = {url('pip-user')}\n")
    user = machine.uv_of_the_user(f"index-url = '{url('uv-user')}'\n")
    project = machine.pyproject(f"[tool.uv]\nindex-url = '{url('uv-project')}'\n")
    environ = {
        "UV_DEFAULT_INDEX": url("uv-default"),
        "UV_INDEX_URL": url("uv-url"),
        "PIP_INDEX_URL": url("pip-variable"),
    }
    found = []
    for variable in list(environ):
        found.append(machine.settings(**environ))
        del environ[variable]
    for path in (project, user, files, system):
        found.append(machine.settings())
        path.unlink()
    places = ["uv-default", "uv-url", "pip-variable", "uv-project", "uv-user", "pip-user", "uv-system"]
    assert [settings.index_url for settings in found] == [url(place) for place in places]
    assert [settings.origin for settings in found] == [
        *("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", str(project)),
        *(f"~{os.sep}{path.relative_to(machine.home)}" for path in (user, files)),
        str(system),
    ]


def test_lists_are_joined_without_duplicates(machine: Machine) -> None:
    machine.uv_of_the_user(f"extra-index-url = ['{TEAM}', '{OTHER}']\n")
    machine.pyproject(f"[[tool.uv.index]]\nurl = '{TEAM}'\n")
    settings = machine.settings(UV_INDEX=f"gpu={GPU}", UV_EXTRA_INDEX_URL=MIRROR)
    assert settings.extra_index_urls == (GPU, MIRROR, TEAM, OTHER)
    assert (settings.index_url, settings.origin) == (None, "UV_INDEX")


class TestPip:
    def test_variables_are_split_at_white_space(self, machine: Machine) -> None:
        settings = machine.settings(
            PIP_INDEX_URL=MIRROR,
            PIP_EXTRA_INDEX_URL=f"{TEAM}\n  {OTHER}",
            PIP_FIND_LINKS="wheels https://files.example.org/",
            PIP_CERT="/etc/ca.pem",
            PIP_CLIENT_CERT="/etc/me.pem",
            PIP_TRUSTED_HOST="mirror.example.org:8080 other.example.org",
        )
        assert settings == IndexSettings(
            MIRROR,
            (TEAM, OTHER),
            ("wheels", "https://files.example.org/"),
            origin="PIP_INDEX_URL",
            cert="/etc/ca.pem",
            client_cert="/etc/me.pem",
            trusted_hosts=("mirror.example.org:8080", "other.example.org"),
            find_links_origin="PIP_FIND_LINKS",
        )

    def test_a_later_file_also_overrides_lists(self, machine: Machine) -> None:
        machine.pip_of_the_system(f"[global]\nindex-url = {OTHER}\nextra-index-url = {OTHER}\n")
        machine.write(machine.home / ".pip" / "pip.conf", f"[global]\nindex-url = {GPU}\nextra-index-url = {GPU}\n")
        machine.pip_of_the_user(f"[global]\nextra_index_url =\n    {TEAM}\n    {MIRROR}\n")
        assert machine.settings()[:2] == (GPU, (TEAM, MIRROR))
        machine.pip_of_the_prefix(f"[global]\nindex-url = {MIRROR}\n")
        assert machine.settings().index_url == MIRROR

    def test_settings_for_install_override_those_for_all_commands(self, machine: Machine) -> None:
        machine.pip_of_the_system(f"[install]\nindex-url = {MIRROR}\n[freeze]\ntimeout = 10\n")
        machine.pip_of_the_prefix(f"[global]\nindex-url = {OTHER}\n")
        assert machine.settings().index_url == MIRROR

    def test_an_empty_value_resets_a_setting_and_an_empty_variable_does_not(self, machine: Machine) -> None:
        machine.pip_of_the_system(f"[global]\nindex-url = {MIRROR}\nextra-index-url = {OTHER}\n")
        machine.pip_of_the_user("[global]\nindex-url =\n")
        settings = machine.settings(PIP_EXTRA_INDEX_URL="")
        assert (settings.index_url, settings.extra_index_urls) == (None, (OTHER,))

    def test_a_variable_overrides_lists_of_files(self, machine: Machine) -> None:
        machine.pip_of_the_user(f"[global]\nextra-index-url = {OTHER}\n")
        assert machine.settings(PIP_EXTRA_INDEX_URL=TEAM).extra_index_urls == (TEAM,)

    def test_a_named_file_comes_last_and_replaces_that_of_the_user(self, machine: Machine, tmp_path: Path) -> None:
        named = machine.write(tmp_path / "named.conf", f"[global]\nindex-url = {MIRROR}\n")
        machine.pip_of_the_user(f"[global]\nextra-index-url = {OTHER}\n")
        machine.pip_of_the_prefix(f"[global]\nindex-url = {GPU}\nfind-links = wheels\n")
        settings = machine.settings(PIP_CONFIG_FILE=str(named))
        assert settings[:3] == (MIRROR, (), ("wheels",))
        assert machine.settings(PIP_CONFIG_FILE=str(tmp_path / "absent")).extra_index_urls == (OTHER,)

    def test_the_null_device_disables_all_files(self, machine: Machine) -> None:
        machine.pip_of_the_user(f"[global]\nindex-url = {MIRROR}\n")
        assert machine.settings(PIP_CONFIG_FILE=os.devnull) == IndexSettings()

    def test_variables_and_percent_signs_in_a_file_are_literal(self, machine: Machine) -> None:
        url = "https://user:${PART}%20x@mirror.example.org/simple"
        machine.pip_of_the_user(f"[global]\nindex-url = {url}\n")
        assert machine.settings(PART="1").index_url == url

    @pytest.mark.parametrize(("word", "meant"), [("1", True), ("Yes", True), ("off", False), ("0", False)])
    def test_no_index_is_yes_or_no(self, machine: Machine, word: str, meant: bool) -> None:
        assert machine.settings(PIP_NO_INDEX=word).no_index is meant

    def test_a_variable_overrides_no_index_of_a_file(self, machine: Machine) -> None:
        machine.pip_of_the_user("[global]\nno-index = true\nfind-links = wheels\n")
        assert machine.settings().no_index
        assert not machine.settings(PIP_NO_INDEX="no").no_index

    def test_another_word_for_no_index_is_refused(self, machine: Machine) -> None:
        assert "no-index of PIP_NO_INDEX is neither yes nor no" in refused(machine, PIP_NO_INDEX="secret")

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            (f"index-url = {TEAM}\n", 1),
            ("[global]\nno-index = 1\nsecret words\n", 3),
            (f"[global]\nindex-url = {TEAM}\nindex-url = {TEAM}\n", 3),
            (f"[global]\nindex-url = {TEAM}\n[global]\n", 3),
        ],
    )
    def test_a_malformed_file_is_named_with_its_line_and_no_value(self, machine: Machine, text: str, line: int) -> None:
        path = machine.pip_of_the_user(text)
        assert f"{path}, line {line} " in refused(machine)

    def test_each_system_has_its_own_paths(self, machine: Machine) -> None:
        machine.write(machine.home / "roaming" / "pip" / "pip.ini", f"[global]\nindex-url = {MIRROR}\n")
        appdata = {"APPDATA": str(machine.home / "roaming"), "PROGRAMDATA": str(machine.root)}
        assert machine.settings("win32", **appdata).index_url == MIRROR
        assert machine.settings("linux", **appdata).index_url is None
        support = machine.home / "Library" / "Application Support" / "pip" / "pip.conf"
        machine.pip_of_the_user(f"[global]\nindex-url = {OTHER}\n")
        assert machine.settings("darwin").index_url == OTHER
        machine.write(support, f"[global]\nindex-url = {GPU}\n")
        assert machine.settings("darwin").index_url == GPU

    def test_the_xdg_variables_move_the_files(self, machine: Machine, tmp_path: Path) -> None:
        machine.pip_of_the_user(f"[global]\nindex-url = {OTHER}\n")
        machine.write(tmp_path / "moved" / "pip" / "pip.conf", f"[global]\nindex-url = {MIRROR}\n")
        machine.write(tmp_path / "shared" / "pip" / "pip.conf", "[global]\nfind-links = wheels\n")
        settings = machine.settings(XDG_CONFIG_HOME=str(tmp_path / "moved"), XDG_CONFIG_DIRS=str(tmp_path / "shared"))
        assert settings[:3] == (MIRROR, (), ("wheels",))


class TestUv:
    def test_the_nearest_file_above_counts_and_a_pyproject_without_uv_is_skipped(self, machine: Machine) -> None:
        machine.pyproject("[project]\nname = 'uv-less'\n[tool.other]\nindex-url = 1\n")
        machine.write(machine.project.parent / "pyproject.toml", f"[tool.uv]\nindex-url = '{MIRROR}'\n")
        machine.write(machine.project.parent.parent / "uv.toml", f"index-url = '{OTHER}'\n")
        assert machine.settings().index_url == MIRROR

    def test_uv_toml_comes_before_the_pyproject_beside_it(self, machine: Machine) -> None:
        machine.pyproject(f"[tool.uv]\nindex-url = '{OTHER}'\n")
        machine.write(machine.project / "uv.toml", f"index-url = '{MIRROR}'\n")
        assert machine.settings().index_url == MIRROR

    def test_default_explicit_and_other_indexes_are_distinguished(self, machine: Machine) -> None:
        machine.pyproject(
            f"""
            [tool.uv.sources]
            Torch_Vision = {{ index = "gpu" }}
            torch = [{{ index = "gpu", marker = "sys_platform == 'linux'" }}, {{ index = "team", extra = "cpu" }}]
            mine = {{ path = "../mine" }}
            [[tool.uv.index]]
            name = "gpu"
            url = "{GPU}"
            explicit = true
            [[tool.uv.index]]
            url = "{MIRROR}"
            default = true
            [[tool.uv.index]]
            name = "team"
            url = "{TEAM}"
            [[tool.uv.index]]
            url = "https://files.example.org/"
            format = "flat"
            """
        )
        settings = machine.settings()
        assert settings[:3] == (MIRROR, (TEAM,), ("https://files.example.org/",))
        assert settings.package_indexes == (("torch-vision", GPU),)
        assert settings.package_indexes_where == (("torch", GPU, "sys_platform == 'linux'"),)
        assert machine.settings(UV_NO_SOURCES="1").package_indexes == ()

    def test_a_mirror_by_variable_does_not_apply_to_a_project_with_an_explicit_index(self, machine: Machine) -> None:
        machine.pyproject(
            f"[tool.uv]\nsources = {{ torch = {{ index = 'gpu' }} }}\n"
            f"index = [{{ name = 'gpu', url = '{GPU}', explicit = true }}]\n"
        )
        settings = machine.settings(PIP_INDEX_URL=MIRROR)
        assert (settings.index_url, settings.extra_index_urls) == (MIRROR, ())
        assert settings.package_indexes == (("torch", GPU),)

    def test_settings_for_pip_take_precedence(self, machine: Machine) -> None:
        machine.uv_of_the_user(
            f"index-url = '{OTHER}'\nextra-index-url = ['{GPU}']\nno-index = true\n"
            f"[pip]\nindex-url = '{MIRROR}'\nextra-index-url = ['{TEAM}']\nno-index = false\n"
        )
        settings = machine.settings()
        assert settings[:2] == (MIRROR, (TEAM, GPU))
        assert not settings.no_index

    def test_paths_in_a_file_are_relative_to_it(self, machine: Machine) -> None:
        machine.write(machine.project.parent / "uv.toml", "find-links = ['wheels']\nindex-url = './index'\n")
        settings = machine.settings()
        assert settings.find_links == (str(machine.project.parent / "wheels"),)
        assert settings.index_url == str(machine.project.parent / "index")

    def test_find_links_in_the_variable_is_split_at_commas(self, machine: Machine) -> None:
        assert machine.settings(UV_FIND_LINKS="with space,other,").find_links == ("with space", "other")

    def test_an_equals_sign_in_a_url_does_not_name_an_index(self, machine: Machine) -> None:
        url = "https://mirror.example.org/simple?token=secret"
        assert machine.settings(UV_DEFAULT_INDEX=url).index_url == url
        assert machine.settings(UV_DEFAULT_INDEX=f"my.mirror={url}").index_url == url

    def test_user_and_password_may_come_from_variables_of_the_name(self, machine: Machine) -> None:
        machine.pyproject("[[tool.uv.index]]\nname = 'my-team'\nurl = 'https://team.example.org/simple'\n")
        environ = {"UV_INDEX_MY_TEAM_USERNAME": "me", "UV_INDEX_MY_TEAM_PASSWORD": "a/b@c"}
        assert machine.settings(**environ).extra_index_urls == ("https://me:a%2Fb%40c@team.example.org/simple",)
        machine.pyproject(f"[[tool.uv.index]]\nname = 'my-team'\nurl = '{TEAM}'\n")
        assert machine.settings(**environ).extra_index_urls == (TEAM,)

    def test_a_named_file_replaces_all_files(self, machine: Machine) -> None:
        machine.uv_of_the_user(f"extra-index-url = ['{OTHER}']\n")
        machine.pyproject(f"[tool.uv]\nindex-url = '{OTHER}'\n")
        machine.write(machine.project / "ci.toml", f"index-url = '{MIRROR}'\n")
        assert machine.settings(UV_CONFIG_FILE="ci.toml")[:2] == (MIRROR, ())
        assert "UV_CONFIG_FILE names a file that does not exist" in refused(machine, UV_CONFIG_FILE="absent.toml")

    def test_configuration_can_be_disabled(self, machine: Machine) -> None:
        machine.uv_of_the_user(f"index-url = '{OTHER}'\n")
        machine.pyproject(f"[tool.uv]\nindex-url = '{OTHER}'\n")
        assert machine.settings(UV_NO_CONFIG="1") == IndexSettings()

    def test_hosts_that_need_no_certificate_are_trusted(self, machine: Machine) -> None:
        machine.uv_of_the_user("allow-insecure-host = ['other.example.org']\n")
        settings = machine.settings(UV_INSECURE_HOST="mirror.example.org localhost:8080")
        assert settings.trusted_hosts == ("mirror.example.org", "localhost:8080", "other.example.org")
        assert settings.origin == ""

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("[tool.uv\n", "line 1 is not TOML"),
            ("[tool.uv]\nindex-url = secret\n", "line 2 is not TOML"),
            ("[tool.uv]\nindex-url = " + "9" * 5000, "is not TOML"),
            ("[tool.uv]\nindex-url = " + "[" * 5000, "it is nested too deep"),
            ("tool.uv = 'secret'", "Expected `object`, got `str`"),
            ("[tool.uv]\nindex = 'secret'", "tool.uv.index in"),
            ("[[tool.uv.index]]\nname = 'secret'", "tool.uv.index[0] in"),
            ("[[tool.uv.index]]\nurl = ['secret']", "tool.uv.index[0].url in"),
            ("[[tool.uv.index]]\nurl = 'secret'\ndefault = 'secret'", "Expected `bool`, got `str`"),
            ("[[tool.uv.index]]\nurl = ''", "tool.uv.index[0].url in"),
            ("[tool.uv]\nextra-index-url = 'secret'", "Expected `array`, got `str`"),
            ("[tool.uv.pip]\nextra-index-url = [7]", "tool.uv.pip.extra-index-url[0] in"),
            ("[tool.uv.sources]\ntorch = { index = 'secret' }", "names an index that the file does not define"),
        ],
    )
    def test_a_malformed_file_is_named_with_its_line_or_key_and_no_value(
        self, machine: Machine, text: str, says: str
    ) -> None:
        path = machine.pyproject(text)
        words = refused(machine)
        assert says in words
        assert str(path) in words


def test_invalid_text_is_refused_with_its_line(machine: Machine) -> None:
    path = machine.uv_of_the_user("")
    path.write_bytes(b"# fine\nindex-url = '\xff'\n")
    assert f"{path}, line 2 is not UTF-8" in refused(machine)


def test_an_unreadable_file_is_refused(machine: Machine) -> None:
    (machine.home / ".config" / "pip" / "pip.conf").mkdir(parents=True)
    words = refused(machine)
    assert "index-settings-unreadable" in words
    assert "it is a directory" in words


def test_a_user_without_a_home_still_has_variables(tmp_path: Path) -> None:
    settings = read_settings({"PIP_INDEX_URL": MIRROR}, None, tmp_path, prefix=None, root=tmp_path)
    assert settings.index_url == MIRROR
