"""``envsolve fleet`` on a real Ray of five nodes, and environments of envsolve in its workers (docs/how-to/ray.md)."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.creating import WHEELS, Creating, creating_in
from tests.conftest import Envsolve
from tests.fleet.ray_cluster import Ray, python_with_ray, ray_of

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform == "win32", reason="several nodes on one machine need POSIX"),
]

NODES = {"n1": 4, "n2": 3, "n3": 2, "n4": 1}
"""The GPUs of each node, by which a program can tell which node it runs on."""
LIST = """import json, ray; ray.init("auto"); print(json.dumps(ray.nodes()))"""
NODE = """\
import json, os, pathlib, time
gpus = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
here = f"n{5 - len(gpus)}"
pathlib.Path(f"{here}.pid").write_text(str(os.getpid()))
if here in HANG:
    time.sleep(600)
host = {"driver": "535.183.01", "gpus": [{"compute_capability": "7.0" if here == "n3" else "8.0", "count": len(gpus)}]}
print(json.dumps({"ok": True, "probes": [], "findings": [], "host": host, "gpus": gpus}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_with_ray(tmp_path_factory.mktemp("python") / "ray")


@pytest.fixture(scope="module")
def ray(python: Path) -> Iterator[Ray]:
    with ray_of(python, NODES) as made:
        yield made


@pytest.fixture
def nodes(ray: Ray, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_ADDRESS", ray.environ["RAY_ADDRESS"])
    Path("ray.json").write_text(ray.say(LIST))
    Path("fleet.toml").write_text('[gpus]\ngpu = "A100"\n[driver]\n"*" = "535.183.01"\n')
    done = envsolve("fleet", "import", "ray.json", "--map", "fleet.toml", "-o", "nodes.json")
    assert done.code == 0, done.err
    return "nodes.json"


def program(hang: str) -> str:
    """The command that replaces envsolve on the nodes, all of which see this directory."""
    file = Path("node.py").absolute()
    file.write_text(NODE.replace("HANG", repr(hang)).replace('Path(f"', f'Path(f"{file.parent}/'))
    return shlex.join([sys.executable, str(file)])


def is_running(node: str) -> bool:
    return Path(f"/proc/{Path(f'{node}.pid').read_text()}").exists()


def test_each_node_is_listed_by_its_name(nodes: str) -> None:
    listed = json.loads(Path(nodes).read_text())["nodes"]
    assert {it["name"]: sum(gpu["count"] for gpu in it["gpus"]) for it in listed} == {"head": 0, **NODES}


def test_hanging_nodes_and_nodes_that_differ_from_their_list_are_named(
    nodes: str, ray: Ray, envsolve: Envsolve
) -> None:
    words = ("fleet", "validate", nodes, "--launcher", "ray", "--ray-python", str(ray.python), "--timeout", "90")
    done = envsolve(*words, "--envsolve", program("n2"), "--json")
    assert done.code == 1
    found = {it["node"]: it for it in json.loads(done.out)["nodes"]}
    assert {name: it["state"] for name, it in found.items()} == {
        "n1": "passed",
        "n2": "no-answer",
        "n3": "passed",
        "n4": "passed",
    }, done.out
    assert {name: len(it["report"]["gpus"]) for name, it in found.items() if it["report"]} == {
        name: count for name, count in NODES.items() if name != "n2"
    }
    assert found["n2"]["why"] == "no answer in 90 s"
    assert found["n3"]["differs"] == ["GPUs of compute capability 7.0 instead of 8.0"]
    deadline = time.monotonic() + 30
    while is_running("n2") and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not is_running("n2")


def test_errors_are_reported_per_node(nodes: str, ray: Ray, envsolve: Envsolve) -> None:
    listed = json.loads(Path(nodes).read_text())
    rows = {it["name"]: it for it in listed["nodes"]}
    rows["n4"]["gpus"][0]["count"] = 3
    rows["n2"]["name"] = "gone"
    Path("other.json").write_text(json.dumps({**listed, "nodes": [rows["n1"], rows["n2"], rows["n4"]]}))
    words = ("fleet", "validate", "other.json", "--launcher", "ray", "--ray-python", str(ray.python))
    assert envsolve(*words, "--envsolve", "no-such-program").out.splitlines() == [
        "0 of 3 nodes passed",
        "n1: no-answer, no-such-program: No such file or directory (exit 127)",
        "gone: no-answer, Ray has no node of this name (exit 1)",
        "n4: no-answer, Ray has 1 GPUs on the node instead of 3 (exit 1)",
    ]


DRIVER = """\
import json, ray
def where():
    import sys, alpha
    return [sys.prefix, alpha.__file__]
ray.init("auto", log_to_driver=False)
print(json.dumps(ray.get(ray.remote(where).options(num_gpus=4, runtime_env=RUNTIME_ENV).remote())))
"""
"""The GPUs are of one node: here all would install into the same directory, at the same time."""


@pytest.fixture
def create(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Creating]:
    with creating_in(envsolve, tmp_path, monkeypatch) as creating:
        yield creating


def test_workers_run_in_a_shared_environment(create: Creating, ray: Ray) -> None:
    assert create.request().code == 0
    packages = ray.say("import pathlib, ray; print(pathlib.Path(ray.__file__).parents[1])").strip()
    (path,) = create.prefix.glob("lib/python*/site-packages")
    (path / "ray.pth").write_text(f"{packages}\n")  # in place of an installed Ray, which takes a minute
    found = json.loads(ray.say(DRIVER.replace("RUNTIME_ENV", repr({"py_executable": f"{create.prefix}/bin/python"}))))
    assert found[0] == str(create.prefix)
    assert found[1].startswith(str(path))


def test_ray_installs_a_lock_unchanged(create: Creating, ray: Ray) -> None:
    lock = create.lock("requirements.txt", "alpha", *WHEELS)
    runtime_env = {"pip": {"packages": lock, "pip_install_options": ["--no-deps", "--require-hashes"]}}
    found = json.loads(ray.say(DRIVER.replace("RUNTIME_ENV", repr(runtime_env))))
    assert "/runtime_resources/pip/" in found[1]
    text = Path(lock).read_text()
    altered = text.replace("--hash=sha256:", "--hash=sha256:00", 1)
    Path(lock).write_text(re.sub(r"(--hash=sha256:00[0-9a-f]{62})[0-9a-f]{2}", r"\1", altered, count=1))
    with pytest.raises(subprocess.CalledProcessError) as caught:
        ray.say(DRIVER.replace("RUNTIME_ENV", repr(runtime_env)))
    assert "DO NOT MATCH THE HASHES" in caught.value.stderr


def test_a_dying_node_does_not_stop_the_others(nodes: str, ray: Ray, envsolve: Envsolve) -> None:
    command = program("n4")

    def switch_off() -> None:
        while not Path("n4.pid").exists():
            time.sleep(0.1)
        ray.stop("n4")

    thread = threading.Thread(target=switch_off, daemon=True)
    thread.start()
    words = ("fleet", "validate", nodes, "--launcher", "ray", "--ray-python", str(ray.python), "--timeout", "120")
    lines = envsolve(*words, "--envsolve", command).out.splitlines()
    assert lines[:2] == ["3 of 4 nodes passed", "n4: no-answer, the node died while the command ran (exit 1)"]
    thread.join()
    only = json.loads(Path(nodes).read_text())
    Path("n4.json").write_text(json.dumps({**only, "nodes": [it for it in only["nodes"] if it["name"] == "n4"]}))
    again = envsolve(*words[:2], "n4.json", *words[3:], "--envsolve", command)
    assert again.out.splitlines()[1] == "n4: no-answer, the node is dead (exit 1)"
