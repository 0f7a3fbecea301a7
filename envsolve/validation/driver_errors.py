"""What goes wrong in a CUDA driver: per error number its own finding, with cause and advice. Data, and nothing else.

Numbers, names and meanings are those of ``CUresult`` in NVIDIA's cuda.h of CUDA 13.5.37; 35 alone is of the runtime's
``cudaError`` (driver_types.h), which shares its numbers with it. Where the advice rests on more than the meaning, a
comment says on what.
"""

from __future__ import annotations

from typing import NamedTuple

from envsolve.validation.driver_advice import (
    CONTAINER_AGAIN,
    CONTAINER_GPUS,
    HARDWARE,
    KERNEL_LOG,
    MPS,
    REBOOT,
    REBOOT_WINDOWS,
    REINSTALL,
    REINSTALL_WINDOWS,
    UPDATE,
    UPDATE_JETSON,
    UPDATE_WSL,
    Advice,
)
from envsolve.validation.places import Place


class DriverError(NamedTuple):
    """One error: its name in cuda.h, the id and the title of its finding, why it happens and what to do.

    ``in_scope`` is false where no version and no installation is at fault.
    """

    name: str
    id: str
    title: str
    cause: str
    advice: tuple[Advice, ...]
    in_scope: bool = True


_OURS = "The kernel of this check is valid, so the fault lies in the driver or in the GPU."

