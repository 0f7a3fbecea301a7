"""The best of all answers, compared with the rules of the objective applied to every answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import inf
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.errors import UnsolvableError
from envsolve.index.client import Indexes, Pool
from envsolve.index.extended import Elsewhere
from envsolve.index.file_metadata import FileMetadata
from envsolve.index.fitting import Interpreter
from envsolve.model.host import Platform
from envsolve.model.need import Need, parse_need
from envsolve.resolve.closure.ages import days_of
from envsolve.resolve.closure.explain import explain
from envsolve.resolve.closure.newest import Ages, Candidates, Newest, Positions
from envsolve.resolve.closure.provider import Provider
from envsolve.resolve.closure.releases import Fitting, Releases, Wanted
from envsolve.resolve.closure.resolve import Conflict, resolved
from envsolve.resolve.closure.shared import narrow
from envsolve.resolve.closure.virtual import Virtual, VirtualReleases, among
from envsolve.resolve.closure.world import Limit, World
from tests.laws import examples
from tests.resolve.closure.drawn import URL, Drawn, MemoryIndex, NoShelf, worlds
from tests.resolve.closure.reference import requirement, solutions

PYTHONS = (13, 12, 11)
MONTHS = (0, 6, 18, 36, 60, None)
CLOSE = {"1.0": 0, "2.0": 60, "3.0": 90, "4.0": 120}
FAR = {"1.0": 0, "2.0": 500, "3.0": 1500, "4.0": 1700}
MIXED = {"1.0": 0, "2.0": 1600, "3.0": 1650, "4.0": 1700}
"""The days of versions: all in one window, each in another, and both."""
PAIR = ("one", "two")
ANYWHERE = "py3-none-any"
TAGS = (ANYWHERE, ANYWHERE, "cp312-cp312-manylinux_2_17_x86_64", "cp311-cp311-manylinux_2_17_x86_64")
often = settings(max_examples=examples(120), deadline=None)


class Question(NamedTuple):
    """A world of packages, some of which exist for one Python only."""

    drawn: Drawn
    tags: Mapping[tuple[str, str], str]
    days: Mapping[str, int] = FAR

    @property
    def named(self) -> list[str]:
        return sorted({requirement(line).name for line in self.drawn.requested})

    def on(self, minor: int) -> Drawn:
        """The part of it for one Python."""
        projects = {
            name: {it: needs for it, needs in versions.items() if self._is_for(minor, name, it)}
            for name, versions in self.drawn.projects.items()
        }
        return self.drawn._replace(projects=projects)

    def _is_for(self, minor: int, name: str, version: str) -> bool:
        tag = self.tags.get((name, version), ANYWHERE)
        return tag == ANYWHERE or tag.startswith(f"cp3{minor}-")


@st.composite
def contested(draw: st.DrawFn) -> Drawn:
    """Three projects requested by name. Newer versions of each require older ones of the others."""
    names = "abcd"
    bounds = st.sampled_from(("==1.0", "==2.0", "<2", "<3", "<4", ">=2", "!=4.0"))
    projects = {
        name: {
            version: draw(st.lists(st.builds("{}{}".format, st.sampled_from(names), bounds), max_size=2))
            for version in FAR
        }
        for name in names
    }
    return Drawn(projects, tuple(draw(st.permutations("abc"))))


@st.composite
def questions(draw: st.DrawFn) -> Question:
    drawn = draw(st.one_of(worlds(), contested(), contested()))
    files = [(name, version) for name, versions in drawn.projects.items() for version in versions]
    tags = {file: draw(st.sampled_from(TAGS)) for file in files}
    return Question(drawn, tags, draw(st.sampled_from((CLOSE, FAR, MIXED))))


def uploaded(question: Question) -> dict[tuple[str, str], str]:
    """When each version was released."""
    start = 18_000  # days since 1970
    projects = question.drawn.projects
    return {(name, it): _day(start + question.days[it]) for name, versions in projects.items() for it in versions}


def _day(number: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(number * 86400, UTC).isoformat()


def candidates(question: Question, virtual: Sequence[Virtual] = (), more: Sequence[Need] = ()) -> Iterator[Candidates]:
    """A world for each Python, all on one index."""
    index = MemoryIndex(question.drawn, uploaded(question), question.tags)
    pool = Pool(index, NoShelf(), FileMetadata())
    requested = [(need, "the command line") for need in (*map(parse_need, question.drawn.requested), *more)]
    for minor in PYTHONS:
        wanted = Wanted(Interpreter((3, minor, 0), Platform.LINUX_64))
        yield Candidates(World(Indexes((URL,), pool), wanted, lambda _: (), {}, virtual), tuple(requested))


def newest(
    worlds: Sequence[Candidates], named: Sequence[str], ages: Mapping[str, Ages] | None = None, end: float = inf
) -> Newest:
    """The search for the best answer, in which all of ``named`` have floors, and their order is their rank."""
    return Newest(worlds, named, named, lambda: named, ages or {}, end)


def found_for(question: Question, named: Sequence[str]) -> tuple[int, dict[str, str]] | None:
    """The Python and the versions of the requested packages, as envsolve chooses them."""
    there = list(candidates(question))
    found = newest(there, named).answer()
    for it in there:
        it.world.close()
    return None if found is None else (found.world, {name: found.picks[name].version for name in question.named})


def best_of_all(question: Question, named: Sequence[str] = ()) -> tuple[int, dict[str, str]] | None:
    """The same by the rules of the objective, from every answer; ``named`` are in the order of their rank."""
    named = named or question.named
    every = [list(solutions(question.on(minor))) for minor in PYTHONS]
    newest = {name: version for name in named if (version := _newest(question, name)) is not None}
    for months in MONTHS:
        floors = {name: _floor(version, months, question.days) for name, version in newest.items()}
        for number, answers in enumerate(every):
            if any(_is_within(it, floors) for it in answers):
                return _tightened(named, every, number, floors)
    return None


def _newest(question: Question, name: str) -> str | None:
    lines = [it for line in question.drawn.requested if (it := requirement(line)).name == name]
    there = {version for minor in PYTHONS for version in question.on(minor).projects[name]}
    return max((it for it in there if all(line.specifier.contains(it) for line in lines)), default=None)


def _floor(newest: str, months: int | None, days: Mapping[str, int]) -> str:
    if months is None:
        return "0"
    return min(it for it, day in days.items() if day >= days[newest] - months * 30.44)


def _is_within(answer: Mapping[str, str], floors: Mapping[str, str]) -> bool:
    return all(answer[name] >= floor for name, floor in floors.items())


def _tightened(
    named: Sequence[str], every: Sequence[Sequence[Mapping[str, str]]], number: int, floors: Mapping[str, str]
) -> tuple[int, dict[str, str]]:
    tightened = dict(floors)
    for name in named:
        within = [
            (world, it) for world in range(number, len(every)) for it in every[world] if _is_within(it, tightened)
        ]
        tightened[name] = max(it[name] for _, it in within)
        number = min(world for world, it in within if it[name] == tightened[name])
    return number, {name: tightened[name] for name in named}


@pytest.mark.thorough
@often
@given(questions())
def test_the_answer_is_the_best_of_all(question: Question) -> None:
    assert found_for(question, question.named) == best_of_all(question)


@pytest.mark.thorough
@often
@given(questions())
def test_facts_common_to_all_answers_exclude_none_of_them(question: Question) -> None:
    """With the work that is done after many conflicts done from the first one on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("envsolve.resolve.closure.resolve._MANY_CONFLICTS", 1)
        assert found_for(question, question.named) == best_of_all(question)


