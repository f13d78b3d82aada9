"""What every block of WORKFLOW.md with known keys has."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Block(BaseModel):
    """A mapping of WORKFLOW.md with known keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
