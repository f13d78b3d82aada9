"""The beginning of a pod: how long it is waited for, and why it does not come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from sortie.model import HostError
from sortie.transports.kubernetes.objects import PODS, ApiObjects, Json
from sortie.transports.kubernetes.standing import PodState, standing_of
from sortie.transports.remote.launch import HostGone

_ROOM_BOUND = 5.0  # seconds for the scheduler to see that there is room


async def _nothing() -> bool:
    return False


class PodStart:
    """Waits until pods run, ``timeout`` seconds for each.

    ``make_room`` is called for a pod that no node takes, and returns whether it has made any.
    """

    def __init__(
        self,
        objects: ApiObjects,
        timeout: float,
        make_room: Callable[[], Awaitable[bool]] = _nothing,
    ) -> None:
        self.timeout = timeout
        self._objects = objects
        self._make_room = make_room

    async def wait(self, name: str, pod: Json) -> None:
        """Wait until a pod runs, for ever. Raises HostError where it will not.

        One that never will is deleted: the next is made with the settings of then.
        """
        while True:
            standing = standing_of(pod)
            if standing.hopeless:
                await self._objects.delete_pod(pod)
                raise self._objects.error(
                    f"start pod {name}",
                    f"{standing.reason}; check worker.kubernetes.image, its pull_secrets and env",
                )
            if standing.state is PodState.OVER:
                raise self._objects.error(f"start pod {name}", standing.reason)
            if standing.state is PodState.LEAVING:
                raise self._deleted(name)
            if standing.state is not PodState.WAITING:
                return
            version = pod["metadata"]["resourceVersion"]
            changed: Json | None = None
            has_room = standing.unschedulable and await self._make_room()
            with trio.move_on_after(_ROOM_BOUND if has_room else self.timeout):
                changed = await self._objects.next_change(PODS, name, version)
            pod = changed or await self._objects.get(PODS, name) or {}
            if not pod:
                raise self._deleted(name)

    def _deleted(self, name: str) -> HostGone:
        return HostGone(
            f"could not start pod {name} on host {self._objects.host}: it was deleted meanwhile"
        )

    async def why_slow(self, name: str) -> HostError:
        """Return the error for a pod that has not begun in time."""
        with trio.move_on_after(5):
            pod = await self._objects.get(PODS, name)
            standing = standing_of(pod or {})
            reason = standing.reason or "nothing tells why; look at its events"
            advice = "raise worker.kubernetes.start_timeout_ms if it only needs longer"
            if standing.unschedulable:
                advice = "wait for room in the cluster, or ask for less"
            seconds = f"{self.timeout:g} s"
            return self._objects.error(
                f"start pod {name}", f"it has not begun in {seconds}: {reason}; {advice}"
            )
        return self._objects.error(f"start pod {name}", "the API server does not answer")
