"""``envsolve fleet``, and lists of nodes for ``--host``, as a cluster's administrator uses them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from envsolve.app.fleet import proof
from envsolve.fleet.inventory import nodes_named
from tests.conftest import Envsolve

SCONTROL = """\
NodeName=a1 Arch=x86_64 Gres=gpu:a100:4(S:0-1) Partitions=gpu
NodeName=a2 Arch=x86_64 Gres=gpu:a100:4(S:0-1) Partitions=gpu
NodeName=k1 Arch=x86_64 Gres=gpu:k80:2 Partitions=old
NodeName=h1 Arch=x86_64 Gres=gpu:h200:8 Partitions=new
NodeName=login Arch=x86_64 Gres=(null) Partitions=all
"""
SITE = '[driver]\nold = "470.256.02"\nnew = "580.95.05"\n"*" = "535.183.01"\n'


@pytest.fixture
def nodes(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cluster with three kinds of node."""
    monkeypatch.chdir(tmp_path)
    Path("scontrol.txt").write_text(SCONTROL)
    Path("fleet.toml").write_text(SITE)
    done = envsolve("fleet", "import", "scontrol.txt", "--map", "fleet.toml", "-o", "nodes.json")
    assert done.code == 0, done.err
    assert done.err == "note: 1 node (login) without an NVIDIA GPU: no stack is solved for them\n"
    return "nodes.json"


def changed(file: str, driver: str, new: str) -> str:
    """A copy of a list of nodes with another driver."""
    Path("today.json").write_text(Path(file).read_text().replace(f'"{driver}"', f'"{new}"'))
    return "today.json"


@pytest.mark.parametrize("files", [("smi.txt", "scontrol.txt"), ("scontrol.txt", "smi.txt")])
def test_lists_complement_each_other(files: tuple[str, str], envsolve: Envsolve, nodes: str) -> None:
    Path("smi.txt").write_text("a1: NVIDIA A100-SXM4-80GB, 8.0, 550.54.15\n")
    found = json.loads(envsolve("fleet", "import", *files, "--map", "fleet.toml").out)["nodes"]
    first = next(it for it in found if it["name"] == "a1")
    assert (first["driver"], first["groups"]) == ("550.54.15", ["gpu"])
    assert [gpu["name"] for gpu in first["gpus"]] == ["NVIDIA A100-SXM4-80GB"]


def test_an_unknown_name_in_the_site_map_is_a_note(envsolve: Envsolve, nodes: str) -> None:
    Path("other.toml").write_text(f'{SITE}news = "580.95.05"\n[gpus]\nA10 = "A10"\n[glibc]\nk1 = "2.28"\n')
    done = envsolve("fleet", "import", "scontrol.txt", "--map", "other.toml")
    assert [it for it in done.err.splitlines() if "other.toml" in it] == [
        "note: other.toml: [gpus] 'A10' is no GPU of the list",
        "note: other.toml: [driver] 'news' is no node or group of the list; did you mean 'new'?",
    ]


