"""The ways in which this machine's transport tells who is left of a command."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from uuid import uuid4

import pytest

from sortie.resources.prctl import is_subreaper, prctl
from sortie.transports.local import LocalTransport, RunGroups, become_subreaper
from sortie.transports.local import observer as observer_module
from sortie.transports.local.fork_client import ForkServer
from sortie.transports.local.isolation import try_namespace

_PR_SET_CHILD_SUBREAPER = 36


@cache
def _groups_can_be_had() -> bool:
    groups = RunGroups.open(f"sortie-test-{uuid4().hex[:8]}")
    if groups is not None:
        groups.close()
    return groups is not None


requires_cgroups = pytest.mark.skipif(
    not _groups_can_be_had(), reason="no cgroup v2 hierarchy can be written here"
)


def stop_adopting() -> None:
    """Have this process adopt nobody any more, as other tests begin."""
    call = prctl()
    assert call is not None
    assert call(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


@cache
def _why_no_namespace() -> str:
    adopts = is_subreaper()
    become_subreaper()
    server = ForkServer(namespaces=True)
    try:
        return "" if try_namespace(server) is None else "/proc cannot be mounted"
    except OSError as exc:
        return str(exc)
    finally:
        server.close()
        if not adopts:
            stop_adopting()


requires_namespaces = pytest.mark.skipif(
    bool(_why_no_namespace()), reason=f"PID namespaces cannot be had: {_why_no_namespace()}"
)

WAYS = [
    pytest.param("namespaces", marks=requires_namespaces),
    pytest.param("cgroups", marks=requires_cgroups),
    "children",
    pytest.param("everybody", marks=pytest.mark.full),
]
"""By the kernel, with a PID namespace; by cgroups; by the children of this process; by looking at
everybody, as on systems other than Linux, which is slow."""


@asynccontextmanager
async def local_transport(way: str, *, mark: int | None = None) -> AsyncIterator[LocalTransport]:
    """Give a transport of this machine that goes one of these ways; this process adopts orphans."""
    become_subreaper()
    groups = RunGroups.open(f"sortie-test-{uuid4().hex[:8]}") if way == "cgroups" else None
    with pytest.MonkeyPatch.context() as patch:
        if way == "everybody":
            patch.setattr(observer_module, "own_children", lambda: None)
        server = None if way == "everybody" else ForkServer(namespaces=way == "namespaces")
        if server is not None:
            server.open()
        transport = LocalTransport(os.environ["PATH"], mark=mark, groups=groups, server=server)
        try:
            yield transport
        finally:
            await transport.close()
    if groups is not None:
        assert not os.path.exists(groups.directory)
