"""ONNX Runtime, which only runs models: small ones are made here, and its profile says where each node really ran.

The list of available providers says what was built, not what works; a session whose provider fails to start continues
on the CPU, unless an option forbids that.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any, Callable, Dict, List, Sequence, Set

from . import operations
from .framework import Framework, NoDeviceError, Outcome
from .onnx_model import Node, Tensor, model
from .reference import Array, product

PROVIDERS = {"cuda": "CUDAExecutionProvider", "cpu": "CPUExecutionProvider"}
ELEMENT_WISE = (
    Node("Exp", ("left",), "power"),
    Node("Mul", ("power", "right"), "scaled"),
    Node("Add", ("scaled", "left"), "result"),
)
MATMUL = (Node("MatMul", ("left", "right"), "result"),)
CONVOLUTION = (Node("Conv", ("left", "right"), "result", (("pads", (1, 1, 1, 1)),)),)

PROVES = {"element-wise": "ONNX Runtime's own kernels", "matmul": "cuBLAS", "convolution": "cuDNN"}


class OnnxRuntime(Framework):
    """ONNX Runtime, since 1.6. It only does inference, so gradients and training are not tested."""

    def __init__(self, _device: str) -> None:
        super().__init__(PROVES)
        import numpy  # noqa: ICN001 - kept as an attribute
        import onnxruntime

        self.numpy: Any = numpy
        self.ort: Any = onnxruntime
        self.version = str(onnxruntime.__version__)
        self.cpu_build = PROVIDERS["cuda"] not in onnxruntime.get_available_providers()
        self.built_cuda = getattr(onnxruntime, "cuda_version", None) or None
        self.device = ""
        self.index = 0

    def open(self, device: str, index: int) -> str:
        """Start the provider with a session of one addition.

        Its CUDA libraries may be found only after ``preload_dlls`` (since 1.21), which users have to call themselves;
        then this is a remark.
        """
        self.device, self.index = device, index
        try:
            self._start()
        except Exception:
            if device != "cuda" or not hasattr(self.ort, "preload_dlls"):
                raise
            self.ort.preload_dlls()
            self._start()
            self.remarks.append("preload-needed")
        return "CPU" if device == "cpu" else "cuda:{}".format(index)

    def element_wise(self, left: Array, right: Array) -> Outcome:
        """Three nodes, which the provider may run as one."""
        return self._outcome(ELEMENT_WISE, left, right, left.shape)

    def matmul(self, left: Array, right: Array) -> Outcome:
        """A product of two matrices."""
        return self._outcome(MATMUL, left, right, (left.shape[0], right.shape[1]))

    def convolution(self, images: Array, filters: Array) -> Outcome:
        """A convolution; its filters are an input, like its images."""
        return self._outcome(CONVOLUTION, images, filters, (images.shape[0], filters.shape[0], *images.shape[2:]))

    def products(self, left: Array, right: Array) -> Callable[[], int]:
        """Products that are read back and compared here: on the device there is nothing to compare them with."""
        inputs = self._feed(left, right)
        session = self._session(MATMUL, left, right, (left.shape[0], right.shape[1]))
        first = session.run(None, inputs)[0]
        return lambda: int((session.run(None, inputs)[0] != first).sum())

    def _start(self) -> None:
        one = Array((1,), [1.0])
        session = self._session((Node("Add", ("left", "right"), "result"),), one, one, (1,))
        if PROVIDERS[self.device] not in session.get_providers():
            text = "the session has {}".format(", ".join(session.get_providers()))
            raise NoDeviceError(text)

    def _session(
        self, nodes: Sequence[Node], left: Array, right: Array, shape: Sequence[int], profile: str | None = None
    ) -> Any:
        options = self.ort.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1" if self.device == "cuda" else "0")
        if profile is not None:
            options.enable_profiling = True
            options.profile_file_prefix = profile
        settings = (
            {"device_id": str(self.index), "use_tf32": "0"} if self._knows_tf32() else {"device_id": str(self.index)}
        )
        session = self.ort.InferenceSession(
            model(nodes, (Tensor("left", left.shape), Tensor("right", right.shape)), Tensor("result", tuple(shape))),
            options,
            providers=[PROVIDERS[self.device]],
            provider_options=[settings if self.device == "cuda" else {}],
            enable_fallback=0,
        )
        session.disable_fallback()
        return session

    def _knows_tf32(self) -> bool:
        """The option is new in 1.18 (https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html)."""
        major, minor = self.version.split(".")[:2]
        return (int(major), int(minor)) >= (1, 18)

    def _feed(self, left: Array, right: Array) -> Dict[str, Any]:
        arrays = zip(("left", "right"), (left, right))
        return {name: self.numpy.array(it.numbers, "float32").reshape(it.shape) for name, it in arrays}

    def _outcome(self, nodes: Sequence[Node], left: Array, right: Array, shape: Sequence[int]) -> Outcome:
        folder = tempfile.mkdtemp(prefix="envsolve-")
        try:
            session = self._session(nodes, left, right, shape, os.path.join(folder, "profile"))
            numbers: List[float] = session.run(None, self._feed(left, right))[0].reshape(-1).tolist()
            ran_on = providers_of(session.end_profiling())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        assert len(numbers) == product(shape)
        return Outcome(numbers, ran_on == {PROVIDERS[self.device]})


def providers_of(profile: str) -> Set[str]:
    """The providers that the nodes of a session ran on, from its profile."""
    with open(profile, encoding="utf-8") as file:
        events = json.load(file)
    return {
        event["args"]["provider"] for event in events if event.get("cat") == "Node" and event["args"].get("provider")
    }


probe = operations.probe_of(OnnxRuntime)
