"""Locks of real projects for real machines, by envsolve and by uv, judged by rules.

    .venv-test/bin/python -m benchmarks.real_projects DIRECTORY [--targets T1 T3] [--projects vllm comfyui] [--keep DIR]

``DIRECTORY`` has ``NAME.in`` for each project, requirements whose first line is ``# FRAMEWORK, where they are from``;
``wrong_together.json``, versions that do not run together; and perhaps ``judged.jsonl``, what people said of earlier
locks, with which the judge is compared. Everything is on the default package index (settings of pip do not count).

envsolve runs as someone types it, with ``--source pypi``; after exit 1 again with ``--allow-builds``. uv gets
the same and the framework, for Python 3.12 and wheels alone, after a refusal sources too; it knows neither GPU
nor driver, and its one lock is judged on every machine. :mod:`benchmarks.lock_judge` says what good, stale, wrong and
refused mean. Times are of whole processes, both tries together, from empty caches on. Nothing is run on a GPU.

With ``--keep`` locks and times stay in a directory, and a run goes on where another one ended; one at a time.

With ``--times`` nothing is judged: the tools take turns, each run from an empty cache, so that whatever else the
machine does hinders both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.lock_judge import LOOK_SECONDS, UV_PACKAGES, UV_PYTHON, Judge, Machine, Project, Uv
from benchmarks.lock_tables import row
from benchmarks.lock_tools import ENVSOLVE, KILLED, UV, Run, compile_all, run
from envsolve.matrix import Matrix
from envsolve.model.host import Platform

MACHINES = {
    "T1": Machine("RTX 4090", "580.95.05"),
    "T2": Machine("RTX 3090", "550.54.15"),
    "T3": Machine("GTX 1080 Ti", "580.95.05"),
    "T4": Machine("GeForce RTX 5090", "570.195.03"),
    "T5": Machine("RTX 4070", "566.36", Platform.WIN_64),
}
GOOD, STALE, WRONG, REFUSED, RIGHTLY, NO_ANSWER = "good", "stale", "wrong", "refused", "refused rightly", "no answer"
VERDICTS = (GOOD, STALE, WRONG, RIGHTLY, REFUSED, NO_ANSWER)
JUDGED_AS = {"GOOD": GOOD, "STALE": STALE, "WRONG": WRONG, "REFUSED-RIGHT": RIGHTLY, "REFUSED-WRONG": REFUSED,
             "SLOW": NO_ANSWER}  # fmt: skip
"""What ``judged.jsonl`` calls the verdicts."""
_SAID = 20_000


class Answer(NamedTuple):
    """What a tool did: its exit status, its time in both tries, and the first lines of what it said at last.

    ``processor`` are the seconds that it and its children had of a processor.
    """

    status: int
    seconds: float
    said: str
    processor: float = 0.0


class Row(NamedTuple):
    """How one tool did on one project and machine; ``why`` is what is wrong, or what could have been had.

    ``framework`` is the version of the project's framework in the lock, None without one.
    """

    project: str
    target: str
    tool: str
    framework: str | None
    verdict: str
    seconds: float
    why: str
    said: str


class Runner:
    """Runs the tools, each for at most so many ``seconds``; ``home`` is where envsolve keeps what it fetched."""

    def __init__(self, envsolve: Path, uv: Uv, home: Path, seconds: float, options: Sequence[str] = ()) -> None:
        self.seconds = seconds
        self._envsolve, self._uv, self._home, self._options = envsolve, uv, home, options

    def answer(self, project: Project, machine: Machine, tool: str, lock: Path) -> Answer:
        """What ``tool`` does about ``project``; it writes ``lock``."""
        first = self._try(project, machine, tool, lock, builds=False)
        if first.status in (0, KILLED) or (tool == ENVSOLVE and first.status != 1):
            said, processor = first.complaint[:_SAID], round(first.processor_seconds, 1)
            return Answer(first.status, round(first.seconds, 1), said, processor)
        second = self._try(project, machine, tool, lock, builds=True)
        said = first.complaint if second.status == first.status else second.complaint
        seconds, processor = (round(one + other, 1) for one, other in zip(first[:2], second[:2], strict=True))
        return Answer(second.status, seconds, said[:_SAID], processor)

    def _try(self, project: Project, machine: Machine, tool: str, lock: Path, *, builds: bool) -> Run:
        lock.unlink(missing_ok=True)
        if tool == UV:
            requirements = [project.file, UV_PACKAGES[project.framework]]
            options = () if builds else ("--only-binary", ":all:")
            return self._uv.compile(requirements, UV_PYTHON, machine.platform, lock, *options)
        command = [str(self._envsolve), "-f", project.framework, "-r", str(project.file), "--source", "pypi"]
        command += ["--platform", str(machine.platform), "--gpu", machine.gpu, "--driver", machine.driver]
        command += ["--format", "requirements", "-o", str(lock), *self._options]
        command += ["--allow-builds"] if builds else []
        return run(command, self._home, self.seconds)


class Bench:
    """Runs the tools and judges what they answer; locks and times are kept in ``keep``."""

    def __init__(self, runner: Runner, judge: Judge, keep: Path) -> None:
        self._runner, self._judge, self._keep = runner, judge, keep

    def row(self, project: Project, target: str, tool: str) -> Row:
        """The row of ``tool``."""
        machine = MACHINES[target]
        stem = f"{project.name}.{target if tool == ENVSOLVE else machine.platform}.{tool}"
        lock, kept = self._keep / f"{stem}.txt", self._keep / f"{stem}.json"
        if kept.exists():
            answer = Answer(**json.loads(kept.read_text("utf-8")))
        else:
            answer = self._runner.answer(project, machine, tool, lock)
            kept.write_text(json.dumps(answer._asdict()), encoding="utf-8")
        verdict, why = self._verdict(project, target, answer, lock)
        framework = self._judge.version_of(project, machine, lock)
        return Row(project.name, target, tool, framework, verdict, answer.seconds, why, answer.said)

    def _verdict(self, project: Project, target: str, answer: Answer, lock: Path) -> tuple[str, str]:
        machine = MACHINES[target]
        if answer.status == KILLED:
            return NO_ANSWER, f"no answer within {self._runner.seconds:.0f} s"
        if answer.status != 0:
            possible = self._judge.exists(project, target, machine)
            return (REFUSED, possible) if possible else (RIGHTLY, "")
        faults = self._judge.faults(project, machine, lock, answer.said)
        if faults:
            return WRONG, "; ".join(faults)
        stale = next(self._judge.stale(project, machine, lock), "")  # one is enough, and each takes its time
        return (STALE, stale) if stale else (GOOD, "")


Times = tuple[str, Answer, Answer]
"""The name of a project, and what envsolve and uv did about it."""


def in_turn(projects: Sequence[Project], machine: Machine, envsolve: Path, uv: Path, seconds: float) -> Iterator[Times]:
    """Both tools on each project, one after the other, and each from an empty cache."""
    for project in projects:
        with tempfile.TemporaryDirectory() as directory:
            home = Path(directory)
            measured_uv = Uv(uv, Path(sys.executable), home, seconds, ("--cache-dir", str(home / "uv")))
            runner = Runner(envsolve, measured_uv, home, seconds)
            one, other = (runner.answer(project, machine, it, home / f"{it}.txt") for it in (ENVSOLVE, UV))
            print(project.name, one[:2], other[:2], file=sys.stderr, flush=True)
            yield project.name, one, other


def time_table(times: Sequence[Times]) -> Iterator[str]:
    """The Markdown of times: each project, the sums, and the ratio of envsolve to uv."""
    yield row(["project", "envsolve, s", "CPU s", "exit", "uv, s", "CPU s", "exit", "ratio"])
    yield "|---" * 8 + "|"
    for name, *both in times:
        yield _times_row(name, *([it.seconds, it.processor, it.status] for it in both))
    sums = ([sum(it[n].seconds for it in times), sum(it[n].processor for it in times), "-"] for n in (1, 2))
    yield _times_row("all", *sums)


def _times_row(name: str, own: Sequence[Any], other: Sequence[Any]) -> str:
    figures = (f"{it:.1f}" if isinstance(it, float) else it for it in (*own, *other))
    return row([name, *figures, f"{own[0] / max(other[0], 0.1):.2f}"])


def tables(rows: Sequence[Row], judged: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The Markdown of all rows: sums, what is not good, and how far the judge agrees with people."""
    yield row(["tool", "target", "rows", *VERDICTS, "median s", "most s"])
    yield "|---" * (len(VERDICTS) + 5) + "|"
    for tool, target in sorted({(it.tool, it.target) for it in rows}):
        of = [it for it in rows if (it.tool, it.target) == (tool, target)]
        counts = Counter(it.verdict for it in of)
        taken = [it.seconds for it in of]
        figures = (f"{statistics.median(taken):.1f}", f"{max(taken):.1f}")
        yield row([tool, target, len(of), *(counts[it] for it in VERDICTS), *figures])
    yield ""
    yield row(["project", "target", "envsolve", "s", "uv", "s"])
    yield "|---" * 6 + "|"
    of_uv = {(it.project, it.target): it for it in rows if it.tool == UV}
    for it in (it for it in rows if it.tool == ENVSOLVE):
        other = of_uv.get((it.project, it.target))
        beside = ("-", "-") if other is None else (other.verdict, other.seconds)
        yield row([it.project, it.target, it.verdict, it.seconds, *beside])
    yield ""
    yield from (f"- {it.project} {it.target} {it.tool}: {it.verdict}. {it.why}" for it in rows if it.why)
    earlier = {(it["project"], it["target"], it["tool"]): it for it in judged}
    both = [(it, earlier[it[:3]]) for it in rows if it[:3] in earlier and it.framework == earlier[it[:3]]["framework"]]
    differs = [(it, said) for it, said in both if it.verdict != JUDGED_AS[said["verdict"]]]
    if both:
        same = len(both) - len(differs)
        yield f"\nOf {len(both)} answers like those that people judged the judge says the same of {same}."
    for it, said in differs:
        yield f"- {it.project} {it.target} {it.tool}: {it.verdict} ({it.why}), people {said['verdict']} ({said['why']})"


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--targets", nargs="+", default=list(MACHINES), choices=MACHINES, metavar="T")
    parser.add_argument("--projects", nargs="+", metavar="NAME", help="some of the projects; default: all")
    parser.add_argument("--tools", nargs="+", default=[ENVSOLVE, UV], choices=(ENVSOLVE, UV))
    parser.add_argument("--seconds", type=float, default=180, help="when a tool is ended")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where locks and times stay")
    parser.add_argument("--times", action="store_true", help="measure times alone, each from an empty cache")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the rows are written as JSON as well")
    here = Path(sys.executable).parent
    parser.add_argument("--envsolve", type=Path, default=here / "envsolve", help="the console script to measure")
    parser.add_argument("--uv", type=Path, default=here / "uv")
    return parser.parse_args()