def test_a_list_can_come_from_a_pipe(envsolve: Envsolve, nodes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(nodes).open() as file:
        monkeypatch.setattr("sys.stdin", file)
        done = envsolve("fleet", "import", "-", "--json")
    assert json.loads(done.out) == json.loads(Path(nodes).read_text())


@pytest.mark.parametrize("line", [("plan", "-f", "pytorch"), ("validate", "--launcher", "slurm"), ("status",)])
def test_a_missing_list_is_an_error(envsolve: Envsolve, line: tuple[str, ...]) -> None:
    refused = envsolve("fleet", line[0], "missing.json", *line[1:])
    assert refused.code == 2
    assert refused.err.startswith("error: inventory-unreadable\n  cannot read missing.json: there is no such file\n")


def test_a_plan_with_many_groups_is_short(envsolve: Envsolve, nodes: str) -> None:
    rows = [it for it in json.loads(Path(nodes).read_text())["nodes"] if it["gpus"]]
    gpu = rows[0]["gpus"][0]
    many = [
        {**rows[-1], "name": f"n{it}", "groups": ["all", f"p{it}"], "gpus": [{**gpu, "compute_capability": capability}]}
        for it, capability in enumerate(("5.0", "5.2", "6.0", "6.1", "7.0"))
    ]
    Path("many.json").write_text(json.dumps({"schema_version": 1, "nodes": many}))
    done = envsolve("fleet", "plan", "many.json", "-f", "pytorch==2.15.*", "--source", "pypi")
    lines = done.out.splitlines()
    assert lines[0] == "none for 5 nodes (5 in all, 1 in p0, 1 in p1 and 3 more groups): n0, n1, n2, n3, n4"
    assert lines[1].startswith("   because: pytorch 2.15.0 (pypi, cu132) has no code for compute capability 5.0")
    assert lines[4:] == ["   because: 2 more reasons of this kind (--json)"]
    report = envsolve(
        "fleet", "plan", "many.json", "-f", "pytorch==2.15.*", "--source", "pypi", "--output-format", "markdown"
    )
    assert report.out.count("has no code for compute capability 5.0") == 1


def test_an_unknown_driver_is_a_note(envsolve: Envsolve, nodes: str) -> None:
    done = envsolve("fleet", "import", "scontrol.txt")
    assert "note: the driver of 4 nodes (a1, a2, k1, h1) is not known: add a [driver] table to the site map" in done.err


def test_one_environment_covers_all_nodes_that_it_can(envsolve: Envsolve, nodes: str) -> None:
    done = envsolve("fleet", "plan", nodes, "-f", "pytorch", "--source", "pypi")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "2 environments for 4 nodes"
    assert lines[2:4] == [
        "   3 nodes (2 in gpu, 1 in new): a1, a2, h1",
        "   envsolve --framework pytorch --host nodes.json:a1 --host nodes.json:h1 --source pypi",
    ]
    assert lines[5] == "   1 node (1 in old): k1"


@pytest.mark.thorough
def test_the_command_of_a_group_gives_its_stack(envsolve: Envsolve, nodes: str) -> None:
    found = json.loads(envsolve("fleet", "plan", nodes, "-f", "pytorch", "--json").out)
    assert found["ok"]
    for group in found["groups"]:
        stack = json.loads(envsolve(*shlex.split(group["command"])[1:], "--json").out)
        assert stack["minimum_driver"] == group["minimum_driver"]
        assert [it["version"] for it in stack["frameworks"]] == [it["version"] for it in group["frameworks"]]
    assert sorted(name for group in found["groups"] for name in group["nodes"]) == ["a1", "a2", "h1", "k1"]


@pytest.mark.thorough
def test_the_gain_from_newer_drivers_is_shown(envsolve: Envsolve, nodes: str) -> None:
    found = json.loads(envsolve("fleet", "plan", nodes, "-f", "pytorch==2.15.*", "--source", "pypi", "--json").out)
    assert not found["ok"]
    assert sorted(name for it in found["refused"] for name in it["nodes"]) == ["a1", "a2", "k1"]
    (upgrade,) = found["upgrades"]
    assert [(it["node"], it["driver"]) for it in upgrade["drivers"]] == [("a1", "580.65.06"), ("a2", "580.65.06")]
    text = envsolve("fleet", "plan", nodes, "-f", "pytorch==2.15.*", "--source", "pypi").out
    assert "with newer drivers: 580.65.06 or newer on 2 nodes (2 in gpu): a1, a2\n" in text


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", ["markdown", "junit", "sarif", "github"])
def test_a_plan_is_available_in_every_format(envsolve: Envsolve, nodes: str, format_name: str) -> None:
    done = envsolve("fleet", "plan", nodes, "-f", "pytorch==2.15.*", "--output-format", format_name)
    assert done.code == 1
    assert "driver" in done.out


@pytest.mark.thorough
def test_host_accepts_a_list_of_nodes(envsolve: Envsolve, nodes: str) -> None:
    refused = envsolve("-f", "pytorch>=2.14", "--host", nodes, "--source", "pypi")
    assert (refused.code, refused.out) == (1, "")
    served = envsolve("-f", "pytorch", "--host", f"{nodes}:a1", "--host", f"{nodes}:h1")
    assert "a100 (8.0)" in served.out.splitlines()[2]
    assert "k80" not in served.out
    assert envsolve("-f", "pytorch", "--host", f"{nodes}:nobody").err.startswith("error: unknown-node\n")
    assert envsolve("-f", "pytorch", "--host", "scontrol.txt", "--driver", "535.183.01").code == 1


def test_a_node_has_no_host_file_to_rewrite(envsolve: Envsolve, nodes: str) -> None:
    refused = envsolve("-f", "pytorch==2.15.*", "--source", "pypi", "--host", f"{nodes}:a1", "--host", f"{nodes}:a2")
    assert "hint: install NVIDIA driver 580.65.06 or newer on nodes.json:a1 (and 1 more host like it)" in refused.err
    assert "then list the nodes again" in refused.err
    assert "detect --json" not in refused.err


def test_a_list_that_covers_all_nodes_is_named_instead_of_them(envsolve: Envsolve, nodes: str) -> None:
    hint = envsolve("-f", "pytorch==2.15.*", "--host", nodes, "--gpu", "auto").err
    assert "contradictory-options" in hint
    refused = envsolve("-f", "pytorch==2.0.*", "--cuda", "13.*", "--host", nodes)
    assert f"--host {nodes}" in refused.err
    assert f"{nodes}:" not in "".join(it for it in refused.err.splitlines(keepends=True) if it.startswith("  envsolve"))


def test_changes_and_broken_locks_are_reported(envsolve: Envsolve, nodes: str) -> None:
    Path("requirements.txt").write_text("torch==2.10.0\n")
    today = changed(nodes, "535.183.01", "470.57.02")
    done = envsolve("fleet", "status", today, "requirements.txt", "--was", nodes)
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[:2] == ["a1: driver 535.183.01 -> 470.57.02", "a2: driver 535.183.01 -> 470.57.02"]
    assert "requirements.txt no longer runs on 2 nodes: a1, a2" in lines
    assert "requirements.txt does not run on 1 node: k1" in lines
    assert "requirements.txt runs on 1 node: h1" in lines
    back = json.loads(envsolve("fleet", "status", nodes, "requirements.txt", "--was", today, "--json").out)
    assert [(it["nodes"], it["status"], it["was"]) for it in back["locks"]] == [
        (["a1", "a2"], "fits", "does-not-run"),
        (["k1"], "does-not-run", "does-not-run"),
        (["h1"], "fits", "fits"),
    ]


def test_a_file_without_a_framework_is_not_reported_to_run(envsolve: Envsolve, nodes: str) -> None:
    Path("requirements.txt").write_text("numpy==2.1.0\n")
    done = envsolve("fleet", "status", nodes, "requirements.txt")
    assert set(done.out.splitlines()) == {"requirements.txt has nothing that depends on GPU or driver"}


def test_added_and_removed_nodes_are_reported(envsolve: Envsolve, nodes: str) -> None:
    Path("fewer.txt").write_text("".join(SCONTROL.splitlines(keepends=True)[1:]))
    assert envsolve("fleet", "import", "fewer.txt", "--map", "fleet.toml", "-o", "fewer.json").code == 0
    assert (
        envsolve("fleet", "status", "fewer.json", "--was", nodes).out
        == "a1: node 4 x a100, driver 535.183.01 -> (gone)\n"
    )
    assert (
        envsolve("fleet", "status", nodes, "--was", "fewer.json").out
        == "a1: node (new) -> 4 x a100, driver 535.183.01\n"
    )


def test_a_package_that_depends_on_a_framework_needs_a_lock(envsolve: Envsolve, nodes: str) -> None:
    refused = envsolve("fleet", "plan", nodes, "-f", "vllm")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: needs-a-lock")
    assert "envsolve -f vllm --host nodes.json --format requirements\n" in refused.err
    refused = envsolve("fleet", "plan", nodes, "-f", "vllm", "-f", "pytorch>=2.5", "--source", "pypi")
    assert "envsolve -f vllm -f 'pytorch>=2.5' --host nodes.json --source pypi --format requirements\n" in refused.err


NODE = """\
import json, sys, time
name = sys.argv[1]
said = {"ok": name != "a2", "probes": [], "findings": [] if name != "a2" else [{"title": "The driver is too old"}]}
host = {"driver": "535.183.01", "gpus": [{"compute_capability": "8.0"}]}
if name == "k1":
    time.sleep(60)
if name == "h1":
    sys.exit("srun: error: node h1 is down")
print(json.dumps({**said, "host": host, "command": sys.argv[2:]}))
sys.exit(name == "a2")
"""


def launched(envsolve: Envsolve, nodes: str, *more: str, program: str = NODE) -> Any:
    Path("node.py").write_text(program)
    launcher = shlex.join([sys.executable, "node.py"]) + " {node}"
    line: Sequence[str] = ("fleet", "validate", nodes, "--prefix", "/shared/my env", "--launcher", launcher, *more)
    return envsolve(*line, "--timeout", "5")


@pytest.mark.thorough
def test_every_node_answers_or_is_reported(envsolve: Envsolve, nodes: str) -> None:
    done = launched(envsolve, nodes)
    assert done.code == 1
    assert done.out.splitlines() == [
        "1 of 4 nodes passed",
        "a2: failed, The driver is too old",
        "k1: no-answer, no answer in 5 s",
        "h1: no-answer, srun: error: node h1 is down (exit 1)",
    ]


@pytest.mark.thorough
def test_a_report_is_reused_and_only_failed_nodes_run_again(envsolve: Envsolve, nodes: str) -> None:
    Path("report.json").write_text(launched(envsolve, nodes, "--json").out)
    first = json.loads(Path("report.json").read_text())["nodes"]
    assert first[0]["report"]["command"][1:] == [
        "-m",
        "envsolve",
        "validate",
        "--prefix",
        "/shared/my env",
        "--json",
        "-q",
    ]
    shown = envsolve("fleet", "report", "report.json", "--output-format", "junit")
    assert (shown.code, shown.out.count("<failure ")) == (1, 3)
    well = NODE.replace('"a2"', '"x"').replace('"k1"', '"x"').replace('"h1"', '"a1"')
    again = launched(envsolve, nodes, "--again", "report.json", program=well)
    assert again.code == 0, again.out
    assert again.out.splitlines()[0] == "4 of 4 nodes passed"


@pytest.mark.thorough
def test_a_node_that_differs_from_its_list_is_named(envsolve: Envsolve, nodes: str) -> None:
    other = NODE.replace("535.183.01", "550.54.15").replace('"a2"', '"x"')
    lines = launched(envsolve, changed(nodes, "none", "none"), program=other).out.splitlines()
    assert "a1: differs from the list of nodes: driver 550.54.15 instead of 535.183.01" in lines


@pytest.mark.thorough
def test_a_passed_report_is_ignored_if_the_launcher_failed(envsolve: Envsolve, nodes: str) -> None:
    odd = NODE.replace('"a2"', '"x"').replace('sys.exit(name == "x")', "sys.exit(3)")
    assert "a1: no-answer, its report has no failure, but" in launched(envsolve, nodes, program=odd).out


def test_a_launcher_names_the_node(envsolve: Envsolve, nodes: str) -> None:
    refused = envsolve("fleet", "validate", nodes, "--launcher", "ssh node1")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: launcher-without-node")
    missing = envsolve("fleet", "validate", nodes, "--launcher", "no-such-launcher {node} {command}")
    assert "a1: no-answer, no-such-launcher: No such file or directory" in missing.out
    assert envsolve("fleet", "report", nodes).err.startswith("error: report-unreadable\n")


def answered(envsolve: Envsolve, nodes: str, printed: str, more: str = "") -> str:
    """The reported answer of a node if the launcher prints ``printed``."""
    Path("printed").write_text(printed)
    program = f"import os, sys\nsys.stdout.write(open('printed').read())\nsys.stdout.flush()\n{more}\n"
    Path("node.py").write_text(program)
    launcher = shlex.join([sys.executable, "node.py"]) + " {node}"
    done = envsolve("fleet", "validate", f"{nodes}:a1", "--launcher", launcher)
    assert done.code == 1, done.err
    return str(done.out.splitlines()[1])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "printed",
    [
        '{"ok": true}',
        '{"ok": 1, "host": {}}',
        '{"ok": true, "host": 5}',
        '{"ok": true, "host": {"gpus": [3]}}',
        '{"ok": false, "host": {}, "findings": [{"id": 1}]}',
        '{"error": {}}',
        "Welcome",
    ],
)
def test_other_output_is_not_a_report(envsolve: Envsolve, nodes: str, printed: str) -> None:
    answer = answered(envsolve, nodes, printed)
    assert answer == f"a1: no-answer, no report of `envsolve validate`, but {printed!r} (exit 0)"


