"""Why a pod cannot be used any more in which something was running."""

from __future__ import annotations

from sortie.model import HostError
from sortie.transports.kubernetes.objects import PODS, ApiObjects, node_of
from sortie.transports.kubernetes.standing import PodState, standing_of


async def why_gone(objects: ApiObjects, name: str, uid: str) -> str:
    """Return why a pod does not run any more, "" where nothing tells."""
    try:
        pod = await objects.get(PODS, name)
    except HostError:
        return ""
    if pod is None or pod["metadata"]["uid"] != uid:
        return f"pod {name} was deleted"
    standing = standing_of(pod)
    if standing.state is PodState.READY:
        return ""
    return f"pod {name} has ended: {standing.reason}"


async def end_on_lost_node(objects: ApiObjects, name: str, uid: str) -> str:
    """Delete a pod that counts as running while its node is away; return what was in the way, ""
    where nothing was.

    The pod goes when its node is back, and its workspace is not used before that. Raises HostError.
    """
    pod = await objects.get(PODS, name)
    if pod is None or pod["metadata"]["uid"] != uid or not standing_of(pod).node_lost:
        return ""
    await objects.delete_pod(pod)
    return f"pod {name} could not be reached, as its node ({node_of(pod)}) is away"
