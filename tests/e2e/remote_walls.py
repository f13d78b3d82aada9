"""Hosts and pods in which agents of a game run, and what can be struck there."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import trio

from tests.e2e.clock_blows import clock_blows, daemon_clock_blows, distrust
from tests.e2e.place import PATIENCE, SORTIE, Json, Place
from tests.e2e.remote import Fleet
from tests.e2e.walls import Blow, Struck, Wall, seen, strike_daemon
from tests.kubernetes_api.objects import Refused
from tests.kubernetes_api.server import Api, Fault, cluster_running
from tests.skewed_clock import MISSING as NO_CLOCK
from tests.skewed_clock import SkewedClock

POD_NAMESPACE = "agents"
SHORT_ABSENCE, LONG_ABSENCE = 3.0, 45.0
"""Seconds: the long one is more than a lease lasts, and than a request may take."""

MINUTES = 300.0
"""Seconds for which somebody is away in the blows that are played by name only."""


class Supervisors:
    """The files of supervisors in a directory, which say who works there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def blow(self, name: str) -> Blow:
        """Return what kills one of those who keep the streams of the agent."""

        async def strike(struck: Struck) -> None:
            (place,) = [
                note.parent
                for note in self.directory.glob("sortie-run.*/run")
                if struck.run_id in note.read_text()
            ]
            (note,) = place.glob(name)
            os.kill(int(note.read_text().split()[0]), signal.SIGKILL)

        return strike

    @property
    def blows(self) -> dict[str, Blow]:
        """Return the blows at each of them."""
        return {
            "supervisor": self.blow("supervisor"),
            "watchdog": self.blow("watchdog"),
            "keeper of stdout": self.blow("spool1"),
            "keeper of stderr": self.blow("spool2"),
            "link": self.blow("at.*/link"),
            "sender": self.blow("at.*/send1"),
        }

    def left(self) -> list[str]:
        """Return what is left of them."""
        return [f"files of a supervisor: {name}" for name in os.listdir(self.directory)]

    def alive(self) -> list[str]:
        """Return who of them lives."""
        notes = [n for n in self.directory.glob("sortie-run.*/**/*") if n.is_file()]
        words = [(note, note.read_text(errors="replace").split()) for note in notes]
        return [
            f"{note.name} of a supervisor: {found[0]}"
            for note, found in words
            if len(found) == 2 and found[0].isdigit() and _lives(int(found[0]), found[1])
        ]


def _lives(pid: int, born: str) -> bool:
    """Tell whether a process of that number lives that began at that tick."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return state[0] not in "ZX" and state[19] == born
    return False


@asynccontextmanager
async def host(
    place: Place, reattach: float = 60.0, sandbox: Mapping[str, object] | None = None
) -> AsyncIterator[Wall]:
    """Have agents on a host over SSH, where they outlive their links by so many seconds; in a
    sandbox there, where one is given."""
    fleet = Fleet(place)
    try:
        (made,) = fleet.add("one")
        supervisors = Supervisors(made.home / "tmp")
        ours = SkewedClock(place.root / "clock-daemon")
        theirs = SkewedClock(place.root / "clock-host")
        given = {"TMPDIR": supervisors.directory, **theirs.environ}
        words = " ".join(f"{name}={value}" for name, value in given.items())
        made.options["SetEnv"] = f"{made.options['SetEnv']} {words}"
        made.stop()
        made.start()

        async def cut(_: Struck) -> None:
            made.kill_links()

        async def stay_away(seconds: float, _: Struck) -> None:
            made.crash()
            await trio.sleep(seconds)
            made.start()

        async def freeze(_: Struck) -> None:
            made.freeze()
            await trio.sleep(SHORT_ABSENCE)
            made.thaw()

        async def left() -> list[str]:
            # What a network of a run that was lost has left goes after a week.
            return [each for each in supervisors.left() if "sortie-net." not in each]

        worker = {"ssh_reattach": True, "ssh_reattach_ms": round(reattach * 1000)}
        yield Wall(
            blocks=fleet.blocks(worker=worker)
            | ({} if sandbox is None else {"sandbox": {**sandbox, **seen(place)}}),
            blows={
                "daemon": strike_daemon,
                **supervisors.blows,
                "links": cut,
                "host away": partial(stay_away, SHORT_ABSENCE),
                "host silent": freeze,
                **({} if NO_CLOCK else daemon_clock_blows(ours.set)),
                **({} if NO_CLOCK else clock_blows("host", theirs.set)),
            },
            long_blows={"host away for minutes": partial(stay_away, MINUTES)},
            environ=ours.environ,
            left=left,
        )
    finally:
        fleet.close()


@asynccontextmanager
async def pods(place: Place) -> AsyncIterator[Wall]:
    """Have agents in pods with claims."""
    async with cluster_running() as api:
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
                    "kubernetes": {"image": "agent:1", "root": str(place.root / "pods")},
                    "kubeconfig": str(place.root / "kubeconfig"),
                    "ssh_pass_env": ["KIRO_SIM_LOG"],
                }
            },
            blows={
                "daemon": strike_daemon,
                "daemon while idle": partial(strike_idle_daemon, place),
                **supervisors.blows,
                **PodBlows(api).blows,
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
        pods = self._api.objects.items("pods", POD_NAMESPACE)
        (pod,) = [
            pod
            for pod in pods
            if pod["metadata"]["annotations"]["sortie.dev/workspace"] == struck.issue
        ]
        return pod

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
        await struck.daemon.line("run.interrupted", within=2 * MINUTES, run=struck.run_id)
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
