"""The fake driver's nvidia-smi: the same FAKE_NV_* variables as the C half, plus

FAKE_NV_FAIL      nvidia-smi=9 makes it fail the way the real one does with that exit code
FAKE_NV_HANG      nvidia-smi makes it sleep until killed; nvidia-smi-query only in its second call
FAKE_NV_SMI_EXIT  the exit code after an otherwise complete answer
FAKE_NV_SMI_LOST  the index of a GPU that fell off the bus
FAKE_NV_SMI_WITHOUT  query fields that this driver does not know
"""

from __future__ import annotations

import os
import sys
import time

FAILURES = {
    4: "Failed to initialize NVML: Insufficient Permissions",
    6: "No devices were found",
    9: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n",
    17: "Failed to initialize NVML: GPU access blocked by the operating system",
    18: "Failed to initialize NVML: Driver/library version mismatch",
    255: "Failed to initialize NVML: Unknown Error",
}


def setting(name: str, otherwise: str = "") -> str:
    """A FAKE_NV_* variable."""
    return os.environ.get(f"FAKE_NV_{name}") or otherwise


def failure() -> int | None:
    """The exit code in FAKE_NV_FAIL."""
    for entry in setting("FAIL").split(","):
        call, _, code = entry.partition("=")
        if call == "nvidia-smi":
            return int(code)
    return None


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def header() -> str:
    """The first lines of the table; drivers from R610 on name the versions differently."""
    driver, cuda = setting("DRIVER", "580.65.06"), setting("CUDA", "13.0")
    if int(driver.split(".")[0]) >= 610:
        versions = f"KMD Version: {driver:<15}CUDA UMD Version: {cuda}"
    else:
        versions = f"Driver Version: {driver:<15}CUDA Version: {cuda}"
    rule = "+" + "-" * 89 + "+"
    return "\n".join((time.ctime(0), rule, f"| NVIDIA-SMI {driver:<20}{versions:<56} |", rule))


def rows(fields: list[str]) -> list[str]:
    """One line of the query's answer for each device."""
    lines = []
    for index, device in enumerate(filter(None, setting("DEVICES").split(";"))):
        if str(index) == setting("SMI_LOST"):
            lines.append(f"Unable to determine the device handle for GPU 0000:0{index}:00.0: GPU is lost.")
            continue
        name, capability, memory, *flags = device.split("|")
        mig = "Enabled" if "mig" in flags else "[N/A]"
        values = {"name": name, "compute_cap": capability, "memory.total": memory, "mig.mode.current": mig}
        lines.append(", ".join(values[field] for field in fields))
    return lines


def hang_if(call: str) -> None:
    """Sleep until killed, with a child of its own that must die too."""
    if call in setting("HANG").split(","):
        if os.fork() == 0:
            time.sleep(3600)
        time.sleep(3600)


def main(arguments: list[str]) -> int:
    """Answer like nvidia-smi without arguments, or with --query-gpu."""
    hang_if("nvidia-smi")
    code = failure()
    if code is not None:
        say(FAILURES[code])
        return code
    query = next((argument.partition("=")[2] for argument in arguments if argument.startswith("--query-gpu=")), None)
    if query is None:
        say(header())
        return int(setting("SMI_EXIT", "0"))
    hang_if("nvidia-smi-query")
    for field in query.split(","):
        if field in setting("SMI_WITHOUT").split(","):
            say(f'Field "{field}" is not a valid field to query.\n')
            return 2
    lines = rows(query.split(","))
    say("\n".join(lines) if lines else "No devices were found")
    return int(setting("SMI_EXIT", "0")) if lines else 6


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
