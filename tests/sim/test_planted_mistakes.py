"""A simulation that finds nothing proves nothing: mistakes are planted, and the days find each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sortie.scheduler import answers, commands, core, dispatch, exits, gates, reconcile, run_start
from sortie.scheduler.budgets import Ledger
from sortie.scheduler.gates import ROOM
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.workspace_index import WorkspaceIndex
from sortie.store import database
from sortie.store.sqlite_database import SqliteDatabase
from tests.sim.days import live_through
from tests.sim.system.run import Plan
from tests.sim.system.run import live_through as live_through_system

SEEDS = 80
Plant = Callable[[pytest.MonkeyPatch], None]


def _without_gate(name: str) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(dispatch, "ROOM", tuple(gate for gate in ROOM if gate[0] != name))

    return plant


def _instead(owner: object, name: str, other: Callable[..., object]) -> Plant:
    return lambda patch: patch.setattr(owner, name, other)


def _statement(name: str, text: str) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(database.queries(), name, text)

    return plant


NO_ROW = "SELECT :account, :message, :at, :delay, :resets_at, :times;"
SCHEDULER: dict[str, Plant] = {
    "a limit is ignored": _without_gate("slot"),
    "a limit by state is ignored": _without_gate("state slot"),
    "a pause is ignored": _without_gate("dispatch"),
    "the budget of a day is ignored": _without_gate("daily budget"),
    "a usage limit is ignored": _without_gate("usage limit"),
    "a usage limit is forgotten": _statement("replace_limit", NO_ROW),
    "a usage limit costs an attempt": _instead(exits, "is_usage_limit", lambda *_: False),
    "a resting host gets runs": _instead(gates, "_host_closed", lambda *_: None),
    "the queue has no order": _instead(dispatch, "order_key", lambda *_: (0, 0.0, ((), ""))),
    "a failure is not counted": _instead(exits, "after_failure", lambda streak: streak),
    "a retry does not wait": _instead(exits, "backoff", lambda *_: 0.0),
    "a tracker gets no rest": _instead(SchedulerState, "pause_tracker", lambda *_: None),
    "a deadline is not told": _instead(core, "confirm_missing_at", lambda *_: -math.inf),
    "a shutdown stops nobody": _instead(SchedulerState, "stop", lambda *_: None),
    "a choice is not put back": _instead(commands, "put_back", lambda *_: None),
    "a directory is not remembered": _instead(WorkspaceIndex, "keep", lambda *_, **__: None),
    "a limit of tokens is ignored": _instead(SchedulerState, "used_up", lambda *_: None),
    "a record of spending is forgotten": _instead(Ledger, "end", lambda *_: iter(())),
    "a budget never begins anew": _statement("delete_spent", "SELECT :issue_id;"),
    "an answer is forgotten": _statement("update_question", "SELECT :issue_id, :asked;"),
    "a question goes on after its answer": _instead(answers, "note", lambda *_: None),
    "a default waits for nothing": _instead(
        answers, "_delay", lambda question, _: question.default and 0.0
    ),
    "an answer is not taken to the agent": _instead(run_start, "answer_for_run", lambda *_: None),
    "a row stays that is forgotten": _statement("delete_retry", "SELECT :issue_id;"),
    "a row forgets its words": _statement(
        "rebase_hold", "UPDATE holds SET issue = :issue WHERE issue_id = :issue_id;"
    ),
}


@contextmanager
def _leaking(database: SqliteDatabase) -> Iterator[None]:
    """Write what was done before an error as well."""
    database._connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database._connection.execute("COMMIT")


SYSTEM: dict[str, Plant] = {
    "a failed commit leaves rows": _instead(SqliteDatabase, "transaction", _leaking),
    "any read ends a hold": _instead(reconcile, "hold_ended_by", lambda *_: "it was read"),
    "a failure is not counted": SCHEDULER["a failure is not counted"],
    "a limit is ignored": SCHEDULER["a limit is ignored"],
}


pytestmark = pytest.mark.full  # it tries the simulation, which alone can change what it says


@pytest.mark.parametrize("plant", SCHEDULER.values(), ids=SCHEDULER.keys())
def test_the_days_of_the_scheduler_find_a_mistake(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some day of a few breaks a promise because of it."""
    plant(monkeypatch)

    with pytest.raises((AssertionError, KeyError)):
        for seed in range(SEEDS):
            live_through(seed)


@pytest.mark.parametrize("plant", SYSTEM.values(), ids=SYSTEM.keys())
def test_the_days_of_the_system_find_a_mistake(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A witness of some day of a few tells of a broken promise."""
    plant(monkeypatch)

    wrongs = (live_through_system(Plan(seed)).trace.wrongs for seed in range(SEEDS))

    assert any(wrongs)
