"""Why a pod cannot be used any more, or not now, in which something was running."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import trio

from sortie.model import HostError, TransportError
from sortie.transports.kubernetes.objects import PODS, ApiObjects, node_of
from sortie.transports.kubernetes.standing import PodState, standing_of
from sortie.transports.remote.launch import HostGone

_ANSWER_BOUND = 4.0  # seconds


class PodUnreached(HostGone):
    """Nothing can be run in a pod now, as its node does not answer; pods of other nodes do.

    Unlike another HostGone it says nothing of what runs there.
    """


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


async def node_in_the_way(
    objects: ApiObjects,
    name: str,
    uid: str,
    others_answer: Callable[[str], Awaitable[bool]],
    *,
    was_lost: bool,
) -> HostGone | None:
    """Return the error for a pod that counts as running where its node alone is in the way, and
    None where that is not known.

    The cluster may say that the node is away. A node that the API server cannot reach counts as
    ready all the same: there ``others_answer`` is asked whether a pod of another node than that
    answers. A pod whose node is away is deleted, and so is one in which a program ``was_lost``. It
    goes when its node is back, and its workspace is not used before that. Raises HostError.
    """
    pod = await objects.get(PODS, name)
    if pod is None or pod["metadata"]["uid"] != uid:
        return None
    node, is_away = node_of(pod), standing_of(pod).node_lost
    if not is_away and not await others_answer(node):
        return None
    if is_away or was_lost:
        await objects.delete_pod(pod)
    on_host = f"(on host {objects.host})"
    if is_away:
        return HostGone(f"pod {name} could not be reached, as its node ({node}) is away {on_host}")
    error = HostGone if was_lost else PodUnreached
    return error(
        f"pod {name} could not be reached, though pods of other nodes are; look whether the API"
        f" server can reach the kubelet of its node ({node}) {on_host}"
    )


async def any_answers(trials: Mapping[str, Callable[[float], Awaitable[None]]]) -> bool:
    """Tell whether one of some nodes answers, each of which is tried in a pod of it."""
    answered = False

    async def ask(trial: Callable[[float], Awaitable[None]]) -> None:
        nonlocal answered
        try:
            await trial(_ANSWER_BOUND)
        except TransportError:
            return
        answered = True
        nursery.cancel_scope.cancel()

    with trio.move_on_after(2 * _ANSWER_BOUND):
        async with trio.open_nursery() as nursery:
            for trial in trials.values():
                nursery.start_soon(ask, trial)
    return answered
