"""Locks as definition files: the bytes, how Apptainer parses them, and what is read back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from envsolve.boundary.files import FileError
from envsolve.errors import UnsolvableError, UsageError
from envsolve.lockfile.apptainer import read, requirements_in
from envsolve.lockfile.apptainer import write as apptainer
from envsolve.lockfile.dockerfile import requirements_in as requirements_in_dockerfile
from envsolve.lockfile.dockerfile import write as dockerfile
from envsolve.lockfile.formats import require_linux_for_image, write_python_lock
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.reading import format_in, lock_at
from envsolve.lockfile.requirements_txt import read as read_requirements
from envsolve.lockfile.requirements_txt import write as requirements_txt
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.lock_format import format_for_file
from envsolve.model.package import Pin
from envsolve.model.release import CudaLibraries
from tests.laws import examples
from tests.lockfile.definition_files import definition, written_by_post
from tests.lockfile.locks import INDEX, PINS, file, locks, plain, rtx_3090, rtx_3090_answer
from tests.lockfile.restriction import restricted

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="an image is built on Linux")


def installation(text: str) -> str:
    return definition(text)[1]["post"].rstrip().splitlines()[-1].strip()


@pytest.mark.parametrize("name", ["rtx-3090", "plain"])
def test_the_output_equals_the_recorded_one(name: str, matrix: Matrix) -> None:
    gpu = rtx_3090(matrix), rtx_3090_answer(matrix).solution
    text = apptainer(*gpu) if name == "rtx-3090" else apptainer(plain(default_is_plain=False))
    path = SNAPSHOTS / f"python-lock-{name}.def"
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_image_is_that_of_the_dockerfile(matrix: Matrix) -> None:
    for lock in (rtx_3090(matrix), plain(), plain(python="3.12.0"), plain(python="3.6.15", glibc="2.28")):
        text, docker = apptainer(lock), dockerfile(lock)
        header, _ = definition(text)
        assert header["bootstrap"] == "docker"
        assert f"\nFROM {header['from']}\n" in docker
        assert requirements_in(text) == requirements_in_dockerfile(docker)


@POSIX
def test_the_build_writes_the_lines_of_the_requirements_file(matrix: Matrix, tmp_path: Path) -> None:
    lock = rtx_3090(matrix)
    written = written_by_post(apptainer(lock), tmp_path)
    assert requirements_txt(lock).endswith(f"\n\n{written}")
    assert "envsolve" not in written


@POSIX
def test_a_long_lock_has_several_sections_that_the_builder_can_read(tmp_path: Path) -> None:
    many = [Pin(f"package-{n}", "1.0", (file(f"package_{n}-1.0-py3-none-any.whl"),), INDEX) for n in range(2000)]
    text = apptainer(plain(many))
    assert text.count("\n%post\n") > 3
    assert written_by_post(text, tmp_path) == requirements_in(text)
    assert len(read(text).pins) == 2000


def test_pip_installs_only_hashed_files_without_a_cache() -> None:
    made = installation(apptainer(plain()))
    assert "pip install --no-cache-dir --require-hashes --no-deps --only-binary :all: -r " in made


def test_a_login_is_passed_only_if_an_index_may_need_one() -> None:
    assert installation(apptainer(plain())).startswith("NETRC=/mnt/netrc pip ")
    alone = apptainer(plain(PINS[2:3], indexes=("https://download.pytorch.org/whl/cu130",)))
    assert installation(alone).startswith("pip ")
    assert "login" not in alone


def test_packages_without_a_wheel_are_built_with_a_note() -> None:
    text = apptainer(plain([PINS[2], Pin("old", "1.0", (file("old-1.0.tar.gz"),), INDEX)]))
    assert "--only-binary" not in text
    assert "# Some of these have no wheel" in text


def test_triton_needs_a_compiler_and_the_file_says_so() -> None:
    assert "C compiler" not in apptainer(plain())
    assert "C compiler" in apptainer(plain([Pin("triton", "3.5.0", (file("triton-3.5.0-py3-none-any.whl"),), INDEX)]))


def test_the_driver_is_added_if_the_stack_is_for_a_gpu(matrix: Matrix) -> None:
    text = apptainer(rtx_3090(matrix))
    _, sections = definition(text)
    assert sections["labels"].split() == ["envsolve.minimum-driver", "580.65.06", "envsolve.cuda", "13.0"]
    assert text.count("apptainer run --nv ") == text.count("apptainer exec --nv ") == 1
    without = apptainer(plain())
    assert "--nv" not in without
    assert "labels" not in definition(without)[1]


def test_packages_of_the_host_are_excluded(matrix: Matrix) -> None:
    script = definition(apptainer(rtx_3090(matrix)))[1]["environment"]
    assert "export PYTHONNOUSERSITE=1\n" in script
    assert "unset PYTHONPATH PYTHONHOME\n" in script


@POSIX
@pytest.mark.parametrize("section", ["environment", "post", "runscript"])
def test_every_script_is_valid_shell(section: str, matrix: Matrix) -> None:
    script = definition(apptainer(rtx_3090(matrix)))[1][section]
    subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=True, timeout=60)


def test_validation_runs_in_a_python_that_envsolve_supports() -> None:
    assert "-m venv $d" in apptainer(plain())
    old = apptainer(plain([PINS[2]], python="3.9.1"))
    assert "-m venv" not in old
    assert "uv tool run --python 3.11 --from envsolve@$ENVSOLVE_URL envsolve validate" in old


def test_a_wheel_that_uses_the_cuda_of_the_system_has_no_image(matrix: Matrix) -> None:
    answer = rtx_3090_answer(matrix)
    (choice,) = answer.solution.choices
    bare = choice._replace(release=choice.release._replace(cuda_libraries=CudaLibraries.NONE))
    answer = answer._replace(solution=answer.solution._replace(choices=(bare,)))
    with pytest.raises(UnsolvableError, match="no-cuda-in-image"):
        apptainer(rtx_3090(matrix), answer.solution)


def test_without_a_base_for_the_python_the_hint_names_the_format() -> None:
    with pytest.raises(UnsolvableError, match="no-base-image") as caught:
        apptainer(plain(python=""))
    assert caught.value.hints[0].text.endswith("--format apptainer")


@pytest.mark.parametrize("platform", [Platform.WIN_64, Platform.OSX_64, Platform.OSX_ARM64])
def test_images_are_for_linux(platform: Platform) -> None:
    with pytest.raises(UsageError, match="platform-not-supported") as caught:
        require_linux_for_image([Platform.LINUX_64, platform], "apptainer")
    assert caught.value.cause == ("Apptainer runs only on Linux (on Windows, in WSL2)",)
    with pytest.raises(UsageError, match="platform-not-supported"):
        write_python_lock(plain(platform=platform), "apptainer")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("env.def", True),
        ("GPU.DEF", True),
        ("Singularity", True),
        ("Singularity.gpu", True),
        ("Singularity.lock", False),
        ("singularity-notes", False),
        ("definition", False),
        ("Dockerfile", False),
    ],
)
def test_the_name_gives_the_format(name: str, is_one: bool) -> None:
    assert (format_for_file(Path("somewhere") / name) == "apptainer") is is_one


@pytest.mark.thorough
@settings(max_examples=examples(60))
@given(locks())
def test_any_text_leaves_the_requirements_intact_and_adds_no_section(lock: Lock) -> None:
    text = apptainer(lock)
    assert read(text) == read_requirements(requirements_txt(lock))
    header, sections = definition(text)
    assert list(header) == ["bootstrap", "from"]
    assert list(sections) == ["post", "environment", "runscript"]


def test_facts_and_pins_are_read_under_any_file_name(matrix: Matrix, tmp_path: Path) -> None:
    path = tmp_path / "image.txt"
    path.write_text(apptainer(rtx_3090(matrix)), encoding="utf-8")
    assert lock_at(path, Platform.LINUX_64) == restricted(rtx_3090(matrix), "apptainer")


@pytest.mark.parametrize(
    "start",
    [
        "cat > /opt/requirements.txt << 'EOF'",
        "    cat >>requirements-gpu.txt <<EOF",
        "cat > /tmp/requirements.txt <<-EOF",
    ],
)
def test_an_edited_here_document_is_still_read(start: str) -> None:
    text = f"Bootstrap: docker\nFrom: python:3.12-slim\n\n%post\n{start}\nnumpy==2.3.5\nEOF\necho scipy==1.0\n"
    assert list(read(text).versions) == ["numpy"]
    assert format_in(Path("image.txt"), text) == "apptainer"


def test_another_definition_file_is_not_a_lock() -> None:
    with pytest.raises(FileError, match="without requirements"):
        read("Bootstrap: docker\nFrom: python:3.12-slim\n\n%post\n    pip install numpy==2.3.5\n")
