"""``sortie plan``: the backlog, other settings, and recorded days."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from trio.testing import MockClock

from sortie.model import RunStatus
from tests.cli.conftest import Cli
from tests.cli.test_history import record
from tests.cli.world import WORKFLOW, write_issue
from tests.scheduler.driver import POLICY, issue
from tests.store.records import an_issue, begin, end
from tests.telemetry.event_log.conftest import at_once as at_once
from tests.telemetry.event_log.rig import Rig

RULES = """\
rules:
  - name: docs
    when: {labels: [docs]}
    prompt: docs
    agent: {max_turns: 3}
"""


@pytest.fixture
def backlog(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three issues, one slot, and a file with a rule and two slots."""
    monkeypatch.setenv("SORTIE_AGENT_COMMAND", "sortie-kiro-sim")
    one_slot = WORKFLOW.replace("kiro:\n", "agent: {max_concurrent_agents: 1}\nkiro:\n")
    (here / "WORKFLOW.md").write_text(one_slot)
    two = one_slot.replace("agents: 1", "agents: 2").replace("kiro:\n", f"{RULES}kiro:\n")
    (here / "NEW.md").write_text(f"{two}--- prompt: docs\nWrite {{{{ issue.title }}}}.\n")
    write_issue(here, "A-1", priority=2)
    write_issue(here, "A-2", labels="[docs]")
    write_issue(here, "A-3", priority=1)
    return here


def test_the_backlog_is_planned(cli: Cli, backlog: Path) -> None:
    """In the order of dispatch, with rule, agent and host; nothing is written."""
    before = sorted(backlog.rglob("*"))

    ran = cli("plan")

    lines = [line.split() for line in ran.out.splitlines()]
    assert (ran.code, ran.err) == (0, "")
    assert [line[:7] for line in lines[1:4]] == [
        ["1", "A-3", "default", "kiro", "local", "no", "history"],
        ["2", "A-1", "default", "kiro", "local", "no", "history"],
        ["3", "A-2", "default", "kiro", "local", "no", "history"],
    ]
    assert ran.out.rstrip().endswith("no history for 3 issues")
    assert sorted(backlog.rglob("*")) == before


def test_an_estimate_stands_on_history(cli: Cli, backlog: Path) -> None:
    """It is the median of the runs of the same rule and agent, and says of how many."""
    for n in range(3):
        began, ended = begin(f"r{n}", an_issue(f"X-{n}")), end(f"r{n}", RunStatus.SUCCEEDED)
        record(backlog, (1000.0, [began]), (1060.0, [ended]))

    rows = json.loads(cli("plan", "--format", "json").out)["issues"]

    estimate = rows[0]["estimate"]
    assert (estimate["runs"], estimate["of"]) == (3, "rule default, agent kiro")
    assert estimate["seconds"] == 60.0
    assert [(row["verdict"], row["host"]) for row in rows] == [
        ("start", "local"),
        ("wait", None),
        ("wait", None),
    ]


def test_other_settings_are_compared(cli: Cli, backlog: Path) -> None:
    """What changes for which issue is told, and which settings differ; secrets are not."""
    ran = cli("plan", "--against", "NEW.md")

    assert ran.out == (
        "agent.max_concurrent_agents: 1 -> 2\n"
        "rule docs: not there -> for {labels: [docs]}\n"
        "A-1: now waits: no available orchestrator slots -> starts on local\n"
        "A-2: prompt - -> another text; rule default -> docs\n"
        "2 issues would go another way\n"
    )
    same = cli("plan", "--against", "WORKFLOW.md").out
    assert same.startswith("nothing that is planned changes with ")
    document = json.loads(cli("plan", "--against", "NEW.md", "--format", "json").out)
    assert [one["issue"] for one in document["against"]["issues"]] == ["A-1", "A-2"]


