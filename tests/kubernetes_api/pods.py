"""Transports to pods of a cluster of the tests."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from sortie.config.kubernetes import KubernetesSettings
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster, ClusterPlace
from sortie.transports.kubernetes.instance_lease import InstanceLease
from sortie.transports.kubernetes.objects import ApiObjects
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.transports.kubernetes.warm_pods import WarmPods, WarmState
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.supervisor_scripts import KEPT
from tests.kubernetes_api.api_server import ApiServer
from tests.kubernetes_api.real_cluster import RealApi, namespace_of
from tests.kubernetes_api.server import Api, cluster_running

HOST = "cluster"


@asynccontextmanager
async def pods_of(
    api: Api | RealApi,
    directory: Path,
    root: Path,
    *,
    token: str | None = None,
    bounds: Bounds | None = None,
    kept: int = KEPT,
    told: list[WarmState] | None = None,
    **given: Any,
) -> AsyncIterator[KubernetesTransport]:
    """Have a transport of a daemon to a cluster, whose settings for pods are ``given``.

    ``told`` is given each state of its warm pods.
    """
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(api.kubeconfig(), encoding="utf-8")
    pods = KubernetesSettings.model_validate({"image": "agent:1", "root": str(root), **given})
    cluster, background = Cluster(ClusterPlace(host=HOST, kubeconfig=str(kubeconfig))), Background()
    token = token or secrets.token_hex(8)
    lease = InstanceLease(cluster, pods.instance, token, background)
    note = (lambda _: None) if told is None else told.append
    warm = WarmPods(ApiObjects(cluster), pods.instance, token, note)
    transport = KubernetesTransport(
        cluster,
        pods,
        str(root),
        token,
        background,
        lease,
        bounds or Bounds(reattach=30.0),
        kept,
        warm=warm,
    )
    if pods.warm:
        warm.use(pods, str(root), transport.end_former)
        background.start(warm.run)
    try:
        yield transport
    finally:
        await background.aclose()
        await warm.end()
        await lease.release()
        await cluster.aclose()


@asynccontextmanager
async def pod_holding(
    directory: Path, *, kept: int, server: ApiServer | None = None, sandboxes: bool = False
) -> AsyncIterator[KubernetesTransport]:
    """Have a cluster, real where there is a ``server``, with a pod that has a directory of ours;
    with ``sandboxes`` it is a Sandbox's."""
    root = directory.parent
    config = root / f"{directory.name}-kubeconfig"
    config.mkdir()
    use = "always" if sandboxes else "never"
    async with AsyncExitStack() as stack:
        making = cluster_running() if server is None else namespace_of(server)
        api: Api | RealApi = await stack.enter_async_context(making)
        if sandboxes:
            api.have_sandboxes()
        opening = pods_of(api, config, root, kept=kept, sandboxes=use)
        transport = await stack.enter_async_context(opening)
        await transport.pod(directory.name, make=True)
        yield transport
