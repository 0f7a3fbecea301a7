"""Laws for the framework files: the facts about a build must fit the tables of CUDA and cuDNN, and the other rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, groupby, pairwise

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envsolve.matrix.laws.facts import Facts, Law, breach, named, raw_rows
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.release import CudaLibraries, CudnnRelease, KnownBad, Release, Source


def toolkit_of_a_build_is_known(facts: Facts) -> Iterator[str]:
    """The CUDA a build was compiled with has a row in cuda.toml, and so has one that it runs with.

    That row has the driver floors for Linux and Windows, without which the build's driver is unknown.
    """
    toolkits = facts.toolkits

    @cache
    def is_met(requires: SpecifierSet) -> bool:
        return any(requires.contains(str(version)) for version in toolkits)

    for file, release in facts.releases:
        if release.cuda is None:
            continue
        if release.cuda not in toolkits:
            yield breach(file, named(release), f"CUDA {release.cuda} is not in cuda.toml")
        requires = release.cuda_requires
        if requires is not None and not is_met(requires):
            yield breach(file, named(release), f"cuda.toml has no CUDA {requires}, which cuda_requires needs")


def cudnn_that_a_build_asks_for_is_known(facts: Facts) -> Iterator[str]:
    """The cuDNN a build requires has a row for its CUDA major, from where its installer takes it.

    The solver chooses among these rows, so without one the build could never be chosen.
    """

    @cache
    def rows(cuda_major: int, requires: SpecifierSet) -> list[CudnnRelease]:
        of_major = (row for row in facts.cudnn if row.cuda_major == cuda_major)
        return [row for row in of_major if requires.contains(row.version, prereleases=True)]

    for file, release in facts.releases:
        if release.cuda is None or release.cudnn_requires is None:
            continue
        needed = f"cuDNN {release.cudnn_requires} for CUDA {release.cuda.major}"
        fitting = rows(release.cuda.major, release.cudnn_requires)
        if not fitting:
            yield breach(file, named(release), f"{needed} is not in cudnn.toml")
        elif _installs_cudnn(release) and not any(row.offered_by(release.source, release.platform) for row in fitting):
            yield breach(file, named(release), f"{needed} is in cudnn.toml, but not from {release.source}")


def cudnn_a_build_was_compiled_with_is_known(facts: Facts) -> Iterator[str]:
    """The cuDNN a build was compiled with, as far as it is stated, begins the version of a row for its CUDA major.

    A version that never existed for that CUDA was misread.
    """
    known = {(row.cuda_major, row.version.release[:length]) for row in facts.cudnn for length in range(1, 5)}
    for file, release in facts.releases:
        if release.cuda is None or release.cudnn is None:
            continue
        if (release.cuda.major, release.cudnn.release) not in known:
            what = f"cuDNN {release.cudnn} for CUDA {release.cuda.major} is not in cudnn.toml"
            yield breach(file, named(release), what)


def machine_code_is_what_the_toolkit_compiles(facts: Facts) -> Iterator[str]:
    """Machine code in a build is for capabilities that its toolkit compiles for.

    ptxas refuses any other target, so one in the list was read from another build or belongs to another toolkit.
    """
    yield from _beyond_the_compiler(facts, "sass")


def ptx_is_what_the_toolkit_knows(facts: Facts) -> Iterator[str]:
    """PTX in a build is for capabilities that its toolkit knows, so never newer than the newest of them.

    The reason is the same as for machine code. Also, a driver is expected to compile PTX because it supports that
    toolkit.
    """
    yield from _beyond_the_compiler(facts, "ptx")


def suffixed_code_is_what_the_toolkit_makes(facts: Facts) -> Iterator[str]:
    """Architecture- and family-specific code (9.0a, 12.0f) is for a target that its toolkit has.

    ptxas lists these targets one by one: 9.0a begins with CUDA 12.0, the families with 12.9.
    """
    toolkits = facts.toolkits
    for file, release in facts.releases:
        toolkit = None if release.cuda is None else toolkits.get(release.cuda)
        if toolkit is None:
            continue
        for target in (*release.code.sass, *release.code.ptx):
            if target.feature_set and target not in toolkit.feature_targets:
                yield breach(file, named(release), f"CUDA {release.cuda} has no target {target}")


def code_targets_are_listed_once_and_in_order(facts: Facts) -> Iterator[str]:
    """Lists of code targets ascend and name each target once.

    So rows can be compared by eye, and a typing mistake shows.
    """
    for file, release in facts.releases:
        for key, targets in (("sass", release.code.sass), ("ptx", release.code.ptx)):
            if list(targets) != sorted(set(targets)):
                yield breach(file, named(release), f"{key} is not in ascending order, each target once")


def pythons_are_listed_once_and_in_order(facts: Facts) -> Iterator[str]:
    """Lists of Python versions ascend as versions do (3.9 before 3.10) and name each once."""
    for file, release in facts.releases:
        minors = [tuple(int(part) for part in python.split(".")) for python in release.pythons]
        if minors != sorted(set(minors)):
            listed = ", ".join(release.pythons)
            yield breach(file, named(release), f"pythons ({listed}) are not in ascending order, each once")


def releases_stand_newest_first(facts: Facts) -> Iterator[str]:
    """Rows of a framework file are listed newest version first.

    A new release is added at the top, and a missing one shows as a gap.
    """
    for table in facts.frameworks:
        for above, below in pairwise(table.releases):
            if below.version > above.version:
                yield breach(table.name, named(below), f"is below the older {above.version}")


def days_of_release_are_in_order(facts: Facts) -> Iterator[str]:
    """Days of release are for versions in the file, not after ``updated``, and in the order of the versions.

    A patch comes after what it patches, and a series (2.14) of a major begins after the one before. 2.13.1 may follow
    2.14.0, as TensorFlow 1.15 followed 2.0.
    """
    for table in facts.frameworks:
        listed = list(_days_of_release(facts, table.name))
        known = {str(it.version) for it in table.releases}
        for version, day in listed:
            where = f"dates.released.{version}"
            if version not in known:
                yield breach(table.name, where, "is no version of the file")
            if day > table.updated:
                yield breach(table.name, where, f"{day} is later than updated, {table.updated}")
        in_order = sorted((Version(version), day) for version, day in listed)
        series = [list(of_one) for _, of_one in groupby(in_order, key=lambda it: it[0].release[:2])]
        firsts = groupby((of_one[0] for of_one in series), key=lambda it: it[0].major)
        for rows in (*series, *(list(of_major) for _, of_major in firsts)):
            for (older, day), (newer, next_day) in pairwise(rows):
                if next_day < day:
                    what = f"{next_day} is before {day}, the day of {older}"
                    yield breach(table.name, f"dates.released.{newer}", what)


def no_two_rows_are_one_build(facts: Facts) -> Iterator[str]:
    """No two rows share version, source, platform, build and package, unless no Python is in both.

    An environment requires a build by these, so with two rows the choice would be arbitrary.
    """
    by_key: dict[tuple[object, ...], list[Release]] = {}
    for _, release in facts.releases:
        key = (release.framework, release.version, release.source, release.platform, release.build, release.package)
        by_key.setdefault(key, []).append(release)
    for rows in by_key.values():
        for one, other in combinations(rows, 2):
            shared = [python for python in one.pythons if python in other.pythons]
            if shared:
                yield breach(one.framework, named(one), f"appears twice for Python {', '.join(shared)}")


def companions_and_constraints_can_be_read(facts: Facts) -> Iterator[str]:
    """Companions name valid version specifiers, constraints valid requirements.

    They are written into environments unchanged, where pip or conda would fail on invalid ones.
    """
    for file, release in facts.releases:
        for package, versions in release.companions:
            if not _reads(SpecifierSet, versions):
                yield breach(file, named(release), f"companions.{package}: {versions!r} is not a version specifier")
        for constraint in release.constraints:
            if not _reads(Requirement, constraint):
                yield breach(file, named(release), f"constraints: {constraint!r} is not a requirement")


def glibc_is_a_matter_of_linux(facts: Facts) -> Iterator[str]:
    """Only builds for Linux name a glibc: other systems have none."""
    for file, release in facts.releases:
        if release.glibc is not None and not release.platform.value.startswith("linux-"):
            yield breach(file, named(release), f"names glibc {release.glibc}")


def known_bad_rows_mean_a_build(facts: Facts) -> Iterator[str]:
    """Every known_bad row covers at least one build of its file, and so does each source, build and platform it lists.

    A row that covers no build warns no one: its versions or builds are misspelt, or its rows are gone.
    """
    for table in facts.frameworks:
        for number, entry in enumerate(table.known_bad, 1):
            where = f"known_bad[{number}]"
            if not any(entry.covers(release) for release in table.releases):
                yield breach(table.name, where, f"covers no build: {_selection(entry)}")
                continue
            for word, narrowed in _one_by_one(entry):
                if not any(narrowed.covers(release) for release in table.releases):
                    yield breach(table.name, where, f"covers no build of {word}: {_selection(entry)}")


def platform_limits_mean_a_version_and_hold(facts: Facts) -> Iterator[str]:
    """Every platform_limit names a version of its file, and no GPU build there contradicts it.

    Users read the limit if nothing is found, so it must apply to something, and be true.
    """
    for table in facts.frameworks:
        for number, limit in enumerate(table.platform_limits, 1):
            meant = [release for release in table.releases if limit.versions.contains(release.version, True)]
            if not meant:
                yield breach(table.name, f"platform_limit[{number}]", f"no release is {limit.versions}")
            for release in meant:
                if release.platform is limit.platform and release.cuda is not None:
                    what = f"says {limit.platform} has no GPU build, but there is {named(release)}"
                    yield breach(table.name, f"platform_limit[{number}]", what)


def disagreements_mean_a_version(facts: Facts) -> Iterator[str]:
    """Every disagreement of a framework file names versions of that file.

    It is shown next to the rows it is about.
    """
    for table in facts.frameworks:
        for number, entry in enumerate(table.disagreements, 1):
            where = f"disagreement[{number}]"
            if entry.versions is None:
                yield breach(table.name, where, "versions is missing: a framework's disagreement is about some")
            elif not any(entry.versions.contains(release.version, True) for release in table.releases):
                yield breach(table.name, where, f"no release is {entry.versions}")


def names_mean_one_framework(facts: Facts) -> Iterator[str]:
    """No name or alias is used for two frameworks."""
    owners: dict[str, str] = {}
    for table in facts.frameworks:
        for name in (table.name, *table.aliases):
            if owners.setdefault(name, table.name) != table.name:
                yield breach(table.name, "aliases", f"{name!r} is a name of {owners[name]} too")


RELEASES: tuple[Law, ...] = (
    toolkit_of_a_build_is_known,
    cudnn_that_a_build_asks_for_is_known,
    cudnn_a_build_was_compiled_with_is_known,
    machine_code_is_what_the_toolkit_compiles,
    ptx_is_what_the_toolkit_knows,
    suffixed_code_is_what_the_toolkit_makes,
    code_targets_are_listed_once_and_in_order,
    pythons_are_listed_once_and_in_order,
    releases_stand_newest_first,
    days_of_release_are_in_order,
    no_two_rows_are_one_build,
    companions_and_constraints_can_be_read,
    glibc_is_a_matter_of_linux,
    known_bad_rows_mean_a_build,
    platform_limits_mean_a_version_and_hold,
    disagreements_mean_a_version,
    names_mean_one_framework,
)


def _days_of_release(facts: Facts, framework: str) -> Iterator[tuple[str, str]]:
    for row in raw_rows(facts.documents[framework], "dates"):
        released = row.get("released")
        yield from released.items() if isinstance(released, dict) else ()


def _installs_cudnn(release: Release) -> bool:
    """Whether cuDNN is installed with the package from a source whose cuDNN releases are in cudnn.toml."""
    recorded = release.source.is_wheel or release.source is Source.CONDA_FORGE
    return recorded and release.cuda_libraries is CudaLibraries.DEPENDENCIES


def _beyond_the_compiler(facts: Facts, key: str) -> Iterator[str]:
    toolkits = facts.toolkits
    for file, release in facts.releases:
        toolkit = None if release.cuda is None else toolkits.get(release.cuda)
        if toolkit is None:
            continue
        targets = release.code.sass if key == "sass" else release.code.ptx
        strange = _strange(targets, toolkit.compiles_for)
        if strange:
            what = f"CUDA {release.cuda} has no target {', '.join(map(str, strange))}, which {key} lists"
            yield breach(file, named(release), what)


def _strange(targets: tuple[CodeTarget, ...], known: tuple[ComputeCapability, ...]) -> list[CodeTarget]:
    return [target for target in targets if target.capability not in known]


def _reads(kind: type[SpecifierSet | Requirement], text: str) -> bool:
    try:
        kind(text)
    except (InvalidSpecifier, InvalidRequirement):
        return False
    return True


def _one_by_one(entry: KnownBad) -> Iterator[tuple[str, KnownBad]]:
    """The row once for each word in each of its lists, with only that word in the list."""
    yield from ((source.value, entry._replace(sources=(source,))) for source in entry.sources)
    yield from ((build, entry._replace(builds=(build,))) for build in entry.builds)
    yield from ((platform.value, entry._replace(platforms=(platform,))) for platform in entry.platforms)


def _selection(entry: KnownBad) -> str:
    chosen = [*entry.sources, *entry.builds, *entry.platforms]
    return " ".join([str(entry.versions), *(str(word) for word in chosen)])
