"""Options of ``solve`` that other commands have too, with the same meaning."""

from __future__ import annotations

from typing import Any

from envsolve.cli.options import Decorator
from envsolve.cli.solve import solve

INDEXES = ("index_url", "extra_index_urls", "pytorch_index_url")
"""Where Python packages are searched."""
REQUEST = (
    *(
        "requirements",
        "frameworks",
        "requirement_files",
        "editables",
        "constraint_files",
        "overrides",
        "build_constraint_files",
        "python",
        "gpus",
        "driver",
        "glibc",
        "cuda",
    ),
    *("hosts", "sources", "prefer", "channels", *INDEXES, "exclude_newer", "extensions", "pre", "audit"),
)
"""The parts of a request, by the parameters of ``solve``."""
NETWORK = ("offline", "refresh", "cache_dir", "no_cache")
HOW_TO_FETCH = (*NETWORK, "no_progress")
"""The network settings of a command."""


def options_of_solve(names: tuple[str, ...]) -> Decorator:
    """The options of ``solve`` by these names."""

    def decorate(function: Any) -> Any:
        chosen = [it for name in reversed(names) for it in solve.params if it.name == name]
        function.__click_params__ = [*getattr(function, "__click_params__", []), *chosen]
        return function

    return decorate
