"""The transports of namespaces in which runs have pods, one for each from its first use on."""

from __future__ import annotations

import math
import os
import platform
import secrets
from collections.abc import Callable
from functools import partial

import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.config.settings import Settings
from sortie.model import HostError, RunId
from sortie.telemetry import Publish, facts
from sortie.transports import Transport
from sortie.transports.host_health import HostHealth, MonitoredTransport
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster, ClusterPlace
from sortie.transports.kubernetes.instance_lease import InstanceLease
from sortie.transports.kubernetes.transport import REATTACH, KubernetesTransport
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.supervised_process import Links
from sortie.transports.remote.transport import new_nonce

_CLOSE_BOUND = 5.0  # seconds

_Key = tuple[ClusterPlace, KubernetesSettings, str, float]


class PodTransports:
    """Gives the transports of namespaces by their names; to be closed.

    Other settings make new transports, and runs under way keep theirs; pods are the same for all.
    """

    def __init__(self, publish: Publish, health: Callable[[], HostHealth]) -> None:
        self._publish = publish
        self._health = health
        self._background = Background()
        self._clusters: dict[ClusterPlace, Cluster] = {}
        self._leases: dict[tuple[ClusterPlace, str], InstanceLease] = {}
        self._pods: dict[_Key, tuple[KubernetesTransport, MonitoredTransport]] = {}
        self._unswept: dict[str, set[RunId]] = {}
        # What a daemon's life leaves in a cluster is told by it from what an earlier one left.
        self._token = secrets.token_hex(8)

    def transport(self, host: str, settings: Settings) -> Transport:
        """Return a namespace's transport."""
        pods = settings.worker.kubernetes
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
            )
            unswept = self._unswept.setdefault(host, set())
            self._pods[key] = made, MonitoredTransport(made, self._health(), unswept)
        return self._pods[key][1]

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
        hosts = dict.fromkeys(place.host for place in self._clusters)
        return tuple(f"host {host}: each issue has a pod, which ends all in it" for host in hosts)

    def hurry(self) -> None:
        """Give no process any more grace."""
        for made, _ in self._pods.values():
            made.hurry()

    async def aclose(self, until: float = math.inf) -> None:
        """Close all connections, within a few seconds, and by a time; pods stay."""
        until = min(until, trio.current_time() + _CLOSE_BOUND)
        with trio.move_on_at(until) as limit:
            limit.shield = True
            await self._background.aclose()
            async with trio.open_nursery() as nursery:
                for lease in self._leases.values():
                    nursery.start_soon(lease.release)
            for cluster in self._clusters.values():
                await cluster.aclose()


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