def test_a_flooding_or_killed_launcher_is_reported(envsolve: Envsolve, nodes: str) -> None:
    flood = "while True: sys.stdout.write('y' * 65536)"
    assert answered(envsolve, nodes, "", flood) == "a1: no-answer, it printed more than 16 MiB"
    killed = answered(envsolve, nodes, "", "os.kill(os.getpid(), 9)")
    assert killed == "a1: no-answer, no output (killed by signal 9)"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_launchers_that_ignore_it(nodes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'started'); time.sleep(600)"
    )
    Path("node.py").write_text(code)
    launcher = shlex.join([sys.executable, "node.py"]) + " {node}"
    monkeypatch.setattr(proof, "_GRACE", 0.5)
    answers = proof.Prover(launcher, ("envsolve",), jobs=1, timeout=300).prove(
        [node for _, node in nodes_named(nodes)], os.environ, lambda _: None
    )
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        while not Path("started").exists():
            time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        next(answers)
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("started").read_text()), 0)


@pytest.mark.thorough
@pytest.mark.parametrize("words", [("--ray-python", sys.executable), ("--prefix", "env")])
def test_a_python_without_ray_is_named(envsolve: Envsolve, nodes: str, words: tuple[str, ...]) -> None:
    Path("env", "bin").mkdir(parents=True)
    Path("env", "bin", "python").symlink_to(sys.executable)
    done = envsolve("fleet", "validate", f"{nodes}:a1", "--launcher", "ray", *words)
    assert done.out.splitlines()[1] == "a1: no-answer, No module named 'ray' (exit 1)"


