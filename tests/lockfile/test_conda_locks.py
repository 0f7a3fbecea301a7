"""Every field of a lock of conda packages, in a lock that any format is written from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from envsolve.app.environment.exporting import Exported, ExportRequest, NotWholeError
from envsolve.app.environment.exporting import export_conda as export
from envsolve.boundary.files import FileError
from envsolve.errors import UsageError
from envsolve.lockfile.conda_locks import channels_of, named_channel
from envsolve.lockfile.lock import Made
from envsolve.lockfile.pixi_lock import read
from envsolve.lockfile.reading import locks_in
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.note import Note
from tests.lockfile.conda_locks import CHANNEL, package
from tests.lockfile.judges import conda_lock_renders, rattler

ORIGIN = "pixi.lock"
INDEX = "https://index.example.org/simple"
WHEEL = {
    "pypi": "https://files.example.org/own_kernels-0.4-py3-none-any.whl",
    "name": "own-kernels",
    "version": "0.4",
    "sha256": "6" * 64,
    "requires_dist": [
        "tzdata ; sys_platform == 'win32'",
        "python-dateutil>=2 ; python_version < '4'",
        "x ; extra == 'y'",
    ],
}


def pixi_lock(*, wheel: Mapping[str, object] = WHEEL, **more: object) -> str:
    """A pixi.lock of version 6 with a Python and its requirements, for two platforms, and another environment."""
    linux = [package("python", "linux-64"), package("tzdata"), package("bzip2")]
    windows = [package("python", "win-64"), package("tzdata")]
    packages = {
        it.url: {"conda": it.url, "sha256": it.sha256, "md5": it.md5, "depends": list(it.depends)}
        for it in linux + windows
    }
    default = {
        "channels": [{"url": f"{CHANNEL}/"}],
        "indexes": [INDEX],
        "packages": {
            "linux-64": [*({"conda": it.url} for it in linux), {"pypi": wheel["pypi"]}],
            "win-64": [{"conda": it.url} for it in windows],
        },
    }
    document = {
        "version": 6,
        "environments": {"default": default, **more},
        "packages": [*packages.values(), dict(wheel)],
    }
    return yaml.safe_dump(document)


def export_conda(
    kind: str, text: str, name: str, format_name: str, *, platforms: tuple[Platform, ...] = ()
) -> Exported:
    """The lock in ``text`` in another format."""
    return export(ExportRequest(Path(name), format_name, platforms), kind, locks_in(kind, text))


@pytest.mark.thorough
def test_a_pixi_lock_becomes_a_conda_lock_with_all_its_facts(tmp_path: Path) -> None:
    done = export_conda("pixi.lock", pixi_lock(), ORIGIN, "conda-lock")
    ((_, text),) = done.texts
    document = yaml.safe_load(text)
    assert text.startswith("# Exported from pixi.lock by envsolve\n# For: linux-64\n# For: win-64\n")
    assert document["metadata"]["channels"] == [{"url": "conda-forge", "used_env_vars": []}]
    assert set(document["metadata"]["custom_metadata"]) == {"created_by"}  # no facts, as envsolve did not make it
    locked = {(it["platform"], it["name"]): it for it in document["package"]}
    bzip2 = package("bzip2")
    assert locked["linux-64", "bzip2"]["hash"] == {"md5": bzip2.md5, "sha256": bzip2.sha256}
    assert locked["linux-64", "bzip2"]["dependencies"] == {"__glibc": ">=2.17,<3.0.a0", "libgcc": ">=14"}
    assert locked["linux-64", "own-kernels"]["dependencies"] == {"python-dateutil": ""}
    assert set(locked) == {
        *(("linux-64", name) for name in ("python", "tzdata", "bzip2", "own-kernels")),
        *(("win-64", name) for name in ("python", "tzdata")),
    }
    rendered = conda_lock_renders(text, tmp_path, ("linux-64", "win-64"))
    assert f"# pip own-kernels @ {WHEEL['pypi']}#sha256={'6' * 64}" in rendered["linux-64"]


def test_a_pixi_lock_becomes_an_explicit_file_in_installation_order() -> None:
    done = export_conda("pixi.lock", pixi_lock(), ORIGIN, "explicit", platforms=(Platform.LINUX_64,))
    ((platform, text),) = done.texts
    names = [line.rpartition("/")[2].partition("-")[0] for line in text.splitlines() if line.startswith("http")]
    assert (platform, names) == ("linux-64", ["bzip2", "tzdata", "python"])
    assert done.notes == (Note("not-exported", "an explicit file has only the md5 digests"),)
    assert rattler("len(ExplicitEnvironmentSpec.from_str(asked).packages)", text) == 3


def test_a_pixi_lock_becomes_an_exact_environment_with_its_index() -> None:
    ((_, text),) = export_conda(
        "pixi.lock",
        pixi_lock(wheel={**WHEEL, "index": INDEX}),
        ORIGIN,
        "environment",
        platforms=(Platform.LINUX_64,),
    ).texts
    assert yaml.safe_load(text)["dependencies"][-1] == {
        "pip": [f"--index-url {INDEX}", f"own-kernels==0.4 --hash=sha256:{'6' * 64}"]
    }


def test_other_environments_are_left_out_and_can_be_selected() -> None:
    other = {"channels": [{"url": f"{CHANNEL}/"}], "packages": {"win-64": [{"conda": package("tzdata").url}]}}
    text = pixi_lock(cuda=other)
    assert {it.left_out for it in read(text)} == {("left out: environment 'cuda'",)}
    (lock,) = read(text, "cuda")
    assert [it.name for it in lock.conda] == ["tzdata"]
    with pytest.raises(FileError, match="it has no environment 'gone': it has 'cuda', 'default'"):
        read(text, "gone")


@pytest.mark.parametrize(
    ("wheel", "reason"),
    [
        ({"pypi": "./own", "name": "own"}, "'own' is from a folder or a repository"),
        ({"pypi": "git+https://example.org/own.git", "name": "own"}, "'own' is from a folder or a repository"),
        ({**WHEEL, "sha256": None}, "it has no sha256 for 'own-kernels 0.4'"),
    ],
    ids=["a folder", "a repository", "no digest"],
)
def test_a_wheel_that_no_lock_can_represent_is_named(wheel: dict[str, object], reason: str) -> None:
    with pytest.raises(NotWholeError, match=reason):
        export_conda("pixi.lock", pixi_lock(wheel=wheel), ORIGIN, "explicit")


def test_packages_of_other_platforms_do_not_matter() -> None:
    text = pixi_lock(wheel={"pypi": "./own", "name": "own"})
    ((platform, _),) = export_conda("pixi.lock", text, ORIGIN, "explicit", platforms=(Platform.WIN_64,)).texts
    assert platform == "win-64"


def test_a_missing_platform_is_refused() -> None:
    with pytest.raises(UsageError, match="is for linux-64 and win-64, not for osx-arm64"):
        export_conda("pixi.lock", pixi_lock(), ORIGIN, "explicit", platforms=(Platform.OSX_ARM64,))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((f"{CHANNEL}/noarch/a-1-0.conda#{'0' * 32}",), "it names no platform"),
        (("# platform: linux-ppc64le", f"{CHANNEL}/noarch/a-1-0.conda"), "'linux-ppc64le' is not a platform"),
        ((f"{CHANNEL}/linux-64/a-1-0.conda", "# pip own==1.0"), "a wheel in its comments has no URL"),
    ],
)
def test_an_incomplete_explicit_file_is_refused(lines: tuple[str, ...], reason: str) -> None:
    with pytest.raises(NotWholeError, match=reason):
        export_conda("explicit", "\n".join(("@EXPLICIT", *lines)), ORIGIN, "conda-lock")


def test_channels_come_in_the_order_of_the_command_and_conda_forge_last(matrix: Matrix) -> None:
    own, other = "https://example.org/own", "https://example.org/other"
    packages = [package("tzdata"), *(package("bzip2", channel=it) for it in (own, other))]
    assert channels_of(packages) == (other, own, "conda-forge")
    made = Made("VERSION", options=(("channels", (own, "gone")),))
    assert channels_of(packages, made) == (own, other, "conda-forge")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (CHANNEL, "conda-forge"),
        ("https://conda.anaconda.org/pytorch/label/dev/", "pytorch/label/dev"),
        ("https://example.org/conda-forge", "https://example.org/conda-forge"),
        ("conda-forge", "conda-forge"),
    ],
)
def test_a_channel_has_its_usual_name(address: str, name: str) -> None:
    assert named_channel(address) == name


@pytest.mark.parametrize("name", ["x\nhttps://evil.example.org/linux-64/evil-1-0.conda", "$(evil)", "a b"])
def test_facts_cannot_start_a_line(name: str) -> None:
    facts = {"envsolve.envsolve_version": "1", "envsolve.linux-64.frameworks": json.dumps([{"framework": name}])}
    metadata = {"channels": [], "platforms": ["linux-64"], "custom_metadata": facts}
    text = yaml.safe_dump({"version": 1, "metadata": metadata, "package": []})
    ((_, explicit),) = export_conda("conda-lock", text, ORIGIN, "explicit").texts
    assert "evil" not in explicit
    assert "--name envsolve " in explicit