ERRORS = {
    1: DriverError(
        "CUDA_ERROR_INVALID_VALUE",
        "driver-invalid-value",
        "The CUDA driver refuses a valid call",
        "The driver found an argument out of range in a call that is valid: the libcuda that was loaded does not fit "
        "this GPU or its kernel module.",
        (Advice("Look at which libcuda was loaded; it must be the one of the driver."), REINSTALL, REINSTALL_WINDOWS),
    ),
    2: DriverError(
        "CUDA_ERROR_OUT_OF_MEMORY",
        "out-of-memory",
        "The GPU has no memory left",
        "The check needs less than 1 MiB besides a context, and the GPU has not even that: other processes hold its "
        "memory.",
        (Advice("See who holds the memory, and end what is no longer needed.", ("nvidia-smi",)),),
        in_scope=False,
    ),
    3: DriverError(
        "CUDA_ERROR_NOT_INITIALIZED",
        "driver-not-initialized",
        "The CUDA driver does not initialise",
        "The driver's library loads and cannot start: its kernel modules are not loaded or failed to start.",
        (
            Advice("Load the module for unified memory.", ("sudo modprobe nvidia-uvm",), Place.LINUX),
            # Known issue "CUDA initialization can fail on certain Linux kernels with KASLR enabled", release notes 13.2
            Advice(
                "Where the kernel's log holds `request_free_mem_region() err -34`: set `options nvidia_uvm "
                "uvm_disable_hmm=1` in /etc/modprobe.d and load nvidia-uvm again.",
                (),
                Place.LINUX,
            ),
            CONTAINER_GPUS,
            UPDATE_WSL,
            REBOOT_WINDOWS,
        ),
    ),
    4: DriverError(
        "CUDA_ERROR_DEINITIALIZED",
        "driver-shutting-down",
        "The CUDA driver is shutting down",
        "The driver ended its work in this process while it was asked: it was stopped or replaced meanwhile.",
        (Advice("Try again when no driver is being installed."), REBOOT, REBOOT_WINDOWS),
    ),
    34: DriverError(
        "CUDA_ERROR_STUB_LIBRARY",
        "stub-driver-library",
        "The CUDA toolkit's stub was loaded instead of the driver",
        "The libcuda that was loaded is the toolkit's stub: a file to link programs with, which can do nothing.",
        (
            Advice(
                "Take the directory `stubs` out of LD_LIBRARY_PATH and out of the loader's configuration.",
                ('echo "$LD_LIBRARY_PATH"', "ldconfig -p | grep libcuda"),
                Place.POSIX,
            ),
            CONTAINER_GPUS,
            UPDATE_WSL,
            REINSTALL_WINDOWS,
        ),
    ),
    35: DriverError(
        "cudaErrorInsufficientDriver",
        "driver-too-old",
        "The NVIDIA driver is too old",
        "The driver is older than the CUDA that is used with it.",
        (UPDATE, UPDATE_WSL, UPDATE_JETSON),
    ),
    36: DriverError(
        "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
        "driver-too-old-for-call",
        "The NVIDIA driver is too old for a call",
        "libcuda knows a call that the kernel module of the driver does not: the module is older.",
        (UPDATE, UPDATE_WSL, UPDATE_JETSON, CONTAINER_AGAIN),
    ),
    46: DriverError(
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "gpu-unavailable",
        "The GPU is not available to this process",
        "Another process holds the GPU alone (compute mode exclusive), or its compute mode forbids all work.",
        (
            Advice("See the compute mode and who uses the GPU.", ("nvidia-smi -q -d COMPUTE,PIDS",)),
            Advice("Where nobody needs the GPU alone, allow everybody.", ("sudo nvidia-smi -c DEFAULT",), Place.LINUX),
        ),
        in_scope=False,
    ),
    100: DriverError(
        "CUDA_ERROR_NO_DEVICE",
        "no-device",
        "The CUDA driver finds no GPU",
        "The driver's library loads and finds no GPU: there is none, the kernel module is not loaded or does not "
        "support it, or this process may not open its device files.",
        (
            Advice("See what the driver knows, and whether the device files are there.", ("nvidia-smi",)),
            Advice("Load the kernel modules.", ("ls -l /dev/nvidia*", "sudo modprobe nvidia-uvm"), Place.LINUX),
            CONTAINER_GPUS,
            UPDATE_WSL,
            Advice("On a Jetson: the user must be in the groups video and render.", (), Place.JETSON),
        ),
    ),
    101: DriverError(
        "CUDA_ERROR_INVALID_DEVICE",
        "invalid-device",
        "There is no GPU with this number",
        "GPUs are numbered from 0 as CUDA_VISIBLE_DEVICES leaves them, and this number is too large; or the driver "
        "lost the GPU since it counted them.",
        (Advice("Choose one that is there.", ("nvidia-smi -L",)),),
    ),
    102: DriverError(
        "CUDA_ERROR_DEVICE_NOT_LICENSED",
        "gpu-not-licensed",
        "The virtual GPU has no licence",
        "A virtual GPU (vGPU, formerly GRID) computes only with a licence of a licence server.",
        (Advice("Have whoever runs the machine apply a vGPU licence.", ("nvidia-smi -q | grep -i license",)),),
        in_scope=False,
    ),
    200: DriverError(
        "CUDA_ERROR_INVALID_IMAGE",
        "invalid-kernel-image",
        "The CUDA driver cannot read the kernel",
        "The driver took the PTX of the check for no valid image, which every driver since CUDA 6.0 reads: a part of "
        "the driver is damaged or older.",
        (REINSTALL, REINSTALL_WINDOWS, CONTAINER_AGAIN, UPDATE_WSL),
    ),
    201: DriverError(
        "CUDA_ERROR_INVALID_CONTEXT",
        "invalid-context",
        "The CUDA driver lost its context",
        "The context that the driver had just made is no longer valid: the GPU was reset, or a library in front of "
        "libcuda took the call.",
        (KERNEL_LOG, Advice("Run without tools that hook CUDA (profilers, LD_PRELOAD)."), REBOOT, REBOOT_WINDOWS),
    ),
    209: DriverError(
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "no-kernel-image",
        "The CUDA driver makes no code for this GPU",
        "There is no kernel for this GPU: it is older than compute capability 3.0, or this driver no longer supports "
        "it.",
        (
            # Last drivers: Fermi R390, Kepler R470, Maxwell to Volta R580
            Advice(
                "Use the last driver for the GPU: R390 for Fermi, R470 for Kepler, R580 for Maxwell, Pascal and Volta.",
                ("nvidia-smi",),
            ),
        ),
    ),
    214: DriverError(
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "gpu-ecc-error",
        "The GPU's memory has an error that cannot be corrected",
        "The GPU found more wrong bits in its memory than it can correct. What it computed is lost.",
        (
            Advice(
                "Look at the counters, and whether a row waits to be replaced.", ("nvidia-smi -q -d ECC,ROW_REMAPPER",)
            ),
            Advice("Reset the GPU or restart the machine; if it comes back, the GPU has to be replaced."),
            KERNEL_LOG,
        ),
        in_scope=False,
    ),
    218: DriverError(
        "CUDA_ERROR_INVALID_PTX",
        "invalid-ptx",
        "The CUDA driver cannot compile PTX",
        "The compiler of the driver failed on PTX that is valid; its own words are in the evidence. The driver is "
        "damaged, or its compiler (libnvidia-ptxjitcompiler) is of another version.",
        (REINSTALL, REINSTALL_WINDOWS, CONTAINER_AGAIN, UPDATE_WSL),
    ),
    220: DriverError(
        "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        "nvlink-error",
        "NVLink has an error that cannot be corrected",
        "The link between GPUs lost data.",
        (Advice("Look at the links.", ("nvidia-smi nvlink -e",)), KERNEL_LOG, REBOOT),
        in_scope=False,
    ),
    221: DriverError(
        "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
        "ptx-compiler-missing",
        "The PTX compiler of the driver is missing",
        "The driver's library that compiles PTX is not there or does not load. Builds without code for this very GPU "
        "need it.",
        (
            Advice(
                "Install the driver completely: libnvidia-ptxjitcompiler.so.1 must be in the same version as "
                "libcuda.so.1.",
                ("ldconfig -p | grep -E 'libnvidia-ptxjitcompiler|libcuda'",),
                Place.LINUX,
            ),
            CONTAINER_GPUS,
            REINSTALL_WINDOWS,
            UPDATE_WSL,
            # github.com/anduril/jetpack-nixos/issues/184
            Advice("On a Jetson: it is in the package nvidia-l4t-3d-core.", (), Place.JETSON),
        ),
    ),
    222: DriverError(
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "ptx-too-new",
        "The driver is too old for this PTX",
        "The PTX is of a newer version than the driver's compiler reads. The PTX of this check is of 2014, so the "
        "compiler that was loaded is not the one of this driver.",
        (UPDATE, UPDATE_WSL, UPDATE_JETSON, CONTAINER_AGAIN),
    ),
    223: DriverError(
        "CUDA_ERROR_JIT_COMPILATION_DISABLED",
        "ptx-compilation-disabled",
        "Compiling PTX is switched off",
        "CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT keeps the driver from compiling, so that no kernel runs that was not "
        "built for this very GPU.",
        (
            Advice("Unset them.", ("unset CUDA_DISABLE_PTX_JIT CUDA_DISABLE_JIT",), Place.POSIX),
            Advice("Remove both variables from the environment.", (), Place.WINDOWS),
        ),
    ),
    226: DriverError(
        "CUDA_ERROR_CONTAINED",
        "gpu-error-contained",
        "The GPU contained a hardware error",
        "Something went wrong in the GPU or on NVLink, and the GPU confined it to this process.",
        HARDWARE,
        in_scope=False,
    ),
    302: DriverError(
        "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
        "driver-symbol-missing",
        "The driver's libraries do not fit together",
        "One of the driver's libraries lacks something that another one needs: they are of different versions.",
        (REINSTALL, REINSTALL_WINDOWS, CONTAINER_AGAIN, UPDATE_WSL),
    ),
    303: DriverError(
        "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
        "driver-library-does-not-start",
        "One of the driver's libraries does not start",
        "A library that libcuda needs was found and could not be initialised.",
        (REINSTALL, REINSTALL_WINDOWS, CONTAINER_AGAIN, UPDATE_WSL),
    ),
    304: DriverError(
        "CUDA_ERROR_OPERATING_SYSTEM",
        "driver-refused-by-system",
        "The operating system refused a call of the driver",
        "The system said no to the driver: a device file that may not be opened, a limit on memory or open files, or a "
        "security policy.",
        (
            Advice(
                "See whether this user may open the device files, and the limits.",
                ("ls -l /dev/nvidia*", "ulimit -a"),
                Place.LINUX,
            ),
            CONTAINER_GPUS,
            UPDATE_WSL,
            REBOOT_WINDOWS,
            Advice("On a Jetson: the user must be in the groups video and render.", (), Place.JETSON),
        ),
    ),
    500: DriverError(
        "CUDA_ERROR_NOT_FOUND",
        "kernel-not-found",
        "The CUDA driver lost the kernel",
        "The driver loaded the kernel and does not find it by its name. " + _OURS,
        (REINSTALL, UPDATE_WSL, REINSTALL_WINDOWS),
    ),
    700: DriverError(
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "kernel-illegal-address",
        "The kernel met an illegal address",
        "The GPU could not reach memory that the driver had given out. " + _OURS,
        HARDWARE,
    ),
    701: DriverError(
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "kernel-out-of-resources",
        "The GPU has too few registers for the kernel",
        "The kernel needs 256 threads and a few registers, which every GPU has. " + _OURS,
        (REINSTALL, UPDATE_WSL, REINSTALL_WINDOWS),
    ),
    702: DriverError(
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "kernel-timeout",
        "The system stopped the kernel for taking too long",
        "The GPU also drives a screen, and the system ends what keeps it busy for seconds. A vector addition takes "
        "microseconds: the GPU is stuck or very busy.",
        (Advice("See what else runs on the GPU.", ("nvidia-smi",)), KERNEL_LOG, REBOOT, REBOOT_WINDOWS),
    ),
    714: DriverError(
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "gpu-stack-error",
        "The GPU met an error of its stack",
        "The kernel uses no stack. " + _OURS,
        HARDWARE,
    ),
    715: DriverError(
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "kernel-illegal-instruction",
        "The GPU met an instruction that it does not know",
        "The driver compiled the kernel for this GPU, and the GPU does not understand it. " + _OURS,
        HARDWARE,
    ),
    716: DriverError(
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "kernel-misaligned-address",
        "The kernel met an address that is not aligned",
        "Every address of the kernel is a multiple of four. " + _OURS,
        HARDWARE,
    ),
    717: DriverError(
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "kernel-invalid-address-space",
        "The kernel met an address of another kind of memory",
        "The kernel uses global memory only. " + _OURS,
        HARDWARE,
    ),
    718: DriverError(
        "CUDA_ERROR_INVALID_PC",
        "gpu-invalid-program-counter",
        "The GPU lost its place in the kernel",
        "The GPU's program counter left the kernel. " + _OURS,
        HARDWARE,
    ),
    719: DriverError(
        "CUDA_ERROR_LAUNCH_FAILED",
        "kernel-launch-failed",
        "The kernel failed on the GPU",
        "The GPU stopped the kernel with an exception. " + _OURS,
        HARDWARE,
    ),
    800: DriverError(
        "CUDA_ERROR_NOT_PERMITTED",
        "gpu-not-permitted",
        "This process may not use the GPU",
        "The driver refused the call: confidential computing, a vGPU's profile or a security policy forbids it.",
        (Advice("Ask whoever runs the machine which GPUs this user may use.", ("nvidia-smi",)), CONTAINER_GPUS),
    ),
    801: DriverError(
        "CUDA_ERROR_NOT_SUPPORTED",
        "driver-call-not-supported",
        "The driver does not support a basic call",
        "A call that every CUDA driver has is not supported here: a vGPU profile without CUDA, or a library that "
        "stands in for libcuda.",
        (
            Advice("Look at which libcuda was loaded; it must be the one of the driver."),
            Advice("On a vGPU: it needs a profile that supports CUDA."),
            UPDATE_WSL,
        ),
    ),
    802: DriverError(
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "fabric-manager-not-ready",
        "The system is not ready for CUDA",
        "On machines with NVSwitch, NVIDIA's fabric manager has to run, in the version of the driver; it is not "
        "running, is still starting, or failed.",
        (
            Advice(
                "Start the fabric manager; where it is missing, install it in the version of the driver.",
                ("systemctl status nvidia-fabricmanager", "sudo systemctl enable --now nvidia-fabricmanager"),
                Place.LINUX,
            ),
            Advice("In a container: it runs on the host, not here.", (), Place.CONTAINER),
            Advice(
                "Without NVSwitch, or with confidential computing: look at the state of the GPU.", ("nvidia-smi -q",)
            ),
        ),
    ),
    803: DriverError(
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "driver-version-mismatch",
        "libcuda and the kernel module have different versions",
        "The driver was updated and the machine not restarted since, or another libcuda is in front of the driver's: a "
        "forward-compatibility package (cuda-compat) that is older than the driver or too new for it.",
        (
            REBOOT,
            Advice(
                "Where the library is from a directory `compat`: remove the cuda-compat package, or take it out of "
                "LD_LIBRARY_PATH.",
                ("cat /proc/driver/nvidia/version", "ldconfig -p | grep libcuda"),
                Place.LINUX,
            ),
            CONTAINER_AGAIN,
            UPDATE_WSL,
            REBOOT_WINDOWS,
        ),
    ),
    804: DriverError(
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "forward-compatibility-unsupported",
        "This GPU does not support forward compatibility",
        "A forward-compatibility libcuda (cuda-compat) was loaded, and it works on data-centre GPUs only.",
        (
            Advice(
                "Remove the cuda-compat package, or take its directory out of LD_LIBRARY_PATH; then the driver's own "
                "libcuda is used.",
                ('echo "$LD_LIBRARY_PATH"', "ldconfig -p | grep libcuda"),
            ),
            Advice("Update the driver, or solve again for the driver that is there.", ("envsolve detect",)),
            Advice(
                "In a container: the image holds /usr/local/cuda/compat; take an image of a CUDA that the host's "
                "driver supports.",
                (),
                Place.CONTAINER,
            ),
        ),
    ),
    805: DriverError(
        "CUDA_ERROR_MPS_CONNECTION_FAILED",
        "mps-connection-failed",
        "The driver cannot connect to MPS",
        "The Multi-Process Service is set up for this process, and its daemon or its server does not answer.",
        MPS,
    ),
    806: DriverError(
        "CUDA_ERROR_MPS_RPC_FAILURE",
        "mps-rpc-failed",
        "MPS does not answer a call",
        "The connection to the server of the Multi-Process Service broke.",
        MPS,
    ),
    807: DriverError(
        "CUDA_ERROR_MPS_SERVER_NOT_READY",
        "mps-server-not-ready",
        "The MPS server is not ready",
        "The server of the Multi-Process Service takes no client now: it recovers from a fatal error of one.",
        (Advice("Wait a moment and try again."), *MPS),
    ),
    808: DriverError(
        "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",
        "mps-clients-exhausted",
        "MPS has too many clients",
        "The GPU has no resources left for another client of the Multi-Process Service.",
        (Advice("End some of the processes that use the GPU.", ("nvidia-smi",)),),
        in_scope=False,
    ),
    809: DriverError(
        "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED",
        "mps-connections-exhausted",
        "MPS has too many connections",
        "The GPU has no connections left for another client of the Multi-Process Service.",
        (
            Advice("End some of the processes that use the GPU.", ("nvidia-smi",)),
            Advice("Give each client fewer connections: CUDA_DEVICE_MAX_CONNECTIONS."),
        ),
        in_scope=False,
    ),
    810: DriverError(
        "CUDA_ERROR_MPS_CLIENT_TERMINATED",
        "mps-client-terminated",
        "The MPS server ended this process's work",
        "The server of the Multi-Process Service terminated this client, as an operator can ask it to.",
        (Advice("Try again."), *MPS),
        in_scope=False,
    ),
    919: DriverError(
        "CUDA_ERROR_FABRIC_NOT_READY",
        "fabric-not-ready",
        "The GPU fabric did not get ready in time",
        "The fabric that connects the GPUs was still being set up when the driver stopped waiting.",
        (
            Advice("Try again in a minute; CUDA_FABRIC_INIT_TIMEOUT_MS lets the driver wait longer."),
            Advice("Look at the fabric manager.", ("systemctl status nvidia-fabricmanager",), Place.LINUX),
        ),
    ),
    999: DriverError(
        "CUDA_ERROR_UNKNOWN",
        "driver-unknown-error",
        "The CUDA driver reports an unknown error",
        "The driver could not say more. Mostly the module for unified memory is not loaded or did not survive a "
        "suspend, or its device file is not in the container.",
        (
            Advice(
                "Load nvidia-uvm anew, with no CUDA program running.",
                ("sudo modprobe -r nvidia-uvm", "sudo modprobe nvidia-uvm", "ls -l /dev/nvidia-uvm"),
                Place.LINUX,
            ),
            KERNEL_LOG,
            CONTAINER_GPUS,
            REBOOT,
            UPDATE_WSL,
            REBOOT_WINDOWS,
        ),
    ),
}