def test_an_option_for_ray_requires_ray(envsolve: Envsolve, nodes: str) -> None:
    refused = envsolve("fleet", "validate", nodes, "--launcher", "slurm", "--ray-python", sys.executable)
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: contradictory-options")


@pytest.mark.parametrize("option", ["--launcher", "--envsolve"])
def test_a_command_with_an_unclosed_quote_is_refused(envsolve: Envsolve, nodes: str, option: str) -> None:
    refused = envsolve("fleet", "validate", nodes, "--launcher", "ssh {node}", option, "'{node}")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: command-unreadable")
    assert f"cannot read the command of {option}: No closing quotation" in refused.err
    assert "envsolve fleet validate --help" in refused.err


ROW: dict[str, Any] = {"node": "a", "state": "failed", "seconds": 1, "why": "", "differs": [], "report": None}


@pytest.mark.parametrize(
    ("key", "value"),
    [("node", 3), ("state", "good"), ("seconds", "x"), ("why", 4), ("differs", [1]), ("report", 3), ("report", {})],
)
def test_a_damaged_report_names_the_key(envsolve: Envsolve, nodes: str, key: str, value: object) -> None:
    Path("report.json").write_text(json.dumps({"nodes": [{**ROW, key: value}]}))
    refused = envsolve("fleet", "report", "report.json", "--output-format", "junit")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: report-unreadable")
    assert f"'nodes[0].{key}' is missing or wrong" in refused.err


