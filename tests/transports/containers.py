"""Containers that can be had here: an engine that works, and an image of nothing but directories.

The image has no registry to come from. What it lacks, this machine's ``/usr`` and the interpreter
of the tests, is mounted into it.
"""

from __future__ import annotations

import atexit
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sortie.model import RunId
from sortie.transports import Command, Process, Transport
from sortie.transports.local import LocalTransport
from sortie.transports.walls.container import LOW_LIMITS, Container
from sortie.transports.walls.container_choice import ContainerChoice
from sortie.transports.walls.container_transport import ContainerTransport, inside
from sortie.transports.walls.remote_container import RemoteContainerTransport
from sortie.transports.walls.run_network import RunNetwork
from tests.transports.ssh.sshd import Sshd

IMAGE = "localhost/sortie-test-empty"
PODMAN, DOCKER = "podman", "docker"
DAEMON = uuid.uuid4().hex[:16]
_PROJECT = Path(__file__).parents[2]
_LINKED = ("bin", "lib", "lib64", "sbin")
_BOUND = 300.0

_OF_ENGINES = ("CONTAINERS_CONF", "XDG_RUNTIME_DIR", "DOCKER_HOST")
_DAEMON = "SORTIE_TEST_DOCKER_HOST"
"""Tells programs of the tests which docker daemon theirs is."""


@cache
def engine_environ(engine: str = PODMAN) -> Mapping[str, str]:
    """Return the environment for an engine: podman's crun cannot start on every mixture of cgroups,
    so runc is used where it is installed, and docker has a daemon of these tests."""
    if engine == DOCKER:
        address = os.environ.get(_DAEMON) or _docker_daemon()
        return {**os.environ, "DOCKER_HOST": address, _DAEMON: address}
    environ = dict(os.environ)
    if shutil.which("runc") and "CONTAINERS_CONF" not in environ:
        place = Path(os.environ.get("TMPDIR", "/tmp")) / f"sortie-test-containers-{os.geteuid()}"
        place.mkdir(mode=0o700, exist_ok=True)
        conf = place / "containers.conf"
        conf.write_text('[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n')
        environ["CONTAINERS_CONF"] = str(conf)
    return environ


@cache
def _docker_daemon() -> str:
    """Start a docker daemon that ends with this process; return its address.

    It makes no network and touches no rule of the firewall. Raises OSError where it does not come
    up.
    """
    place = Path(tempfile.mkdtemp(prefix="sortie-test-docker-"))
    address = f"unix://{place}/socket"
    arguments = [f"--{name}={place}/{name}" for name in ("data-root", "exec-root", "pidfile")]
    with (place / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "TERM", "dockerd", "--host", address, *arguments),
                *("--storage-driver=vfs", "--bridge=none", "--iptables=false"),
            ],
            stdout=log,
            stderr=log,
        )
    atexit.register(_end_docker, daemon, place)
    until = time.monotonic() + _BOUND
    environ = {**os.environ, "DOCKER_HOST": address}
    while daemon.poll() is None and time.monotonic() < until:
        asked = subprocess.run(["docker", "info"], env=environ, capture_output=True, check=False)
        if asked.returncode == 0 and b"Server Version" in asked.stdout:
            return address
        time.sleep(0.1)
    raise OSError(_last_line((place / "log").read_bytes()))


def _end_docker(daemon: subprocess.Popen[bytes], place: Path) -> None:
    daemon.terminate()
    daemon.wait(_BOUND)
    shutil.rmtree(place, ignore_errors=True)


