"""Pods that wait for an issue, so that its first program does not wait for a pod to begin.

Rule 1: a pod is taken by a write that names the version that was read, so it is taken once; it is
ended in the same way, so none is ended that was taken meanwhile.
Rule 2: an issue takes a pod of this life of the daemon only, made with the settings of its run.
Rule 3: issues go first: none is made while an issue waits for its pod, and one is given up where
another pod finds no room.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio
from msgspec import Struct

from sortie.config.kubernetes import KubernetesSettings
from sortie.model import HostError
from sortie.resources.lease import current_lease
from sortie.transports.kubernetes import manifests
from sortie.transports.kubernetes.manifests import DAEMON, INSTANCE, ISSUE, WARM
from sortie.transports.kubernetes.objects import CLAIMS, PODS, ApiObjects, Json, label
from sortie.transports.kubernetes.standing import PodState, standing_of

LOOK_EVERY = 30.0
"""Seconds between two looks at pods that all wait for an issue."""

LOOK_AGAIN = 5.0
"""Seconds until the next look where some do not run yet, or one could not be made."""

_DROP_BOUND = 5.0  # seconds
_MAKE_BOUND = 10.0
_TRIES = 3  # times that candidates are listed, each of which others have changed meanwhile


class WarmState(Struct, frozen=True, kw_only=True):
    """How many pods wait for an issue, of how many that should; ``error`` is what is in the way."""

    ready: int = 0
    wanted: int = 0
    error: str | None = None


class WarmPods:
    """The warm pods of one instance in one namespace; ``token`` stands for this life.

    ``tell`` is called with each change of their state.
    """

    def __init__(
        self,
        objects: ApiObjects,
        instance: str,
        token: str,
        tell: Callable[[WarmState], object] = lambda _: None,
    ) -> None:
        self.state = WarmState()
        self._objects = objects
        self._instance = instance
        self._token = token
        self._tell = tell
        self._pods: KubernetesSettings | None = None
        self._root = ""
        self._begin: Callable[[], Awaitable[object]] | None = None
        self._began = False
        self._made_claims = False
        self._news = trio.Event()
        self._issues_waiting = 0

    def use(
        self,
        pods: KubernetesSettings | None,
        root: str = "",
        begin: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Have so many pods as settings say from the next look on, none without settings.

        ``begin`` makes the instance ours before anything is done there.
        """
        self._pods, self._root, self._begin = pods, root, begin
        self._look_now()

    @property
    def _wanted(self) -> int:
        return 0 if self._pods is None else self._pods.warm

    async def run(self) -> None:
        """Keep the pods there, until cancelled."""
        while True:
            news = self._news
            error: str | None = None
            ready = 0
            try:
                ready, error = await self._look()
            except HostError as exc:
                error = str(exc)
            state = WarmState(ready=ready, wanted=self._wanted, error=error)
            if state != self.state:
                self.state = state
                self._tell(state)
            with trio.move_on_after(LOOK_EVERY if ready >= self._wanted else LOOK_AGAIN):
                await news.wait()

    async def end(self) -> None:
        """End all that no issue has taken, without waiting until it has gone."""
        for _ in range(_TRIES if self._began else 0):
            pods = await self._warm()
            for pod in pods:
                await self._drop(pod)
            if not pods:
                break  # else one may have begun to run meanwhile, so that its version is another
        if self._made_claims:  # some may be left of pods that are going
            labels = {INSTANCE: self._instance, DAEMON: self._token, WARM: None}
            for claim in await self._objects.listed(CLAIMS, labels):
                await self._objects.delete(CLAIMS, claim["metadata"]["name"])

    async def take(self, key: str, pods: KubernetesSettings, root: str) -> bool:
        """Give a pod to a workspace, where there is one that was made with these settings."""
        digest = manifests.warm_digest(pods, root)
        for _ in range(_TRIES if self._wanted else 0):
            candidates = [
                pod
                for pod in await self._warm()
                if _is_fit(pod, digest) and not standing_of(pod).hopeless
            ]
            for pod in candidates:
                metadata = pod["metadata"]
                name, version = metadata["name"], metadata["resourceVersion"]
                changes = manifests.taken(key)
                taken = await self._objects.change_metadata(PODS, name, changes, version)
                if taken is None:  # a request whose answer was lost is made again, and refused
                    taken = await self._objects.get(PODS, name)
                if taken is not None and label(taken, ISSUE) == manifests.issue_label(key):
                    self._look_now()
                    return True
            if not candidates:
                break
        return False

    async def give_up(self) -> bool:
        """End a pod that no issue has taken, for another that finds no room; return whether there
        was one."""
        for pod in reversed(await self._warm() if self._wanted else []):
            if await self._delete(pod):
                await self._objects.end_pod(pod)
                await self._drop_claim(pod)
                return True
        return False

    @contextmanager
    def issue_waiting(self) -> Iterator[None]:
        """Make no pod while the block lasts: an issue waits for its own."""
        self._issues_waiting += 1
        try:
            yield
        finally:
            self._issues_waiting -= 1
            if not self._issues_waiting:
                self._look_now()

    def _look_now(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def _look(self) -> tuple[int, str | None]:
        """Make and end pods; return how many run, and what is in the way of others."""
        pods, root = self._pods, self._root
        if self._begin is not None:
            await self._begin()
        self._began = True
        digest = "" if pods is None else manifests.warm_digest(pods, root)
        warm = await self._warm()
        kept = [pod for pod in warm if _is_fit(pod, digest)][: self._wanted]
        for pod in warm:
            if pod not in kept:
                await self._drop(pod)
        if pods is not None and len(kept) < pods.warm:
            kept += await self._make(pods, root, pods.warm - len(kept))
        standings = [standing_of(pod) for pod in kept]
        reasons = [one.reason for one in standings if one.hopeless or one.unschedulable]
        ready = sum(one.state is PodState.READY for one in standings)
        return ready, next(iter(reasons), None)

    async def _make(self, pods: KubernetesSettings, root: str, count: int) -> list[Json]:
        """Make some pods, as far as max_pods allows; return them."""
        if pods.max_pods is not None:
            found = await self._objects.listed(PODS, {INSTANCE: self._instance})
            alive = sum(standing_of(pod).state is not PodState.OVER for pod in found)
            count = min(count, pods.max_pods - alive)
        made: list[Json] = []
        while len(made) < count and not self._issues_waiting:
            name = f"{pods.instance[:40]}-warm-{secrets.token_hex(5)}"
            owner = manifests.owner_labels(self._token, current_lease())
            pod = manifests.warm_pod(pods, root, name, owner)
            is_made = False
            try:
                # A request that is broken off may still be carried out, after the look at what is
                # there to be ended.
                with trio.move_on_after(_MAKE_BOUND) as bound:
                    bound.shield = True
                    if pods.volume.kind == "claim":
                        self._made_claims = True
                        claim = manifests.warm_claim(pods, root, name, owner)
                        await self._objects.create(CLAIMS, claim)
                    await self._objects.create(PODS, pod)
                    is_made = True
                    made.append(pod)
                if not is_made:
                    reason = f"the API server did not answer in {_MAKE_BOUND:g} s"
                    raise self._objects.error("make a warm pod", reason)
            finally:
                if not is_made:
                    with trio.move_on_after(_DROP_BOUND) as bound:
                        bound.shield = True
                        await self._drop_claim(pod)
        return made

    async def _drop(self, pod: Json) -> None:
        """Delete a pod that was not taken, and its claim, which the cluster keeps until the pod has
        gone."""
        if await self._delete(pod):
            await self._drop_claim(pod)

    async def _delete(self, pod: Json) -> bool:
        """Delete a pod that was not taken; return whether it goes."""
        metadata = pod["metadata"]
        name, version = metadata["name"], metadata["resourceVersion"]
        if await self._objects.delete(PODS, name, metadata["uid"], version):
            return True
        # A request whose answer was lost is made again, and the version is an old one then.
        now = await self._objects.get(PODS, name)
        return now is None or (
            bool(label(now, WARM)) and standing_of(now).state is PodState.LEAVING
        )

    async def _drop_claim(self, pod: Json) -> None:
        """Delete the claim of a pod, unless it is an issue's."""
        name = manifests.claim_of(pod)
        claim = None if name is None else await self._objects.get(CLAIMS, name)
        if name is not None and claim is not None and label(claim, WARM):
            version = claim["metadata"]["resourceVersion"]
            await self._objects.delete(CLAIMS, name, version=version)

    async def _warm(self) -> list[Json]:
        """Return the pods of this life that no issue has taken, those that run first."""
        labels = {INSTANCE: self._instance, DAEMON: self._token, WARM: None}
        found = await self._objects.listed(PODS, labels)
        warm = [pod for pod in found if standing_of(pod).state is not PodState.LEAVING]
        return sorted(warm, key=lambda pod: standing_of(pod).state is not PodState.READY)


def _is_fit(pod: Json, digest: str) -> bool:
    """Tell whether a pod runs, or may begin, and was made with the settings of a digest."""
    usable = standing_of(pod).state in (PodState.WAITING, PodState.READY)
    return usable and label(pod, WARM) == digest
