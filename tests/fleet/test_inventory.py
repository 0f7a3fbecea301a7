"""Lists of nodes as the tools of clusters print them, recorded in ``lists``."""

from __future__ import annotations

import json
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.errors import UsageError
from envsolve.fleet.inventory import inventory_as_json, nodes_named, read_inventory, together
from envsolve.fleet.node import Node
from envsolve.fleet.site import Site, read_site
from envsolve.matrix import Matrix
from envsolve.model.host import Gpu

HERE = Path(__file__).parent
LISTS = HERE / "lists"
CASES: list[dict[str, Any]] = tomllib.loads((HERE / "lists.toml").read_text())["list"]


def shown(node: Node) -> str:
    gpus = ", ".join(map(_shown_gpu, node.host.gpus)) or "none"
    driver = [] if node.host.driver is None else [f"driver {node.host.driver}"]
    groups = [", ".join(node.groups)] if node.groups else []
    return f"{node.name}: {'; '.join((gpus, *driver, node.host.platform, *groups))}"


def _shown_gpu(gpu: Gpu) -> str:
    capability = [] if gpu.compute_capability is None else [str(gpu.compute_capability)]
    return " ".join((f"{gpu.count} x {gpu.name}", *capability, *(["MIG"] if gpu.mig else [])))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_a_list_is_read(case: dict[str, Any]) -> None:
    assert [shown(it) for it in read_inventory(str(LISTS / case["file"]))] == case["nodes"]


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_an_inventory_has_the_facts_of_its_lists(case: dict[str, Any], tmp_path: Path) -> None:
    nodes = [it for it in read_inventory(str(LISTS / case["file"])) if all(gpu.name for gpu in it.host.gpus)]
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps(inventory_as_json(nodes)))
    assert read_inventory(str(file)) == nodes


def test_every_recorded_list_is_a_case() -> None:
    assert sorted(it["file"] for it in CASES) == sorted(it.name for it in LISTS.iterdir())


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", "[]", "{}", '{"nodes": 3}', "name, driver_version\n", '{"items": [{"kind": "Pod"}]}', "{", "\0"],
)
def test_a_file_that_is_no_list_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_inventory(str(file))
    assert caught.value.code in ("inventory-unreadable", "host-file-wrong-shape")
    assert str(file) in caught.value.message


@pytest.mark.thorough
@given(number=st.integers(0, len(CASES) - 1), at=st.integers(0, 4000), put=st.text(max_size=4))
def test_a_damaged_list_ends_in_an_error_or_in_nodes(
    number: int, at: int, put: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = (LISTS / CASES[number]["file"]).read_text()
    file = tmp_path_factory.mktemp("damaged") / "nodes"
    file.write_text(text[:at] + put + text[at + 2 :], errors="replace")
    with suppress(UsageError):
        assert read_inventory(str(file))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ({"items": [{"kind": "Node", "metadata": {}}]}, "items[0] has no 'name'"),
        ({"items": [{"kind": "Node"}]}, "items[0] has no 'metadata'"),
        (
            {"items": [{"kind": "Node", "metadata": {"name": "x"}, "status": {"capacity": {"nvidia.com/gpu": "two"}}}]},
            "items[0]: 'two' is not a whole number",
        ),
        (
            {"items": [{"kind": "Node", "metadata": {"name": "x", "labels": [3]}}]},
            "items[0] has a value of another type than expected",
        ),
        ({"nodes": [{"gres": "gpu:1", "name": "a"}, {"gres": "gpu:1"}]}, "nodes[1] has no 'name'"),
        ({"status": "success", "data": {"result": [{}]}}, "data.result[0] has no 'metric'"),
        ({"schema_version": 1, "nodes": [{"platform": "linux-64"}]}, "nodes[0] has no 'name'"),
        ({"schema_version": 1, "nodes": ["a"]}, "nodes[0] has a value of another type than expected"),
        ({"schema_version": 1, "nodes": [{"name": "a", "groups": 3}]}, "nodes[0] has a value of another type"),
    ],
)
def test_missing_columns_of_a_list_are_named(text: object, wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps(text))
    with pytest.raises(UsageError) as caught:
        read_inventory(str(file))
    assert caught.value.message.startswith(f"cannot read {file}: {wrong}")