def test_a_report_may_have_additional_keys(envsolve: Envsolve, nodes: str) -> None:
    Path("report.json").write_text(json.dumps({"nodes": [{**ROW, "later": 1}]}))
    assert envsolve("fleet", "report", "report.json").out == "0 of 1 node passed\na: failed\n"


def test_a_node_may_have_a_colon_in_its_name(envsolve: Envsolve, nodes: str) -> None:
    Path("nodes.json").write_text(Path(nodes).read_text().replace('"a1"', '"10.0.0.1:9400"'))
    planned = envsolve("fleet", "plan", nodes, "-f", "pytorch", "--json")
    assert planned.code == 0, planned.err
    command = json.loads(planned.out)["groups"][0]["command"]
    assert "--host nodes.json:10.0.0.1:9400" in command
    one = envsolve("-f", "pytorch", "--host", "nodes.json:10.0.0.1:9400")
    assert one.code == 0, one.err


@pytest.mark.parametrize("line", [("plan", "-f", "pytorch"), ("validate", "--launcher", "true {node}"), ("status",)])
def test_a_list_without_a_gpu_is_refused(envsolve: Envsolve, nodes: str, line: tuple[str, ...]) -> None:
    rows = [it for it in json.loads(Path(nodes).read_text())["nodes"] if not it["gpus"]]
    Path("none.json").write_text(json.dumps({"schema_version": 1, "nodes": rows}))
    refused = envsolve("fleet", line[0], "none.json", *line[1:])
    assert (refused.code, refused.err.splitlines()[:2]) == (
        2,
        ["error: no-gpu", "  none.json lists no node with an NVIDIA GPU"],
    )


