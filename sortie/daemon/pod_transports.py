"""The transports of namespaces in which runs have pods, one for each from its first use on."""

from __future__ import annotations

import math
import os
import platform
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.config.settings import Settings
from sortie.model import HostError, RunId
from sortie.resources.lease import LeaseLost
from sortie.telemetry import Publish, facts
from sortie.transports import Transport
from sortie.transports.host_health import HostHealth, MonitoredTransport
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster, ClusterPlace
from sortie.transports.kubernetes.instance_lease import InstanceLease
from sortie.transports.kubernetes.manifests import with_workflow
from sortie.transports.kubernetes.objects import ApiObjects
from sortie.transports.kubernetes.pods import FoundPod
from sortie.transports.kubernetes.transport import REATTACH, KubernetesTransport
from sortie.transports.kubernetes.warm_pods import WarmPods, WarmState
from sortie.transports.lost_links import Links
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import new_nonce

_CLOSE_BOUND = 5.0  # seconds

_Key = tuple[ClusterPlace, KubernetesSettings, str, float]


class PodTransports:
    """Gives the transports of namespaces by their names; to be closed.

    Other settings make new transports, and runs under way keep theirs; pods are the same for all.
    What is made has the name of the ``workflow`` as a label.
    """

    def __init__(
        self, publish: Publish, health: Callable[[], HostHealth], workflow: str = ""
    ) -> None:
        self._publish = publish
        self._workflow = workflow
        self._health = health
        self._background = Background()
        self._clusters: dict[ClusterPlace, Cluster] = {}
        self._leases: dict[tuple[ClusterPlace, str], InstanceLease] = {}
        self._warm: dict[tuple[ClusterPlace, str], WarmPods] = {}
        self._kept_warm: set[tuple[ClusterPlace, str]] = set()
        self._pods: dict[_Key, tuple[KubernetesTransport, MonitoredTransport]] = {}
        self._unswept: dict[str, set[RunId]] = {}
        # What a daemon's life leaves in a cluster is told by it from what an earlier one left.
        self._token = secrets.token_hex(8)

    def use(self, settings: Settings) -> None:
        """Keep as many warm pods as settings say; those of namespaces that are dropped end."""
        pods = self._labelled(settings)
        hosts = {
            place_of(host, settings): host for host in settings.worker.hosts if pods is not None
        }
        for (place, instance), warm in self._warm.items():
            if pods is None or place not in hosts or instance != pods.instance:
                warm.use(None)
        for place, host in hosts.items():
            assert pods is not None
            key = (place, pods.instance)
            if pods.warm or key in self._kept_warm:
                made, _ = self._made(host, settings)
                self._warm[key].use(pods, settings.remote_root, made.end_former)
            if pods.warm and key not in self._kept_warm:
                self._kept_warm.add(key)
                self._background.start(self._warm[key].run)

    def transport(self, host: str, settings: Settings) -> Transport:
        """Return a namespace's transport."""
        return self._made(host, settings)[1]

    def _made(
        self, host: str, settings: Settings
    ) -> tuple[KubernetesTransport, MonitoredTransport]:
        pods = self._labelled(settings)
        assert pods is not None
        place = place_of(host, settings)
        handshake = max(settings.agent.read_timeout, 5.0)
        key = (place, pods, settings.remote_root, handshake)
        if key not in self._pods:
            if place not in self._clusters:
                self._clusters[place] = Cluster(place)
            made = KubernetesTransport(
                self._clusters[place],
                pods,
                settings.remote_root,
                self._token,
                self._background,
                self._lease_of(place, pods.instance),
                Bounds(handshake=handshake, reattach=REATTACH),
                links=Links(
                    new_nonce=new_nonce,
                    lost=partial(self._link_lost, host),
                    restored=partial(self._link_restored, host),
                ),
                warm=self._warm_of(place, pods.instance),
                tell=partial(self._pod_found, host),
            )
            unswept = self._unswept.setdefault(host, set())
            self._pods[key] = made, MonitoredTransport(made, self._health(), unswept)
        return self._pods[key]

    def _labelled(self, settings: Settings) -> KubernetesSettings | None:
        """Return the settings of pods, which have the label of the workflow."""
        pods = settings.worker.kubernetes
        return None if pods is None else with_workflow(pods, self._workflow)

    def _pod_found(self, host: str, pod: FoundPod, seconds: float) -> None:
        assert pod.origin is not None
        self._publish(facts.PodReady(host=host, pod=pod.name, origin=pod.origin, seconds=seconds))

    def _warm_of(self, place: ClusterPlace, instance: str) -> WarmPods:
        if (place, instance) not in self._warm:
            objects = ApiObjects(self._clusters[place])
            tell = partial(self._warm_counted, place.host)
            self._warm[place, instance] = WarmPods(objects, instance, self._token, tell)
        return self._warm[place, instance]

    def _warm_counted(self, host: str, state: WarmState) -> None:
        self._publish(
            facts.WarmPodsCounted(
                host=host, ready=state.ready, wanted=state.wanted, error=state.error
            )
        )

    def _link_lost(self, host: str, run_id: str, error: HostError) -> None:
        self._publish(
            facts.HostLinkLost(host=host, run_id=RunId(run_id), error=str(error), seconds=REATTACH)
        )

    def _link_restored(self, host: str, run_id: str, seconds: float) -> None:
        self._publish(
            facts.HostLinkRestored(host=host, run_id=RunId(run_id), seconds=round(seconds, 1))
        )

    def _lease_of(self, place: ClusterPlace, instance: str) -> InstanceLease:
        if (place, instance) not in self._leases:
            holder = f"pid {os.getpid()} on {platform.node()}, life {self._token}"
            lease = InstanceLease(self._clusters[place], instance, holder, self._background)
            self._leases[place, instance] = lease
        return self._leases[place, instance]

    def isolation_sentences(self) -> tuple[str, ...]:
        """Return what ends the processes of runs in each namespace that is used."""
        words = dict.fromkeys((place.host for place in self._clusters), "")
        for (place, _), warm in self._warm.items():
            words[place.host] += _warm_words(warm.state)
        return tuple(
            f"host {host}: each issue has a pod, which ends all in it{warm}"
            for host, warm in words.items()
        )

    def hurry(self) -> None:
        """Give no process any more grace."""
        for made, _ in self._pods.values():
            made.hurry()

    async def aclose(self, until: float = math.inf) -> None:
        """Close all connections, within a few seconds, and by a time; pods of issues stay."""
        until = min(until, trio.current_time() + _CLOSE_BOUND)
        with trio.move_on_at(until) as limit:
            limit.shield = True
            await self._background.aclose()
            async with trio.open_nursery() as nursery:
                for warm in self._warm.values():
                    nursery.start_soon(_end_warm, warm)
            async with trio.open_nursery() as nursery:
                for lease in self._leases.values():
                    nursery.start_soon(lease.release)
            for cluster in self._clusters.values():
                await cluster.aclose()


async def _end_warm(warm: WarmPods) -> None:
    with suppress(HostError, LeaseLost):  # the next life ends them
        await warm.end()


def _warm_words(state: WarmState) -> str:
    if not state.wanted:
        return ""
    hindered = f": {state.error}" if state.error is not None else ""
    return f"; {state.ready} of {state.wanted} warm pods wait for an issue{hindered}"


def place_of(host: str, settings: Settings) -> ClusterPlace:
    """Return where the pods of a host are."""
    pods = settings.worker.kubernetes
    clusters = () if pods is None else pods.clusters
    named = next((one for one in clusters if one.name == host), None)
    return ClusterPlace(
        host=host,
        kubeconfig=settings.worker.kubeconfig,
        context=None if named is None else named.context,
        namespace=None if named is None else named.namespace,
    )
