"""``envsolve create`` creates a conda prefix from a request or a lock, with wheels, and without conda."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.creating import WHEELS, Creating, creating_in, tree
from tests.conda.faults import halved
from tests.conda.packages import package
from tests.conftest import Envsolve
from tests.index.packages import wheel

pytestmark = [
    pytest.mark.thorough,  # each makes whole environments
    pytest.mark.skipif(sys.platform != "linux", reason="the packages of the tests are for Linux"),
]
ENVIRONMENT = "dependencies:\n  - python\n  - gamma\n  - delta\n  - pip:\n    - alpha\n"
CONDA_FORGE = "https://conda.anaconda.org/conda-forge"


@pytest.fixture
def create(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Creating]:
    with creating_in(envsolve, tmp_path, monkeypatch) as creating:
        Path("environment.yml").write_text(ENVIRONMENT)
        yield creating


def assert_whole(create: Creating) -> None:
    """Packages of conda, for Python and not, and wheels; each runs in the environment and knows its path."""
    assert create.installed() == {"alpha": "1.0", "beta": "2.0"}
    assert create.python("import gamma; print(gamma.NAME)") == "gamma"
    assert create.python("import sys; print(sys.prefix)") == str(create.prefix)
    assert (create.prefix / "bin" / "delta").read_text().startswith(f"#!{create.prefix}/bin/python\n")
    names = {json.loads(path.read_text())["name"] for path in (create.prefix / "conda-meta").glob("*.json")}
    assert names == {"python", "pip", "gamma", "delta"}


def test_a_request_creates_a_prefix(create: Creating) -> None:
    done = create("env", "-r", "environment.yml", "--gpu", "none", "--index-url", create.index.index_url)
    assert done.code == 0, done.err
    assert done.out == f"{create.prefix}\n"
    assert done.err == (
        f"note: to activate it: conda activate {create.prefix}, or micromamba, mamba or pixi shell-hook\n"
    )
    assert_whole(create)
    record = create.record()
    assert (record["kind"], record["state"], record["lock"]["file"]) == (
        "conda",
        "finished",
        ".envsolve/conda-lock.yml",
    )
    assert record["host"]["virtual_packages"][0].startswith("__archspec")


@pytest.mark.parametrize(
    ("name", "words"),
    [("conda-lock.yml", ()), ("conda-linux-64.lock", ()), ("exact.yml", ("--exact",))],
    ids=["conda-lock", "explicit", "exact environment"],
)
def test_every_lock_format_creates_the_same_prefix(name: str, words: tuple[str, ...], create: Creating) -> None:
    create.lock(name, "-r", "environment.yml", *words)
    done = create("env", "--lock", name)
    assert done.code == 0, done.err
    assert_whole(create)
    assert create("env", "--lock", name).err == f"note: {create.prefix} is up to date: it was made from this lock\n"


@pytest.mark.parametrize("name", ["conda-lock.yml", "pylock.toml"])
def test_an_archive_of_it_works_at_the_same_path(name: str, create: Creating) -> None:
    arguments = ("-r", "environment.yml") if name == "conda-lock.yml" else ("alpha", *WHEELS)
    create.lock(name, *arguments)
    assert create("env", "--lock", name).code == 0
    subprocess.run(["tar", "-cf", "env.tar", "env"], check=True)
    shutil.rmtree("env")
    subprocess.run(["tar", "-xf", "env.tar"], check=True)
    assert create.python("import alpha, sys; print(sys.prefix)") == str(create.prefix)
    assert create("env", "--lock", name).err == f"note: {create.prefix} is up to date: it was made from this lock\n"
    done = create.envsolve("validate", "--prefix", "env", "--device", "cpu", "--json")
    assert [it["status"] for it in json.loads(done.out)["probes"] if it["name"] == "imports"] == ["pass"], done.out


def test_a_pixi_lock_also_creates_it(create: Creating) -> None:
    create.lock("conda-lock.yml", "-r", "environment.yml")
    import yaml

    packages = yaml.safe_load(Path("conda-lock.yml").read_text())["package"]
    kinds = {"conda": "conda", "pip": "pypi"}
    named = [{kinds[it["manager"]]: it["url"]} for it in packages]
    entries = [
        {kinds[it["manager"]]: it["url"], "sha256": it["hash"]["sha256"]}
        | ({"name": it["name"], "version": it["version"]} if it["manager"] == "pip" else {})
        for it in packages
    ]
    default = {"channels": [{"url": f"{CONDA_FORGE}/"}], "packages": {"linux-64": named}}
    document = {"version": 6, "environments": {"default": default}, "packages": entries}
    Path("pixi.lock").write_text(yaml.safe_dump(document))
    done = create("env", "--lock", "pixi.lock")
    assert done.code == 0, done.err
    assert_whole(create)


def test_metadata_of_packages_is_in_the_records_that_conda_reads(create: Creating) -> None:
    create.lock("conda.lock", "-r", "environment.yml", "--format", "explicit")
    assert create("env", "--lock", "conda.lock").code == 0
    record = json.loads((create.prefix / "conda-meta" / "gamma-1.0-0.json").read_text())
    assert record["depends"] == ["python"]
    assert (record["noarch"], record["license"]) == ("python", "BSD-3-Clause")
    assert (record["url"], record["channel"]) == (f"{CONDA_FORGE}/noarch/gamma-1.0-0.conda", CONDA_FORGE)
    assert (create.prefix / "conda-meta" / "history").exists()


@pytest.mark.parametrize("name", ["conda-lock.yml", "conda-linux-64.lock"], ids=["by its sha256", "by its md5"])
def test_an_altered_package_is_refused(name: str, create: Creating) -> None:
    create.lock(name, "-r", "environment.yml")
    evil = package("delta", "1.0", {"bin/delta": b"rm -rf ~"}, ["python"])
    create.channel.fault("*/delta-1.0-0.conda", alter=lambda _: evil.content)
    refused = create.refused("checksum-mismatch", "env", "--lock", name, exit_code=3)
    assert "delta-1.0-0.conda does not match the checksum in the lock" in refused.err


def test_a_package_that_would_write_outside_of_the_environment_is_refused(create: Creating) -> None:
    beside = "near-1.0-0/share/payload.txt"  # where the other package lies in the cache, from where it would be linked
    own = create.channel.channel("own")
    own.add(package("near", "1.0", {"share/payload.txt": b"x"}))
    own.add(package("evil", "1.0", {f"../{beside}": b"x"}, ["near"]))
    Path("environment.yml").write_text("channels: [own, conda-forge]\ndependencies: [python, evil]\n")
    create.lock("conda-lock.yml", "-r", "environment.yml")
    refused = create.refused("package-unsound", "env", "--lock", "conda-lock.yml", exit_code=3)
    assert f"'../{beside}', which is outside of the environment" in refused.err
    assert not (create.prefix.parent / beside).exists()


def test_an_altered_wheel_with_conda_packages_is_refused(create: Creating) -> None:
    create.lock("conda-lock.yml", "-r", "environment.yml")
    other = wheel("alpha", "1.0", members={"evil.py": b""}).content
    assert other is not None
    create.index.fault("/files/alpha/*.whl", alter=lambda _: other)
    create.refused("checksum-mismatch", "env", "--lock", "conda-lock.yml", exit_code=3)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"status": 404}, "channel-failed"),
        ({"alter": halved}, "package-corrupt"),
    ],
    ids=["is gone", "ends too soon"],
)
def test_a_failure_midway_leaves_nothing_behind(fault: dict[str, object], code: str, create: Creating) -> None:
    create.lock("conda-lock.yml", "-r", "environment.yml")
    create.channel.fault("*/delta-1.0-0.conda", **fault)  # type: ignore[arg-type]
    create.prefix.mkdir()
    create.refused(code, "env", "--lock", "conda-lock.yml", exit_code=3)
    assert tree(create.prefix) == {}
    create.channel.heal()
    assert create("env", "--lock", "conda-lock.yml").code == 0
    assert_whole(create)


def test_offline_uses_downloaded_packages(create: Creating) -> None:
    create.lock("conda-lock.yml", "-r", "environment.yml")
    refused = create.refused("offline", "env", "--lock", "conda-lock.yml", "--offline", exit_code=3)
    assert "4 packages, such as" in refused.err
    assert create("first", "--lock", "conda-lock.yml").code == 0
    create.channel.fault("*", status=503)
    assert create("env", "--lock", "conda-lock.yml", "--offline").code == 0
    assert_whole(create)


def test_without_rattler_the_error_names_the_package_to_install(
    create: Creating, monkeypatch: pytest.MonkeyPatch
) -> None:
    create.lock("conda-lock.yml", "-r", "environment.yml")
    monkeypatch.setattr("envsolve.conda.installing.is_installed", lambda: False)
    refused = create.refused("conda-extra-missing", "env", "--lock", "conda-lock.yml", exit_code=3)
    assert "-m pip install py-rattler conda-lock" in refused.err


def test_a_token_opens_a_channel_and_is_stored_nowhere(create: Creating) -> None:
    create.channel.channel("private").add(package("secret", "1.0"))
    opener = "tk-1234"
    create.channel.require_token(opener, under="/private/")
    channel = create.channel.url_of("private", token=opener)
    Path("private.yml").write_text(f"channels: ['{channel}']\ndependencies: [secret]\n")
    for words in (("-r", "private.yml"), ("--lock", "env/.envsolve/conda-lock.yml", "-c", channel)):
        prefix = create.directory / ("env" if "-r" in words else "again")
        done = create(prefix.name, *words, *(("--gpu", "none") if "-r" in words else ()))
        assert done.code == 0, done.err
        assert (prefix / "share" / "secret.txt").read_text() == "secret"
        assert opener not in done.out + done.err
        assert [name for name, content in (tree(prefix) or {}).items() if opener.encode() in (content or b"")] == []


def test_post_link_scripts_are_named_and_not_run(create: Creating) -> None:
    create.channel.channel("scripts").add(
        package("linked", "1.0", {"bin/.linked-post-link.sh": b"touch $PREFIX/ran\n"})
    )
    Path("scripts.yml").write_text(f"channels: ['{create.channel.url_of('scripts')}']\ndependencies: [linked]\n")
    done = create("env", "-r", "scripts.yml", "--gpu", "none")
    assert done.code == 0, done.err
    assert "note: linked: the post-link script was not run (like pixi)\n" in done.err
    assert not (create.prefix / "ran").exists()


def test_variables_of_a_file_are_set_where_conda_reads_them(create: Creating) -> None:
    Path("environment.yml").write_text(ENVIRONMENT + "variables:\n  OMP_NUM_THREADS: 4\n")
    for name, words in (("conda-lock.yml", ()), ("exact.yml", ("--exact",))):
        create.lock(name, "-r", "environment.yml", *words)
        assert create(name.partition(".")[0], "--lock", name).code == 0
        state = create.directory / name.partition(".")[0] / "conda-meta" / "state"
        assert json.loads(state.read_text()) == {"env_vars": {"OMP_NUM_THREADS": "4"}}


def test_optional_packages_are_left_out(create: Creating) -> None:
    create.lock("conda-lock.yml", "-r", "environment.yml")
    text = Path("conda-lock.yml").read_text()
    head, _, tail = text.partition("- name: delta\n")
    Path("conda-lock.yml").write_text(f"{head}- name: delta\n{tail.replace('category: main', 'category: docs', 1)}")
    done = create("env", "--lock", "conda-lock.yml")
    assert done.code == 0, done.err
    assert "note: packages that only docs requires are left out, as conda-lock does\n" in done.err
    assert not (create.prefix / "bin" / "delta").exists()


def test_a_lock_for_another_platform_is_refused(create: Creating) -> None:
    create.lock("conda-lock.yml", "-r", "environment.yml")
    text = Path("conda-lock.yml").read_text().replace("linux-64", "win-64")
    Path("conda-lock.yml").write_text(text)
    refused = create.refused("lock-for-other-platform", "env", "--lock", "conda-lock.yml", exit_code=2)
    assert "conda-lock.yml is for win-64, and this is linux-64" in refused.err


def test_a_wheel_that_only_searches_the_library_path_gets_one(create: Creating) -> None:
    create.index.add("tensorflow", [wheel("tensorflow", "2.10.1")])
    Path("environment.yml").write_text("dependencies:\n  - python\n  - pip\n")
    create.lock("conda-lock.yml", "-r", "environment.yml")
    file = create.index._first.files("tensorflow")["tensorflow-2.10.1-py3-none-any.whl"]
    url = f"{create.index.url}/files/tensorflow/{file.name}"
    fields = f"manager: pip, platform: linux-64, dependencies: {{}}, url: '{url}', hash: {{sha256: {file.sha256}}}"
    with Path("conda-lock.yml").open("a") as lock:
        lock.write(f"- {{name: tensorflow, version: 2.10.1, category: main, optional: false, {fields}}}\n")
    done = create("env", "--lock", "conda-lock.yml")
    assert done.code == 0, done.err
    assert "add cuda-nvcc" in done.err
    folder = create.prefix / "etc" / "conda"
    assert sorted(path.parent.name for path in folder.rglob("envsolve-library-path.sh")) == [
        "activate.d",
        "deactivate.d",
    ]


def test_no_activation_script_without_variables(create: Creating) -> None:
    create.lock("conda-lock.yml", "-r", "environment.yml")
    assert create("env", "--lock", "conda-lock.yml").code == 0
    assert not (create.prefix / "etc").exists()
    assert not (create.prefix / "conda-meta" / "state").exists()
