"""The packages of an exact environment.yml, with addresses and digests from the channels.

Nothing is chosen: the file names version and build of each package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from envsolve.app.request.targets import target_of
from envsolve.app.request.virtual_packages import virtual_packages
from envsolve.create.plan import Plan
from envsolve.create.refusals import not_exact
from envsolve.errors import Hint, UnsolvableError
from envsolve.lockfile.text_file import clean
from envsolve.matrix.load import Matrix
from envsolve.model.conda import VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.conda.session import Session

_CONDA_FORGE = "conda-forge"


def with_addresses(
    path: Path,
    plan: Plan,
    platform: Platform,
    matrix: Matrix,
    session: Callable[[], AbstractContextManager[Session]],
    environ: Mapping[str, str],
) -> Plan:
    """``plan`` of the environment.yml at ``path``, with its packages as the channels list them.

    Raises UsageError ``lock-not-exact`` if it lacks dependencies; UnsolvableError if the channels lack its builds;
    OutsideError if a channel does not respond.
    """
    from envsolve.conda.session import CondaConflict, Question

    lock, opened_by = plan.lock, dict(plan.logins)
    again = f"envsolve create PREFIX -r {path}"
    channels = tuple(opened_by.get(name, name) for name in lock.channels) or (_CONDA_FORGE,)
    specs = (f"{f'{it.channel}::' if it.channel else ''}{it.name} =={it.version} {it.build}" for it in lock.conda)
    assumed = lock.virtual_packages or _virtual_packages(platform, matrix, environ)
    try:
        with session() as opened:
            packages = opened.solve(Question(channels, platform, tuple(specs), assumed))
    except CondaConflict as conflict:
        raise UnsolvableError(
            "builds-not-found",
            f"the channels of {path} do not have all of its builds, or the builds conflict",
            tuple(clean(line) for line in conflict.text.splitlines()[:4] if line.strip()),
            (Hint("solve it again without the builds, as a request", again),),
        ) from None
    named = {it.name for it in lock.conda}
    left_out = next((it.name for it in packages if it.name not in named), None)
    if left_out is not None:
        raise not_exact(path, f"its packages need {left_out}, which it does not list", again)
    return plan._replace(lock=lock._replace(conda=packages))


def _virtual_packages(platform: Platform, matrix: Matrix, environ: Mapping[str, str]) -> tuple[VirtualPackage, ...]:
    """The virtual packages of this machine, with any driver, for a file that does not say its machine."""
    target = target_of(Request((), gpus=("none",), platforms=(platform,)), matrix, environ)
    return virtual_packages(target.problem._replace(cpu=False), None, (), matrix.cuda, environ)