@pytest.mark.thorough
@often
@given(questions())
def test_the_order_of_requirements_does_not_matter(question: Question) -> None:
    orders = list(permutations(question.drawn.requested))
    answers = [
        found_for(question._replace(drawn=question.drawn._replace(requested=it)), question.named) for it in orders
    ]
    assert all(it == answers[0] for it in answers)


class Stack(NamedTuple):
    """A question with a framework that fits some packages and CUDAs, with builds that run on some GPUs.

    Builds are numbered from 0; ``wants`` are what each requires, its CUDA among them, ``running`` those that run.
    ``admitted`` are the builds that a version of a package goes with, if it does not go with all.
    """

    question: Question
    wants: tuple[tuple[str, ...], ...]
    running: frozenset[int]
    admitted: Mapping[tuple[str, str], frozenset[int]]

    @property
    def named(self) -> list[str]:
        return [*self.question.named, "framework"]

    @property
    def as_packages(self) -> Question:
        """The same with the framework and CUDA as packages like any other, for the exhaustive search."""
        question, drawn = self.question, self.question.drawn
        projects = {
            name: {it: (*needs, *self._of_framework(name, it)) for it, needs in versions.items()}
            for name, versions in drawn.projects.items()
        }
        builds = {f"{number + 1}.0": wants for number, wants in enumerate(self.wants)}
        projects |= {"framework": builds, "cuda": {"1.0": (), "2.0": ()}}
        requested = (*drawn.requested, _but("framework", self.running))
        return question._replace(drawn=drawn._replace(projects=projects, requested=requested))

    def _of_framework(self, name: str, version: str) -> tuple[str, ...]:
        admitted = self.admitted.get((name, version))
        return () if admitted is None else (_but("framework", admitted),)

    def judge(self, name: str, version: str, needs: tuple[Need, ...]) -> tuple[Need, ...]:
        """The requirements of a version on the framework, besides its metadata."""
        admitted = self.admitted.get((name, version))
        return needs if admitted is None else (*needs, among("framework", admitted))

    def worlds(self) -> Iterator[Candidates]:
        """A world for each Python, with the builds for it as candidates of a virtual project."""
        question = self.question
        index = MemoryIndex(question.drawn, uploaded(question), question.tags)
        pool = Pool(index, NoShelf(), FileMetadata())
        virtual = (
            Virtual("framework", tuple(tuple(map(_need_of, wants)) for wants in self.wants)),
            Virtual("cuda", ((), ())),
        )
        requested = [(need, "the command line") for need in map(parse_need, question.drawn.requested)]
        for minor in PYTHONS:
            there = self.as_packages.on(minor).projects["framework"]
            builds = [it for it in self.running if f"{it + 1}.0" in there]
            wanted = Wanted(Interpreter((3, minor, 0), Platform.LINUX_64))
            world = World(Indexes((URL,), pool), wanted, lambda _: (), {}, virtual, self.judge)
            yield Candidates(world, (*requested, (among("framework", builds), "the stack")))


