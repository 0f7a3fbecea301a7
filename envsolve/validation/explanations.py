"""What each finding about a framework means and what to do about it. Data; the texts that lead here are in symptoms.py.

``{framework}`` in a text is the framework as its makers write it. Findings about the driver alone are told by
driver_errors.py, and kept there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from envsolve.frameworks import FRAMEWORKS
from envsolve.model.finding import Finding, Severity
from envsolve.validation.driver_errors import ERRORS, LIBRARY_MISSING
from envsolve.validation.places import Place


class Explanation(NamedTuple):
    """A finding before it is found: see :class:`~envsolve.model.finding.Finding`."""

    id: str
    title: str
    cause: str
    fix: str
    commands: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR
    in_scope: bool = True


_SOLVE = "envsolve -f {name}"
_OWN = (
    Explanation(
        "cpu-build",
        "{framework} is a build for the CPU",
        "The installed {framework} was built without CUDA: no driver and no setting makes it use a GPU.",
        "Install a build for CUDA in its place. On the CPU it is proven with --device cpu.",
        (_SOLVE + " --gpu auto",),
    ),
    Explanation(
        "no-code-for-gpu",
        "This build has no code for the GPU",
        "What was built for {framework} holds neither machine code nor PTX that the GPU can run.",
        "Take a build that covers the GPU's compute capability; newer ones leave out old GPUs, older ones do not know "
        "new ones.",
        (_SOLVE + " --gpu auto",),
    ),
    Explanation(
        "driver-too-old",
        "The NVIDIA driver is too old for {framework}, or there is none",
        "The CUDA runtime that {framework} was built with is newer than the driver supports. The runtime says the same "
        "where there is no driver at all.",
        "Update the driver, or take a build for a CUDA that it supports.",
        ("envsolve detect", _SOLVE + " --gpu auto"),
    ),
    Explanation(
        "ptx-too-new",
        "The driver is too old for the PTX of this build",
        "The build holds no machine code for the GPU but PTX for the driver to compile, of a CUDA newer than the "
        "driver's. That {framework} starts at all is minor-version compatibility, which does not cover PTX.",
        "Update the driver to one that fully supports the build's CUDA, or take a build with machine code for the GPU.",
        ("envsolve detect", _SOLVE + " --gpu auto"),
    ),
    Explanation(
        "invalid-kernel-image",
        "The driver cannot read the code of this build",
        "The code that {framework} holds for the GPU is damaged or of a CUDA that the driver does not know.",
        "Update the driver, or take a build for a CUDA that it supports; else install the package again.",
        ("envsolve detect",),
    ),
    Explanation(
        "cudnn-broken",
        "cuDNN does not work",
        "{framework} computes on the GPU until it needs cuDNN, for a convolution, and that fails: its libraries are "
        "not complete, not of one version, have no code for the GPU, or there is no memory left for them.",
        "Leave exactly one cuDNN in the environment, the one that {framework} was built with, and none on "
        "LD_LIBRARY_PATH.",
        ("envsolve validate", _SOLVE + " --gpu auto"),
    ),
    Explanation(
        "cudnn-version-mismatch",
        "The wrong cuDNN was loaded",
        "{framework} found a cuDNN of another version than it was built for, or parts of two versions: another copy "
        "comes first on the loader's path, or two packages wrote the same files.",
        "Leave exactly one cuDNN in the environment, and take every other off LD_LIBRARY_PATH.",
        ('echo "$LD_LIBRARY_PATH"', _SOLVE + " --gpu auto"),
    ),
    Explanation(
        "libcuda-not-found-by-cudnn",
        "cuDNN does not find the driver's library",
        "cuDNN 8 loads `libcuda.so`, without a number. The driver on WSL has it in /usr/lib/wsl/lib only, where the "
        "loader does not look; a driver's package for Linux has it in the package for developers.",
        "On WSL put /usr/lib/wsl/lib on LD_LIBRARY_PATH; elsewhere make the link libcuda.so beside libcuda.so.1.",
        ("export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH",),
    ),
    Explanation(
        "cublas-broken",
        "cuBLAS does not work",
        "Kernels of {framework} run on the GPU, and a product of matrices, which goes through cuBLAS, fails: its "
        "libraries are of another version than the CUDA runtime, have no code for the GPU, or there is no memory left "
        "for them.",
        "Take the cuBLAS that {framework} was built with, and no other on LD_LIBRARY_PATH; see that the GPU has "
        "free memory.",
        ("nvidia-smi", _SOLVE + " --gpu auto"),
    ),
    Explanation(
        "no-gpu-for-framework",
        "{framework} finds no GPU",
        "{framework} was built with CUDA, and starts without a GPU: there is none, CUDA_VISIBLE_DEVICES hides "
        "it, the driver "
        "does not answer, or libraries that it needs are missing.",
        "Look at the driver first; where that passes, look for missing libraries.",
        ("envsolve detect", 'echo "$CUDA_VISIBLE_DEVICES"'),
    ),
    Explanation(
        "library-missing",
        "A library that {framework} needs is missing",
        "The loader finds no library of that name in the environment or on its path. The number in the name "
        "belongs to the "
        "name, it is not always a version: libcudart.so.11.0 is the runtime of every CUDA 11.",
        "Install the package that brings it, of the CUDA that {framework} was built with. Where it is installed, its "
        "directory must be on LD_LIBRARY_PATH (on Windows, PATH).",
        (_SOLVE + " --gpu auto",),
    ),
    Explanation(
        "library-mismatch",
        "A library of another version was loaded",
        "Two libraries that belong together are of different versions: most often LD_LIBRARY_PATH puts one of the "
        "machine's before the environment's own.",
        "Start without LD_LIBRARY_PATH; else install both anew from one lock.",
        ("unset LD_LIBRARY_PATH",),
    ),
    Explanation(
        "libdevice-missing",
        "The compiler finds no libdevice",
        "XLA compiles with libdevice.10.bc of CUDA (nvvm), and finds it nowhere.",
        "Install cuda-nvvm (conda: cuda-nvcc; pip: nvidia-cuda-nvcc) of the CUDA of this build, or name the toolkit "
        "with XLA_FLAGS=--xla_gpu_cuda_data_dir.",
    ),
    Explanation(
        "cuda-headers-missing",
        "The headers of CUDA are missing",
        "{framework} compiles its kernels when they are first needed, and finds no headers of CUDA to do it with.",
        "Install them: pip, the extra `ctk` of CuPy or nvidia-cuda-runtime; conda, cuda-cudart-dev; of one CUDA major.",
    ),
    Explanation(
        "zlib-missing",
        "zlibwapi.dll is missing",
        "cuDNN 8.3 to 8.9 on Windows needs zlibwapi.dll, which neither CUDA nor cuDNN brings.",
        "Install a package with it (conda: libzlib-wapi), or a build with cuDNN 9, which does not need it.",
    ),
    Explanation(
        "glibc-too-old",
        "The C library is too old",
        "{framework} or a library of it was built for a newer C library than this system has.",
        "Take a build for this system; its C library cannot be exchanged.",
        (_SOLVE,),
    ),
    Explanation(
        "numpy-mismatch",
        "{framework} and numpy do not go together",
        "{framework} was built for another major version of numpy than is installed.",
        "Install the numpy that it was built for; for builds of before 2024 that is `numpy<2`.",
        ("pip install 'numpy<2'",),
    ),
    Explanation(
        "protobuf-mismatch",
        "{framework} and protobuf do not go together",
        "{framework} was made for protobuf 3, and a newer one is installed.",
        "Install protobuf 3.20, the last that it works with.",
        ("pip install 'protobuf<3.21'",),
    ),
    Explanation(
        "import-failed",
        "{framework} cannot be imported",
        "Python could not load the package: it is not whole, or something it needs is missing or of another version.",
        "Install the environment anew from its lock.",
        (_SOLVE,),
    ),
    Explanation(
        "device-not-reached",
        "{framework} cannot use the device",
        "{framework} was imported, and an error came up when it began to use the device.",
        "Look at the driver first; what it says is in the evidence.",
        ("envsolve detect",),
    ),
    Explanation(
        "operation-failed",
        "An operation of {framework} fails",
        "{framework} runs on the device, and the operation raises an error that has no finding of its own.",
        "What it says is in the evidence.",
    ),
    Explanation(
        "kernel-failed",
        "A kernel of {framework} fails on the GPU",
        "A kernel broke off. With sound inputs that is a mistake in the library, a driver that does not fit it, "
        "or hardware.",
        "Update the driver; look for Xid lines in the kernel's log; if a second GPU does the same, take another build.",
        ("sudo dmesg | grep -E 'NVRM|Xid'",),
    ),
    Explanation(
        "wrong-result",
        "{framework} computes wrong numbers",
        "An operation came to its end and its numbers are further from the exact ones than float32 explains: reduced "
        "precision that was forced on it, a library that does not fit the GPU, or hardware that fails.",
        "Run it again with --burn: numbers that change are the hardware's. Where they stay, try another build, then "
        "another GPU.",
        ("envsolve validate --burn 60",),
    ),
    Explanation(
        "unstable-result",
        "The same product comes out differently",
        "One product of matrices, computed again and again, was not the same each time: memory, power, heat or clocks "
        "of the GPU.",
        "Take back any overclocking, look at the GPU's temperature and error counters; test another GPU.",
        ("nvidia-smi -q",),
    ),
    Explanation(
        "ran-on-cpu",
        "{framework} used the CPU instead of the GPU",
        "The operation was asked for on the GPU and ran on the CPU without an error: its numbers are right and "
        "it is slow.",
        "Look at the driver, and for libraries that {framework} did not find; what it said is in the evidence.",
        ("envsolve detect",),
    ),
    Explanation(
        "training-does-not-learn",
        "Training with {framework} does not lower the loss",
        "Three steps of gradient descent lower the loss of this small network a lot, and did not: gradients are wrong.",
        "Try another build, then another GPU.",
    ),
    Explanation(
        "out-of-memory",
        "The GPU has no memory left",
        "The operations need a few hundred MB, most of it for the libraries, and the GPU has not that much: other "
        "processes hold it. No version and no installation is at fault.",
        "See who holds the memory, and end what is no longer needed.",
        ("nvidia-smi",),
        in_scope=False,
    ),
    Explanation(
        "probe-timeout",
        "{framework} does not come to an end",
        "The check was stopped for taking too long.",
        "Give it more time: a slow disk, or a driver that compiles the whole build from PTX, takes minutes at the "
        "first start. Where a GPU is used and more time does not help, the driver hangs: restart the machine.",
        ("envsolve validate --timeout 600",),
    ),
    Explanation(
        "probe-crash",
        "{framework} ended the process",
        "The process of the check ended before it told what it found.",
        "Look at what it printed last, in the evidence; install the environment anew from its lock.",
        (_SOLVE,),
    ),
    Explanation(
        "probe-failed",
        "The check of {framework} could not be made",
        "The interpreter of the environment failed to run the check.",
        "See whether this interpreter runs at all, and whether its standard library is whole.",
    ),
    Explanation(
        "preload-needed",
        "{framework} finds its CUDA libraries only after it is told to",
        "The CUDA libraries are in the environment, where {framework} does not look by itself.",
        "Before its first use run `{preload}`, or import a PyTorch of the same CUDA.",
        severity=Severity.WARNING,
    ),
)
EXPLANATIONS = {it.id: it for it in _OWN}


def finding(
    identifier: str,
    name: str,
    framework: str,
    told: tuple[str, ...] = (),
    evidence: tuple[str, ...] = (),
    places: Collection[Place] | None = None,
) -> Finding:
    """The finding ``identifier`` of this table or of the driver's, on a framework by envsolve's name and its title.

    ``told`` are sentences on this very case, and follow the cause. With ``places`` only the advice for these is given.
    """
    known = EXPLANATIONS.get(identifier) or _of_driver(identifier, places)
    its_own = FRAMEWORKS.get(name)
    words = {"name": name, "framework": framework, "preload": its_own and its_own.preload_call}
    return Finding(
        id=known.id,
        title=known.title.format_map(words),
        severity=known.severity,
        cause=" ".join((known.cause.format_map(words), *told)),
        fix=known.fix.format_map(words),
        commands=tuple(command.format_map(words) for command in known.commands),
        evidence=evidence,
        in_scope=known.in_scope,
        about=name,
    )


def _of_driver(identifier: str, places: Collection[Place] | None) -> Explanation:
    error = next(it for it in (LIBRARY_MISSING, *ERRORS.values()) if it.id == identifier)
    advice = [it for it in error.advice if it.place is None or places is None or it.place in places]
    return Explanation(
        id=error.id,
        title=error.title,
        cause=error.cause,
        fix=" ".join(it.text for it in advice),
        commands=tuple(dict.fromkeys(command for it in advice for command in it.commands)),
        in_scope=error.in_scope,
    )
