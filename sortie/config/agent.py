"""The block of WORKFLOW.md about the agent."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    Field,
)

from sortie.config.block import Block
from sortie.config.values import (
    Command,
    Frozen,
    Limits,
    Line,
    amount,
    milliseconds,
    whole,
)


class AgentSettings(Block):
    """Which agent works, how many at once and for how long.

    ``max_sessions``, ``max_tokens``, ``max_credits`` and ``max_cost_usd`` are for one issue over
    all its runs, and 0 is no limit. ``max_hops`` is how many stages may follow each other without a
    person. ``stall_timeout`` 0 or less is no limit.
    """

    kind: Line = "kiro"
    command: Command = None
    max_turns: Annotated[int, whole(1)] = 5
    max_sessions: Annotated[int, whole(0)] = 0
    max_hops: Annotated[int, whole(1, 1000)] = 10
    max_tokens: Annotated[int, whole(0)] = 0
    max_credits: Annotated[float, amount()] = 0.0
    max_cost_usd: Annotated[float, amount()] = 0.0
    max_concurrent_agents: Annotated[int, whole(1)] = 10
    max_concurrent_agents_by_state: Limits = Frozen()
    turn_timeout: Annotated[float, milliseconds(1)] = Field(3600.0, alias="turn_timeout_ms")
    read_timeout: Annotated[float, milliseconds(1)] = Field(5.0, alias="read_timeout_ms")
    stall_timeout: Annotated[float, milliseconds()] = Field(300.0, alias="stall_timeout_ms")
    stop_grace: Annotated[float, milliseconds(0, 20_000)] = Field(5.0, alias="stop_grace_ms")
    inactive_grace: Annotated[float, milliseconds(0)] = Field(30.0, alias="inactive_grace_ms")
    max_retry_backoff: Annotated[float, milliseconds(1)] = Field(
        300.0, alias="max_retry_backoff_ms"
    )
    status_instructions: bool = True
