"""The ``self_review`` block: a second session judges the work before it is pushed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sortie.config.block import Block
from sortie.config.values import Line, Script, milliseconds, whole


class SelfReviewSettings(Block):
    """Who judges the work of a run before it is pushed, and how often the agent mends it.

    ``agent`` is a kind, None for the one of the run. ``prompt`` is a template. ``timeout`` is for a
    whole review.
    """

    agent: Line | None = None
    model: Line | None = None
    rounds: Annotated[int, whole(0, 10)] = 2
    prompt: Script | None = None
    timeout: Annotated[float, milliseconds(1)] = Field(900.0, alias="timeout_ms")
    max_diff_bytes: Annotated[int, whole(1000, 2_000_000)] = 200_000