def test_a_missing_lock_is_refused(envsolve: Envsolve, nodes: str) -> None:
    refused = envsolve("fleet", "status", nodes, "missing.toml")
    assert (refused.code, refused.err.splitlines()[:2]) == (
        2,
        ["error: file-unreadable", "  missing.toml does not exist"],
    )


def test_an_invalid_time_limit_is_refused(envsolve: Envsolve, nodes: str) -> None:
    refused = envsolve("fleet", "validate", nodes, "--launcher", "true {node}", "--timeout", "nan")
    assert (refused.code, "nan is not a number of seconds" in refused.err) == (2, True)


def test_gpus_without_a_product_are_refused(envsolve: Envsolve, nodes: str) -> None:
    Path("bare.txt").write_text("NodeName=a Gres=gpu:4\nNodeName=b Gres=gpu:zz9:4\n")
    refused = envsolve("fleet", "import", "bare.txt", "--map", "fleet.toml")
    assert refused.code == 2
    assert "cause: 'gpu' (node a): the list does not name the product of its GPUs\n" in refused.err
    assert 'hint: add to the table [gpus] of fleet.toml: "gpu" = "PRODUCT" and "zz9" = "PRODUCT"\n' in refused.err
    Path("fleet.toml").write_text('[gpus]\ngpu = "RTX 3090"\nzz9 = "8.0"\n')
    assert envsolve("fleet", "import", "bare.txt", "--map", "fleet.toml").code == 0
