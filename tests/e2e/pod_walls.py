"""Pods in which agents of a game run, and what can be struck there."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from tests.e2e.clock_blows import clock_blows, daemon_clock_blows, distrust
from tests.e2e.place import PATIENCE, SORTIE, Json, Place
from tests.e2e.remote_walls import MINUTES, SHORT_ABSENCE, Supervisors
from tests.e2e.walls import Blow, Struck, Wall, strike_daemon
from tests.kubernetes_api.objects import Refused
from tests.kubernetes_api.sandbox_controller import SandboxController
from tests.kubernetes_api.server import Api, Fault, cluster_running
from tests.skewed_clock import MISSING as NO_CLOCK
from tests.skewed_clock import SkewedClock

POD_NAMESPACE = "agents"
LONG_ABSENCE = 45.0
"""Seconds: more than a lease lasts, and than a request may take."""


@asynccontextmanager
async def pods(place: Place, *, sandboxes: bool = False) -> AsyncIterator[Wall]:
    """Have agents in pods with claims; with ``sandboxes`` in those of Sandboxes."""
    async with cluster_running() as api:
        of_sandboxes = SandboxBlows(api, api.have_sandboxes()).blows if sandboxes else {}
        (place.root / "kubeconfig").write_text(api.kubeconfig())
        supervisors = Supervisors(place.root / "tmp")
        api.kubelet.path = f"{os.path.dirname(SORTIE)}:{os.environ['PATH']}"
        ours = SkewedClock(place.root / "clock-daemon")
        theirs = SkewedClock(place.root / "clock-pods")
        api.kubelet.variables = {"TMPDIR": str(supervisors.directory), **theirs.environ}

        def set_servers(hours: float) -> None:
            api.objects.ahead = hours * 3600.0

        async def left() -> list[str]:
            # A lease stays, for the version by which the next daemon takes it, and is nobody's.
            made = [
                f"{kind} {name}"
                for (kind, _, name), one in api.objects.found.items()
                if kind != "leases" or one["spec"]["holderIdentity"]
            ]
            # Its files would go with a pod, which has a /tmp of its own; here they stay.
            return [*made, *supervisors.alive()]

        yield Wall(
            blocks={
                "worker": {
                    "kubernetes": {
                        "image": "agent:1",
                        "root": str(place.root / "pods"),
                        "sandboxes": "always" if sandboxes else "never",
                    },
                    "kubeconfig": str(place.root / "kubeconfig"),
                    "ssh_pass_env": ["KIRO_SIM_LOG"],
                }
            },
            blows={
                "daemon": strike_daemon,
                "daemon while idle": partial(strike_idle_daemon, place),
                **supervisors.blows,
                **PodBlows(api).blows,
                **of_sandboxes,
                **clock_blows("server", set_servers),
                **({} if NO_CLOCK else daemon_clock_blows(ours.set)),
                **({} if NO_CLOCK else clock_blows("pods", theirs.set)),
                **({} if NO_CLOCK else {"untrusted": distrust(ours.set, api.cut_links)}),
            },
            long_blows=PodBlows(api).long_blows,
            environ=ours.environ,
            left=left,
        )


async def strike_idle_daemon(place: Place, struck: Struck) -> None:
    """Kill the daemon once the agent is done, so that it leaves no run, and its lease."""
    (place.root / "locks" / f"wait-{struck.issue}").unlink()
    with trio.fail_after(PATIENCE):
        while place.state_of(struck.issue) != "Human Review":
            await trio.sleep(0.05)
    await struck.daemon.line("run.finished", run=struck.run_id)
    await strike_daemon(struck)


class PodBlows:
    """What befalls pods, their node and the API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @property
    def blows(self) -> dict[str, Blow]:
        """Return them by their names."""
        return {
            "links": self._cut,
            "evicted": self._evict,
            "deleted": self._delete,
            "node away": self._lose_node,
            "node away while deleted": self._delete_on_lost_node,
            "node unreachable": self._taint_lost_node,
            "server away": partial(self._stay_away, "refuses", SHORT_ABSENCE),
            "server silent": partial(self._stay_away, "silent", SHORT_ABSENCE),
            "server away for long": partial(self._stay_away, "refuses", LONG_ABSENCE),
            "server silent for long": partial(self._stay_away, "silent", LONG_ABSENCE),
            "history compacted": self._compact,
            "lease conflict": self._conflict,
            "too many requests": self._throttle,
        }

    @property
    def long_blows(self) -> dict[str, Blow]:
        """Return those that take minutes."""
        return {
            "server away for minutes": partial(self._stay_away, "refuses", MINUTES),
            "server silent for minutes": partial(self._stay_away, "silent", MINUTES),
            "node away for minutes": self._lose_node_for_minutes,
        }

    def _pod_of(self, struck: Struck) -> Json:
        return _made_for(self._api, "pods", struck)

    async def _cut(self, _: Struck) -> None:
        self._api.cut_links()

    async def _evict(self, struck: Struck) -> None:
        name = self._pod_of(struck)["metadata"]["name"]
        await self._api.kubelet.fail(
            POD_NAMESPACE, name, reason="Evicted", message="The node was low on resource: memory."
        )

    async def _delete(self, struck: Struck) -> None:
        self._api.delete_pod(POD_NAMESPACE, self._pod_of(struck)["metadata"]["name"])

    async def _lose_node(self, _: Struck) -> None:
        self._api.kubelet.away = True
        self._api.cut_links()
        await trio.sleep(SHORT_ABSENCE)
        self._api.kubelet.away = False

    async def _lose_node_for_minutes(self, struck: Struck) -> None:
        """Longer than its agent is waited for; the namespace is not rested for that."""
        name = self._pod_of(struck)["metadata"]["name"]
        self._api.kubelet.lose_node(POD_NAMESPACE, name)
        self._api.cut_links()
        await struck.daemon.line("run.finished", within=2 * MINUTES, run=struck.run_id)
        self._api.kubelet.lost.discard(name)
        assert struck.daemon.lines("host.rested") == [], "its namespace was rested"

    async def _delete_on_lost_node(self, struck: Struck) -> None:
        """The agent works on where nobody sees it, until the node is back."""
        kubelet = self._api.kubelet
        kubelet.away = kubelet.stuck = True
        self._api.cut_links()
        self._api.delete_pod(POD_NAMESPACE, self._pod_of(struck)["metadata"]["name"])
        await trio.sleep(SHORT_ABSENCE)
        kubelet.away = kubelet.stuck = False

    async def _taint_lost_node(self, struck: Struck) -> None:
        """Have the controller of nodes delete the pod of a node that is away: it stays as long as
        that is, and its agent works on, until the node is back and ends it.

        Its issue waits for that, and goes on in another pod.
        """
        pod = self._pod_of(struck)
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        kubelet = self._api.kubelet
        kubelet.lose_node(POD_NAMESPACE, name)
        self._api.cut_links()
        found = self._api.objects.get("pods", POD_NAMESPACE, name)
        found["status"]["conditions"].append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByTaintManager",
                "message": "Taint manager: deleting due to NoExecute taint",
            }
        )
        self._api.objects.change("pods", POD_NAMESPACE, found)
        self._api.delete_pod(POD_NAMESPACE, name)
        ended = await struck.daemon.line("run.finished", within=PATIENCE, run=struck.run_id)
        await trio.sleep(SHORT_ABSENCE)
        assert self._pod_of(struck)["metadata"]["uid"] == uid, "another pod beside one that lives"
        kubelet.lost.discard(name)
        assert "Taint manager" in ended["error"], ended
        assert struck.daemon.lines("host.rested") == [], "its namespace was rested"

    async def _stay_away(self, how: str, seconds: float, _: Struck) -> None:
        self._api.away = how  # type: ignore[assignment]
        self._api.cut_links()
        await trio.sleep(seconds)
        self._api.away = ""

    async def _compact(self, _: Struck) -> None:
        """Watches that are under way are told that their version is too old."""
        self._api.objects.compact()

    async def _conflict(self, _: Struck) -> None:
        refused = Refused(409, "Conflict", "the object has been modified")
        self._api.faults.append(Fault("PUT", "leases/", refused, times=1))
        with trio.fail_after(PATIENCE):
            while self._api.faults:
                await trio.sleep(0.05)

    async def _throttle(self, _: Struck) -> None:
        refused = Refused(429, "TooManyRequests", "the server has asked to wait", retry_after=1)
        self._api.faults += [
            Fault(method, "namespaces/", refused, times=2) for method in ("GET", "PUT", "EXEC")
        ]
        self._api.cut_links()


