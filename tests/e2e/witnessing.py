"""A workflow whose hooks and agents note what must never be, and what they noted."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.place import PROMPT, Json, Place

WITNESS = Path(__file__).parent / "programs" / "witness.py"
HOOKS = ("after_create", "before_run", "after_run", "before_remove")


def let_witness(
    place: Place,
    agent: Mapping[str, object],
    *,
    slots: int,
    seconds: float,
    **blocks: Mapping[str, object] | str,
) -> None:
    """Write a workflow with a witness as every hook, which takes ``seconds``, and as the agent."""
    program = [sys.executable, str(WITNESS), str(place.root), str(slots)]
    place.write_workflow(
        PROMPT,
        **{
            "agent": {
                "command": [*program, "agent"],
                "max_turns": 1,
                "max_concurrent_agents": slots,
                **agent,
            },
            "hooks": {name: f"exec {shlex.join([*program, name, str(seconds)])}" for name in HOOKS},
            **blocks,
        },
    )


def witnessed(place: Place, event: str) -> list[Json]:
    """Return what hooks and agents noted: ``start``, ``turn`` or ``trouble``, oldest first."""
    path = place.root / "witness.jsonl"
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    return [line for line in lines if line["event"] == event]