OTHER = DriverError(
    "an error without a name",
    "driver-error",
    "The CUDA driver reports an error",
    "The driver failed with an error that this check has no advice of its own for.",
    (KERNEL_LOG, Advice("See whether the driver works at all.", ("nvidia-smi",)), REBOOT, REBOOT_WINDOWS),
)
"""For any other number; the finding names it."""

HIDDEN = DriverError(
    "CUDA_ERROR_NO_DEVICE",
    "gpus-hidden",
    "CUDA_VISIBLE_DEVICES hides the GPUs",
    "CUDA programs see only the GPUs that this variable names, up to the first one that is not there.",
    (
        Advice("Unset it, or name GPUs that are there.", ("unset CUDA_VISIBLE_DEVICES", "nvidia-smi -L"), Place.POSIX),
        Advice("Remove the variable, or name GPUs that are there.", ("nvidia-smi -L",), Place.WINDOWS),
        Advice("In a job of a batch system: ask for a GPU; the system sets the variable.", (), Place.POSIX),
    ),
)

LIBRARY_MISSING = DriverError(
    "",
    "driver-library-missing",
    "There is no CUDA driver library",
    "No NVIDIA driver is installed, or this process cannot see its library.",
    (
        Advice("Install the NVIDIA driver; neither conda nor pip can.", (), Place.LINUX),
        Advice("Install NVIDIA's driver for Windows; neither conda nor pip can.", (), Place.WINDOWS),
        CONTAINER_GPUS,
        Advice(
            "On WSL: install the driver in Windows; its library is in /usr/lib/wsl/lib. No driver belongs inside "
            "Linux.",
            (),
            Place.WSL,
        ),
        Advice("On a Jetson: install nvidia-l4t-cuda, which JetPack brings.", (), Place.JETSON),
    ),
)

