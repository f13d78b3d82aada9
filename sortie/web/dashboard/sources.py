"""What pages are made from, besides what ``Controls`` tell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sortie.web.dashboard.activity import ActivityView
from sortie.web.health import Health
from sortie.web.redaction import NOTHING_SECRET, Redaction
from sortie.web.state import StateView


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidLine:
    """A line of a run's transcript."""

    number: int
    at: datetime
    turn: int | None
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSources:
    """Where pages come from; ``state``, ``overview``, ``health`` and ``activity`` return at once.

    ``state`` has all that is queued and blocked, ``overview`` as much as the overview shows.
    ``said`` reads the last lines of a run's transcript, and gives a sentence where there are none.
    """

    state: Callable[[], StateView]
    overview: Callable[[], StateView]
    health: Callable[[], Health]
    activity: Callable[[], ActivityView]
    said: Callable[[str], Awaitable[Sequence[SaidLine] | str]]
    redaction: Redaction = NOTHING_SECRET
