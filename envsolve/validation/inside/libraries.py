"""The environment's own CUDA libraries: each is loaded and reports its version. Needs no GPU and no driver.

They are loaded in the order of their dependencies into one process, as by a framework, so that each finds the ones
before it. The parts of cuDNN also check that they are from one release (cudnnOpsVersionCheck and the like): otherwise a
part of another release fails only at the first convolution.
"""

from __future__ import annotations

import ctypes
import os
import sys

from . import library_versions
from .channel import Channel

_CHECKS = (
    ("cudnn_ops", "cudnnOpsVersionCheck"),
    ("cudnn_cnn", "cudnnCnnVersionCheck"),
    ("cudnn_adv", "cudnnAdvVersionCheck"),
    ("cudnn_graph", "cudnnGraphVersionCheck"),
    ("cudnn_ops_infer", "cudnnOpsInferVersionCheck"),
    ("cudnn_cnn_infer", "cudnnCnnInferVersionCheck"),
    ("cudnn_adv_infer", "cudnnAdvInferVersionCheck"),
    ("cudnn_ops_train", "cudnnOpsTrainVersionCheck"),
    ("cudnn_cnn_train", "cudnnCnnTrainVersionCheck"),
    ("cudnn_adv_train", "cudnnAdvTrainVersionCheck"),
)
"""The check function of each part, from the headers of cuDNN 9 and cuDNN 8."""


def probe(job: dict[str, object], channel: Channel) -> dict[str, object]:
    """Load ``job["libraries"]``, paths in order.

    For each library: path, component, version, and the loader's message.
    """
    paths = job["libraries"]
    assert isinstance(paths, list)
    found = []
    for path in paths:
        channel.stage(os.path.basename(path))
        answer = _ask(path)
        channel.note(library=answer)
        found.append(answer)
    return {"libraries": found}


def _ask(path: str) -> dict[str, object]:
    component = library_versions.component_of(path) or os.path.basename(path)
    answer: dict[str, object] = {"path": path, "component": component, "version": None, "error": None, "status": 0}
    try:
        library = _load(path)
    except OSError as error:
        answer["error"] = str(error)
        return answer
    answer["version"] = library_versions.version_of(component, library)
    answer["status"] = _check(component, library)
    return answer


def _load(path: str) -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.CDLL(path)
    return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)


def _check(component: str, library: ctypes.CDLL) -> int:
    """The status of a cuDNN part's check; 0 if it passes or there is none."""
    call = dict(_CHECKS).get(component)
    try:
        return 0 if call is None else int(getattr(library, call)())
    except AttributeError:
        return 0