def test_a_record_without_a_name_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "scontrol.txt"
    file.write_text("NodeName=a Gres=gpu:1\nNodeName= Gres=gpu:1\n")
    with pytest.raises(UsageError, match=r"records\[1\] has no 'NodeName'"):
        read_inventory(str(file))


TWICE = {"schema_version": 1, "nodes": [{"name": "a", "platform": "linux-64"}] * 2}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NodeName=p1 Arch=ppc64le Gres=gpu:v100:4 Partitions=gpu\n", "unknown-processor"),
        ("NodeName=n[1-4] Gres=gpu:a100:4\n", "node-range"),
        (json.dumps(TWICE), "inventory-unreadable"),
    ],
)
def test_ambiguous_nodes_are_refused(text: str, code: str, tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_inventory(str(file))
    assert caught.value.code == code


def test_a_node_is_named_with_its_file() -> None:
    file = str(LISTS / "scontrol.txt")
    names = [name for name, _ in nodes_named(file)]
    assert names == [f"{file}:cn1092", f"{file}:cn2", f"{file}:gh1"]
    assert [node.name for _, node in nodes_named(names[1])] == ["cn2"]
    assert together([*names, "other.json"]) == [file, "other.json"]
    assert together(names[1:]) == names[1:]
    with pytest.raises(UsageError) as caught:
        nodes_named(f"{file}:nobody")
    assert caught.value.code == "unknown-node"


def test_a_site_map_translates_its_words(matrix: Matrix, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(
        '[gpus]\ngpu = "GH200 480GB"\na40 = "8.6"\n'
        '[driver]\ncn2 = "550.54.15"\ngpu = "570.86.15"\ninteractive = "535.183.01"\n"*" = "580.65.06"\n'
        '[glibc]\n"*" = "2.28"\n'
    )
    found = read_site(str(file)).completed(read_inventory(str(LISTS / "scontrol.txt")), matrix.gpus.find)
    assert [shown(it) for it in found] == [
        "cn1092: 4 x a100 8.0; driver 535.183.01; linux-64; interactive, gpu",
        "cn2: 4 x a100 8.0, 2 x a40 8.6; driver 550.54.15; linux-64; gpu",
        "gh1: 1 x NVIDIA GH200 480GB 9.0; driver 580.65.06; linux-aarch64; gpu-arm",
        "cpu1: none; linux-64; general",
    ]
    assert {str(it.host.glibc) for it in found} == {"2.28"}
    assert found[0].host.origin["driver"] == "fleet.toml"


def test_all_unknown_gpus_are_named_at_once(matrix: Matrix) -> None:
    nodes = [*read_inventory(str(LISTS / "scontrol.txt")), *read_inventory(str(LISTS / "nodes.k8s.json"))]
    odd = Node("odd", nodes[0].host._replace(gpus=(Gpu("1g.10gb", None),)))
    with pytest.raises(UsageError) as caught:
        Site().completed([*nodes, odd], matrix.gpus.find)
    assert caught.value.message.endswith("'gpu', '1g.10gb'")
    assert [it.partition(":")[0] for it in caught.value.cause] == ["'gpu' (node gh1)", "'1g.10gb' (node odd)"]
    assert '"1g.10gb" = "PRODUCT"' in caught.value.hints[0].text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[drivers]\n", "'drivers' is not one of"),
        ('[driver]\ngpu = "12.4"\n', "driver.gpu"),
        ("[driver]\ngpu = 550\n", "driver.gpu"),
        ("gpus = 3\n", "'gpus' must be a table"),
        ("[gpus\n", "cannot read"),
    ],
)
def test_an_invalid_site_map_is_refused(text: str, names: str, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_site(str(file))
    assert names in caught.value.message


def test_a_count_of_zero_is_no_gpu(tmp_path: Path) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text("NodeName=a Gres=gpu:0\nNodeName=b Gres=gpu:a100:0,gpu:v100:2\n")
    assert [shown(it) for it in read_inventory(str(file))] == ["a: none; linux-64", "b: 2 x v100; linux-64"]