LIBRARY_UNUSABLE = DriverError(
    "",
    "driver-library-unusable",
    "The CUDA driver library cannot be used",
    "The file that the loader finds as the CUDA driver does not load, or lacks calls that every CUDA driver has: it is "
    "damaged, for another kind of machine, or not NVIDIA's.",
    (
        Advice("Look at the file that is named in the evidence, and remove it if no driver package owns it."),
        REINSTALL,
        REINSTALL_WINDOWS,
        CONTAINER_AGAIN,
        UPDATE_WSL,
    ),
)

UNTOUCHED = DriverError(
    "",
    "kernel-did-not-run",
    "The kernel ran without an error and wrote nothing",
    "Every call succeeded, and the memory that the kernel had to fill is as it was before. " + _OURS,
    (Advice("Look at which libcuda was loaded; it must be the one of the driver."), *HARDWARE),
)

WRONG = DriverError(
    "",
    "wrong-results",
    "The GPU computes wrongly",
    "The GPU added numbers whose sums are exact and got others. Mostly that is the hardware: its memory, power, heat "
    "or overclocking; seldom the driver.",
    HARDWARE,
    in_scope=False,
)

HANG = DriverError(
    "",
    "driver-hang",
    "The CUDA driver does not answer",
    "A call of the driver did not come back.",
    (
        KERNEL_LOG,
        Advice("See whether nvidia-smi hangs as well.", ("nvidia-smi",)),
        REBOOT,
        UPDATE_WSL,
        REBOOT_WINDOWS,
    ),
)

CRASH = DriverError(
    "",
    "driver-crash",
    "The CUDA driver ended the process",
    "The process ended inside the driver.",
    (
        Advice("Look at which libcuda was loaded; it must be the one of the driver."),
        KERNEL_LOG,
        REINSTALL,
        REINSTALL_WINDOWS,
        CONTAINER_AGAIN,
    ),
)

NO_RESULT = DriverError(
    "",
    "probe-without-result",
    "The check of the driver ended without a result",
    "The process of the check ended before it told what it found.",
    (Advice("See what it printed, in the evidence; the interpreter of the environment may be damaged."),),
)

FAILED = DriverError(
    "",
    "probe-failed",
    "The check of the driver could not be made",
    "The interpreter of the environment failed to run the check.",
    (Advice("See the error in the evidence; Python's ctypes must work in the environment."),),
)
