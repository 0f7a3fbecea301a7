"""A Slurm of three nodes on this machine: its daemons on separate ports, with GPUs that are ordinary files."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

NODES = {"n1": ("a100", 4), "n2": ("a100", 4), "n3": ("v100", 2)}
_PATH = "/usr/sbin:/usr/bin:/bin"
MISSING = [it for it in ("munged", "slurmctld", "slurmd", "srun") if shutil.which(it, path=_PATH) is None]
_SECONDS = 60

_CONFIGURATION = """\
ClusterName=small
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={directory}/munge.socket
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/%n.pid
SlurmdSpoolDir={directory}/%n
StateSaveLocation={directory}/state
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
GresTypes=gpu
MpiDefault=none
SlurmdParameters=config_overrides
{nodes}
PartitionName=gpu Nodes=n1,n2,n3 Default=YES State=UP
"""


class Cluster:
    """``environ`` is what its commands need."""

    def __init__(self, environ: Mapping[str, str], daemons: Mapping[str, subprocess.Popen[bytes]]) -> None:
        self.environ, self._daemons = environ, daemons

    def say(self, *command: str) -> str:
        """What a command of Slurm prints."""
        return subprocess.check_output(command, env=dict(self.environ), text=True, timeout=_SECONDS)

    def stop(self, node: str) -> None:
        """End the daemon of a node, as if the machine were switched off."""
        self._daemons[node].kill()
        self._daemons[node].wait()


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    """Slurm with all nodes idle. TimeoutError if they do not become so in a minute."""
    environ = {**os.environ, "SLURM_CONF": str(directory / "slurm.conf"), "PATH": _PATH}
    _configure(directory)
    with ExitStack() as stack:
        places = (f"--{it}-file={directory}/munge.{it}" for it in ("key", "pid", "log", "seed"))
        munged = ("munged", "--foreground", "--force", f"--socket={directory}/munge.socket", *places)
        stack.enter_context(_running(munged, environ, directory))
        _wait((directory / "munge.socket").exists)
        stack.enter_context(_running(("slurmctld", "-D"), environ, directory))
        daemons = {it: stack.enter_context(_running(("slurmd", "-D", "-N", it), environ, directory)) for it in NODES}
        made = Cluster(environ, daemons)
        _wait(lambda: made.say("sinfo", "--noheader", "--format=%D %T").strip() == "3 idle")
        yield made


def _configure(directory: Path) -> None:
    directory.chmod(0o755)
    (directory / "munge.key").write_bytes(secrets.token_bytes(1024))
    (directory / "munge.key").chmod(0o600)
    for name in ("state", *NODES):
        (directory / name).mkdir()
    controller, *ports = _free_ports(1 + len(NODES))
    nodes, gres = [], []
    for port, (name, (kind, count)) in zip(ports, NODES.items(), strict=True):
        nodes.append(
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=100 "
            f"Gres=gpu:{kind}:{count}"
        )
        for number in range(count):
            (directory / name / f"gpu{number}").touch()
        gres.append(f"NodeName={name} Name=gpu Type={kind} File={directory}/{name}/gpu[0-{count - 1}]")
    (directory / "gres.conf").write_text("\n".join((*gres, "")))
    text = _CONFIGURATION.format(directory=directory, controller=controller, nodes="\n".join(nodes))
    (directory / "slurm.conf").write_text(text)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for it in sockets:
            it.bind(("127.0.0.1", 0))
        return [it.getsockname()[1] for it in sockets]


@contextmanager
def _running(
    command: tuple[str, ...], environ: Mapping[str, str], directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with (directory / "daemons.log").open("ab") as log:
        process = subprocess.Popen(command, env=dict(environ), stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(is_so: Callable[[], bool]) -> None:
    end = monotonic() + _SECONDS
    while monotonic() < end:
        try:
            if is_so():
                return
        except subprocess.CalledProcessError:
            pass  # the controller does not answer yet
        sleep(0.2)
    raise TimeoutError("Slurm did not come up: see daemons.log and the logs of its directory")