class SandboxBlows:
    """What befalls Sandboxes and their controller."""

    def __init__(self, api: Api, controller: SandboxController) -> None:
        self._api = api
        self._controller = controller

    @property
    def blows(self) -> dict[str, Blow]:
        """Return them by their names."""
        return {
            "sandbox deleted": self._delete,
            "sandbox suspended": self._suspend,
            "controller away while deleted": partial(self._without_controller, self._delete),
            "controller away while its pod is deleted": partial(
                self._without_controller, self._delete_pod
            ),
        }

    def _name(self, struck: Struck) -> str:
        return str(_made_for(self._api, "sandboxes", struck)["metadata"]["name"])

    async def _delete(self, struck: Struck) -> None:
        self._api.objects.remove("sandboxes", POD_NAMESPACE, self._name(struck))

    async def _suspend(self, struck: Struck) -> None:
        suspended = {"spec": {"operatingMode": "Suspended"}}
        self._api.objects.merge("sandboxes", POD_NAMESPACE, self._name(struck), suspended)

    async def _delete_pod(self, struck: Struck) -> None:
        name = _made_for(self._api, "pods", struck)["metadata"]["name"]
        self._api.delete_pod(POD_NAMESPACE, name)

    async def _without_controller(self, strike: Blow, struck: Struck) -> None:
        self._controller.away = True
        await strike(struck)
        await trio.sleep(SHORT_ABSENCE)
        self._controller.away = False


def _made_for(api: Api, kind: str, struck: Struck) -> Json:
    """Return the one object of a kind that an issue has."""
    (found,) = [
        one
        for one in api.objects.items(kind, POD_NAMESPACE)
        if one["metadata"]["annotations"]["sortie.dev/workspace"] == struck.issue
    ]
    return found
