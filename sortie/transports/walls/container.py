"""A container for the programs of a run, which lives as long as the run and no longer.

The engine starts it with a shell that waits for the end of a FIFO, and nothing else. The daemon
holds the other end, so the container ends when the daemon does, however that ends. Programs enter
by the fork server (``confinement``): that takes some milliseconds, and the kernel ends them with
all that they start.

Rule 1: what the engine has started for a run is gone when the block of the container is left.
Rule 2: nothing but the mounts that are named, and what the image holds, can be seen in it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path

import trio
from msgspec import Struct

from sortie.model import RunId, TransportError
from sortie.resources import run_in_thread
from sortie.transports.container_entrance import ContainerEntrance, HostEntrance
from sortie.transports.local.fork_server.confinement import NAMESPACES
from sortie.transports.walls.container_engine import ContainerEngine
from sortie.transports.walls.container_limits import files_of_limits
from sortie.transports.walls.container_names import PREFIX, is_over, own_life
from sortie.transports.walls.enclosure import FoundPath

_INSIDE = "/run/sortie"
"""Where the container has the FIFO by which it ends with the daemon."""

FIFO = "daemon-lives"
WAITING = 'exec 3<>"$0" 4<"$0" 3>&- && read -r _ <&4'
"""The script of the shell: it waits until no process has the FIFO, its $0, open for writing.

To open it for reading alone would wait for a process that writes, which may have ended before."""

LOW_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
"""Of the process that keeps a container: an engine's own are more than some processes may set."""

_numbers = count(1)
"""A run may have several containers, which need names of their own."""

_START_BOUND, _START_PAUSE = 30.0, 0.001  # seconds
_KILL_BOUND = 10.0  # seconds after SIGKILL in which a process has to be gone
DAEMON_LABEL, RUN_LABEL = "sortie.daemon", "sortie.run"


class ContainerMount(Struct, frozen=True, kw_only=True):
    """A file or directory of this machine that has the same path in the container."""

    path: str
    writable: bool = False


class ContainerPlan(Struct, frozen=True, kw_only=True):
    """What a container is to be.

    ``environ`` are variables of its programs besides those of the image.
    ``daemon`` is the word by which later lives of this daemon know it. ``network`` is ``none`` or
    ``host``. ``memory`` is in bytes and ``cpus`` in cores; None is no limit. ``scratch`` are
    directories that are gone in the end, and ``hidden`` are paths below mounts that are not to be
    seen.
    """

    image: str
    environ: Mapping[str, str] = {}
    daemon: str
    run_id: RunId
    mounts: tuple[ContainerMount, ...]
    hidden: tuple[FoundPath, ...] = ()
    scratch: tuple[str, ...] = ("/tmp",)
    network: str = "none"
    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None


class Container(Struct, frozen=True, kw_only=True):
    """A container that runs, and how programs get into it. ``digest`` is that of its image,
    and ``environ`` the environment that the image gives."""

    name: str
    entrance: ContainerEntrance | HostEntrance
    digest: str
    environ: Mapping[str, str]


@asynccontextmanager
async def open_container(engine: ContainerEngine, plan: ContainerPlan) -> AsyncIterator[Container]:
    """Start a container, and remove it in the end; raise TransportError where it does not start."""
    image = await engine.image(plan.image)
    life = await run_in_thread(own_life)
    name = f"{PREFIX}{life}-{plan.run_id}-{next(_numbers)}"
    with _fifo(f"{PREFIX}{plan.daemon}-{life}-") as place, ExitStack() as opened:
        pidfd: int | None = None
        try:
            pid = await _start(engine, plan, name, place)
            pidfd = await run_in_thread(partial(_pidfd_of, pid, name))
            opened.callback(os.close, pidfd)
            entrance = await run_in_thread(partial(_entrance, pid, pidfd))
            check_limits(engine, plan, has_cgroups=bool(entrance.cgroups))
            environ = {**image.environ, **plan.environ}
            yield Container(name=name, entrance=entrance, digest=image.digest, environ=environ)
        finally:
            with trio.CancelScope(shield=True):
                await _remove(engine, name, pidfd)
                await run_in_thread(partial(_reap, place / "monitor"))


