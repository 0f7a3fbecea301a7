"""A complete matrix of a few rows that satisfies every law, and a way to write it with one change."""

from __future__ import annotations

from pathlib import Path

from envsolve.matrix import Matrix

TOP = 'schema_version = 1\nupdated = "2026-11-20"\n'
DOCS = '\n[evidence.docs]\nkind = "project-docs"\nreference = "a page"\nseen = "2026-11-19"\n'

THING = f"""\
{TOP}framework = "thing"
aliases = ["thg"]

[[dates]]
evidence = ["docs"]

[dates.released]
"2.0" = "2026-10-07"
"1.0" = "2026-10-06"

[[release]]
version = "2.0"
source = "pypi"
platform = "linux-64"
build = "cuda12"
package = "thing"
pythons = ["3.9", "3.10"]
glibc = "2.28"
cuda = "12.9"
cuda_requires = "==12.9"
cuda_libraries = "dependencies"
cudnn = "9.10"
cudnn_requires = "==9.10.2.21"
sass = ["8.0", "9.0", "12.0f"]
ptx = ["12.0"]
companions = {{ thingvision = "==2.1" }}
constraints = ["numpy<2"]
inferred = ["glibc"]
by_hand = ["glibc"]
note = "a note"
evidence = ["docs"]

[[release]]
version = "1.0"
source = "conda-forge"
platform = "win-64"
build = "cuda11"
package = "thing"
pythons = ["3.9"]
cuda = "11.8"
cuda_requires = ">=11.8,<12"
cuda_libraries = "dependencies"
cudnn = "8.9"
cudnn_requires = ">=8.9,<9"
sass = ["7.5", "8.0"]
ptx = ["8.0"]
evidence = ["docs"]

[[release]]
version = "1.0"
source = "pypi"
platform = "osx-arm64"
build = "cpu"
package = "thing"
pythons = ["3.9"]
evidence = ["docs"]

[[known_bad]]
versions = "<2"
platforms = ["win-64"]
reason = "It does not import."
evidence = ["docs"]

[[platform_limit]]
platform = "win-64"
versions = ">=2"
reason = "There is no GPU build for Windows."
instead = "Use Linux."
evidence = ["docs"]

[[disagreement]]
about = "the cuDNN of 2.0"
versions = "==2.0"
used = "9.10.2.21, as the wheel says"
rejected = "9.9, as the page says"
because = "the wheel decides"
evidence = ["docs"]
{DOCS}"""

CUDA = f"""\
{TOP}
[[toolkit]]
version = "12.9"
linux_floor = "525.60.13"
linux_full = "575.51.03"
windows_floor = "528.33"
windows_full = "576.02"
compiles_for = ["7.5", "8.0", "9.0", "12.0"]
feature_targets = ["9.0a", "12.0f"]
evidence = ["docs"]

[[toolkit]]
version = "11.8"
linux_floor = "450.80.02"
linux_full = "520.61.05"
windows_floor = "452.39"
windows_full = "522.06"
compiles_for = ["3.7", "7.5", "8.0"]
evidence = ["docs"]

[[driver_branch]]
branch = 575
cuda = "12.9"
first_linux = "575.51.03"
first_windows = "576.02"
evidence = ["docs"]

[[driver_branch]]
branch = 520
cuda = "11.8"
first_linux = "520.61.05"
first_windows = "522.06"
evidence = ["docs"]

[[architecture]]
capability = "12.0"
name = "Blackwell"
first_cuda = "12.8"
first_branch = 570
evidence = ["docs"]

[[architecture]]
capability = "9.0"
name = "Hopper"
first_cuda = "12.0"
first_branch = 525
evidence = ["docs"]

[[architecture]]
capability = "8.0"
name = "Ampere"
first_cuda = "11.0"
first_branch = 450
evidence = ["docs"]

[[architecture]]
capability = "7.5"
name = "Turing"
first_cuda = "10.0"
first_branch = 410
evidence = ["docs"]

[[architecture]]
capability = "3.7"
name = "Kepler"
first_cuda = "6.5"
last_cuda = "11.8"
first_branch = 340
last_branch = 470
evidence = ["docs"]
{DOCS}"""

COMPONENTS = f"""\
{TOP}
[[toolkit]]
version = "12.9.1"
cuda = "12.9"
evidence = ["docs"]

[toolkit.components]
nvidia-cublas-cu12 = "==12.9.1.4"
{DOCS}"""

CUDNN = f"""\
{TOP}
[[release]]
version = "9.10.2.21"
cuda_major = 12
min_capability = "5.0"
max_capability = "12.0"
sass = ["5.0", "8.0", "12.0"]
pypi = "nvidia-cudnn-cu12"
conda_forge = ["linux-64"]
evidence = ["docs"]

[[release]]
version = "8.9.7.29"
cuda_major = 11
min_capability = "5.0"
max_capability = "9.0"
pypi = "nvidia-cudnn-cu11"
conda_forge = ["linux-64", "win-64"]
evidence = ["docs"]
{DOCS}"""

GPUS = f"""\
{TOP}
[[gpu]]
name = "NVIDIA A100"
capability = "8.0"
architecture = "Ampere"
evidence = ["docs"]

[[gpu]]
name = "GeForce RTX 5090"
capability = "12.0"
capabilities = ["12.0"]
architecture = "Blackwell"
evidence = ["docs"]
{DOCS}"""

PCI_IDS = f"""\
{TOP}{DOCS}
[device]
"20b0" = {{ name = "A100", capability = "8.0" }}
"""

LIBRARIES = f"""\
{TOP}
[[library]]
name = "cudart"
cuda = "12.9"
linux = "libcudart.so.12"
evidence = ["docs"]
{DOCS}"""

PACKAGES = f"""\
{TOP}
[[build]]
package = "extension"
versions = ">=2"
cuda = "==12.*"
evidence = ["docs"]
{DOCS}"""

FILES = {
    "packages": PACKAGES,
    "thing": THING,
    "cuda": CUDA,
    "cuda_components": COMPONENTS,
    "cudnn": CUDNN,
    "gpus": GPUS,
    "pci_ids": PCI_IDS,
    "libraries": LIBRARIES,
}


def tiny_matrix(directory: Path, file: str = "thing", old: str = "", new: str = "") -> Matrix:
    """The matrix in ``directory``, with the first ``old`` of one file replaced by ``new``."""
    assert old in FILES[file]
    for name, text in FILES.items():
        changed = text.replace(old, new, 1) if name == file and old else text
        (directory / f"{name}.toml").write_text(changed, encoding="utf-8")
    return Matrix(directory)
