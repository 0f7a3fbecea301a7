"""The names of conda packages on package indexes, and the other way round."""

from __future__ import annotations

import pytest

from envsolve.conda.name_table import RENAMED, WITHOUT_PROJECT
from envsolve.conda.names import PROJECTS, PROJECTS_IN_BUILDS, SAME_NAME, conda_names, present_projects, python_names
from envsolve.conda.names import _spellings as spellings
from envsolve.model.conda import CondaPackage
from envsolve.model.names import is_name, normalized
from envsolve.model.package import Present

PYTHON = ("python >=3.12,<3.13.0a0", "python_abi 3.12.* *_cp312")
IN_BUILDS = [
    (package, word, name)
    for package, builds in PROJECTS_IN_BUILDS.items()
    for word, names in builds.items()
    for name in names
]


def package(
    name: str, version: str = "1.0", build: str = "py312h0_0", depends: tuple[str, ...] = PYTHON
) -> CondaPackage:
    """A package of conda-forge, for Python unless it depends on something else."""
    url = f"https://conda.anaconda.org/conda-forge/linux-64/{name}-{version}-{build}.conda"
    return CondaPackage(name, version, build, "linux-64", url, depends=depends)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("conda", "projects"),
    [
        ("numpy", ("numpy",)),
        ("ml_dtypes", ("ml-dtypes",)),
        ("ruamel.yaml", ("ruamel-yaml",)),
        ("ruamel_yaml", ("ruamel-yaml-conda",)),
        ("pytorch", ("torch",)),
        ("tensorflow", ("tensorflow",)),
        ("tensorflow-base", ("tensorflow",)),
        ("python-tzdata", ("tzdata",)),
        ("python-graphviz", ("graphviz",)),
        ("python-dateutil", ("python-dateutil",)),
        ("jaxlib", ("jaxlib",)),
        ("opencv", ()),
        ("python", ()),
        ("_python_abi3_support", ()),
        ("bullet", ()),
    ],
)
def test_a_python_package_provides_the_project_it_is_built_from(conda: str, projects: tuple[str, ...]) -> None:
    assert python_names(package(conda)) == projects


@pytest.mark.parametrize("name", ["tzdata", "graphviz", "xz", "zlib", "yaml", "brotli", "pytorch-gpu"])
def test_a_package_without_python_provides_no_project(name: str) -> None:
    assert python_names(package(name, depends=("libgcc >=13",))) == ()


def test_a_cuda_build_provides_the_plugin_of_its_cuda() -> None:
    assert python_names(package("jaxlib", build="cuda129_py312h0_200")) == (
        ("jaxlib", "jax-cuda12-pjrt", "jax-cuda12-plugin")
    )
    assert python_names(package("jaxlib", build="cuda112py39h0_200")) == ("jaxlib",)
    assert python_names(package("onnxruntime", build="py312h0_1_cuda")) == ("onnxruntime", "onnxruntime-gpu")


@pytest.mark.parametrize(
    ("project", "candidates"),
    [
        ("torch", ("pytorch", "pytorch-cpu")),
        ("tables", ("pytables",)),
        ("msgpack", ("msgpack-python",)),
        ("brotli", ("brotli-python",)),
        ("graphviz", ("python-graphviz",)),
        ("tzdata", ("python-tzdata",)),
        ("opencv-python", ("py-opencv",)),
        ("opencv-python-headless", ("opencv-python-headless", "py-opencv")),
        ("matplotlib", ("matplotlib", "matplotlib-base")),
        ("tensorflow", ("tensorflow", "tensorflow-base")),
        ("onnxruntime-gpu", ("onnxruntime",)),
        ("faiss-cpu", ("faiss-cpu", "faiss")),
        ("krb5", ()),
        ("NumPy", ("numpy",)),
        ("ruamel.yaml", ("ruamel-yaml", "ruamel.yaml")),
        ("jupyter_core", ("jupyter-core", "jupyter_core", "jupyter.core")),
        ("backports-functools-lru-cache", (
            "backports-functools-lru-cache", "backports_functools_lru_cache", "backports.functools.lru.cache",
            "backports.functools-lru-cache", "backports.functools_lru_cache",
        )),
    ],
)  # fmt: skip
def test_a_project_is_looked_up_under_its_possible_conda_names(project: str, candidates: tuple[str, ...]) -> None:
    assert conda_names(project) == candidates


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_a_renamed_package_is_found_by_each_of_its_projects(name: str) -> None:
    projects = PROJECTS[name]
    assert projects
    assert all(it == normalized(it) and is_name(it) for it in projects)
    assert len(set(projects)) == len(projects)
    assert projects != (normalized(name),) or name not in spellings(projects[0])
    assert all(name in conda_names(it) for it in projects)


def test_no_name_is_in_two_tables() -> None:
    tables = (set(PROJECTS), SAME_NAME, WITHOUT_PROJECT)
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_tables_are_sorted_and_use_names_of_channels() -> None:
    assert list(RENAMED) == sorted(RENAMED)
    assert all(it == it.lower() and it.isascii() for it in (*PROJECTS, *SAME_NAME, *WITHOUT_PROJECT))


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(SAME_NAME))
def test_a_package_of_the_same_name_is_listed_with_the_others_for_its_project(name: str) -> None:
    first, *others = conda_names(name)
    assert first == name
    assert others


def test_every_candidate_provides_its_project() -> None:
    projects = {name for names in PROJECTS.values() for name in names} | {normalized(it) for it in SAME_NAME}
    builds = {(it, name): word for it, word, name in IN_BUILDS}
    for project in sorted(projects | {name for _, _, name in IN_BUILDS}):
        for name in conda_names(project):
            assert project in python_names(package(name, build=builds.get((name, project), ""))), (project, name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(WITHOUT_PROJECT))
def test_a_package_without_a_project_is_no_candidate(name: str) -> None:
    assert python_names(package(name)) == ()
    assert name not in conda_names(name)


def test_present_packages_have_the_version_and_name_of_their_package() -> None:
    there = [package("pytorch", "2.7.1"), package("numpy", "1.26.4"), package("xz", "5.8.1", depends=())]
    assert present_projects(there) == {"torch": Present("2.7.1", "pytorch"), "numpy": Present("1.26.4", "numpy")}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("whole", "base", "project"),
    [
        ("matplotlib", "matplotlib-base", "matplotlib"),
        ("tensorflow", "tensorflow-base", "tensorflow"),
        ("typing-extensions", "typing_extensions", "typing-extensions"),
    ],
)
def test_the_package_with_the_files_of_a_project_counts(whole: str, base: str, project: str, *, turned: bool) -> None:
    there = [package(whole, depends=(*PYTHON, f"{base} 1.0")), package(base)]
    assert present_projects(reversed(there) if turned else there) == {project: Present("1.0", base)}
