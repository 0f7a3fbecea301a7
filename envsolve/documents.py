"""The JSON that commands print with ``--json``, as types, with the meaning of each key.

The schemas in docs/schemas and the tables in docs/reference/json.md are made from these types. No command imports this
module: it is for type checkers, and for the tools that read the types.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict


class Document(TypedDict):
    """What every document has."""

    schema_version: Annotated[Literal[1], "the version of the format; keys are added without a new version"]


class Note(TypedDict):
    """A note. Without `--json` notes are printed on stderr."""

    code: Annotated[str, "the kind of the note, for programs"]
    text: Annotated[str, "the note, in words that may change with any release"]
    command: Annotated[str | None, "what to type, or null"]
    fields: Annotated[dict[str, str | int | None], "the values in the text, by name: versions, packages, a driver"]


class Fact(TypedDict):
    """A fact that an answer is based on."""

    fact: Annotated[str, "a sentence"]
    source: Annotated[str, "its source"]


class Hint(TypedDict):
    """What the user can do."""

    text: Annotated[str, "what to do"]
    command: Annotated[str | None, "the command for it, or null"]
    code: Annotated[
        str | None,
        "its kind, or null: `other-source`, `other-version`, `other-cuda`, `other-python`, `later-date`, "
        "`other-driver`, `forward-compatibility`, `fewer-gpus`, `fewer-machines`, `fewer-frameworks`, `on-linux`, "
        "`any-release`, `cpu`",
    ]


class NamedGpu(TypedDict):
    """GPUs of one kind, as a request names them."""

    name: Annotated[str | None, "the product, if known"]
    compute_capability: Annotated[str | None, "its compute capability, as in `8.6`"]
    count: Annotated[int, "how many there are"]


class Gpu(NamedGpu):
    """GPUs of one kind in a machine."""

    memory_mib: Annotated[int | None, "the memory of each, in MiB"]
    mig: Annotated[bool, "whether it is divided into instances (MIG)"]


class SourceFailure(TypedDict):
    """Why a source gave no answer."""

    code: Annotated[str, "its kind"]
    text: Annotated[str, "its message"]
    number: Annotated[int | None, "NVIDIA's error number, if any"]


class Reading(TypedDict):
    """What one source reports about a machine; null is what it cannot report."""

    source: Annotated[str, "the source, such as `nvml`"]
    driver: Annotated[str | None, "the driver that it reports"]
    driver_cuda: Annotated[str | None, "the CUDA that it reports"]
    gpus: Annotated[list[Gpu] | None, "the GPUs that it reports"]
    problem: Annotated[SourceFailure | None, "why it gave no answer"]


class SolvedHost(TypedDict):
    """The machine that was solved for. What the request leaves open is null or empty."""

    platform: Annotated[str, "the platform, as conda spells it"]
    driver: Annotated[str | None, "the NVIDIA driver; null if there is none or it is unknown"]
    driver_cuda: Annotated[str | None, "the CUDA that the driver supports in full"]
    glibc: Annotated[str | None, "the C library; null on systems without glibc"]
    gpus: Annotated[list[NamedGpu], "the GPUs"]
    origin: Annotated[dict[str, str], "where each of these values comes from"]


class FleetHost(SolvedHost):
    """Machines that are alike, of several that were solved for."""

    files: Annotated[list[str], "the host files of these machines"]


class Host(Document):
    """What `detect` prints: a machine, and the host file that `--host` reads."""

    platform: Annotated[str, "the platform, as conda spells it"]
    driver: Annotated[str | None, "the NVIDIA driver; null if none is found"]
    driver_cuda: Annotated[str | None, "the CUDA that the driver supports in full"]
    glibc: Annotated[str | None, "the C library; null on systems without glibc"]
    gpus: Annotated[list[Gpu], "the GPUs"]
    origin: Annotated[dict[str, str], "where each value was read"]
    status: Annotated[
        Literal["ready", "no-hardware", "no-driver", "no-access", "driver-broken", "no-gpu"],
        "`ready`, or why no GPU can be used",
    ]
    wsl: Annotated[bool, "whether this is Linux inside Windows"]
    notes: Annotated[list[str], "unusual facts about the machine"]
    readings: Annotated[list[Reading], "what each source reported"]


class Framework(TypedDict):
    """A framework build of a stack."""

    framework: Annotated[str, "the framework, by envsolve's name"]
    version: Annotated[str, "its version"]
    package: Annotated[str, "the name of the package"]
    source: Annotated[str, "who packages it, as for `--source`"]
    build: Annotated[str, "which build of that version"]
    index: Annotated[str | None, "the index of a wheel that is not on the default one"]
    find_links: Annotated[str | None, "the page of a wheel that is on no index"]
    channel: Annotated[str | None, "the channel of a conda package"]
    cuda: Annotated[str | None, "the CUDA that it was compiled with; null for a CPU build"]
    cudnn: Annotated[str | None, "the cuDNN that it was compiled with, or pins"]
    compute_capabilities: Annotated[list[str], "the GPUs that it has machine code for"]
    ptx: Annotated[list[str], "the PTX that it has"]
    runs_as: Annotated[dict[str, str], "for each GPU of the request, the code that runs on it"]


class UnpinnedPackage(TypedDict):
    """Another package of an environment that does not pin it."""

    spec: Annotated[str, "the requirement"]
    manager: Annotated[Literal["conda", "pip"], "who installs it"]


class LockedPackage(TypedDict):
    """A package of a lock."""

    name: Annotated[str, "its name"]
    version: Annotated[str, "its version"]
    build: NotRequired[Annotated[str, "the build of a conda package"]]
    manager: Annotated[Literal["conda", "pip"], "who installs it"]


class StackParts(TypedDict):
    """The parts of a stack."""

    python: Annotated[str, "the Python, as a minor version"]
    cuda: Annotated[str | None, "the CUDA toolkit; null for a CPU stack"]
    cudnn: Annotated[str | None, "the cuDNN; null if none is used"]
    cuda_owner: Annotated[Literal["conda", "pip"] | None, "who installs CUDA"]
    minimum_driver: Annotated[str | None, "the oldest NVIDIA driver that the stack runs on"]
    frameworks: Annotated[list[Framework], "the framework builds"]


class Alternative(StackParts):
    """The stack that another kind of output or another source would give."""

    command: Annotated[str, "the command for it"]


class Stack(Document, StackParts):
    """What `solve` prints: a stack, or a lock with its packages."""

    host: Annotated[SolvedHost, "the machine that was solved for"]
    packages: Annotated[list[UnpinnedPackage | LockedPackage], "the other packages; for a lock, all of them"]
    because: Annotated[list[Fact], "the facts that the answer is based on"]
    alternatives: Annotated[
        list[Alternative], "what another kind of output or another source would give; empty if a lock was made"
    ]
    notes: Annotated[list[Note], "what else to know"]
    request: Annotated[str, "the command that requests the same again"]
    options: Annotated[dict[str, list[str]], "the request, by the keys of a project"]
    matrix_date: Annotated[str | None, "the date of the matrix; null without a framework"]
    envsolve_version: Annotated[str, "the version of envsolve"]
    own_matrix: NotRequired[Annotated[Literal[True], "there if the matrix, or a row that counts, is not shipped"]]
    evidence: NotRequired[
        Annotated[
            dict[str, list[str]],
            "of a lock for a GPU: its packages with CUDA code, by where the facts about them come from",
        ]
    ]
    hosts: NotRequired[Annotated[list[FleetHost], "the machines, if there are several"]]
    platforms: NotRequired[Annotated[list["Stack"], "one such object for each platform, if there are several"]]


class Why(TypedDict):
    """Why something is in the answer."""

    name: Annotated[str, "what `--why` names"]
    value: Annotated[str, "what it is in the answer"]
    facts: Annotated[list[Fact], "why"]


class WhyNot(TypedDict):
    """Why something else is not the answer."""

    requirement: Annotated[str, "what `--why-not` names"]
    fits: Annotated[bool, "whether it would fit"]
    message: Annotated[str, "the answer in one sentence"]
    facts: Annotated[list[Fact], "why"]
    constraints: Annotated[list[str], "the parts of the request that exclude it"]
    hints: Annotated[list[Hint], "ways to get it"]


class PlatformAnswers(TypedDict):
    """The answers for one platform."""

    platform: Annotated[str, "the platform"]
    why: Annotated[list[Why], "an answer for each `--why`"]
    why_not: Annotated[list[WhyNot], "an answer for each `--why-not`"]


class Answers(Document, PlatformAnswers):
    """What `solve` prints with `--why` and `--why-not`."""

    platforms: NotRequired[Annotated[list[PlatformAnswers], "the answers for each platform, if there are several"]]


class Change(TypedDict):
    """A package that changes."""

    name: Annotated[str, "the package"]
    before: Annotated[str | None, "its version before; null if it is added"]
    after: Annotated[str | None, "its version after; null if it is removed"]
    differs: NotRequired[Annotated[list[str], "if the version is the same, what differs: `source`, `files`"]]


class NeedsOfGpu(TypedDict):
    """What a lock needs of a GPU and its driver; null is what is not known."""

    driver_floor: Annotated[str | None, "the oldest NVIDIA driver that runs it"]
    compute_capabilities: Annotated[list[str] | None, "the GPUs that everything in it has code for"]
    cuda: Annotated[str | None, "the version of CUDA"]
    cudnn: Annotated[str | None, "the version of cuDNN"]


class FileStatus(TypedDict):
    """A file and whether it runs on the machine."""

    path: Annotated[str, "the file; for a project, relative to its directory"]
    platform: Annotated[str, "the platform it is for"]
    status: Annotated[
        Literal["fits", "does-not-run", "cpu-only", "unknown", "stale", "missing", "unreadable", "no-framework"],
        "whether it runs there and matches the project",
    ]
    builds: Annotated[list[str], "the framework builds in it"]
    needs: Annotated[NeedsOfGpu | None, "what the lock of another tool needs; null for other files"]
    reasons: Annotated[list[str], "why it does not run or match"]
    because: Annotated[list[Note], "the same as notes"]
    notes: Annotated[list[Note], "what is unknown, and why"]
    newer: Annotated[list[str], "what is newer and runs there too"]


class Status(Document):
    """What `status` prints: files, and whether they run on the machine."""

    ok: Annotated[bool, "whether all files fit; if not, the exit code is 1"]
    files: Annotated[list[FileStatus], "the files"]


class Possible(TypedDict):
    """A newer stack that would run."""

    stack: Annotated[str, "the newer stack"]
    held: Annotated[str, "the stack that the lock has"]
    allowed_by: Annotated[str | None, "the driver that allows it, if that is the reason"]
    text: Annotated[str, "the same in words"]


class FileChange(TypedDict):
    """A file of the project and what changes in it."""

    path: Annotated[str, "the file, relative to the directory of the project"]
    platform: Annotated[str, "the platform it is for"]
    status: Annotated[Literal["current", "new", "stale"], "`new` if the file did not exist"]
    changes: Annotated[
        list[Change] | None, "the packages that change; null with `--check` if finding out needs the network"
    ]
    reasons: Annotated[list[str], "why it changes"]
    because: Annotated[list[Note], "the same as notes"]
    possible: Annotated[Possible | None, "a newer stack that would run, or null"]


class Validation(Document):
    """What `validate` prints: the proof of an environment."""

    ok: Annotated[bool, "whether the environment is proven"]
    python: Annotated[str, "the interpreter of the environment"]
    device: Annotated[Literal["cpu", "cuda"], "where operations ran"]
    host: Annotated[Host, "the machine"]
    probes: Annotated[list["Probe"], "the probes"]
    findings: Annotated[list["Finding"], "what is wrong"]
    libraries: Annotated[list["Library"], "the CUDA libraries that were loaded"]
    notes: Annotated[list[Note], "what was not proven"]


class Environment(Document):
    """What `create`, `sync` and `add --prefix` print: an environment and what changed in it."""

    prefix: Annotated[str, "its directory"]
    kind: Annotated[Literal["conda", "venv"], "what kind of environment it is"]
    python: Annotated[str | None, "its interpreter, if it has one"]
    outcome: Annotated[
        Literal["made", "changed", "would-change", "up-to-date"],
        "what happened; `would-change` with `--diff` and `--dry-run`",
    ]
    changes: Annotated[list[Change], "the packages that changed in an existing environment"]
    notes: Annotated[list[Note], "what else to know"]
    validation: Annotated[Validation | None, "its proof; null if it was not tested"]


class Lock(Document):
    """What `lock`, `add` and `remove` print: the files of a project and what changes in them."""

    files: Annotated[list[FileChange], "the files"]
    notes: Annotated[list[Note], "what else to know"]
    environment: NotRequired[Annotated[Environment, "of `add` and `remove` with `--sync`: the environment"]]


class Build(TypedDict):
    """A framework in a lock."""

    framework: Annotated[str, "the framework, by envsolve's name"]
    version: Annotated[str, "its version"]
    build: Annotated[str, 'which build; `""` if the matrix does not have it']


class Summary(TypedDict):
    """What a lock needs and installs. Keys that are in `unknown` are null."""

    frameworks: Annotated[list[Build], "the frameworks"]
    driver_floor: Annotated[str | None, "the oldest NVIDIA driver that runs it; null without CUDA"]
    compute_capabilities: Annotated[list[str] | None, "the GPUs that everything in it has code for"]
    cuda: Annotated[str | None, "the version of CUDA"]
    cudnn: Annotated[str | None, "the version of cuDNN"]
    python: Annotated[str | None, "the version of Python, or a range"]
    download_size: Annotated[int | None, "the size of all packages, in bytes"]
    unknown: Annotated[dict[str, str], "why a key is not known, by its name"]


class Breaking(TypedDict):
    """A difference that may break a machine or a program."""

    kind: Annotated[
        Literal["driver-floor", "capability", "cuda-major", "framework-major", "python"], "as for `--fail-on`"
    ]
    text: Annotated[str, "what it is"]
    fix: Annotated[str | None, "what to do, or null"]
    known: Annotated[bool, "false if a file does not show whether there is such a difference"]
    fails: Annotated[bool, "whether `--fail-on` names it"]
    package: Annotated[str | None, "the package in the new file that it comes from, if any"]
    line: Annotated[int | None, "the line of that package in the new file, if known"]


class FileDiff(TypedDict):
    """What differs between two locks on one platform."""

    old: Annotated[str, "the old file, with its revision, as in `HEAD~1:uv.lock`"]
    new: Annotated[str, "the new file"]
    platform: Annotated[str, "the platform that they are compared on"]
    before: Annotated[Summary, "what the old file needs and installs"]
    after: Annotated[Summary, "what the new file needs and installs"]
    capabilities_lost: Annotated[list[str], "the GPUs that only the old file runs on"]
    capabilities_gained: Annotated[list[str], "the GPUs that only the new file runs on"]
    breaking: Annotated[list[Breaking], "the differences that may break something"]
    packages: Annotated[list[Change], "the packages that differ"]


class Diff(Document):
    """What `diff` prints: the differences between locks."""

    ok: Annotated[bool, "whether nothing that `--fail-on` names differs; if not, the exit code is 1"]
    diffs: Annotated[list[FileDiff], "the differences of each pair of files"]


class PossibleCause(TypedDict):
    """One of several causes that a failure may have."""

    id: Annotated[str, "the id of a finding"]
    title: Annotated[str, "one line"]
    cause: Annotated[str, "why it is so"]
    fix: Annotated[str, "what to do"]
    commands: Annotated[list[str], "what to type for that"]
    check: Annotated[str, "the command that shows whether it is this cause"]
    shows: Annotated[str, "what that command shows then"]
    more: Annotated[str, "what else is known"]


class Finding(TypedDict):
    """Something wrong, with its cause and its fix."""

    id: Annotated[str, "the [id](findings.md), never renamed"]
    title: Annotated[str, "one line"]
    severity: Annotated[Literal["error", "warning", "info"], "how much it matters"]
    in_scope: Annotated[bool, "false if it is no mismatch of framework, CUDA, cuDNN, driver and GPU"]
    confidence: Annotated[Literal["high", "medium", "low"], "how sure the first cause is"]
    cause: Annotated[str, "why it is so"]
    fix: Annotated[str, "what to do"]
    commands: Annotated[list[str], "what to type for that"]
    evidence: Annotated[list[str], "the lines that it is based on"]
    about: Annotated[str | None, "the framework or library that it is about"]
    more: NotRequired[Annotated[str, "what else is known, printed with `-v`"]]
    facts: NotRequired[Annotated[dict[str, str], "the values that were read, by name: versions, GPU, driver"]]
    possible_causes: NotRequired[Annotated[list[PossibleCause], "all causes, if there are several; most likely first"]]
    sources: NotRequired[Annotated[list[str], "the pages that the rule is based on"]]


class Explanation(Document):
    """What `explain` prints: the findings in a text."""

    findings: Annotated[list[Finding], "what the text shows; if nothing, the exit code is 1"]
    recognised: Annotated[list[str], "facts about the machine and the environment in the text and the options"]
    collect: Annotated[list[str], "what to collect, if nothing was found or no line of a program decides"]
    notes: Annotated[list[Note], "what else to know"]


class Diagnosis(Document):
    """What `doctor` prints: the findings about a machine and an environment."""

    ok: Annotated[bool, "whether no finding is an error; if not, the exit code is 1"]
    host: Annotated[Host, "the machine"]
    inventory: Annotated[dict[str, Any], "what was looked at: libraries, packages, frameworks, toolkits, variables"]
    findings: Annotated[list[Finding], "what is wrong"]
    notes: Annotated[list[Note], "what happened when the environment was activated"]


class Probe(TypedDict):
    """One test of a validation."""

    name: Annotated[str, "its name"]
    status: Annotated[Literal["pass", "fail", "skip"], "how it ended"]
    seconds: Annotated[float, "how long it took"]
    detail: Annotated[str, "one line"]
    finding: Annotated[str | None, "the id of its first finding"]
    measured: NotRequired[Annotated[dict[str, Any], "what it measured: operations, devices, versions"]]


class Library(TypedDict):
    """A CUDA library that was loaded."""

    soname: Annotated[str, "the name it is loaded by"]
    path: Annotated[str, "its file"]
    owner: Annotated[Literal["environment", "system", "driver"], "where it is from"]
    version: Annotated[str | None, "its version, if known"]


class Evidence(TypedDict):
    """The source of a row of the matrix."""

    kind: Annotated[Literal["wheel", "recipe", "vendor-table", "project-docs", "issue", "file-name"], "strongest first"]
    reference: Annotated[str, "what was read"]
    seen: Annotated[str, "the day"]
    sha256: NotRequired[Annotated[str, "the hash of a wheel that was read"]]


class KnownBad(TypedDict):
    """Builds that install and then fail. An empty list means all."""

    versions: Annotated[str, "the versions"]
    sources: Annotated[list[str], "who packages them"]
    builds: Annotated[list[str], "which builds"]
    platforms: Annotated[list[str], "the platforms"]
    compute_capabilities: Annotated[list[str], "the GPUs"]
    reason: Annotated[str, "why they fail"]
    evidence: Annotated[list[Evidence], "the sources of that"]


class Release(TypedDict):
    """A build of a framework in the matrix."""

    framework: Annotated[str, "the framework"]
    version: Annotated[str, "its version"]
    source: Annotated[str, "who packages it, as for `--source`"]
    platform: Annotated[str, "the platform"]
    build: Annotated[str, "which build of that version"]
    package: Annotated[str, "the name of the package"]
    pythons: Annotated[list[str], "the Pythons that it was published for"]
    cuda: Annotated[str | None, "the CUDA that it was compiled with; null for a CPU build"]
    cudnn: Annotated[str | None, "the cuDNN that it was compiled with, or pins"]
    compute_capabilities: Annotated[list[str], "the GPUs that it has machine code for"]
    ptx: Annotated[list[str], "the PTX that it has"]
    minimum_driver: Annotated[str | None, "the oldest driver that runs its machine code"]
    full_driver: Annotated[str | None, "the oldest driver that compiles its PTX"]
    evidence: Annotated[list[Evidence], "the sources of the row"]
    released: Annotated[str | None, "the day on which the version was released, if known"]
    jit: Annotated[dict[str, str], "GPUs whose code it compiles itself, with the oldest CUDA for that"]
    build_string: Annotated[str | None, "the build string of a conda package"]
    glibc: Annotated[str | None, "the oldest C library that it runs on"]
    cuda_requires: Annotated[str | None, "the versions of CUDA that it requires"]
    cuda_libraries: Annotated[str | None, "the CUDA whose libraries it loads, if another one"]
    cudnn_requires: Annotated[str | None, "the versions of cuDNN that it requires"]
    cudnn_package: Annotated[str | None, "the package that brings its cuDNN"]
    extras: Annotated[list[str], "the extras that bring its CUDA"]
    companions: Annotated[dict[str, str], "packages that go with it, with their versions"]
    constraints: Annotated[list[str], "limits on other packages"]
    inferred: Annotated[list[str], "the keys that were inferred"]
    note: Annotated[str | None, "what else to know"]
    known_bad: Annotated[list[KnownBad], "where it installs and then fails"]
    read_here: NotRequired[Annotated[Literal[True], "there if `matrix update` read it on this machine"]]
    runs_as: NotRequired[Annotated[dict[str, str], "for each GPU of `--gpu`, the code that runs on it"]]


class PlatformLimit(TypedDict):
    """Versions without a GPU build on a platform."""

    platform: Annotated[str, "the platform"]
    versions: Annotated[str, "the versions"]
    reason: Annotated[str, "why"]
    instead: Annotated[str, "what to use instead"]
    evidence: Annotated[list[Evidence], "the sources of that"]


class Disagreement(TypedDict):
    """Two sources that contradict each other."""

    about: Annotated[str, "what it is about"]
    versions: Annotated[str | None, "the versions"]
    used: Annotated[str, "what the matrix uses"]
    rejected: Annotated[str, "what it does not use"]
    because: Annotated[str, "why"]
    evidence: Annotated[list[Evidence], "what was read"]


class Matrix(Document):
    """What `matrix list` prints with a filter, and `matrix show`: builds of frameworks."""

    releases: Annotated[list[Release], "the builds"]
    platform_limits: NotRequired[Annotated[list[PlatformLimit], "of `show`: versions without a GPU build"]]
    disagreements: NotRequired[Annotated[list[Disagreement], "of `show`: sources that contradict each other"]]
    matrix_date: Annotated[str, "the date of the matrix"]


class OverviewRow(TypedDict):
    """A framework in the matrix."""

    framework: Annotated[str, "the framework"]
    oldest: Annotated[str, "its oldest version"]
    newest: Annotated[str, "its newest version"]
    builds: Annotated[int, "how many builds there are"]
    sources: Annotated[dict[str, int], "how many builds each source has"]
    wheels_read: Annotated[int, "how many builds have the wheel itself as evidence"]


class ReadHere(TypedDict):
    """A build that `matrix update` read on this machine."""

    release: Annotated[str, "its name and version"]
    build: Annotated[str, "which build it is"]
    seen: Annotated[str, "the day"]


class Overview(Document):
    """What `matrix list` prints without a filter: the frameworks."""

    frameworks: Annotated[list[OverviewRow], "the frameworks"]
    read_here: NotRequired[Annotated[list[ReadHere], "what `matrix update` read on this machine"]]
    matrix_date: Annotated[str, "the date of the matrix"]


class Drivers(TypedDict):
    """An NVIDIA driver by system."""

    linux: Annotated[str | None, "on Linux"]
    windows: Annotated[str | None, "on Windows"]


class ToolkitRow(TypedDict):
    """A CUDA toolkit."""

    version: Annotated[str, "its version"]
    minimum_driver: Annotated[Drivers, "the oldest driver that runs its machine code"]
    full_driver: Annotated[Drivers, "the oldest driver that supports it in full"]
    compute_capabilities: Annotated[list[str], "the GPUs that it compiles for"]
    evidence: Annotated[list[Evidence], "the sources of that"]


class Toolkits(Document):
    """What `matrix show cuda` prints: CUDA toolkits and their drivers."""

    toolkits: Annotated[list[ToolkitRow], "the toolkits"]
    matrix_date: Annotated[str, "the date of the matrix"]


class CudnnRow(TypedDict):
    """A cuDNN release."""

    version: Annotated[str, "its version"]
    cuda_major: Annotated[int, "the CUDA it is for"]
    min_capability: Annotated[str, "the oldest GPU that it supports"]
    max_capability: Annotated[str, "the newest GPU that it supports"]
    compute_capabilities: Annotated[list[str] | None, "the GPUs that it has machine code for; null if it was not read"]
    ptx: Annotated[list[str] | None, "the PTX that it has; null if it was not read"]
    pypi: Annotated[bool, "whether it is on PyPI"]
    conda_forge: Annotated[list[str], "the platforms for which it is on conda-forge"]
    glibc_conda_forge: Annotated[str | None, "the oldest C library for the package of conda-forge"]
    evidence: Annotated[list[Evidence], "the sources of that"]


class Cudnn(Document):
    """What `matrix show cudnn` prints: cuDNN releases and their GPUs."""

    cudnn: Annotated[list[CudnnRow], "the releases"]
    matrix_date: Annotated[str, "the date of the matrix"]


class Law(TypedDict):
    """A law of the matrix."""

    law: Annotated[str, "its name"]
    says: Annotated[str, "what it says"]
    violations: Annotated[list[str], "the rows that break it"]


class MatrixCheck(Document):
    """What `matrix check` prints: the laws of the matrix, and what breaks them."""

    ok: Annotated[bool, "whether no law is broken; if not, the exit code is 1"]
    laws: Annotated[list[Law], "the laws"]
    matrix_date: Annotated[str, "the date of the matrix"]


class MatrixUpdate(Document):
    """What `matrix update` prints: the releases that the matrix did not have."""

    new: Annotated[list[dict[str, Any]], "rows of the matrix, each with the `file` that it belongs to"]
    directory: Annotated[str | None, "where they are stored; null with `--check`"]
    notes: Annotated[list[Note], "what else to know"]
    failures: Annotated[list[str], "the releases that could not be read"]


class CacheSize(Document):
    """What `cache size` prints."""

    directory: Annotated[str, "where the cache is"]
    files: Annotated[int, "how many files it has"]
    bytes: Annotated[int, "their size in bytes"]
    limit: Annotated[int, "how many bytes stay after `envsolve cache prune`"]


class ConflictStep(TypedDict):
    """A fact that excludes what was requested, with others."""

    requirement: Annotated[str, "the fact"]
    because: Annotated[str, "what it is a fact about"]
    source: Annotated[str, "its source"]


class Refused(TypedDict):
    """A requirement that cannot be locked."""

    name: Annotated[str, "its name, or its address"]
    where: Annotated[str, "the file and the line"]
    why: Annotated[str, "why it cannot be locked"]


class HostGroup(TypedDict):
    """Machines that one stack serves."""

    hosts: Annotated[list[str], "their names"]
    frameworks: Annotated[list[str], "the builds of the stack"]
    command: Annotated[str, "the command for it"]


class Error(TypedDict):
    """An error."""

    code: Annotated[str, "the [code](exit-codes.md), never renamed"]
    message: Annotated[str, "what happened"]
    conflict: Annotated[list[ConflictStep], "the facts that exclude what was requested"]
    hints: Annotated[list[Hint], "ways out"]
    refused: NotRequired[Annotated[list[Refused], "the requirements that cannot be locked"]]
    mistakes: NotRequired[Annotated[list[str], "every mistake in a matrix or a project"]]
    matrix_date: NotRequired[Annotated[str, "if nothing fits: the date of the matrix"]]
    constraints: NotRequired[Annotated[list[str], "if nothing fits: the constraints that cannot be met together"]]
    groups: NotRequired[Annotated[list[HostGroup], "the machines that have a stack in common"]]
    forced_by: NotRequired[Annotated[list[str], "the machines that force the groups apart"]]


class Node(TypedDict):
    """A node of a cluster: its host file, without `schema_version` and `readings`."""

    name: Annotated[str, "its name"]
    groups: Annotated[list[str], "its partitions or pools"]
    platform: Annotated[str, "the platform, as conda spells it"]
    driver: Annotated[str | None, "the NVIDIA driver"]
    driver_cuda: Annotated[str | None, "the CUDA that the driver supports in full"]
    glibc: Annotated[str | None, "the C library"]
    gpus: Annotated[list[Gpu], "the GPUs"]
    origin: Annotated[dict[str, str], "where each value is from"]
    status: Annotated[str, "as in a host file"]
    wsl: Annotated[bool, "whether this is Linux inside Windows"]
    notes: Annotated[list[str], "unusual facts about the machine"]


class Inventory(Document):
    """What `fleet import` prints, and `--host` reads."""

    nodes: Annotated[list[Node], "the nodes"]


class FleetBuild(TypedDict):
    """A framework of an environment for nodes."""

    framework: Annotated[str, "the framework, by envsolve's name"]
    version: Annotated[str, "its version"]
    build: Annotated[str, "its build, with its source"]


class FleetStack(TypedDict):
    """An environment for nodes."""

    nodes: Annotated[list[str], "the nodes that it is for"]
    frameworks: Annotated[list[FleetBuild], "the frameworks"]
    python: Annotated[str, "the version of Python"]
    cuda: Annotated[str | None, "the version of CUDA"]
    minimum_driver: Annotated[str | None, "the oldest driver that runs it"]


class FleetGroup(FleetStack):
    """An environment for nodes, and the command for it."""

    platform: Annotated[str, "their platform"]
    command: Annotated[str, "the command that prints it; one node of each kind represents all"]


class FleetRefused(TypedDict):
    """Nodes without an environment."""

    platform: Annotated[str, "their platform"]
    nodes: Annotated[list[str], "the nodes"]
    error: Annotated[Error, "why there is none"]


class FleetDriver(TypedDict):
    """A node that needs a newer driver."""

    node: Annotated[str, "the node"]
    driver: Annotated[str, "the oldest driver that will do"]


class FleetUpgrade(TypedDict):
    """What newer drivers would give."""

    platform: Annotated[str, "the platform"]
    drivers: Annotated[list[FleetDriver], "which nodes need which driver"]
    groups: Annotated[list[FleetStack], "the environments there would be"]


class FleetPlan(Document):
    """What `fleet plan` prints."""

    ok: Annotated[bool, "whether there is an environment for each node; if not, the exit code is 1"]
    groups: Annotated[list[FleetGroup], "the environments, that for the most nodes first"]
    refused: Annotated[list[FleetRefused], "the nodes without one"]
    upgrades: Annotated[list[FleetUpgrade], "what newer drivers would give, for each platform"]


class NodeChange(TypedDict):
    """A difference between two lists of nodes."""

    node: Annotated[str, "the node"]
    what: Annotated[str, "`node` if it is new or gone, else `driver`, `GPUs` or `glibc`"]
    was: Annotated[str, "what it was; empty for a new node"]
    now: Annotated[str, "what it is; empty for a node that is gone"]


class LockOnNodes(TypedDict):
    """A lock on nodes that are alike."""

    path: Annotated[str, "the lock"]
    nodes: Annotated[list[str], "the nodes"]
    status: Annotated[str, "as in `status`"]
    was: Annotated[str | None, "the same for the nodes as they were; null if they are new"]
    reasons: Annotated[list[str], "why it does not run"]


class FleetStatus(Document):
    """What `fleet status` prints."""

    ok: Annotated[bool, "whether every lock runs on every node; if not, the exit code is 1"]
    changes: Annotated[list[NodeChange], "what changed"]
    locks: Annotated[list[LockOnNodes], "each lock on each kind of node"]


class NodeAnswer(TypedDict):
    """The result for a node."""

    node: Annotated[str, "the node"]
    state: Annotated[Literal["passed", "failed", "no-answer"], "how it did"]
    seconds: Annotated[float, "how long it took"]
    why: Annotated[str, "why there is no answer"]
    differs: Annotated[list[str], "what it has that is not in its list"]
    report: Annotated[dict[str, Any] | None, "what `envsolve validate --json` printed there"]


class FleetReport(Document):
    """What `fleet validate` and `fleet report` print."""

    ok: Annotated[bool, "whether every node passed; if not, the exit code is 1"]
    nodes: Annotated[list[NodeAnswer], "the nodes"]


class Failure(Document):
    """What any command prints if it fails with an error."""

    error: Annotated[Error, "the error"]


DOCUMENTS: dict[str, type] = {
    "answers": Answers,
    "cache-size": CacheSize,
    "cudnn": Cudnn,
    "diff": Diff,
    "doctor": Diagnosis,
    "environment": Environment,
    "error": Failure,
    "explain": Explanation,
    "fleet-plan": FleetPlan,
    "fleet-report": FleetReport,
    "fleet-status": FleetStatus,
    "host": Host,
    "inventory": Inventory,
    "lock": Lock,
    "matrix": Matrix,
    "matrix-check": MatrixCheck,
    "matrix-list": Overview,
    "matrix-update": MatrixUpdate,
    "stack": Stack,
    "status": Status,
    "toolkits": Toolkits,
    "validate": Validation,
}
"""Every document by the name of its schema."""