def _but(name: str, admitted: frozenset[int]) -> str:
    return name + ",".join(f"!={number + 1}.0" for number in range(4) if number not in admitted)


def _need_of(line: str) -> Need:
    need = parse_need(line)
    return among("cuda", [int(need.specifier[2]) - 1]) if need.name == "cuda" else need


@st.composite
def stacks(draw: st.DrawFn) -> Stack:
    """A GPU that some builds run on, packages compatible with some builds, and builds for one Python only."""
    question = draw(questions())
    files = [(name, version) for name, versions in question.drawn.projects.items() for version in versions]
    some = st.frozensets(st.integers(0, 3))
    bound = st.sampled_from([(), (), ("a<3",), ("a>=2",), ("b==1.0",)])
    wants = tuple((*draw(bound), f"cuda=={draw(st.sampled_from((1, 2)))}.0") for _ in range(4))
    wants = tuple(tuple(it for it in lines if it[0] in {"c", *question.drawn.projects}) for lines in wants)
    admitted = {file: draw(some) for file in draw(st.lists(st.sampled_from(files), max_size=6, unique=True))}
    tags = {**question.tags, **{("framework", f"{it + 1}.0"): draw(st.sampled_from(TAGS)) for it in range(4)}}
    return Stack(question._replace(tags=tags), wants, draw(some), admitted)


@pytest.mark.thorough
@often
@given(stacks())
def test_frameworks_packages_and_the_python_are_the_best_of_all_together(stack: Stack) -> None:
    """Treat the framework as a package of which every version is tried."""
    there = list(stack.worlds())
    days = [float(day) for day in stack.question.days.values()]
    ages = {"framework": Ages(max(stack.running, default=0), lambda: days)}
    found = newest(there, stack.named, ages).answer()
    for it in there:
        it.world.close()
    versions = None
    if found is not None:
        picked = {name: found.picks[name].version for name in stack.named}
        versions = found.world, {**picked, "framework": f"{int(picked['framework']) + 1}.0"}
    assert versions == best_of_all(stack.as_packages, stack.named)


APP = {"1.0": (), "2.0": (), "3.0": ("base>=2",), "4.0": ("base>=3",)}
BASE = {"1.0": (), "2.0": (), "3.0": ()}


def test_a_search_that_was_cut_short_is_finished_in_the_last_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.resolve.closure.newest.SHORT", 1)
    question = Question(Drawn({"app": APP, "base": BASE}, ("app", "base<2")), {}, CLOSE)
    found = newest(list(candidates(question)), ["app"]).answer()
    assert found is not None
    assert found.picks["app"].version == "2.0"


def test_builds_of_a_framework_are_chosen_with_the_packages_around_them() -> None:
    """The framework is on no index; each of its builds requires a package and a CUDA."""
    builds = tuple((Need("base", (), f"=={it}", ""), among("cuda", [major])) for it, major in (("1.0", 0), ("2.0", 1)))
    virtual = (Virtual("framework", builds), Virtual("cuda", ((), ())))
    question = Question(Drawn({"app": APP, "base": BASE}, ("app",)), {})
    there = list(candidates(question, virtual, [among("framework", [0, 1])]))
    ages = {"framework": Ages(1, lambda: [0.0, 0.0])}
    found = newest(there, ["app", "framework"], ages).answer()
    assert found is not None
    assert {name: it.version for name, it in found.picks.items()} == {
        "app": "3.0",
        "base": "2.0",
        "framework": "1",
        "cuda": "1",
    }


