#!/usr/bin/env python3
"""Read which Python names came and went with the releases of packages, and write data/findings/names/PACKAGE.toml.

    .venv-test/bin/python scripts/refresh_names.py                  every package of the list below
    .venv-test/bin/python scripts/refresh_names.py trl peft         only these

The newest release of each minor is downloaded with pip and its sources are parsed; nothing of it runs. A name that all
of these releases have is not written, nor is one that none has.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

import click
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.matrix_refresh.cache import cached, store, write_whole  # noqa: E402
from scripts.matrix_refresh.settings import default_cache  # noqa: E402

_FIRST = {
    "torch": "1.12",
    "torchvision": "0.13",
    "torchaudio": "0.12",
    "torchao": "0.5",
    "transformers": "4.30",
    "diffusers": "0.20",
    "accelerate": "0.20",
    "peft": "0.4",
    "trl": "0.7",
    "huggingface_hub": "0.16",
    "datasets": "2.14",
    "sentence_transformers": "2.2",
}
"""The packages, by the name of their module, and the first release that is read."""

_PYTHONS = ("3.12", "3.11", "3.10", "3.9", "3.8")
_PLATFORMS = ("macosx_12_0_arm64", "macosx_14_0_arm64", "manylinux_2_28_x86_64", "manylinux2014_x86_64", "win_amd64")
"""A wheel for macOS is the smallest of torch; the sources are the same."""

_EDITION = "names-1"
_SKIPPED = re.compile(r"(?:^|\.)(?:tests?|testing|test_\w+|conftest|_?vendor\w*|benchmarks?|examples?)(?:\.|$)")
_NOISE = (
    "._import_structure",
    "._LazyModule",
    ".OptionalDependencyNotAvailable",
    ".T",
    ".logger",
    "_DOCSTRING",
    "_DOC",
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@click.option("--cache-dir", type=click.Path(path_type=Path, file_okay=False), help="Where names are cached.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=ROOT / "data" / "findings" / "names",
    help="Where the files are written.",
    show_default="data/findings/names",
)
def refresh(packages: tuple[str, ...], cache_dir: Path | None, directory: Path) -> None:
    """Bring data/findings/names up to what was released."""
    cache = (cache_dir or default_cache()) / _EDITION
    for package in packages or tuple(_FIRST):
        read = {_minor(it): _names_of(package, it, cache) for it in _newest_of_minors(package)}
        having = {minor: names for minor, names in read.items() if names is not None}
        path = directory / f"{package}.toml"
        write_whole(path, toml_of(package, having))
        path.chmod(0o644)
        click.echo(f"{package}: {len(having)} releases")


def _newest_of_minors(package: str) -> list[Version]:
    """The newest release of each minor, in order."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = listed.partition("Available versions:")[2].partition("\n")[0]
    versions = sorted(map(Version, re.findall(r"\d[\w.]*", line)))
    newest = {_minor(it): it for it in versions if it >= Version(_FIRST[package])}
    return list(newest.values())


def _minor(version: Version) -> str:
    return f"{version.major}.{version.minor}"


def _names_of(package: str, version: Version, cache: Path) -> set[str] | None:
    """The names of a release; None if no wheel of it is found."""
    path = cache / f"{package}-{version}.json"
    known = cached(path)
    if isinstance(known, list):
        return set(map(str, known))
    with tempfile.TemporaryDirectory() as directory:
        wheel = _download(package, version, Path(directory))
        if wheel is None:
            return None
        with ZipFile(wheel) as archive:
            members = [it for it in archive.namelist() if re.fullmatch(rf"{package}/(?:[^.]+)\.pyi?", it)]
            names = names_in({it: archive.read(it).decode("utf-8", "replace") for it in members})
    store(path, sorted(names))
    return names


def _download(package: str, version: Version, directory: Path) -> Path | None:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(directory)]
    for platform in _PLATFORMS:
        for python in _PYTHONS:
            command = [*pip, "--platform", platform, "--python-version", python, f"{package}=={version}"]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return next(directory.glob("*.whl"))
    return None


# ------------------------------------------------------------------------------------------------ names in sources


def names_in(sources: Mapping[str, str]) -> set[str]:
    """The modules of a package and the names of each, with dots and without the package: ``utils.generic.X``."""
    package = next(iter(sources)).partition("/")[0]
    modules = {_module(path): text for path, text in sources.items() if path.endswith(".py")}
    modules = {name: text for name, text in modules.items() if not _SKIPPED.search(name)}
    found = {name: set(_defined(text)) for name, text in modules.items()}
    listed = {name: set(_listed(text)) for name, text in modules.items()}
    for path in (f"{package}/_C/__init__.pyi", f"{package}/_C/_VariableFunctions.pyi"):  # what torch has from C++
        found[""] |= set(_defined(sources.get(path, ""))) | set(_TYPED.findall(sources.get(path, "")))
    for path in sources:
        if path.endswith("/__init__.py") and (name := _module(path)) in modules:
            for imported, source in _imported(modules[name], package, name):
                others = listed.get(source) or {it for it in found.get(source, ()) if not it.startswith("_")}
                found[name] |= others if imported == "*" else {imported}
    if "define_import_structure" in modules.get("", ""):
        found[""] |= set[str]().union(*(names for it, names in listed.items() if it.startswith("models.")))
    members = {f"{module}.{name}".lstrip(".") for module, names in found.items() for name in names}
    return {it for it in members | (modules.keys() - {""}) if "__" not in it and not it.endswith(_NOISE)}


