"""Builds without code for the GPU of a Jetson module, which NVIDIA builds for apart up to Orin."""

from __future__ import annotations

from collections.abc import Sequence

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause
from envsolve.diagnose.rules.code_coverage import Gpu
from envsolve.diagnose.rules.code_reach import TOO_NEW, built_with, names_of, reach_fields
from envsolve.model.capability import ComputeCapability

_BOARDS = {"orin": (8, 7), "xavier": (7, 2), "tx2": (6, 2), "nano": (5, 3), "tx1": (5, 3), "thor": (11, 0)}


def on_jetson(case: Case, gpu: Gpu) -> bool:
    """Whether it is the GPU of a Jetson module; 11.0 is Thor's, which other boards have, too."""
    tegra = gpu.capability is not None and gpu.capability.is_tegra
    return tegra or (case.jetson and gpu.capability in {None, (11, 0)})


def jetson(case: Case, gpu: Gpu, sightings: Sequence[Sighting]) -> Cause:
    """What a Jetson without code in the build has to do; a warning of PyTorch's for Orin is told as such."""
    if gpu.capability == (8, 7) and all(it.get("capability") or it.get("release") for it in sightings):
        return Cause("orin-capability-warning", {})
    fields = jetson_fields(case, gpu.capability)
    if fields.get("capability") == str(_THOR):
        return Cause("jetson-without-code", fields | _thor(case))
    return Cause("jetson-without-code", fields)


_THOR = ComputeCapability(11, 0)


def _thor(case: Case) -> dict[str, str]:
    """Thor runs what is built for servers with ARM and CUDA 13: JetPack 7 is of that kind."""
    reach = reach_fields(case, _THOR, TOO_NEW)
    fields = {key: reach[key] for key in ("reaches", "good_builds", "take") if key in reach}
    return fields | {
        "left_out": ": CUDA 13 is the first that compiles for it under this number, builds for CUDA 12 leave it out",
        "or_nvidia": "Or install",
        "orin": "JetPack 7 has CUDA 13 and runs the wheels for servers with ARM (SBSA).",
    }


def jetson_fields(case: Case, capability: ComputeCapability | None) -> dict[str, str]:
    """Fields on a Jetson: its board, and its capability by that."""
    told = " ".join(case.every("jetson")).casefold()
    board = next((name for name in _BOARDS if name in told), None)
    if capability is None and board is not None:
        capability = ComputeCapability(*_BOARDS[board])
    found = dict(built_with(case))
    if board is not None:
        found["jetson_board"] = f"the Jetson ({board.capitalize()})"
    if capability is None:
        found["jetson_numbers"] = "sm_87 is Orin, sm_72 Xavier, sm_62 TX2, sm_53 Nano and TX1."
        return found
    return found | {"capability": str(capability), "names": names_of(case, capability)}
