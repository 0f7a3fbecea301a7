"""The environment's own CUDA libraries: each is loaded and reports its version. Needs no GPU and no driver.

They are loaded in the order of their dependencies into one process, as a framework has them, so that each finds what
another has loaded. cuDNN's parts are also asked whether they are of one release (cudnnOpsVersionCheck and the like): a
part of another release fails otherwise only when the first convolution is run.
"""

from __future__ import annotations

import ctypes
import os
import sys

from . import library_versions

TYPE_CHECKING = False  # without importing typing
if TYPE_CHECKING:
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
"""The check of each part, from the header of that part, of cuDNN 9 and of cuDNN 8."""


def probe(job: dict[str, object], channel: Channel) -> dict[str, object]:
    """Load ``job["libraries"]``, paths in order. Per library: path, component, version, and what the loader said."""
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
    """The status of a part's check of cuDNN, 0 where all is well or there is nothing to check."""
    call = dict(_CHECKS).get(component)
    try:
        return 0 if call is None else int(getattr(library, call)())
    except AttributeError:
        return 0
