"""The facts in data/frameworks about each framework, which are in no other file."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from envsolve.frameworks import (
    DEPENDENT_FRAMEWORKS,
    FRAMEWORK_OF_CPU_WHEEL,
    FRAMEWORK_OF_WHEEL,
    FRAMEWORKS,
    DependentFramework,
    Framework,
    Preload,
    frameworks_among,
    read_dependent_framework,
    read_framework,
    split_dependent,
)
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.validation import inside

ROOT = Path(__file__).parents[1]
MATRIX = ROOT / "data" / "compat_matrix"
KNOWN = ROOT / "data" / "frameworks"
DEPENDENT = KNOWN / "dependent"
BESIDE = {"jaxlib"}
"""Packages that the matrix has rows for and that are part of a framework, which is always installed with them."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_package_in_the_matrix_is_known(name: str) -> None:
    rows = tomllib.loads((MATRIX / f"{name}.toml").read_text(encoding="utf-8"))["release"]
    for package in {row.get("package", name) for row in rows} - BESIDE:
        assert [it.name for it in frameworks_among([package])] == [name], package


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_has_its_probe(name: str) -> None:
    assert Path(inside.__file__).with_name(f"{FRAMEWORKS[name].probe}.py").is_file()


@pytest.mark.parametrize("it", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_a_framework_that_loads_cuda_lazily_has_the_call(it: Framework) -> None:
    assert (it.libraries.preload is Preload.REQUESTED) == (it.preload_call is not None)


def test_each_has_its_own_position_in_lists() -> None:
    assert len({it.order for it in FRAMEWORKS.values()}) == len(FRAMEWORKS)


@pytest.mark.parametrize("it", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_libraries_opened_by_name_have_a_cuda(it: Framework) -> None:
    """Without it the static check would skip them."""
    assert not it.libraries.opened or it.built.cuda is not None or "_cuda" in it.built.file


@pytest.mark.parametrize("package", sorted({*FRAMEWORK_OF_WHEEL, *FRAMEWORK_OF_CPU_WHEEL}))
def test_a_framework_is_not_also_a_package_with_kernels(package: str, matrix: Matrix) -> None:
    assert [it for it in matrix.build_facts(package) if it.are_about_cuda] == []


def section(page: str, heading: str) -> str:
    """The text below a heading."""
    return (ROOT / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2].partition("\n#")[0]


@pytest.mark.parametrize("it", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_lists_in_the_docs_include_it(it: Framework) -> None:
    assert it.title in section("README.md", "## What it knows")
    assert f"`{it.name}`" in section("docs/validating.md", "# How an environment is tested")
    locking = section("docs/locking.md", "## The stack and the packages around it")
    assert any(f"`{package}`" in locking for package in it.wheels)


@pytest.mark.parametrize("it", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_the_type_checker_ignores_imports_of_its_probe(it: Framework) -> None:
    tree = ast.parse(Path(inside.__file__).with_name(f"{it.probe}.py").read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    roots = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    untyped = {name for table in project["tool"]["mypy"]["overrides"] for name in table["module"]}
    assert roots
    assert {f"{root}.*" for root in roots} <= untyped


def test_names_are_compared_in_any_spelling_and_each_framework_is_returned_once() -> None:
    found = frameworks_among(["Tensorflow_GPU", "tensorflow", "Torch", "CuPy-CUDA13x", "numpy"])
    assert [it.name for it in found] == ["pytorch", "tensorflow", "cupy"]


@pytest.mark.parametrize("name", ["torchvision", "jaxlib", "jax-cuda12-plugin", "tensorflow-io", "cupy-xarray", "onnx"])
def test_packages_that_only_belong_to_a_framework_are_not_one(name: str) -> None:
    assert frameworks_among([name]) == ()


def test_every_framework_of_the_matrix_is_known_and_no_other(matrix: Matrix) -> None:
    assert set(FRAMEWORKS) == set(matrix.framework_names)


def keys_of(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each key with the table that it is in; names of packages are no keys."""
    for key, value in table.items():
        if isinstance(value, dict) and key not in ("cpu", "owners", "holds", "builds-hold", "pairs", "same-version"):
            yield from keys_of(value, f"[{key}]")
        elif key != "opened":
            yield prefix, key


def explained(directory: Path) -> dict[tuple[str, str], bool]:
    """The keys that the README documents, each with its table, and whether it is required."""
    table = ""
    keys: dict[tuple[str, str], bool] = {}
    for line in (directory / "README.md").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\| `(\[\w+\])` \|", line):
            table = found[1]
        elif line.startswith("| `") and "[[" not in line:
            _, names, required, *_ = line.split("|")
            keys |= {(table, key): required.strip() == "yes" for key in re.findall(r"`([\w-]+)`", names)}
    return keys


@pytest.mark.parametrize("path", sorted(KNOWN.glob("*.toml")), ids=lambda it: it.stem)
def test_the_readme_documents_each_key_and_whether_it_is_required(path: Path) -> None:
    known = explained(KNOWN)
    required = {key for key, is_required in known.items() if is_required}
    keys = set(keys_of(tomllib.loads(path.read_text(encoding="utf-8"))))
    assert required <= keys <= set(known)
    for table, key in keys - {("[libraries]", "seen")}:  # which is for people
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        del (document[table.strip("[]")] if table else document)[key]
        with pytest.raises(KeyError) if (table, key) in required else nullcontext():
            read_framework(path.stem, document)


@pytest.mark.parametrize("path", sorted(DEPENDENT.glob("*.toml")), ids=lambda it: it.stem)
def test_it_also_documents_those_of_dependent_ones(path: Path) -> None:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    known = {key: is_required for (_, key), is_required in explained(DEPENDENT).items()}
    assert {key for key, is_required in known.items() if is_required} <= set(document) <= set(known)
    for key in document.keys() - {"seen"}:  # which is for people
        with pytest.raises(KeyError) if known[key] else nullcontext():
            read_dependent_framework(path.stem, {it: value for it, value in document.items() if it != key})


@pytest.mark.parametrize("it", DEPENDENT_FRAMEWORKS.values(), ids=DEPENDENT_FRAMEWORKS)
def test_a_dependent_one_stands_on_a_framework_and_has_the_probe_of_its_kernel(it: DependentFramework) -> None:
    assert it.on in FRAMEWORKS
    assert {Platform(platform) for platform in it.platforms}
    assert not FRAMEWORKS[it.on].is_installed_as(it.name)
    has_probe = Path(inside.__file__).with_name(f"{it.probe}.py").is_file()
    assert has_probe == (it.kernel is not None)
    assert it.title in section("README.md", "## What it knows")
    assert f"`{it.name}`" in section("docs/validating.md", "# How an environment is tested")


@pytest.mark.parametrize(
    ("texts", "frameworks", "requirements"),
    [
        (["vllm==0.30.*", "jax"], ("pytorch", "jax"), ("vllm==0.30.*",)),
        (["SGLang", "torch>=2.5"], ("pytorch", "torch>=2.5"), ("sglang>=0.5.3",)),
        (["sglang==0.5.*"], ("pytorch",), ("sglang==0.5.*,>=0.5.3",)),
        (["sglang<0.5"], ("pytorch",), ("sglang[srt]<0.5",)),
        (["sglang==0.4.*"], ("pytorch",), ("sglang[srt]==0.4.*",)),
        (["sglang>0.5.3,<0.6"], ("pytorch",), ("sglang<0.6,>0.5.3,>=0.5.3",)),
        (["sglang<0.6"], ("pytorch",), ("sglang<0.6,>=0.5.3",)),
        (["vllm[audio]", "vllm; python_version>'3'"], ("vllm[audio]", "vllm; python_version>'3'"), ()),
    ],
)
def test_a_dependent_one_is_split_into_its_framework_and_a_requirement(
    texts: list[str], frameworks: tuple[str, ...], requirements: tuple[str, ...]
) -> None:
    """With extras or a marker the error about valid frameworks applies."""
    assert split_dependent(texts) == (frameworks, requirements)


OPTION = re.compile(r"pytorch[-_]index[-_]url", re.IGNORECASE)
"""The option that names PyTorch's own index."""


def marks_of(known: Framework) -> set[str]:
    """The parts of a string that are about a framework: its names, and those of its modules and packages."""
    packages = {*known.wheels, *known.cpu_wheels, *known.rivals, *known.own_index}
    of_conda = {*known.conda_packages, *known.conda_builds}
    return {known.name, known.libraries.package, *known.aliases, *known.owners, *packages, *of_conda} - {"tf"}


MARKED = set().union(DEPENDENT_FRAMEWORKS, *map(marks_of, FRAMEWORKS.values()))
MARKS = re.compile("|".join((r"\btf[-_]", *map(re.escape, MARKED))))


def names_in(text: str) -> set[str]:
    """The strings of a module that name a framework, except docstrings and sentences, which decide nothing.

    What is compared and what is a regular expression is no sentence, even with blanks.
    """
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {id(it.value) for it in nodes if isinstance(it, ast.Expr)}
    deciding = [it for it in nodes if isinstance(it, ast.Compare) or (isinstance(it, ast.Call) and is_of_re(it.func))]
    decide = {id(it) for node in deciding for it in ast.walk(node)}
    constants = (it for it in nodes if isinstance(it, ast.Constant) and id(it) not in docstrings)
    strings = {it.value for it in constants if isinstance(it.value, str) and (" " not in it.value or id(it) in decide)}
    return {it for it in strings if MARKS.search(OPTION.sub("", it).lower())}


def is_of_re(called: ast.expr) -> bool:
    """Whether a function of the module ``re`` is called."""
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re"


@pytest.mark.parametrize(
    "line",
    [
        'if name == "torch": pass',
        'if "built for PyTorch" in line: pass',
        'path.glob("torch/lib/*.so")',
        'KNOWN = {"jax-cuda12-plugin": 12}',
        'f"cupy-cuda{major}x"',
        'environ["TF_FORCE_GPU_ALLOW_GROWTH"]',
        're.compile(r"not compiled with (cuda|rocm), says paddle")',
    ],
)
def test_a_framework_is_found_anywhere_in_a_string(line: str) -> None:
    assert names_in(f"x = ({line})" if ":" not in line or line.startswith("f") else line)


def test_texts_for_users_may_name_a_framework() -> None:
    assert not names_in('"""Of torch."""\nHint("name one: pytorch>=2.5", "--pytorch-index-url")')


MAY_NAME = {
    "validation/inside/on_*": "the probes, one for each framework",
    "releases/frameworks/*": "readers of wheels, one for each framework whose new releases are read",
    "diagnose/facts/*": "facts about what one program prints, which data/findings names",
    "boundary/redaction": "names of users and machines that say nothing of anyone",
    "diagnose/machine/variables": "variables that programs and tools read",
    "model/release": "the sources, which are indexes and channels",
    "model/cuda_packages": "a conda package that stands for CUDA",
    "extension_sources": "keys of data/sources, whose wheels are built for one PyTorch",
    "lockfile/wheels": "how two sources name their wheels and pages",
    "matrix/torch_symbols": "the symbols of a C++ interface that extensions need",
    "binary/package_facts": "how libraries for one release among several are named",
    "conda/name_table": "what conda calls projects of all kinds",
}
"""Modules whose strings name a framework, and why. Do not add one for a new framework: use data/frameworks."""


@pytest.mark.thorough
def test_no_framework_is_hard_coded_outside_of_its_file() -> None:
    package = ROOT / "envsolve"
    modules = {path.relative_to(package).with_suffix("").as_posix(): path for path in package.rglob("*.py")}
    naming = {name for name, path in modules.items() if names_in(path.read_text(encoding="utf-8"))}
    assert {next((it for it in MAY_NAME if fnmatchcase(name, it)), name) for name in naming} == set(MAY_NAME)