def test_a_framework_with_many_conflicts_is_decided_early() -> None:
    """All builds need an old base, all pairs of two packages except the oldest a new one: the pairs are not tried."""
    projects = {name: {f"{it}.0": ("base>=2",) if it > 1 else () for it in range(1, 41)} for name in ("one", "two")}
    drawn = Drawn({**projects, "base": {"1.0": (), "2.0": ()}}, ("one", "two"))
    question = Question(drawn, {}, {f"{it}.0": it for it in range(1, 41)})
    builds = ((Need("base", (), "<2", ""),),) * 40
    candidate = next(candidates(question, [Virtual("framework", builds)], [among("framework", range(40))]))
    provider = Provider(candidate.world, candidate.requirements, {}, {"one": 0})
    picks = resolved(provider, inf, most_rounds=400)
    assert {name: it.version for name, it in picks.items()} == {
        "one": "1.0",
        "two": "1.0",
        "base": "1.0",
        "framework": "39",
    }


def test_two_packages_that_pin_the_same_others_are_not_tried_pair_by_pair() -> None:
    """No two versions agree on both of what each of them pins."""
    numbers = range(1, 41)
    one = {f"{it}.0": (f"left=={it}.0", f"right=={it}.0") for it in numbers}
    two = {f"{it}.0": (f"left=={it}.0", f"right=={it % 40 + 1}.0") for it in numbers}
    both = {name: {f"{it}.0": () for it in numbers} for name in ("left", "right")}
    drawn = Drawn({"one": one, "two": two, **both}, ("one", "two"))
    candidate = next(candidates(Question(drawn, {}, {f"{it}.0": it for it in numbers})))
    provider = Provider(candidate.world, candidate.requirements, {}, {})
    assert narrow(provider, provider.roots, 100, inf)
    assert (provider.root_mask("one"), provider.root_mask("two")) == (0, 0)
    with pytest.raises(Conflict):
        resolved(provider, inf)


def test_a_last_resort_is_only_used_without_another_answer() -> None:
    tags = {("app", it): "cp313-cp313-manylinux_2_17_x86_64" for it in APP}
    question = Question(Drawn({"app": APP, "base": BASE}, ("app",)), tags)
    young, *others = candidates(question)
    there = [*others, young._replace(is_last_resort=True)]
    found = newest(there, ["app"]).answer()
    assert found is not None
    assert (found.world, found.picks["app"].version) == (2, "4.0")


def test_a_project_on_no_index_ends_the_search_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(Drawn({"app": APP, "base": BASE}, ("app",)), {}, FAR)
    there = list(candidates(question, more=[parse_need("nowhere")]))
    searched: list[Positions] = []

    def counted(self: Newest, number: int, floors: Positions) -> Provider:
        searched.append(floors)
        return provider(self, number, floors)

    provider = Newest._provider
    monkeypatch.setattr(Newest, "_provider", counted)
    search = newest(there, ["app", "nowhere"])
    assert search.answer() is None
    assert len(searched) == len(there)
    assert [it.causes[0].requirement.name for it in search.conflicts.values()] == ["nowhere"] * len(there)


@pytest.mark.parametrize("days", [CLOSE, FAR])
def test_the_conflict_of_each_world_is_known_whatever_the_age_of_its_packages(days: Mapping[str, int]) -> None:
    one, two = (dict.fromkeys(APP, (f"base=={base}",)) for base in ("1.0", "2.0"))
    question = Question(
        Drawn({"one": one, "two": two, "base": BASE}, PAIR), {("one", it): TAGS[-1] for it in APP}, days
    )
    search = newest(list(candidates(question)), PAIR)
    assert search.answer() is None
    about = {world: {it.requirement.name for it in conflict.causes} for world, conflict in search.conflicts.items()}
    assert about == {0: {"one"}, 1: {"one"}, 2: {"base"}}, "only the last Python has wheels of one"


def test_a_timeout_is_an_error() -> None:
    question = Question(Drawn({"app": APP, "base": BASE}, ("app",)), {})
    with pytest.raises(UnsolvableError) as caught:
        newest(list(candidates(question)), ["app"], end=0.0).answer()
    assert caught.value.code == "search-too-long"


