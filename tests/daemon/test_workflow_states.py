"""How a process of several workflows is, whose workflows other daemons may lead."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from sortie.daemon.options import RunOptions
from sortie.daemon.several.shared_slots import SharedSlots
from sortie.daemon.several.workflow_states import WorkflowStates


@dataclass
class Stood:
    """A candidacy as far as it is shown."""

    leader: str | None
    error: str | None = None


@dataclass
class Supervised:
    """A supervisor as far as it is shown."""

    name: str
    status: str
    candidacy: Stood | None = None
    errors: tuple[str, ...] = ()
    member: None = None
    options: RunOptions = field(
        default_factory=lambda: RunOptions(workflow=Path("WORKFLOW.md"), environ={}, env_file=None)
    )


class Slots:
    """Those of the process."""

    total, used = 5, 0


def states(*supervised: Supervised) -> WorkflowStates:
    return WorkflowStates(
        cast(Any, supervised), cast(SharedSlots, Slots()), {each.name: set() for each in supervised}
    )


FAR = Supervised("far", "standby", Stood("vm:1"))
UNLED = Supervised("unled", "standby", Stood(None))
CUT_OFF = Supervised("cut", "standby", Stood("vm:1", "no server"))
BROKEN = Supervised("broken", "broken", errors=("bad",))
BEGINS = Supervised("begins", "starting")


@pytest.mark.parametrize(
    ("supervised", "ready", "standby", "said"),
    [
        ((FAR,), True, True, "far: vm:1 leads the workflow"),
        ((UNLED,), True, True, "unled: no daemon leads the workflow"),
        ((CUT_OFF,), False, True, "cut: no server"),
        ((FAR, BROKEN), True, True, "broken is broken: bad"),
        ((FAR, BEGINS), False, True, "begins: it is starting"),
        ((BROKEN,), False, False, "no workflow works"),
    ],
)
def test_a_process_that_stands_by_is_ready(
    supervised: tuple[Supervised, ...], ready: bool, standby: bool, said: str
) -> None:
    """Unless it cannot reach the database: then it could neither answer nor take anything over."""
    health = states(*supervised).health()

    assert (health.ready, health.standby) == (ready, standby)
    assert said in (*health.reasons, *health.details)


def test_a_workflow_is_shown_with_its_leader() -> None:
    """One that another daemon leads, and why it cannot be asked."""
    found = states(FAR, CUT_OFF, BROKEN).state().workflows

    assert [(each.name, each.status, each.leader, each.ready) for each in found] == [
        ("far", "standby", "vm:1", True),
        ("cut", "standby", "vm:1", False),
        ("broken", "broken", None, False),
    ]
    assert found[1].reasons == ("no server",)