def main() -> None:
    """Run, judge, and print the tables."""
    arguments = options()
    projects = [Project.read(it) for it in sorted(arguments.directory.absolute().glob("*.in"))]
    projects = [it for it in projects if not arguments.projects or it.name in arguments.projects]
    if arguments.times:
        compile_all(arguments.envsolve.absolute())
        for target in arguments.targets:
            tools = arguments.envsolve.absolute(), arguments.uv.absolute()
            print(target, *time_table(list(in_turn(projects, MACHINES[target], *tools, arguments.seconds))), sep="\n")
        return
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        keep = Path(directory) if arguments.keep is None else arguments.keep.absolute()
        keep.mkdir(parents=True, exist_ok=True)
        scratch, kept = Path(directory), ("--cache-dir", str(keep / "uv"))
        uv, helper = (
            Uv(arguments.uv.absolute(), Path(sys.executable), scratch, it, kept)
            for it in (arguments.seconds, LOOK_SECONDS)
        )
        judge = Judge(arguments.directory, Matrix(), helper, scratch)
        bench = Bench(Runner(arguments.envsolve.absolute(), uv, keep, arguments.seconds), judge, keep)
        for target in arguments.targets:
            for project in projects:
                for tool in arguments.tools:
                    rows.append(bench.row(project, target, tool))
                    print("  ".join(map(str, rows[-1][:7])), file=sys.stderr, flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([it._asdict() for it in rows], indent=1) + "\n", encoding="utf-8")
    print("\n".join(tables(rows, judge.judged)))


if __name__ == "__main__":
    main()
