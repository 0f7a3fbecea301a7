"""Locks as Dockerfiles: the bytes, how BuildKit's own parser and hadolint read them, and what is read back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from envsolve.boundary.files import FileError
from envsolve.errors import UnsolvableError, UsageError
from envsolve.lockfile.dockerfile import read, requirements_in
from envsolve.lockfile.dockerfile import write as dockerfile
from envsolve.lockfile.formats import require_linux_for_image, write_python_lock
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.reading import lock_at
from envsolve.lockfile.requirements_txt import read as read_requirements
from envsolve.lockfile.requirements_txt import write as requirements_txt
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.lock_format import format_for_file
from envsolve.model.package import Pin
from envsolve.model.release import CudaLibraries
from envsolve.model.solution import Solution
from envsolve.model.versions import LibcVersion
from tests.laws import examples
from tests.lockfile.locks import INDEX, PINS, file, locks, plain, rtx_3090, rtx_3090_answer
from tests.lockfile.restriction import restricted

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def parsed(text: str) -> Any:
    """The result of BuildKit's parser."""
    judge = pytest.importorskip("dockerfile", reason="BuildKit's parser is a wheel for some platforms only")
    return judge.parse_string(text)


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction with its whole text."""
    return [(it.cmd, it.original) for it in parsed(text)]


def copied(text: str) -> str:
    """The content that BuildKit would copy, not expanded."""
    (heredoc,) = [heredoc for it in parsed(text) for heredoc in it.heredocs]
    return str(heredoc.content)


def from_line(lock: Lock, solution: Solution | None = None) -> str:
    return next(line for line in dockerfile(lock, solution).splitlines() if line.startswith("FROM "))


def for_python(version: str, *tags: str, platform: str = "linux-64") -> Lock:
    """A lock of one package with wheels of these tags, for a machine with a newer glibc than any image."""
    minor = "".join(version.split(".")[:2])
    files = tuple(file(f"native-1.0-cp{minor}-cp{minor}-{tag}.whl") for tag in tags or ("manylinux2014_x86_64",))
    return plain((Pin("native", "1.0", files, INDEX),), python=version, platform=platform, glibc="2.45", indexes=())


@pytest.mark.parametrize("name", ["rtx-3090", "plain"])
def test_the_output_equals_the_recorded_one(name: str, matrix: Matrix) -> None:
    gpu = rtx_3090(matrix), rtx_3090_answer(matrix).solution
    text = dockerfile(*gpu) if name == "rtx-3090" else dockerfile(plain(default_is_plain=False))
    path = SNAPSHOTS / f"python-lock-{name}.Dockerfile"
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["rtx-3090", "plain"])
def test_hadolint_and_shellcheck_find_nothing(name: str) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("hadolint is a wheel for some platforms only")
    path = SNAPSHOTS / f"python-lock-{name}.Dockerfile"
    done = subprocess.run([hadolint, "--no-color", path], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_it_has_the_lines_of_the_requirements_file_without_the_header(matrix: Matrix) -> None:
    lock = rtx_3090(matrix)
    locked = copied(dockerfile(lock))
    assert requirements_txt(lock).endswith(f"\n\n{locked}")
    assert "envsolve" not in locked


def test_another_version_of_envsolve_rebuilds_no_layer(matrix: Matrix) -> None:
    lock = rtx_3090(matrix)
    assert lock.made is not None
    other = lock.made._replace(
        envsolve_version="9.9", matrix_date="2027-01-01", command="envsolve lock", notes=("another",)
    )
    assert dockerfile(lock) != dockerfile(lock._replace(made=other))
    assert instructions(dockerfile(lock)) == instructions(dockerfile(lock._replace(made=other)))


def test_layers_come_before_metadata(matrix: Matrix) -> None:
    names = [name for name, _ in instructions(dockerfile(rtx_3090(matrix)))]
    assert names == ["FROM", "RUN", "COPY", "RUN", "LABEL", "ENV", "USER", "WORKDIR", "CMD"]


def test_a_gpu_is_requested_if_the_stack_needs_one(matrix: Matrix) -> None:
    text = dockerfile(rtx_3090(matrix))
    assert "\nENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility\n" in text
    assert '\nLABEL envsolve.minimum-driver="580.65.06" envsolve.cuda="13.0"\n' in text
    assert text.count("--gpus all") == 2
    for word in ("NVIDIA", "--gpus", "LABEL"):
        assert word not in dockerfile(plain())


def test_a_lock_read_from_a_file_states_whether_it_needs_a_gpu(matrix: Matrix) -> None:
    text = dockerfile(rtx_3090(matrix), rtx_3090_answer(matrix).solution)
    assert instructions(dockerfile(read(text)))[-4:] == instructions(text)[-4:]
    of_others = plain([PINS[2]._replace(name="nvidia-cublas")], made=None)
    assert "ENV NVIDIA_VISIBLE_DEVICES=all" in dockerfile(of_others)


def test_the_image_has_no_cuda_besides_that_of_the_wheels(matrix: Matrix) -> None:
    made = [text for _, text in instructions(dockerfile(rtx_3090(matrix)))]
    assert not [text for text in made if "nvidia/cuda" in text or "LD_LIBRARY_PATH" in text or "apt-get" in text]


def test_it_does_not_run_as_root_and_has_no_cache() -> None:
    made = dict(instructions(dockerfile(plain())))
    assert made["USER"] == "USER 1000"
    assert made["RUN"].startswith("RUN --mount=type=cache,target=/root/.cache/pip ")
    assert "--require-hashes --no-deps --only-binary :all:" in made["RUN"]


def test_a_login_is_passed_only_if_an_index_may_need_one() -> None:
    assert "--mount=type=secret,id=netrc" in dockerfile(plain())
    alone = plain(PINS[2:3], indexes=("https://download.pytorch.org/whl/cu130",))
    assert "secret" not in dockerfile(alone)


def test_packages_without_a_wheel_are_built_with_a_note() -> None:
    text = dockerfile(plain([PINS[2], Pin("old", "1.0", (file("old-1.0.tar.gz"),), INDEX)]))
    assert "--only-binary" not in text
    assert "# Some of these have no wheel" in text


def test_triton_needs_a_compiler_and_the_file_says_so() -> None:
    assert "C compiler" not in dockerfile(plain())
    assert "C compiler" in dockerfile(plain([Pin("triton", "3.5.0", (file("triton-3.5.0-py3-none-any.whl"),), INDEX)]))


def test_validation_runs_in_a_python_that_envsolve_supports() -> None:
    assert "-m venv /tmp/v" in dockerfile(for_python("3.11.7"))
    assert "-m venv" not in dockerfile(for_python("3.9.1"))
    command = "uv tool run --python 3.11 --from envsolve@$ENVSOLVE_URL envsolve validate"
    assert command in dockerfile(for_python("3.9.1"))


@pytest.mark.parametrize(
    ("version", "tags", "base"),
    [
        ("3.14.1", ("manylinux_2_28_x86_64",), "3.14-slim-bookworm"),
        ("3.12.0", ("manylinux_2_36_x86_64",), "3.12-slim-bookworm"),
        ("3.12.0", ("manylinux_2_39_x86_64",), "3.12-slim-trixie"),
        ("3.12.0", ("manylinux_2_39_x86_64", "manylinux_2_17_x86_64"), "3.12-slim-bookworm"),
        ("3.8.20", ("manylinux2014_x86_64",), "3.8-slim-bookworm"),
        ("3.6.15", ("manylinux1_x86_64",), "3.6-slim-bullseye"),
        ("3.5.10", ("linux_x86_64",), "3.5-slim-buster"),
    ],
)
def test_the_base_has_the_python_and_the_glibc_of_every_package(version: str, tags: tuple[str, ...], base: str) -> None:
    assert from_line(for_python(version, *tags)) == f"FROM python:{base}"


def test_the_framework_counts_for_glibc_whatever_the_name_of_its_wheel(matrix: Matrix) -> None:
    answer = rtx_3090_answer(matrix)
    (choice,) = answer.solution.choices
    needing = choice._replace(release=choice.release._replace(glibc=LibcVersion(2, 39)))
    answer = answer._replace(solution=answer.solution._replace(choices=(needing,)))
    assert from_line(rtx_3090(matrix), answer.solution) == "FROM python:3.11-slim-trixie"


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        (for_python("3.12.0", "manylinux_2_42_x86_64"), "native 1.0 needs a newer glibc"),
        (for_python("3.6.15", "manylinux_2_34_x86_64"), "native 1.0 needs a newer glibc"),
        (for_python("3.4.10", "manylinux1_x86_64"), "no known image of Python 3.4"),
        (plain(python=""), "does not record its Python"),
    ],
)
def test_without_a_suitable_base_there_is_no_file(lock: Lock, message: str) -> None:
    with pytest.raises(UnsolvableError, match="no-base-image") as caught:
        dockerfile(lock)
    assert message in caught.value.message
    assert caught.value.hints
    assert not lock.python or "--" not in caught.value.hints[0].text


def test_a_wheel_that_uses_the_cuda_of_the_system_has_no_image(matrix: Matrix) -> None:
    answer = rtx_3090_answer(matrix)
    (choice,) = answer.solution.choices
    bare = choice._replace(release=choice.release._replace(cuda_libraries=CudaLibraries.NONE))
    answer = answer._replace(solution=answer.solution._replace(choices=(bare,)))
    with pytest.raises(UnsolvableError, match="no-cuda-in-image"):
        dockerfile(rtx_3090(matrix), answer.solution)


def test_the_platform_is_that_of_the_lock() -> None:
    arm = for_python("3.12.0", "manylinux_2_28_aarch64", platform="linux-aarch64")
    assert "--platform linux/arm64" in dockerfile(arm)
    assert "--platform linux/amd64" in dockerfile(for_python("3.12.0"))


@pytest.mark.parametrize("platform", [Platform.WIN_64, Platform.OSX_64, Platform.OSX_ARM64])
def test_images_are_for_linux(platform: Platform) -> None:
    with pytest.raises(UsageError, match="platform-not-supported"):
        require_linux_for_image([Platform.LINUX_64, platform], "dockerfile")
    with pytest.raises(UsageError, match="platform-not-supported"):
        write_python_lock(plain(platform=platform), "dockerfile")
    require_linux_for_image([platform], "requirements")
    require_linux_for_image([Platform.LINUX_64, Platform.LINUX_AARCH64], "dockerfile")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("Dockerfile", True),
        ("dockerfile", True),
        ("Containerfile", True),
        ("gpu.Dockerfile", True),
        ("Dockerfile.gpu", True),
        ("Dockerfile.linux-64", True),
        ("Dockerfile.dockerignore", False),
        (".dockerignore", False),
        ("Dockerfile.lock", False),
        ("Dockerfiles", False),
        ("mydockerfile", False),
        ("requirements.txt", False),
    ],
)
def test_the_name_gives_the_format(name: str, is_one: bool) -> None:
    assert (format_for_file(Path("somewhere") / name) == "dockerfile") is is_one


@pytest.mark.thorough
@settings(max_examples=examples(60))
@given(locks())
def test_any_text_leaves_the_requirements_intact_and_adds_no_instruction(
    lock: Lock,
) -> None:
    text = dockerfile(lock)
    assert read(text) == read_requirements(requirements_txt(lock))
    assert requirements_in(text) == copied(text)
    assert [name for name, _ in instructions(text)] == ["FROM", "RUN", "COPY", "RUN", "USER", "WORKDIR", "CMD"]


def test_facts_and_pins_are_read_under_any_file_name(matrix: Matrix, tmp_path: Path) -> None:
    path = tmp_path / "image.txt"
    path.write_text(dockerfile(rtx_3090(matrix)), encoding="utf-8")
    lock = lock_at(path, Platform.LINUX_64)
    assert lock == restricted(rtx_3090(matrix), "dockerfile")


@pytest.mark.parametrize(
    "start",
    [
        "COPY <<'EOF' /tmp/requirements.txt",
        "copy --chmod=644 <<EOF requirements-gpu.txt",
        "\tCOPY --chown=1000 --link <<-EOF ./requirements.txt",
    ],
)
def test_an_edited_here_document_is_still_read(start: str) -> None:
    text = f"FROM python:3.12-slim\n{start}\nnumpy==2.3.5\nEOF\nRUN echo scipy==1.0\n"
    assert list(read(text).versions) == ["numpy"]


@pytest.mark.parametrize("text", ["FROM python:3.12-slim\n", "# syntax=docker/dockerfile:1\nFROM scratch\n"])
def test_another_dockerfile_is_not_a_lock(text: str) -> None:
    with pytest.raises(FileError, match="without requirements"):
        read(text)


def test_no_line_is_longer_than_buildkit_accepts(matrix: Matrix) -> None:
    """bufio.MaxScanTokenSize, which its parser names in the error."""
    many = tuple(Pin(f"package-{n}", "1.0", (file(f"package_{n}-1.0-py3-none-any.whl"),), INDEX) for n in range(400))
    lock = rtx_3090(matrix)
    assert lock.made is not None
    made = lock.made._replace(request=tuple(it.name for it in many))
    text = dockerfile(lock._replace(pins=many, made=made))
    assert max(map(len, text.splitlines())) < 2000
    assert len(re.findall(r"(?m)^package-\d+==1\.0", copied(text))) == 400
