"""The least that solving with py-rattler takes: what envsolve's conda locks are measured by.

    python benchmarks/rattler_solve.py CHANNEL CACHE OUTPUT SPEC...

It reads one channel and writes the addresses of what solves the specs for linux-64. It ends without any clean-up, since
py-rattler 0.28 crashes now and then when an interpreter ends.
"""

import asyncio
import os
import sys
from pathlib import Path

from rattler import Channel, Gateway, GenericVirtualPackage, MatchSpec, PackageName, Version, solve
from rattler.package import BuildString

VIRTUAL_PACKAGES = (
    ("__archspec", "1", "x86_64"),
    ("__cuda", "12.4", "0"),
    ("__cuda_arch", "8.6", "0"),
    ("__glibc", "2.28", "0"),
    ("__linux", "5.10", "0"),
    ("__unix", "0", "0"),
)
"""What envsolve takes a machine with a GPU of 8.6 and driver 550.163.01 for."""


async def main(channel: str, cache: str, output: str, *specs: str) -> None:
    """Solve, and write what came out."""
    records = await solve(
        [Channel(channel)],
        [MatchSpec(spec) for spec in specs],
        gateway=Gateway(cache_dir=cache),
        platforms=["linux-64", "noarch"],
        virtual_packages=[
            GenericVirtualPackage(PackageName(name), Version(version), BuildString(build))
            for name, version, build in VIRTUAL_PACKAGES
        ],
    )
    Path(output).write_text("".join(f"{record.url}\n" for record in records))


asyncio.run(main(*sys.argv[1:]))
os._exit(0)