def _module(path: str) -> str:
    return ".".join(path.removesuffix(".py").removesuffix("/__init__").split("/")[1:])


_DEFINED = re.compile(r"(?:async )?(?:def|class) (\w+)|(_*[A-Z]\w*)(?:: [^=\n]+)? = ")
_TYPED = re.compile(r"^(\w+): ", re.MULTILINE)
_BRANCH = re.compile(r"(?:if|elif|else|try|except|finally|with)\b")


def _defined(text: str) -> Iterator[str]:
    """The functions, classes, types and constants at the top of a module, or in a branch there."""
    branch = False
    for line in text.splitlines():
        if line[:1].strip():
            branch = _BRANCH.match(line) is not None
        elif branch and line[4:5].strip():
            line = line[4:]  # noqa: PLW2901
        if match := _DEFINED.match(line):
            yield match[1] or match[2]


def _listed(text: str) -> Iterator[str]:
    """What a module names in ``__all__``."""
    for match in re.finditer(r"^__all__ *\+?= *[\[(](.*?)[\])]", text, re.MULTILINE | re.DOTALL):
        yield from re.findall(r"""["'](\w+)["']""", match[1])


def _imported(text: str, package: str, module: str) -> Iterator[tuple[str, str]]:
    """What the file of a package imports from it, with the module that it is in; also when it is first used."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    lazy = "_import_structure" in text or "__getattr__" in text or "_LazyModule" in text
    for it in ast.walk(tree):
        if isinstance(it, ast.ImportFrom) and (it.level or (it.module or "").split(".")[0] == package):
            folders = module.split(".") if module else []
            inside = it.module.split(".") if it.module else []
            source = ".".join([*folders[: len(folders) - it.level + 1], *inside] if it.level else inside[1:])
            yield from ((alias.asname or alias.name, source) for alias in it.names)
        elif lazy and isinstance(it, ast.List):
            strings = (item.value for item in it.elts if isinstance(item, ast.Constant))
            yield from ((name, "") for name in strings if isinstance(name, str) and _IDENTIFIER.fullmatch(name))


# ------------------------------------------------------------------------------------------------ the file


def toml_of(package: str, having: Mapping[str, set[str]]) -> str:
    """The file of a package: the names that some of its releases have, and others lack."""
    releases = list(having)
    since: dict[str, set[str]] = {}
    until: dict[str, set[str]] = {}
    for name in filter(_is_public, set[str]().union(*having.values())):
        having_it = [release for release in releases if name in having[release]]
        if having_it[0] != releases[0]:
            since.setdefault(having_it[0], set()).add(name)
        if having_it[-1] != releases[-1]:
            until.setdefault(having_it[-1], set()).add(name)
    lines = [
        "# Made by scripts/refresh_names.py from the newest wheel of each of these releases.",
        "",
        f'package = "{package}"',
        "releases = [" + ", ".join(f'"{it}"' for it in releases) + "]",
        "",
        "[since]  # the first release that has a name: the module, and its names",
        *_groups(since, releases),
        "",
        "[until]  # the last release that has it",
        *_groups(until, releases),
    ]
    return "\n".join(lines) + "\n"


def _is_public(name: str) -> bool:
    """Whether other packages import it: nothing private but a module at the top, and of models only the modules."""
    *modules, last = name.split(".")
    if modules[:1] in (["models"], ["pipelines"]) and not last.islower():
        return False
    return not any(part.startswith("_") for part in (*modules, last)) or (
        not modules and last.islower() and "_" not in last[1:]
    )


def _groups(names: Mapping[str, set[str]], releases: Sequence[str]) -> Iterator[str]:
    for release in releases:
        modules: dict[str, list[str]] = {}
        of_release = names.get(release, set())
        for name in sorted(of_release):
            module, _, last = name.rpartition(".")
            # what a whole module brings is not listed with it
            if not any(module == it or module.startswith(f"{it}.") for it in of_release):
                modules.setdefault(module, []).append(last)
        if modules:
            yield f'"{release}" = """'
            yield from (f"{module}: {' '.join(last)}" for module, last in sorted(modules.items()))
            yield '"""'


if __name__ == "__main__":
    refresh()
