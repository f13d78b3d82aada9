"""The ids of a run's trace; pure.

They follow from the run's id, so that all who know it agree on them without being told: the worker
that hands them to agents and hooks, the sink that makes spans, the log, and the next daemon, which
ends the trace of a run that was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from sortie.model.runs import RunId

RUN = "run"
"""The part of a trace that is the run as a whole: its root."""

SESSION = "session"
"""The part in which the agent is started."""


def turn_part(number: int) -> str:
    """Return the part that is a turn; ``number`` counts all turns of a run, those of a reviewer
    too, from 1."""
    return f"turn/{number}"


def hook_part(name: str) -> str:
    """Return the part that is a hook."""
    return f"hook/{name}"


def trace_id_of(run_id: RunId) -> int:
    """Return the id of a run's trace: 128 bits, never 0."""
    return int.from_bytes(sha256(f"trace/{run_id}".encode()).digest()[:16]) or 1


def span_id_of(run_id: RunId, part: str) -> int:
    """Return the id of a part of a run's trace: 64 bits, never 0."""
    return int.from_bytes(sha256(f"{part}/{run_id}".encode()).digest()[:8]) or 1


def is_sampled(trace_id: int, share: float) -> bool:
    """Tell whether a trace is among the ``share`` of all that are kept.

    As OpenTelemetry's ``traceidratio`` decides: by the last 64 bits of the id.
    """
    return trace_id & (1 << 64) - 1 < round(share * (1 << 64))


class RunTrace:
    """Where a run stands in its trace, for the programs that it starts.

    ``share`` is that of the traces that are kept; of others only the ids are handed on. So many
    ``turns`` were begun before, in another daemon.
    """

    def __init__(self, run_id: RunId, share: float, turns: int = 0) -> None:
        self._run_id = run_id
        self._trace_id = trace_id_of(run_id)
        self._flags = "01" if is_sampled(self._trace_id, share) else "00"
        self._turns = turns

    def begin_turn(self) -> None:
        """Count a turn, of whichever agent."""
        self._turns += 1

    def parent(self, part: str) -> str:
        """Return a part as a ``traceparent`` of W3C Trace Context."""
        return f"00-{self._trace_id:032x}-{span_id_of(self._run_id, part):016x}-{self._flags}"

    def turn(self) -> str:
        """Return the turn that was begun last, before the first one the session."""
        return self.parent(turn_part(self._turns) if self._turns else SESSION)

    def variables(self, env: Mapping[str, str], part: str) -> dict[str, str]:
        """Return the environment of a program of a part; what an outer trace has left there goes.

        There is no ``TRACESTATE``: Sortie has none of its own.
        """
        kept = {name: value for name, value in env.items() if name != "TRACESTATE"}
        return kept | {"TRACEPARENT": self.parent(part)}