def test_a_timeout_explains_the_conflict_of_the_newest_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {f"{it}.0": (f"base=={it}.0",) for it in range(1, 5)}
    two = {f"{it}.0": (f"base=={5 - it}.0",) for it in range(1, 5)}
    base: dict[str, tuple[str, ...]] = {f"{it}.0": () for it in range(1, 5)}
    question = Question(Drawn({"one": one, "two": two, "base": base}, PAIR), {})
    candidate = next(candidates(question))
    search = newest([candidate], PAIR, end=1.0)
    first, later = (
        iter((0.0,) * 5),
        2.0,
    )  # enough rounds to find that the newest conflict
    monkeypatch.setattr("envsolve.resolve.closure.resolve.monotonic", lambda: next(first, later))
    with pytest.raises(UnsolvableError) as caught:
        search.answer()
    assert caught.value.code == "search-too-long"
    why, *_ = caught.value.cause
    assert why == "the newest versions conflict: one 4.0 requires base==4.0; two 4.0 requires base==1.0"


def test_the_limit_of_the_gpu_is_the_first_fact_of_a_conflict() -> None:
    question = Question(Drawn({"app": {"1.0": ("base",)}, "base": BASE}, ("app",)), {})
    candidate = next(candidates(question))
    limits = (Limit("<0.1", "", "constraints.txt"), Limit("<0.1", "no wheel has code for the GPU", is_of_gpu=True))
    candidate.world.limits = lambda name: limits if name == "base" else ()
    with pytest.raises(Conflict) as caught:
        resolved(Provider(candidate.world, candidate.requirements, {}), inf)
    _, _, fact, other, *_ = explain(caught.value)
    assert (fact, other) == (
        "base is limited: no wheel has code for the GPU",
        "constraints.txt limits base to <0.1",
    )


def test_builds_of_a_framework_are_not_called_versions_on_an_index() -> None:
    question = Question(Drawn({"app": APP, "base": BASE}, ("app",)), {})
    none = [among("framework", [])]
    candidate = next(candidates(question, [Virtual("framework", ((), ()))], none))
    with pytest.raises(Conflict) as caught:
        resolved(Provider(candidate.world, candidate.requirements, {}), inf)
    assert not any(" has framework" in it for it in explain(caught.value))


def test_a_version_is_as_old_as_the_oldest_of_newer_ones() -> None:
    drawn = Drawn({"app": {"1.0": (), "1.1": (), "2.0rc1": (), "2.0": ()}}, ())
    days = {"1.0": 10, "1.1": 900, "2.0rc1": 5, "2.0": 500}
    times = {("app", version): _day(18_000 + day) for version, day in days.items()}
    project = Indexes((URL,), Pool(MemoryIndex(drawn, times), NoShelf(), FileMetadata())).project("app")
    assert project is not None
    releases = Releases(project, Fitting(Wanted(Interpreter((3, 12, 0), Platform.LINUX_64))))
    assert [round(it - 18_000) for it in days_of(releases)] == [10, 500, 500, 500]


def test_a_build_on_another_index_is_as_old_as_its_version_and_comes_after_the_builds_on_this_one() -> None:
    """The other index, which is not queried for that, does not exist."""
    drawn = Drawn({"app": {"1.0": (), "2.0": (), "2.0+own": ()}}, ())
    times = {("app", "1.0"): _day(18_010), ("app", "2.0"): _day(18_500), ("app", "2.0+own"): _day(18_600)}
    more = {"app": {it: [Elsewhere("https://nowhere.invalid/", it)] for it in ("1.0+cu1", "2.0+cu1", "3.0+cu1")}}
    index = MemoryIndex(drawn, times)
    project = Indexes((URL,), Pool(index, NoShelf(), FileMetadata()), more=more).project("app")
    assert project is not None
    releases = Releases(project, Fitting(Wanted(Interpreter((3, 12, 0), Platform.LINUX_64))))
    assert [round(it - 18_000) for it in days_of(releases)[:-1]] == [10, 10, 500, 500, 600]
    order = [project.versions[it] for it in releases.newest_first(releases.mask(""))]
    assert order == ["3.0+cu1", "2.0+own", "2.0", "2.0+cu1", "1.0", "1.0+cu1"]


def test_a_set_of_candidates_becomes_a_specifier() -> None:
    fitting = Fitting(Wanted(Interpreter((3, 12, 0), Platform.LINUX_64)))
    releases = VirtualReleases(Virtual("cuda", ((), (), ())), fitting)
    assert releases.mask(among("cuda", [0, 2]).specifier) == 0b101
    assert releases.mask(among("cuda", []).specifier) == 0
    assert releases.newest(releases.mask("")) == 2