def test_each_change_is_told_once_and_as_the_file_says_it(cli: Cli, backlog: Path) -> None:
    """What rules take from the top level is not told for each of them; what only a rule changes
    is, with the keys and units of the file."""
    path = backlog / "NEW.md"
    old = path.read_text().replace(
        "kiro:\n",
        "  - name: urgent\n    when: {priority: {lte: 1}}\n    agent: {max_turns: 7}\nkiro:\n",
    )
    (backlog / "WORKFLOW.md").write_text(old)
    new = (
        old.replace("agents: 2}", "agents: 2, turn_timeout_ms: 60000, max_turns: 9}")
        .replace("[docs]}", "[docs, 'area/*']}")
        .replace("lte: 1", "in: [1, 2]")
        .replace("agent: {max_turns: 3}", "agent: {max_turns: 3, stall_timeout_ms: 1000}")
        .replace("kiro:\n", "verify: {commands: ['make test', make]}\nkiro:\n  model: x\n")
    )
    path.write_text(new)

    ran = cli("plan", "--against", "NEW.md")

    settings = [line for line in ran.out.splitlines()[:-1] if not line.startswith("A-")]
    assert settings == [
        "verify.commands: [] -> [make test, make]",
        "agent.max_turns: 5 -> 9",
        "agent.turn_timeout_ms: 3600000 -> 60000",
        "kiro.model: not set -> x",
        'rule docs: when: {labels: [docs]} -> {labels: [docs, "area/*"]}',
        "rule docs: agent.stall_timeout_ms: 300000 -> 1000",
        "rule urgent: when: {priority: {lte: 1}} -> {priority: {in: [1, 2]}}",
    ]


def test_a_secret_that_changes_is_not_shown(
    cli: Cli, backlog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the old one nor the new one."""
    monkeypatch.setenv("OLD_TOKEN", "old-and-secret")
    monkeypatch.setenv("NEW_TOKEN", "new-and-secret")
    text = (backlog / "WORKFLOW.md").read_text()
    for name in ("WORKFLOW.md", "NEW.md"):
        token = "$OLD_TOKEN" if name == "WORKFLOW.md" else "$NEW_TOKEN"
        written = text.replace("kiro:\n", f"server: {{auth_token: {token}}}\nkiro:\n")
        (backlog / name).write_text(written)

    ran = cli("plan", "--against", "NEW.md")

    assert ran.out.splitlines()[0] == "server.auth_token: - -> changed"
    assert "and-secret" not in ran.out + ran.err


def test_a_file_that_is_not_there_is_an_error(cli: Cli, backlog: Path) -> None:
    """It is one sentence."""
    ran = cli("plan", "--against", "GONE.md")

    assert (ran.code, ran.out) == (1, "")
    assert "GONE.md" in ran.err


async def test_recorded_days_are_planned(
    at_once: MockClock, cli: Cli, backlog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ran is listed; with two slots the second run begins when the first does, and the model
    begins the recorded runs when they began."""
    rig = Rig(backlog)
    rig.scheduler._state.policy = POLICY.__class__(
        **{name: getattr(POLICY, name) for name in POLICY.__struct_fields__}
        | {"max_concurrent_agents": 1, "handoff_state": "Review"}
    )
    async with rig.running():
        (first,) = rig.start(issue("a1"), issue("a2", labels=("docs",)))
        await rig.sleep(600)
        rig.put(issue("a1", state="Review"))
        rig.end(first.run_id)
        await rig.sleep(60)
        (second,) = rig.scheduler.snapshot(rig.now).worked
        await rig.sleep(600)
        rig.put(issue("a2", state="Review"))
        rig.end(second.run_id)
        await rig.sleep(60)
    monkeypatch.setattr(time, "time", lambda: rig.wall())

    listed = cli("plan", "--days", "1")
    document = json.loads(cli("plan", "--days", "1", "--against", "NEW.md", "--format", "json").out)
    text = cli("plan", "--days", "1", "--against", "NEW.md").out

    assert [line.split()[2] for line in listed.out.splitlines()[2:4]] == ["A1", "A2"]
    assert listed.out.endswith("2 runs\n")
    (change,) = document["against"]["runs"]
    assert (change["issue"], change["run"]) == ("A2", 1)
    assert -700 < change["later_seconds"] < -500
    assert change["changes"] == [{"what": "rule", "before": "default", "after": "docs"}]
    assert (document["against"]["modelled"], document["against"]["as_recorded"]) == (2, 2)
    assert "A2: rule default -> docs; 10m" in text
    assert "a model: runs take as long" in text


def test_days_without_a_log_are_an_error(cli: Cli, backlog: Path) -> None:
    """The sentence names the setting."""
    ran = cli("plan", "--days", "2")

    assert (ran.code, ran.out) == (1, "")
    assert "nothing is recorded of the last 2 days" in ran.err
    assert "journal.keep_days" in ran.err
