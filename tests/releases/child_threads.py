"""Started by test_requirements: parse markers in four threads, with collections that let other threads run."""

from __future__ import annotations

import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from envsolve.releases.requirements import requirements


def _let_others_in(phase: str, info: dict[str, int]) -> None:
    time.sleep(0)


def _parse(_: int) -> int:
    return sum(len(requirements(['thing; extra == "gpu"'], extra="gpu")) for _ in range(60))


def main() -> None:
    gc.callbacks.append(_let_others_in)
    found: list[int] = []
    for threshold in (5, 6, 7, 9, 11, 13, 17, 23, 31):
        gc.set_threshold(threshold)
        with ThreadPoolExecutor(4) as pool:
            found += pool.map(_parse, range(4))
    sys.stdout.write(f"{sum(found)}\n")


if __name__ == "__main__":
    main()
