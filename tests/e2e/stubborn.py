"""Agents that stay with a child in a session of its own, and what is left of them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import trio

from tests.e2e.place import PATIENCE, PROMPT, Json, Place
from tests.transports.leftovers import seen_from_here

ALIVE = Path(__file__).parent / "programs" / "alive.py"


STUBBORN = "hang=1 child=setsid ignore_sigterm=1"
"""What makes an agent, and a child of it in a session of its own, stay."""

SEARCHING = {"SORTIE_ISOLATION": "none"}
"""Has the daemon search for what is left: in a PID namespace nothing outlives it."""

STOP_STUBBORN = {"KIRO_SIM_HANG": "0", "KIRO_SIM_CHILD": "none"}


def stubborn_second_attempt(place: Place, **agent: object) -> None:
    """Have an issue whose first attempt fails and whose second one stays for ever."""
    place.write_workflow(
        PROMPT + f"\nsim: {{% if attempt == 0 %}}exit=1{{% else %}}{STUBBORN}{{% endif %}}\n",
        agent={
            "command": "sortie-kiro-sim",
            "max_turns": 1,
            "stop_grace_ms": 500,
            "max_retry_backoff_ms": 1,
        }
        | agent,
        hooks={
            "before_run": shlex.join(
                [sys.executable, str(ALIVE), str(place.agents_log), str(place.root / "alive")]
            )
        },
    )
    place.add_issue("A")


async def pids_of_a_stubborn_agent(place: Place) -> tuple[int, int]:
    """Return the pids, as seen from here, of an agent and its child, once both are there."""
    with trio.fail_after(PATIENCE):
        while not (children := place.agents("child")):
            await trio.sleep(0.02)
    child = children[-1]
    agent, its_child = (seen_from_here(child["run_id"], child[k]) for k in ("pid", "child_pid"))
    return agent, its_child


def gone(pids: Sequence[int]) -> bool:
    """Tell whether all processes are no more, or zombies that nobody buried."""
    alive = psutil.process_iter(["status"])
    return not any(p.pid in pids and p.info["status"] != psutil.STATUS_ZOMBIE for p in alive)


def found_alive_before_each_run(place: Place) -> list[list[int]]:
    """Return which agents and children the hook before each run found alive."""
    return [json.loads(line) for line in (place.root / "alive").read_text().splitlines()]


def in_short(rows: list[Json]) -> list[tuple[int, str]]:
    """Return each run's attempt and status."""
    return [(row["attempt"], row["status"]) for row in rows]
