"""The requirements that a source distribution states without being built."""

from __future__ import annotations

import os

import pytest

from envsolve.errors import OutsideError
from envsolve.index.metadata import Metadata
from envsolve.index.source_archive import NVIDIA_INDEX, stated_metadata
from envsolve.model.package import PackageFile
from tests.index.packages import core_metadata, sdist

OLD = b"Metadata-Version: 2.1\nName: app\nVersion: 1.0\nRequires-Python: >=3.9\n"
PROJECT = b'[project]\nname = "app"\nversion = "1.0"\nrequires-python = ">=3.10"\ndependencies = ["part>=2"]\n'
EXTRAS = b"[project.optional-dependencies]\ngpu = [\"engine; os_name == 'posix'\"]\n"
REQUIRES_TXT = b"""
part>=2

[:python_version < "3.12"]
backport

[gpu]
engine

[gpu:sys_platform == "linux"]
driver>=1
"""


def metadata(members: dict[str, bytes], name: str = "app") -> Metadata:
    """The facts in an archive with these files."""
    file = sdist(name, "1.0", pkg_info=OLD.replace(b"app", name.encode()), members=members)
    assert file.content is not None
    return stated_metadata(file.content, PackageFile(file.name, f"https://files.example.org/{file.name}"))


def stated(members: dict[str, bytes]) -> tuple[list[str], str | None, tuple[str, ...]] | None:
    """The requirements of an archive with these files, its Python, and its extras."""
    found = metadata(members)
    if found.needs_build:
        assert found.requires is None
        return None
    needs = [f"{it} ; {it.marker}" if it.marker else str(it) for it in found.requires or ()]
    return needs, found.requires_python, found.extras


def test_metadata_valid_for_every_wheel_is_used() -> None:
    content = core_metadata("app", "1.0", requires=["part"])
    assert stated({"PKG-INFO": content}) == (["part"], None, ())


def test_a_complete_project_table_is_used() -> None:
    expected = (["part>=2", 'engine ; os_name == "posix" and extra == "gpu"'], ">=3.10", ("gpu",))
    assert stated({"pyproject.toml": PROJECT + EXTRAS}) == expected


@pytest.mark.parametrize("key", ["dependencies", "optional-dependencies", "requires-python", "version"])
def test_dynamic_fields_in_a_table_make_it_unusable(key: str) -> None:
    remaining = b"\n".join(line for line in PROJECT.splitlines() if not line.startswith(key.encode()))
    assert stated({"pyproject.toml": remaining + f'\ndynamic = ["{key}"]\n'.encode()}) is None


@pytest.mark.parametrize("table", [b"", b"[project]\nname = 'app'\n", b"project = 5\n", b"[project\n", b"\xff"])
def test_a_table_without_a_version_or_of_another_shape_is_unusable(table: bytes) -> None:
    assert stated({"pyproject.toml": table}) is None


@pytest.mark.parametrize("place", ["app.egg-info", "src/app.egg-info"])
def test_metadata_of_setuptools_in_the_archive_is_read(place: str) -> None:
    found = stated({f"{place}/PKG-INFO": OLD, f"{place}/requires.txt": REQUIRES_TXT})
    assert found == (
        [
            "part>=2",
            'backport ; python_version < "3.12"',
            'engine ; extra == "gpu"',
            'driver>=1 ; sys_platform == "linux" and extra == "gpu"',
        ],
        ">=3.9",
        ("gpu",),
    )


@pytest.mark.parametrize("names", [("PKG-INFO",), ("requires.txt",), ()])
def test_metadata_of_setuptools_is_only_used_if_complete(names: tuple[str, ...]) -> None:
    contents = {"PKG-INFO": OLD, "requires.txt": REQUIRES_TXT}
    assert stated({f"app.egg-info/{name}": contents[name] for name in names}) is None


def test_a_nested_egg_info_belongs_to_something_else() -> None:
    below = "vendor/deep/app.egg-info"
    assert stated({f"{below}/PKG-INFO": OLD, f"{below}/requires.txt": REQUIRES_TXT}) is None


def test_an_archive_about_another_project_is_an_error() -> None:
    with pytest.raises(OutsideError) as caught:
        stated({"PKG-INFO": OLD.replace(b"Name: app", b"Name: other")})
    assert caught.value.code == "metadata-invalid"


STUB = b'[build-system]\nrequires = ["wheel-stub"]\nbuild-backend = "wheel_stub.buildapi"\n'
INSTALLS = b'import subprocess\nsubprocess.run(["pip", "install", "x", "--index-url", "https://pypi.nvidia.com"])\n'


@pytest.mark.parametrize(
    ("members", "index"),
    [
        ({"pyproject.toml": STUB + b'[tool.wheel_stub]\nindex_url = "https://pypi.nvidia.com/"\n'}, NVIDIA_INDEX),
        (
            {"pyproject.toml": STUB + b'[tool.wheel_stub]\nindex_url = "https://own.example/a/"\n'},
            "https://own.example/a",
        ),
        ({"PKG-INFO": OLD + b"\nThis is not functional and is a placeholder from NVIDIA.\n"}, NVIDIA_INDEX),
        ({"setup.py": INSTALLS}, NVIDIA_INDEX),
    ],
)
def test_a_placeholder_archive_names_its_index(members: dict[str, bytes], index: str) -> None:
    assert metadata(members).leads_to == index


def test_a_package_that_changes_settings_of_pip_is_a_placeholder() -> None:
    assert metadata({}, "nvidia-pyindex").leads_to == NVIDIA_INDEX


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"pyproject.toml": STUB},
        {"pyproject.toml": b"tool = 5\n" + STUB},
        {"pyproject.toml": STUB + b"[tool]\nwheel_stub = 5\n"},
        {"pyproject.toml": STUB + b'[tool.wheel_stub]\nindex_url = "file:///etc"\n'},
        {"pyproject.toml": STUB + b'[tool.wheel_stub]\nindex_url = "https://a b\\u001b[31m"\n'},
        {"pyproject.toml": b"\xff"},
        {"PKG-INFO": OLD + b"\nInstall it with --extra-index-url https://pypi.nvidia.com.\n"},
        {"app/setup.py": INSTALLS},
        {"setup.py": INSTALLS, "data": os.urandom(120_000)},
    ],
)
def test_other_archives_name_no_index(members: dict[str, bytes]) -> None:
    assert metadata(members).leads_to == ""


BUILD = '[build-system]\nrequires = ["setuptools"{}]\n'


@pytest.mark.parametrize(
    ("script", "pyproject", "expected"),
    [
        ("import os\nimport torch\n", "", ("torch",)),
        ("from torch.utils import cpp_extension\n", BUILD.format(', "ninja"'), ("torch",)),
        ("import torch\n", BUILD.format(', "torch>=2"'), ()),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\n", "", ()),
        ("import torchvision\n", "", ()),
        ("import torch\n", '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n', ()),
        ("import torch\n", "build-system = 5\n", ()),
    ],
)
def test_a_build_that_imports_a_framework_without_requiring_it_is_known(
    script: str, pyproject: str, expected: tuple[str, ...]
) -> None:
    assert metadata({"setup.py": script.encode(), "pyproject.toml": pyproject.encode()}).build_imports == expected
