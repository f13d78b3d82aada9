"""Where the runs of a game of failovers live: with their daemon, on a host over SSH, or in pods."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from tests.e2e.place import SORTIE, Place
from tests.e2e.remote import Fleet
from tests.kubernetes_api.server import cluster_running

Blocks = dict[str, Mapping[str, object] | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPlace:
    """``blocks`` are those of the workflow; ``left`` tells what is there in the end that must not
    be, and ``seen`` what a daemon could change while nothing is to be done. ``is_here``: runs are
    on their daemon's machine, and so is what they wrote."""

    blocks: Blocks
    left: Callable[[], Awaitable[list[str]]]
    seen: Callable[[], Awaitable[list[str]]]
    is_here: bool = False


@asynccontextmanager
async def local(place: Place) -> AsyncIterator[RunsPlace]:
    """Have runs on the machine of their daemon."""
    del place

    async def nothing() -> list[str]:
        return []

    yield RunsPlace(blocks={}, left=nothing, seen=nothing, is_here=True)


@asynccontextmanager
async def ssh(place: Place, *, reattach: bool) -> AsyncIterator[RunsPlace]:
    """Have runs on a host, where they outlive their links with ``reattach``."""
    fleet = Fleet(place)
    (host,) = fleet.add("one")

    async def left() -> list[str]:
        return [f"on the host: {process}" for process in host.close()]

    async def seen() -> list[str]:
        """Workspaces and who works there; a daemon asks, so its questions change."""
        below = [str(path) for path in (host.home / "workspaces").rglob("*")]
        works = [str(pid) for pid in fleet.living("one")]
        return [*sorted(path for path in below if "/@" not in path), *works]

    try:
        blocks = fleet.blocks(worker={"ssh_reattach": reattach})
        yield RunsPlace(blocks=blocks, left=left, seen=seen)
    finally:
        fleet.close()


@asynccontextmanager
async def pods(place: Place) -> AsyncIterator[RunsPlace]:
    """Have runs in the pods of a cluster of the tests."""
    async with cluster_running() as api:
        (place.root / "kubeconfig").write_text(api.kubeconfig())
        api.kubelet.path = f"{os.path.dirname(SORTIE)}:{os.environ['PATH']}"

        async def left() -> list[str]:
            # Each issue that is handed off keeps its claim, and its pod for some time.
            pods = api.objects.items("pods", "agents")
            issues = [pod["metadata"]["annotations"]["sortie.dev/workspace"] for pod in pods]
            return [f"two pods of {one}" for one in set(issues) if issues.count(one) > 1]

        async def seen() -> list[str]:
            return [
                f"{kind} {name} {one['metadata']['uid']}"
                for (kind, _, name), one in api.objects.found.items()
            ]

        worker = {
            "kubernetes": {"image": "agent:1", "root": str(place.root / "pods")},
            "kubeconfig": str(place.root / "kubeconfig"),
            "ssh_pass_env": ["KIRO_SIM_LOG"],
        }
        yield RunsPlace(blocks={"worker": worker}, left=left, seen=seen)


PLACES: Mapping[str, Callable[[Place], AbstractAsyncContextManager[RunsPlace]]] = {
    "local": local,
    "ssh": partial(ssh, reattach=False),
    "reattached": partial(ssh, reattach=True),
    "pods": pods,
}
