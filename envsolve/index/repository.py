"""A commit of a git repository, read with the user's git, which knows the necessary logins, keys and proxies."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from envsolve.boundary.programs import find_program, run_program
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError
from envsolve.model.reference import Reference

_PATIENCE = 600.0
"""The time limit of one run of git, in seconds; the history of a large repository takes minutes."""
_SAFE = (
    *("-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", "-c", "advice.detachedHead=false"),
    *("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30"),
)
"""Options so that git runs no program that a repository or its address names, and gives up on a stalled server."""
_OF_ANOTHER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")
"""The variables that git sets while a hook of another repository runs."""
_EVERYTHING = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")


def check_out(reference: Reference, directory: Path, environ: Mapping[str, str]) -> str:
    """Check out the revision of ``reference`` into the empty ``directory``, and return its commit.

    Raises OutsideError ``git-not-found``, or ``repository-unreadable`` if git fails.
    """
    repository = _Repository(_git(reference, environ), reference, directory, environ)
    repository.run("init", "--quiet")
    revision, found = reference.revision, "FETCH_HEAD"
    fetch = ("fetch", "--quiet", "--depth=1", "--", reference.address)
    if not revision:
        repository.run(*fetch, "HEAD")
    elif repository.fails(*fetch, revision):
        # The server has no name for a short commit, and some servers do not serve commits by their hash.
        repository.run("fetch", "--quiet", "--filter=blob:none", "--", reference.address, *_EVERYTHING)
        known = (f"refs/remotes/origin/{revision}", f"refs/tags/{revision}", revision)
        found = next((it for it in known if not repository.fails("rev-parse", "--verify", f"{it}^{{commit}}")), "")
        if not found:
            raise repository.unreadable(f"it has no branch, tag or commit {revision!r}")
    repository.run("checkout", "--quiet", "--detach", found)
    return repository.run("rev-parse", "HEAD").strip()


def commit_of(reference: Reference, directory: Path, environ: Mapping[str, str]) -> str:
    """The commit of a branch, a tag or the default branch of a repository; "" if the server lists none.

    git runs in ``directory``, which is not in a repository. Raises OutsideError like :func:`check_out`.
    """
    repository = _Repository(_git(reference, environ), reference, directory, environ)
    revision = reference.revision or "HEAD"
    names = (revision, f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}", f"refs/heads/{revision}")
    lines = repository.run("ls-remote", "--quiet", "--", reference.address, *names).splitlines()
    commits = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    return next((commits[name] for name in names if name in commits), "")


def add_submodules(directory: Path, environ: Mapping[str, str]) -> None:
    """Check out the submodules of a working tree from :func:`check_out`, because builds may need them.

    Submodules that cannot be fetched are skipped; the build then says what is missing.
    """
    git = find_program("git", environ)
    if git is not None and (directory / ".gitmodules").exists():
        _run(git, ("submodule", "update", "--quiet", "--init", "--recursive", "--depth=1"), directory, environ)


def _git(reference: Reference, environ: Mapping[str, str]) -> str:
    git = find_program("git", environ)
    if git is None:
        message = f"git is needed to read {without_secrets(reference.url)}, and it is not installed"
        raise OutsideError("git-not-found", message, hints=(Hint("install git, and try again"),))
    return git


class _Repository:
    """The repository in a directory."""

    def __init__(self, git: str, reference: Reference, directory: Path, environ: Mapping[str, str]) -> None:
        self._git, self._reference, self._directory, self._environ = git, reference, directory, environ
        self._output = ""

    def run(self, *command: str) -> str:
        """The output of a git command. Raises OutsideError if it fails."""
        if self.fails(*command):
            raise self.unreadable(_reason(self._output))
        return self._output

    def fails(self, *command: str) -> bool:
        """Whether a git command fails."""
        code, self._output = _run(self._git, command, self._directory, self._environ)
        return code != 0

    def unreadable(self, reason: str) -> OutsideError:
        """The error for a repository that cannot be read."""
        return OutsideError(
            "repository-unreadable",
            f"cannot read {without_secrets(self._reference.url)}",
            (without_secrets(reason),),
            (Hint("check the address, the revision and your access with `git ls-remote`"),),
        )


def _run(git: str, command: tuple[str, ...], directory: Path, environ: Mapping[str, str]) -> tuple[int | None, str]:
    variables = {key: value for key, value in environ.items() if key not in _OF_ANOTHER}
    variables |= {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
    variables.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
    found = run_program([git, *_SAFE, *command], variables, _PATIENCE, directory=directory, errors=subprocess.STDOUT)
    return (None, f"git took more than {_PATIENCE:.0f} seconds") if found.hung else (found.exit_code, found.output)


def _reason(text: str) -> str:
    """The line of git's output with the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fatal = (line for line in lines if line.startswith(("fatal:", "error:", "remote:")))
    return next(fatal, lines[-1] if lines else "git failed")
