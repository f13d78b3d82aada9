"""What the worker of a run tells the scheduler."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from sortie.model import (
    Activity,
    Delivery,
    Issue,
    KnownWorkspace,
    ProcessIdentity,
    RunId,
    RunReport,
    Spending,
)


class IssueMoved(Struct, frozen=True):
    """A run's worker moved its issue, or read it anew; ``by_us`` tells which."""

    run_id: RunId
    issue: Issue
    by_us: bool = False


class WorkspaceMade(Struct, frozen=True):
    """A run's worker has its directory; ``new`` tells that nothing has run in it yet."""

    run_id: RunId
    workspace: KnownWorkspace
    new: bool = False


class TurnStarted(Struct, frozen=True):
    """A run's worker is about to launch its agent for turn ``turn``, counted from 1."""

    run_id: RunId
    turn: int


class ProcessLaunched(Struct, frozen=True):
    """A run's agent has a root process."""

    run_id: RunId
    process: ProcessIdentity


class AgentSessionKnown(Struct, frozen=True):
    """The id of the session of a run's agent, of this kind, is known."""

    run_id: RunId
    agent: str
    session_id: str


class ContainerMade(Struct, frozen=True):
    """A run has a container, of this image; ``digest`` is the image's, with its algorithm."""

    run_id: RunId
    image: str
    digest: str


class AgentCommented(Struct, frozen=True):
    """A run's agent wants a comment on its issue, its ``number``-th in the run."""

    run_id: RunId
    number: int
    text: str


class SpendingReported(Struct, frozen=True):
    """A run's agent has used ``spent`` since the run began."""

    run_id: RunId
    spent: Spending


class AgentActed(Struct, frozen=True):
    """What is known now of what a run's agent has done since the run began."""

    run_id: RunId
    activity: Activity


class DeliveryStepTaken(Struct, frozen=True):
    """The work of a run has come a step further; ``diff`` is what it changes, if that is new."""

    run_id: RunId
    delivery: Delivery
    diff: str | None = None


class UsageLimitMet(Struct, frozen=True):
    """A run has met the usage limit of its account, which ends at ``resets_at``, in ``seconds``;
    both are None where the end is unknown. Its WorkerExited follows."""

    run_id: RunId
    account: str
    message: str
    resets_at: datetime | None = None
    seconds: float | None = None


class WorkerExited(Struct, frozen=True):
    """A worker is gone: its processes are gone and its hooks have run."""

    run_id: RunId
    report: RunReport
