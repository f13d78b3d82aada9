"""What is told and recorded of runs that another daemon can go on with."""

from __future__ import annotations

from msgspec import Struct

from sortie.model import RunId
from sortie.model.turns_under_way import TurnUnderWay


class TurnUnderWayKnown(Struct, frozen=True):
    """Another daemon can go on with the turn of a run from now on, which is about to launch its
    agent; None: it cannot any more, as the agent has ended."""

    run_id: RunId
    turn: TurnUnderWay | None


class RunLetGo(Struct, frozen=True):
    """A run's worker has let the run go, with which another daemon goes on."""

    run_id: RunId


class RecordTurnUnderWay(Struct, frozen=True, kw_only=True):
    """The agent of a run's turn is about to start in a way that lets another daemon go on with it;
    None: it is over."""

    run_id: RunId
    turn: TurnUnderWay | None


class RecordTakeOver(Struct, frozen=True, kw_only=True):
    """A run was taken over in a turn from the daemon that had begun that."""

    run_id: RunId
    daemon: str
    turn: int
