"""How a pod stands, in words, by what the API server tells of it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any

from msgspec import Struct

# Reasons for which no container of a pod begins until a person changes something.
_HOPELESS = frozenset(
    {
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ErrInvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)
_UNSCHEDULABLE = "Unschedulable"


class PodState(Enum):
    """Where a pod stands in its life."""

    WAITING = auto()
    READY = auto()
    LEAVING = auto()  # its end has begun
    OVER = auto()


class PodStanding(Struct, frozen=True, kw_only=True):
    """How a pod stands; ``reason`` is why it does not run, "" where nothing was told.

    ``hopeless``: waiting does not help. ``unschedulable``: no node takes it now. ``node_lost``: it
    counts as running, and the cluster hears nothing of its node.
    """

    state: PodState
    reason: str = ""
    hopeless: bool = False
    unschedulable: bool = False
    node_lost: bool = False


def standing_of(pod: Mapping[str, Any]) -> PodStanding:
    """Return how a pod stands."""
    status = pod.get("status") or {}
    reason = "; ".join(_reasons(status))
    if status.get("phase") in ("Failed", "Succeeded"):
        return PodStanding(state=PodState.OVER, reason=reason or "its container has ended")
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return PodStanding(state=PodState.LEAVING, reason=reason or "it is being deleted")
    containers = status.get("containerStatuses") or ()
    if status.get("phase") == "Running" and all(_is_running(one) for one in containers):
        return PodStanding(state=PodState.READY, node_lost=_lost_its_node(status))
    hopeless = any(_waiting(one).get("reason") in _HOPELESS for one in containers)
    unschedulable = any(
        one.get("type") == "PodScheduled" and one.get("reason") == _UNSCHEDULABLE
        for one in status.get("conditions") or ()
    )
    return PodStanding(
        state=PodState.WAITING, reason=reason, hopeless=hopeless, unschedulable=unschedulable
    )


def _lost_its_node(status: Mapping[str, Any]) -> bool:
    """Tell whether the controller of nodes has marked a pod as not ready.

    It gives no reason there, as kubelets do.
    """
    return any(
        one.get("type") == "Ready" and one.get("status") == "False" and not one.get("reason")
        for one in status.get("conditions") or ()
    )


def _reasons(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is told of why a pod does not run, the nearest first."""
    if status.get("reason"):
        yield _words(status)
    for condition in status.get("conditions") or ():
        kind, holds = condition.get("type"), condition.get("status")
        if kind == "DisruptionTarget" and holds == "True":
            yield _words(condition)
        if kind == "PodScheduled" and holds == "False":
            yield _words(condition)
    for container in status.get("containerStatuses") or ():
        waiting = _waiting(container)
        if waiting.get("reason") and waiting["reason"] != "ContainerCreating":
            yield _words(waiting)
        ended = (container.get("state") or {}).get("terminated")
        if ended:
            code = f"its container ended with {ended.get('exitCode')}"
            yield f"{_words(ended)} ({code})" if ended.get("reason") else code


def _is_running(container: Mapping[str, Any]) -> bool:
    return "running" in (container.get("state") or {})


def _waiting(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return (container.get("state") or {}).get("waiting") or {}


def _words(told: Mapping[str, Any]) -> str:
    reason, message = str(told.get("reason") or ""), str(told.get("message") or "").strip()
    return f"{reason}: {message}" if reason and message else reason or message
