"""The dry run: what a start would do, and that it touches nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.daemon.dry_run import CandidateVerdict, dry_run, read_issue, verdicts_on
from sortie.daemon.locks import database_lock
from sortie.daemon.options import RunOptions
from sortie.model import (
    LOCAL,
    Blocker,
    HoldReason,
    RunId,
    SortieError,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.scheduler import Policy, Record
from sortie.scheduler.records import ForgetHold, RecordHold, RecordPause, RecordRetry, RecordRun
from sortie.store.sqlite import open_store
from tests.worker.rig import issue

POLICY = Policy(active_states=frozenset({"todo"}), terminal_states=frozenset({"done"}))
WORKFLOW = """\
---
tracker:
  kind: file
  active_states: [Todo]
  terminal_states: [Done]
file:
  path: issues
workspace:
  root: work
agent:
  command: sortie-kiro-sim
  max_concurrent_agents: 1
---
Work.
"""


def test_issues_are_judged_in_their_order() -> None:
    """Room goes to the first; every other one says what it lacks."""
    urgent, first, second = issue("u", priority=1), issue("a"), issue("b")
    blocked = issue("c", blocked_by=(Blocker(identifier="X"),))
    policy = Policy(
        active_states=POLICY.active_states,
        terminal_states=POLICY.terminal_states,
        max_concurrent_agents=2,
    )

    verdicts = verdicts_on((second, blocked, first, urgent), policy)

    assert verdicts == [
        CandidateVerdict(urgent, (), policy, LOCAL),
        CandidateVerdict(first, (), policy, LOCAL),
        CandidateVerdict(second, ("no available orchestrator slots",), policy),
        CandidateVerdict(
            blocked,
            ("it is blocked by X (state unknown)", "no available orchestrator slots"),
            policy,
        ),
    ]


@pytest.fixture
def options(tmp_path: Path) -> RunOptions:
    """Give a workflow with three issues."""
    (tmp_path / "WORKFLOW.md").write_text(WORKFLOW)
    issues = tmp_path / "issues"
    issues.mkdir()
    for name, state in (("T-1", "Todo"), ("T-2", "Todo"), ("T-3", "Done"), ("T-4", "Later")):
        (issues / f"{name}.md").write_text(
            f"---\ntitle: Mend {name}\nstate: {state}\n"
            "created_at: 2026-01-01T00:00:00Z\n---\nPlease.\n"
        )
    return RunOptions(workflow=tmp_path / "WORKFLOW.md", environ={"HOME": str(tmp_path)})


def test_a_dry_run_changes_nothing(options: RunOptions, tmp_path: Path) -> None:
    """Candidates come with their verdicts, and no file is made or touched."""
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    verdicts = dry_run(options)

    assert [(s.issue.identifier, s.reasons) for s in verdicts] == [
        ("T-1", ()),
        ("T-2", ("no available orchestrator slots",)),
    ]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("name", ["T-1", "T-3", "T-4"])
def test_an_issue_is_read_by_its_identifier(options: RunOptions, name: str) -> None:
    """Issues are found whatever their state, one that no setting names included."""
    assert read_issue(options, name).title == f"Mend {name}"


@pytest.mark.parametrize("name", ["T-9", ""])
def test_an_issue_that_is_not_there_is_an_error(options: RunOptions, name: str) -> None:
    """One that is unknown is said not to be found."""
    with pytest.raises(SortieError, match="has no issue"):
        read_issue(options, name)


def record(tmp_path: Path, *records: Record) -> None:
    """Have an earlier daemon leave these records."""

    async def write() -> None:
        async with open_store(str(tmp_path / ".sortie.db")) as store:
            await store.commit(records, time.time())

    trio.run(write)


def verdicts(options: RunOptions) -> dict[str, tuple[str, ...]]:
    """Survey, and return the reasons by issue; nothing may be made meanwhile."""
    before = {path.name for path in options.workflow.parent.iterdir()}
    found = {s.issue.identifier: s.reasons for s in dry_run(options)}
    assert {path.name for path in options.workflow.parent.iterdir()} == before
    return found


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
T1, T2 = issue("T-1", created_at=LONG_AGO), issue("T-2", created_at=LONG_AGO)
RUN = RecordRun(
    run_id=RunId("r"), issue=replace(T1, state="Todo"), streak=Streak(), host="local", agent="kiro"
)


def test_a_dry_run_tells_what_is_on_record(options: RunOptions, tmp_path: Path) -> None:
    """Holds, waits and the pause count as they would at a start; so does a hold that it ends."""
    wait = RecordRetry(
        issue=T2, kind=WaitKind.RETRY, trigger=Trigger.ERROR, streak=Streak(failures=1), delay=900
    )
    record(tmp_path, RecordHold(issue=T1, reason=HoldReason.OPERATOR, detail="enough"), wait)
    kept = verdicts(options)
    mended = RecordHold(issue=T1, reason=HoldReason.AGENT_NOT_FOUND, detail="no program")
    record(tmp_path, ForgetHold(issue_id=T1.id), mended)
    freed = verdicts(options)
    record(tmp_path, RecordPause(paused=True))
    paused = verdicts(options)

    assert "it is held (operator): enough" in kept["T-1"]
    assert "it waits for its retry (after error)" in kept["T-2"]
    assert freed["T-1"] == ()
    assert paused["T-1"] == ("dispatch is paused",)


def test_a_dry_run_beside_a_daemon_sees_its_runs(options: RunOptions, tmp_path: Path) -> None:
    """What runs there runs, and its slot is taken; after a crash it would go on at once."""
    record(tmp_path, RUN)
    crashed = verdicts(options)
    with database_lock(str(tmp_path / ".sortie.db")) as lock:
        lock.ensure()
        beside = verdicts(options)

    assert crashed["T-1"] == ()
    assert "it runs (r)" in beside["T-1"]
    assert beside["T-2"] == ("no available orchestrator slots",)


def test_a_dry_run_names_what_forbids_a_start(options: RunOptions, tmp_path: Path) -> None:
    """A database that is a directory, a root that is a file and a missing program are told."""
    text = options.workflow.read_text()
    options.workflow.write_text(text.replace("sortie-kiro-sim", "no-such-program"))
    without = verdicts(options)
    options.workflow.write_text(text)
    (tmp_path / ".sortie.db").mkdir()
    (tmp_path / "work").write_text("")
    broken = verdicts(options)

    assert all("'no-such-program' was not found" in str(reasons) for reasons in without.values())
    assert without["T-1"][0].startswith("it would be tried, and held: ")
    assert all("db_path: " in str(reasons) for reasons in broken.values())
    assert all("workspace.root: " in str(reasons) for reasons in broken.values())
