"""A turn under way, as it is recorded so that another daemon can go on with it."""

from __future__ import annotations

from msgspec import Struct

from sortie.model.activity import UNKNOWN, Activity
from sortie.model.deliveries import Delivery
from sortie.model.issues import Issue
from sortie.model.spending import NOTHING, Spending


class DeliveryUnderWay(Struct, frozen=True, kw_only=True):
    """What is known of a run's delivery when a turn begins. ``recorded`` tells that it is on
    record, ``behind`` and ``unmerged`` how the branch stood when it was checked out; ``rounds`` and
    ``review_rounds`` are as in the worker, and ``sent_back_with`` is the commit with which a
    reviewer sent the agent back last."""

    delivery: Delivery
    recorded: bool
    behind: int
    unmerged: int
    rounds: int = 0
    review_rounds: int = 0
    sent_back_with: str | None = None


class TurnUnderWay(Struct, frozen=True, kw_only=True):
    """A turn whose agent is one program that outlives its daemon, as all stood before it started.

    ``program`` names it to its transport, and ``memo`` is what the agent's adapter needs to read
    its output anew. ``daemon`` is the one that started it, as HOST:PID; ``agent`` is the adapter's
    kind, and ``command`` what the settings had. ``mends``: the agent was sent back to its work.
    ``spent``, ``activity`` and ``answer`` are those of the run's turns before, ``head`` is the
    commit in the workspace when the run began, ``head_error`` why that is not known.
    """

    number: int
    issue: Issue
    daemon: str
    agent: str
    command: str
    mends: bool = False
    spent: Spending = NOTHING
    activity: Activity = UNKNOWN
    answer: str | None = None
    head: str | None = None
    head_error: str | None = None
    delivery: DeliveryUnderWay | None = None
    program: str = ""
    memo: str = ""
