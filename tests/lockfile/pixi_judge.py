"""What rattler reads in pixi.lock files, in its own process.

Prints for each file, environment and platform the conda packages and those of pip.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def judge(paths: list[Path]) -> list[dict[str, dict[str, Any]]]:
    """For each path by environment and platform: the fields of conda packages, and name and URL of wheels."""
    command = [sys.executable, __file__, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, dict[str, Any]]] = json.loads(done.stdout)
    return found


def _environments(path: str) -> dict[str, dict[str, Any]]:
    from rattler import LockFile

    return {
        name: {
            platform.name: [
                [_conda(package.repo_data_record()) for package in packages if hasattr(package, "repo_data_record")],
                [[package.name, package.location] for package in packages if hasattr(package, "requires_dist")],
            ]
            for platform, packages in environment.packages_by_platform().items()
        }
        for name, environment in LockFile.from_path(Path(path)).environments()
    }


def _conda(record: Any) -> list[Any]:
    return [
        *(
            record.name.normalized,
            str(record.version),
            str(record.build),
            record.build_number,
            record.subdir,
            record.url,
        ),
        *(None if digest is None else digest.hex() for digest in (record.md5, record.sha256)),
        *(record.size, list(record.depends), list(record.constrains), (record.channel or "").rstrip("/")),
    ]


if __name__ == "__main__":
    print(json.dumps([_environments(path) for path in sys.argv[1:]]))  # noqa: T201 - the answer
