"""``envsolve fleet`` on a real Slurm of three nodes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Envsolve
from tests.fleet.cluster import MISSING, Cluster, cluster

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)} (Debian: slurm-wlm, munge)"),
    pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="the daemons of Slurm need root"),
]

NODE = """\
import json, os, time
name = os.environ["SLURMD_NODENAME"]
if name == "n2":
    time.sleep(600)
gpus = os.environ["SLURM_GPUS_ON_NODE"]
driver = "535.183.01" if name == "n1" else "470.57.02"
host = {"driver": driver, "gpus": [{"compute_capability": "8.0" if name == "n1" else "7.0", "count": int(gpus)}]}
print(json.dumps({"ok": True, "probes": [], "findings": [], "host": host, "gpus": gpus}))
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture
def nodes(slurm: Cluster, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environ[name])
    Path("scontrol.txt").write_text(slurm.say("scontrol", "show", "node"))
    Path("fleet.toml").write_text('[driver]\n"*" = "535.183.01"\n')
    assert envsolve("fleet", "import", "scontrol.txt", "--map", "fleet.toml", "-o", "nodes.json").code == 0
    Path("node.py").write_text(NODE)
    return "nodes.json"


def test_nodes_are_read_from_scontrol_and_sinfo(slurm: Cluster, nodes: str, envsolve: Envsolve) -> None:
    assert envsolve("fleet", "plan", nodes, "-f", "pytorch").out.splitlines()[2] == "   3 nodes (3 in gpu): n1, n2, n3"
    Path("sinfo.txt").write_text(slurm.say("sinfo", "-N", "-o", "%N %G %P"))
    found = json.loads(envsolve("fleet", "import", "sinfo.txt", "--map", "fleet.toml").out)["nodes"]
    assert [(it["name"], it["gpus"][0]["name"], it["gpus"][0]["count"]) for it in found] == [
        ("n1", "a100", 4),
        ("n2", "a100", 4),
        ("n3", "NVIDIA V100", 2),
    ]


def test_hanging_nodes_and_nodes_that_differ_from_their_list_are_named(nodes: str, envsolve: Envsolve) -> None:
    program = shlex.join([sys.executable, str(Path("node.py").absolute())])
    line = ("fleet", "validate", nodes, "--launcher", "slurm", "--envsolve", program, "--timeout", "10")
    done = envsolve(*line, "--json")
    assert done.code == 1
    found = {it["node"]: it for it in json.loads(done.out)["nodes"]}
    assert {name: it["state"] for name, it in found.items()} == {"n1": "passed", "n2": "no-answer", "n3": "passed"}
    assert found["n1"]["report"]["gpus"] == "4"
    assert found["n2"]["why"] == "no answer in 10 s"
    assert found["n3"]["differs"] == ["driver 470.57.02 instead of 535.183.01"]


def test_envsolve_itself_runs_on_the_nodes(nodes: str, envsolve: Envsolve, tmp_path: Path) -> None:
    only = json.loads(Path(nodes).read_text())
    Path("one.json").write_text(json.dumps({**only, "nodes": only["nodes"][:1]}))
    done = envsolve("fleet", "validate", "one.json", "--prefix", str(tmp_path / "nothing"), "--launcher", "slurm")
    assert "n1: no-answer, " in done.out
    assert "nothing" in done.out


def test_a_dead_node_does_not_stop_the_others(slurm: Cluster, nodes: str, envsolve: Envsolve) -> None:
    slurm.stop("n3")
    Path("node.py").write_text(NODE.replace('"n2"', '"nobody"'))
    program = shlex.join([sys.executable, str(Path("node.py").absolute())])
    done = envsolve("fleet", "validate", nodes, "--launcher", "slurm", "--envsolve", program, "--timeout", "10")
    assert done.out.splitlines()[0] == "2 of 3 nodes passed"
    assert "n3: no-answer, " in done.out
