"""Containers that can be had here: an engine that works, and an image of nothing but directories.

The image has no registry to come from. What it lacks, this machine's ``/usr`` and the interpreter
of the tests, is mounted into it.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sortie.model import RunId
from sortie.transports import Command, Process
from sortie.transports.local import LocalTransport
from sortie.transports.walls.container import LOW_LIMITS
from sortie.transports.walls.container_transport import (
    ContainerChoice,
    ContainerTransport,
    inside,
)
from sortie.transports.walls.run_network import RunNetwork

IMAGE = "localhost/sortie-test-empty"
DAEMON = uuid.uuid4().hex[:16]
_PROJECT = Path(__file__).parents[2]
_LINKED = ("bin", "lib", "lib64", "sbin")
_BOUND = 300.0


@cache
def engine_environ() -> Mapping[str, str]:
    """Return the environment for podman: crun cannot start on every mixture of cgroups, so runc is
    used where it is installed."""
    environ = dict(os.environ)
    if shutil.which("runc") and "CONTAINERS_CONF" not in environ:
        place = Path(os.environ.get("TMPDIR", "/tmp")) / f"sortie-test-containers-{os.geteuid()}"
        place.mkdir(mode=0o700, exist_ok=True)
        conf = place / "containers.conf"
        conf.write_text('[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n')
        environ["CONTAINERS_CONF"] = str(conf)
    return environ


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
def why_no_containers() -> str:
    """Return why no container can be started here, empty where one can."""
    if sys.platform != "linux":
        return "containers are entered on Linux only"
    if shutil.which("podman") is None:
        return "there is no podman"
    if not all(os.path.islink(f"/{name}") for name in ("bin", "lib")):
        return "this system has no merged /usr to mount into a container"
    made = _podman("import", "-", IMAGE, content=_archive())
    if made.returncode != 0:
        return f"podman makes no image: {_last_line(made.stderr)}"
    trial = ["run", "--rm", *LOW_LIMITS, "--network", "none", "--cap-drop", "all"]
    ran = _podman(*trial, "--volume", "/usr:/usr:ro", IMAGE, "true")
    return "" if ran.returncode == 0 else f"podman starts nothing: {_last_line(ran.stderr)}"


def _podman(*arguments: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["podman", *arguments],
        input=content,
        env=engine_environ(),
        capture_output=True,
        check=False,
        timeout=_BOUND,
    )


def _last_line(said: bytes) -> str:
    return said.decode(errors="replace").strip().rpartition("\n")[2]


requires_containers = pytest.mark.skipif(
    bool(why_no_containers()), reason=f"containers cannot be had: {why_no_containers()}"
)


def seen_by_tests() -> list[str]:
    """Return what programs of the tests need to see: the system, the interpreter, the tests."""
    paths = {"/usr", "/etc/alternatives", str(_PROJECT), sys.prefix, sys.base_prefix}
    return [p for p in sorted(paths) if not any(p.startswith(f"{q}/") for q in paths)]


def choice(**given: Any) -> ContainerChoice:
    """Return containers of the tests."""
    plain = {"image": IMAGE, "daemon": DAEMON, "engine": "podman", "read": tuple(seen_by_tests())}
    return ContainerChoice(**(plain | given))


class OneContainer(ContainerTransport):
    """A transport whose programs are all in one container, whatever run they are of."""

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program in the container."""
        (container,) = self._containers.values()
        return self._started(inside(command, container))


@asynccontextmanager
async def container_transport(
    local: LocalTransport,
    workspace: str,
    chosen: ContainerChoice | None = None,
    network: RunNetwork | None = None,
) -> AsyncIterator[OneContainer]:
    """Give a transport whose programs are in a container with a directory."""
    transport = OneContainer(local, chosen or choice(), engine_environ(), network)
    async with transport.around(RunId(str(uuid.uuid4())), workspace):
        yield transport