async def _remove(engine: ContainerEngine, name: str, pidfd: int | None) -> None:
    """Kill a container and remove it.

    Where the process that keeps it is gone, so is everything that entered it, and what the engine
    could not remove is left to the next start. Raises TransportError where it may live on.
    """
    killed = False
    if pidfd is not None:
        with suppress(OSError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        with trio.move_on_after(_KILL_BOUND):
            await trio.lowlevel.wait_readable(pidfd)
            killed = True
    try:
        await engine.remove([name])
    except TransportError:
        if not killed:
            raise


async def remove_former(engine: ContainerEngine, daemon: str) -> int:
    """Remove the containers that earlier lives of a daemon left; return how many they were.

    A process that lives keeps its own: ``sortie doctor`` beside its daemon, say.
    """
    names = await engine.containers(f"{DAEMON_LABEL}={daemon}")
    left = await run_in_thread(lambda: [name for name in names if is_over(name)])
    await engine.remove(left)
    await run_in_thread(partial(_remove_places, daemon))
    return len(left)


def _remove_places(daemon: str) -> None:
    """Remove the directories of FIFOs that earlier lives left, which no process reads."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}{daemon}-*"):
        if is_over(place.name) and place.lstat().st_uid == os.geteuid():
            shutil.rmtree(place, ignore_errors=True)


def arguments_of(engine: ContainerEngine, plan: ContainerPlan, name: str, place: Path) -> list[str]:
    """Return the arguments with which an engine starts a container; ``place`` holds the FIFO."""
    said = ["run", "--detach", "--rm", "--pull", "never", "--name", name]
    said += ["--label", f"{DAEMON_LABEL}={plan.daemon}", "--label", f"{RUN_LABEL}={plan.run_id}"]
    said += ["--entrypoint", "sh", "--workdir", "/", "--log-driver", "none", "--no-healthcheck"]
    said += ["--cap-drop", "all", "--security-opt", "no-new-privileges"]
    said += ["--security-opt", "label=disable", "--network", plan.network]
    if engine.limits_are_bound:
        said += LOW_LIMITS
    if engine.is_podman:
        said += ["--systemd", "false", "--image-volume", "tmpfs"]
        said += ["--http-proxy=false", "--pidfile", f"{place}/keeper"]
        said += ["--conmon-pidfile", f"{place}/monitor"]
    if engine.rootless:
        # A /proc that is covered in places could not be mounted anew for each program, which covers
        # these places itself.
        shown = "unmask=/proc/*" if engine.is_podman else "systempaths=unconfined"
        said += ["--security-opt", shown]
        # Files belong to the user of this process, inside and outside; docker has no other way.
        said += ["--userns", "keep-id"] if engine.is_podman else []
    if plan.memory is not None:
        said += ["--memory", f"{plan.memory}b", "--memory-swap", f"{plan.memory}b"]
    if plan.cpus is not None:
        said += ["--cpus", f"{plan.cpus:g}"]
    if plan.pids is not None:
        said += ["--pids-limit", str(plan.pids)]
    for path in plan.scratch:
        said += ["--tmpfs", f"{_mountable(path)}:rw,nosuid,nodev,exec,mode=1777"]
    for mount in plan.mounts:
        path = _mountable(mount.path)
        said += ["--mount", _bind(path, path, writable=mount.writable)]
    for hidden in plan.hidden:
        said += _hiding(hidden, engine)
    said += ["--mount", _bind(f"{place}/fifo", _INSIDE, writable=False)]
    return [*said, plan.image, "-c", WAITING, f"{_INSIDE}/{FIFO}"]


def _bind(source: str, target: str, *, writable: bool) -> str:
    return f"type=bind,source={source},target={target}" + ("" if writable else ",readonly")


def _hiding(hidden: FoundPath, engine: ContainerEngine) -> Sequence[str]:
    """Return the arguments that put something empty over a path."""
    path = _mountable(hidden.path)
    if hidden.is_directory:
        empty = ",notmpcopyup" if engine.is_podman else ""
        return ("--tmpfs", f"{path}:ro,size=4096{empty}")
    return ("--mount", _bind(os.devnull, path, writable=False))


def _mountable(path: str) -> str:
    """Return a path that an engine can be told; raise TransportError for others."""
    if not os.path.isabs(path) or any(char in path for char in ",:\n\0"):
        raise TransportError(
            f"could not mount {path!r} into a container: its path must be absolute, without comma,"
            " colon and line break"
        )
    return os.path.normpath(path)


@contextmanager
def _fifo(prefix: str) -> Iterator[Path]:
    """Have a directory with a FIFO whose other end this process holds."""
    with tempfile.TemporaryDirectory(prefix=prefix) as directory:
        place = Path(directory)
        (place / "fifo").mkdir(mode=0o755)
        fifo = place / "fifo" / FIFO
        os.mkfifo(fifo, 0o600)
        # Opened for both, this waits for no reader; the shell reads the end of it when we close.
        fd = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
        try:
            yield place
        finally:
            os.close(fd)


async def _start(engine: ContainerEngine, plan: ContainerPlan, name: str, place: Path) -> int:
    """Start a container; return the pid of the process that keeps it."""
    await engine.ask(*arguments_of(engine, plan, name, place))
    if engine.is_podman:
        text = await run_in_thread((place / "keeper").read_text)
    else:
        text = await engine.ask("inspect", "--format", "{{.State.Pid}}", name)
    return int(text)


def _pidfd_of(pid: int, name: str) -> int:
    """Return a pidfd of the process that keeps a container, once that is the shell.

    Until then it is a program of the engine's that is about to become it. Blocks. Raises
    TransportError where it has ended.
    """
    with suppress(OSError):
        pidfd = os.pidfd_open(pid)
        until = time.monotonic() + _START_BOUND
        with suppress(OSError):
            # Whatever is read was that process's as long as the descriptor says that it lives.
            while not select.select([pidfd], [], [], _START_PAUSE)[0]:
                if FIFO.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pidfd
                if time.monotonic() > until:
                    break
        os.close(pidfd)
    raise TransportError(f"the container {name} ended as soon as it had begun; has its image a sh?")


def check_limits(engine: ContainerEngine, plan: ContainerPlan, *, has_cgroups: bool) -> None:
    """Raise TransportError where an engine has passed over limits, which it does with a warning."""
    if not has_cgroups and (plan.memory, plan.cpus, plan.pids) != (None, None, None):
        raise TransportError(
            f"{engine.name} can limit no container here: this user has no cgroup v2 of its own;"
            " leave sandbox.memory, cpus and pids out, or have systemd delegate a cgroup"
        )


def _entrance(pid: int, pidfd: int) -> ContainerEntrance:
    """Return how programs get into a container, by the process that keeps it. Blocks."""
    flags = 0
    for name, flag in NAMESPACES.items():
        theirs, ours = (os.stat(f"/proc/{one}/ns/{name}") for one in (pid, "self"))
        if theirs.st_ino != ours.st_ino:
            flags |= flag
    return ContainerEntrance(pidfd=pidfd, namespaces=flags, cgroups=files_of_limits(pid))


def _reap(pidfile: Path) -> None:
    """Reap the engine's monitor of a container, which this process has adopted."""
    with suppress(OSError, ValueError):
        os.waitpid(int(pidfile.read_text()), 0)
