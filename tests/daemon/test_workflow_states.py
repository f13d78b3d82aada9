"""How a process of several workflows is, whose workflows other daemons may lead."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.options import RunOptions
from sortie.daemon.several.shared_slots import SharedSlots
from sortie.daemon.several.workflow_states import WorkflowStates
from sortie.store.leases import LeaseStanding


def stood(leader: str | None, error: str | None = None) -> Candidacy:
    """Return how a process stands for a workflow that it does not lead."""
    candidacy = Candidacy("w", 15.0)
    daemon = None if leader is None else "one"
    candidacy.see(
        LeaseStanding(workflow="w", token=7, daemon=daemon, name=leader, left=9.0, candidates={})
    )
    candidacy.error = error
    return candidacy


@dataclass
class Supervised:
    """A supervisor as far as it is shown."""

    name: str
    status: str
    candidacy: Candidacy | None = None
    errors: tuple[str, ...] = ()
    member: None = None
    options: RunOptions = field(
        default_factory=lambda: RunOptions(workflow=Path("WORKFLOW.md"), environ={}, env_file=None)
    )


class Slots:
    """Those of the process."""

    total, used = 5, 0


def states(*names: str) -> WorkflowStates:
    """Return what tells of a process of these workflows."""
    every = [supervised(name) for name in names]
    return WorkflowStates(cast(Any, every), cast(SharedSlots, Slots()), {n: set() for n in names})


def supervised(name: str) -> Supervised:
    """Return a workflow by what befalls it."""
    match name:
        case "far":
            return Supervised(name, "standby", stood("vm:1"))
        case "unled":
            return Supervised(name, "standby", stood(None))
        case "cut":
            return Supervised(name, "standby", stood("vm:1", "no server"))
        case "broken":
            return Supervised(name, "broken", errors=("bad",))
        case _:
            return Supervised(name, "starting")


@pytest.mark.parametrize(
    ("names", "ready", "standby", "said"),
    [
        (("far",), True, True, "far: vm:1 leads the workflow"),
        (("unled",), True, True, "unled: no daemon leads the workflow"),
        (("cut",), False, True, "cut: no server"),
        (("far", "broken"), True, True, "broken is broken: bad"),
        (("far", "begins"), False, True, "begins: it is starting"),
        (("broken",), False, False, "no workflow works"),
    ],
)
async def test_a_process_that_stands_by_is_ready(
    names: tuple[str, ...], ready: bool, standby: bool, said: str
) -> None:
    """Unless it cannot reach the database: then it could neither answer nor take anything over."""
    health = states(*names).health()

    assert (health.ready, health.standby) == (ready, standby)
    assert said in (*health.reasons, *health.details)


async def test_a_workflow_is_shown_with_its_leader() -> None:
    """One that another daemon leads, and why it cannot be asked."""
    found = states("far", "cut", "broken").state().workflows

    led = [None if each.lease is None else each.lease.leader for each in found]
    assert [
        (each.name, each.status, by, each.ready) for each, by in zip(found, led, strict=True)
    ] == [
        ("far", "standby", "vm:1", True),
        ("cut", "standby", "vm:1", False),
        ("broken", "broken", None, False),
    ]
    assert found[1].reasons == ("no server",)
