"""Five rules in one daemon, which is killed on the way: each issue runs as its rule says."""

from __future__ import annotations

import signal
import sys
from itertools import pairwise
from pathlib import Path

import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Json, Place

SCRIPTED = Path(__file__).parents[1] / "agents" / "acp" / "programs" / "scripted_agent.py"
STARTED = "run.started"
FRONT = """\
---
tracker:
  kind: file
  active_states: [Todo, In Progress]
  terminal_states: [Done]
  in_progress_state: In Progress
  handoff_state: Human Review
file: {{path: issues}}
polling: {{interval_ms: 200}}
workspace: {{root: workspaces}}
kiro: {{trust_all_tools: true}}
agent:
  command: sortie-kiro-sim
  max_turns: 1
  stop_grace_ms: 500
  read_timeout_ms: 20000
  max_retry_backoff_ms: 100
  status_instructions: false
rules:
  - name: acp
    when: {{labels: "agent/*"}}
    agent: {{kind: acp, command: ["{python}", "{scripted}"]}}
    hooks: {{before_run: sleep 2}}
    acp: {{permissions: {{inside: {{default: allow}}}}}}
    prompt: acp
  - name: long
    when: {{title: long}}
    agent: {{max_turns: 3}}
    prompt: parts/long.md
  - name: docs
    when: {{identifier: "DOC-*"}}
    tracker: {{handoff_state: Docs Review}}
    max_concurrent_agents: 1
    prompt: docs
  - name: urgent
    when: {{priority: {{lte: 1}}}}
    guaranteed: 1
    prompt: urgent
  - name: ready
    when: {{states: Ready}}
    tracker: {{active_states: [Ready], in_progress_state: null}}
    prompt: ready
---
sim: say=top
{{% include "text" %}}
--- prompt: acp
acp: say I am {{{{ stage.name }}}}
--- prompt: docs
sim: say=docs
{{% include "text" %}}
--- prompt: urgent
sim: say=urgent
{{% include "text" %}}
--- prompt: ready
sim: say=ready
{{% include "text" %}}
--- prompt: text
{{{{ issue.description }}}}
"""
RULES = {
    "ACP-1": "acp",
    "ACP-2": "acp",
    "LONG-1": "long",
    "LONG-2": "long",
    "DOC-1": "docs",
    "DOC-2": "docs",
    "DOC-3": "docs",
    "NOW-1": "urgent",
    "NOW-2": "urgent",
    "READY-1": "ready",
    "OTHER-1": "",
    "OTHER-2": "",
}
HANDED_OFF = {
    name: "Docs Review" if rule == "docs" else "Human Review" for name, rule in RULES.items()
}


def prepare(place: Place) -> None:
    """Write the workflow, its files, and two or three issues for each rule, slow ones."""
    (place.root / "parts").mkdir()
    text = "sim: say=long\n{{ issue.description }}\n"
    (place.root / "parts" / "long.md").write_text(text)
    place.write_text(FRONT.format(python=sys.executable, scripted=SCRIPTED))
    for name, rule in RULES.items():
        fields: dict[str, object] = {"title": f"Title of {name}"}
        if rule == "acp":
            fields["labels"] = ["agent/other"]
        elif rule == "long":
            fields["title"] = "A long one"
        elif rule == "urgent":
            fields["priority"] = 1
        elif rule == "ready":
            fields["state"] = "Ready"
        place.add_issue(name, "delay=0.3", **fields)


async def until_handed_off(place: Place) -> None:
    """Wait until every issue stands where its rule hands it off."""
    with trio.fail_after(3 * PATIENCE):
        while {name: place.state_of(name) for name in RULES} != HANDED_OFF:
            await trio.sleep(0.05)


async def test_each_issue_runs_where_its_rule_says(place: Place, start: Start) -> None:
    """Agent, turns, prompt, handoff state and limit are the rule's in every run, before and after
    the daemon was killed, although labels have changed in between."""
    prepare(place)
    log: list[Json] = []

    async with start() as daemon:
        await daemon.line("run.started", issue="ACP-1")
        await daemon.line("run.started", rule="docs")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
        log += daemon.log
    place.add_issue("ACP-1", state=place.state_of("ACP-1"), labels=["other"])
    async with start() as daemon:
        await until_handed_off(place)
        await daemon.line("issue.moved", issue="DOC-3", lifecycle="handoff")
    log += daemon.log
    rows = await place.history()

    started = {(line["issue"], line.get("rule") or "") for line in log if line["event"] == STARTED}
    assert started == set(RULES.items())
    assert {(RULES[row["issue"]], row["agent"]) for row in rows} == {
        (rule, "acp" if rule == "acp" else "kiro") for rule in RULES.values()
    }
    ended = [row for row in rows if row["status"] == "succeeded"]
    assert {row["issue"]: row["turns"] for row in ended} == {
        name: 3 if rule == "long" else 1 for name, rule in RULES.items()
    }
    assert {row["issue"] for row in rows if row["status"] == "interrupted"} >= {"ACP-1"}
    for row in ended:
        rule = RULES[row["issue"]]
        assert row["answer"].splitlines()[-1] == ("I am acp" if rule == "acp" else rule or "top")
    docs = sorted((r["started_at"], r["finished_at"]) for r in rows if RULES[r["issue"]] == "docs")
    assert all(end <= start for (_, end), (start, _) in pairwise(docs))