def _archive() -> bytes:
    """Return a file system of empty directories, with the links of a merged /usr."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("usr", "etc", "proc", "sys", "dev", "run", "tmp", "var", "root", "home"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name in _LINKED:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(entry)
    return content.getvalue()


@cache
def why_no_containers(engine: str = PODMAN) -> str:
    """Return why an engine can start no container here, empty where it can."""
    if sys.platform != "linux":
        return "containers are entered on Linux only"
    for program in (engine, *(("dockerd", "setpriv") if engine == DOCKER else ())):
        if shutil.which(program) is None:
            return f"there is no {program}"
    if engine == DOCKER and os.geteuid() != 0:
        return "a docker daemon needs root"
    if not all(os.path.islink(f"/{name}") for name in ("bin", "lib")):
        return "this system has no merged /usr to mount into a container"
    try:
        there = _ask(engine, "image", "inspect", IMAGE)
    except OSError as error:
        return f"{engine} does not come up: {error}"
    if there.returncode != 0:  # another one each time would leave the former ones without a name
        made = _ask(engine, "import", "-", IMAGE, content=_archive())
        if made.returncode != 0:
            return f"{engine} makes no image: {_last_line(made.stderr)}"
    trial = ["run", "--rm", *LOW_LIMITS, "--network", "none", "--cap-drop", "all"]
    ran = _ask(engine, *trial, "--volume", "/usr:/usr:ro", IMAGE, "true")
    return "" if ran.returncode == 0 else f"{engine} starts nothing: {_last_line(ran.stderr)}"


def _ask(engine: str, *arguments: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [engine, *arguments],
        input=content,
        env=engine_environ(engine),
        capture_output=True,
        check=False,
        timeout=_BOUND,
    )


def _last_line(said: bytes) -> str:
    return said.decode(errors="replace").strip().rpartition("\n")[2]


requires_containers = pytest.mark.skipif(
    bool(why_no_containers()), reason=f"containers cannot be had: {why_no_containers()}"
)

ENGINES = (
    pytest.param(PODMAN, marks=requires_containers),
    pytest.param(DOCKER, marks=pytest.mark.full),
)


def require_engine(engine: str) -> str:
    """Return an engine, and skip a test where it works not."""
    if why := why_no_containers(engine):
        pytest.skip(f"containers cannot be had: {why}")
    return engine


def seen_by_tests() -> list[str]:
    """Return what programs of the tests need to see: the system, the interpreter, the tests."""
    paths = {"/usr", "/etc/alternatives", str(_PROJECT), sys.prefix, sys.base_prefix}
    return [p for p in sorted(paths) if not any(p.startswith(f"{q}/") for q in paths)]


def choice(**given: Any) -> ContainerChoice:
    """Return containers of the tests."""
    plain = {"image": IMAGE, "daemon": DAEMON, "engine": PODMAN, "read": tuple(seen_by_tests())}
    return ContainerChoice(**(plain | given))


class OneRemoteContainer(RemoteContainerTransport):
    """A transport whose programs are all in one container of a host, whatever run they are of."""

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program in the container."""
        return self._started(inside(command, self.only))

    @property
    def only(self) -> Container:
        """The container."""
        ((container,),) = (of_run.values() for of_run in self._containers.values())
        return container


def variables_of_engines(engine: str = PODMAN) -> dict[str, str]:
    """Return the variables by which a login uses an engine as the tests do."""
    environ = engine_environ(engine)
    return {name: environ[name] for name in _OF_ENGINES if name in environ}


def know_engine(host: Sshd, engine: str = PODMAN) -> None:
    """Have logins of a host of the tests use an engine as the tests do."""
    told = (f"{name}={value}" for name, value in variables_of_engines(engine).items())
    home = f"HOME={host.home} SORTIE_TEST_SSHD={host.name}"
    host.options["SetEnv"] = " ".join((home, *told))
    host.stop()
    host.start()


@asynccontextmanager
async def remote_container_transport(
    host: Transport,
    workspace: str,
    chosen: ContainerChoice | None = None,
    network: RunNetwork | None = None,
    handed_over: Mapping[str, str] | None = None,
) -> AsyncIterator[OneRemoteContainer]:
    """Give a transport whose programs are in a container of a host with a directory."""
    transport = OneRemoteContainer(host, chosen or choice(), handed_over or {}, network)
    async with transport.around(RunId(str(uuid.uuid4())), workspace):
        yield transport


class OneContainer(ContainerTransport):
    """A transport whose programs are all in one container, whatever run they are of."""

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program in the container."""
        return self._started(inside(command, self.only))

    @property
    def only(self) -> Container:
        """The container."""
        ((container,),) = (of_run.values() for of_run in self._containers.values())
        return container


@asynccontextmanager
async def container_transport(
    local: LocalTransport,
    workspace: str,
    chosen: ContainerChoice | None = None,
    network: RunNetwork | None = None,
) -> AsyncIterator[OneContainer]:
    """Give a transport whose programs are in a container with a directory."""
    chosen = chosen or choice()
    transport = OneContainer(local, chosen, engine_environ(chosen.engine or PODMAN), network)
    async with transport.around(RunId(str(uuid.uuid4())), workspace):
        yield transport
