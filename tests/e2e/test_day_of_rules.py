"""A day of three workflows with five rules each in one process, which is killed on the way."""

from __future__ import annotations

import random
import signal
from collections import Counter

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.e2e.test_several import Several, most_at_once

RULES = """\
---
tracker: {kind: file, active_states: [Todo], terminal_states: [Done], handoff_state: Review}
file: {path: issues}
workspace: {root: workspaces}
polling: {interval_ms: 200}
agent: {command: sortie-kiro-sim, max_turns: 1, stop_grace_ms: 500}
kiro: {trust_all_tools: true}
share: {guaranteed: 1}
rules:
  - name: docs
    when: {labels: docs}
    prompt: docs
    max_concurrent_agents: 1
    tracker: {handoff_state: Proofread}
  - {name: urgent, when: {priority: {lte: 1}}, guaranteed: 1}
  - {name: bugs, when: {issue_type: Bug}, tracker: {handoff_state: Check}}
  - {name: named, when: {identifier: "X-*"}, max_concurrent_agents: 1, burst_to: 3}
  - {name: check, tracker: {active_states: [Check], handoff_state: Review}}
---
Do {{ issue.identifier }}
--- prompt: docs
Write about {{ issue.identifier }}
"""
FIELDS: dict[str, dict[str, object]] = {
    "docs": {"labels": ["docs"]},
    "urgent": {"priority": 1},
    "bugs": {"issue_type": "Bug"},
    "named": {},
    "": {"priority": 3},
}
SLOTS = 5


def filled(several: Several, count: int) -> dict[tuple[str, str], list[str]]:
    """Give the workflows so many issues; return the rules by which each is to run, in order."""
    dice, expected = random.Random(7), dict[tuple[str, str], list[str]]()
    for number in range(count):
        name = list(several.one)[number % 3]
        rule = dice.choice(list(FIELDS))
        identifier = f"{'X' if rule == 'named' else 'A'}-{number}"
        several.one[name].add_issue(identifier, "", **FIELDS[rule])
        expected[name, identifier] = [rule, "check"] if rule == "bugs" else [rule]
    return expected


async def all_over(several: Several, expected: dict[tuple[str, str], list[str]]) -> None:
    """Wait until each issue stands where its last rule hands it off."""
    with trio.fail_after(PATIENCE + 2 * len(expected)):
        for (name, identifier), rules in expected.items():
            wanted = "Proofread" if rules == ["docs"] else "Review"
            while several.one[name].state_of(identifier) != wanted:
                await trio.sleep(0.1)


@pytest.mark.parametrize(
    ("count", "kills"), [(12, 2), pytest.param(200, 6, marks=pytest.mark.full)]
)
async def test_each_issue_runs_as_its_rule_says(
    place: Place, start: Start, count: int, kills: int
) -> None:
    """By history, and just once to its end, never more of them than the process has slots."""
    several = Several(place)
    for one in several.one.values():
        one.write_text(RULES)
    expected = filled(several, count)
    logs = []

    for _ in range(kills):
        async with start(".", "--max-agents", str(SLOTS)) as daemon:
            await daemon.line("run.finished", nth=3)
            daemon.signal(signal.SIGKILL)
            await daemon.exit_code()
            logs.append(daemon.log)
    async with start(".", "--max-agents", str(SLOTS)) as daemon:
        await all_over(several, expected)
        logs.append(daemon.log)

    ended = Counter[tuple[str, str, str]]()
    tried: dict[tuple[str, str], set[str]] = {}
    for name, one in several.one.items():
        for run in await one.history():
            rule = run["rule"] or ""
            tried.setdefault((name, run["issue"]), set()).add(rule)
            ended[name, run["issue"], rule] += run["status"] == "succeeded"
    assert tried == {which: set(rules) for which, rules in expected.items()}
    assert +ended == {(*which, rule): 1 for which, rules in expected.items() for rule in rules}
    # A run's end is told when it is recorded, and its slot is free before.
    turns = ("turn.started", "turn.completed")
    assert max(most_at_once(log, events=turns) for log in logs) <= SLOTS
