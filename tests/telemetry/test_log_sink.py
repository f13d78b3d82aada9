"""The log sink: which line each fact becomes, bound to its issue and run, and how often."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from msgspec.structs import replace

from sortie.facts import (
    CommentCompleted,
    Fact,
    PauseChanged,
    Phase,
    PollCompleted,
    RunPhaseChanged,
    StatusFileRead,
    StoreFailed,
    ToolsTraced,
    TrackerAsked,
    TransitionCompleted,
    TurnBegan,
    WorkspaceRemoved,
)
from sortie.facts.fact import EVERY
from sortie.model.traces import span_id_of, trace_id_of
from sortie.telemetry.log import LogSink, configure
from tests.telemetry.samples import (
    FACTS,
    ISSUE,
    RUN,
    RUN_FINISHED,
    RUN_STARTED,
    TURN_FAILED,
)

pytestmark = pytest.mark.usefixtures("logging_restored")

ASKED: dict[str, Any] = {"operation": "find", "seconds": 0.1}


def lines(
    *facts: Fact, level: str = "debug", sink: LogSink | None = None
) -> list[dict[str, object]]:
    """Return the lines that a new sink writes for these facts, without their times."""
    stream = io.StringIO()
    configure(level, "json", stream)
    sink = sink or LogSink()
    for fact in facts:
        sink(fact)
    written = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [{key: value for key, value in line.items() if key != "time"} for line in written]


def heads(*facts: Fact) -> list[tuple[object, object]]:
    return [(line["level"], line["event"]) for line in lines(*facts)]


def test_every_fact_has_its_line() -> None:
    """Names and levels of all events; operators' filters rely on them."""
    assert heads(*FACTS) == [
        ("info", "daemon.started"),
        ("info", "daemon.stopping"),
        ("info", "daemon.stopped"),
        ("debug", "poll.completed"),
        ("debug", "tracker.answered"),
        ("info", "issue.reconciled"),
        ("info", "dispatch.dropped"),
        ("info", "run.started"),
        ("debug", "run.phase"),
        ("debug", "issue.read"),
        ("info", "workspace.ready"),
        ("warning", "sandbox.devcontainer"),
        ("info", "container.started"),
        ("debug", "session.started"),
        ("debug", "agent.errors"),
        ("warning", "transcripts.failed"),
        ("info", "transcripts.recovered"),
        ("warning", "event_log.gap"),
        ("warning", "event_log.failed"),
        ("info", "event_log.recovered"),
        ("info", "event_log.pruned"),
        ("info", "transcripts.pruned"),
        ("warning", "session.refused"),
        ("info", "turn.started"),
        ("debug", "agent.launched"),
        ("debug", "agent.answered"),
        ("debug", "agent.spoke"),
        ("debug", "session.named"),
        ("info", "session.waiting"),
        ("debug", "tool.started"),
        ("debug", "tool.ended"),
        ("debug", "model.answered"),
        ("debug", "agent.used"),
        ("debug", "turn.traced"),
        ("debug", "turn.untraced"),
        ("debug", "run.activity"),
        ("info", "agent.permission"),
        ("info", "turn.agent_files"),
        ("warning", "agent.warned"),
        ("warning", "agent.warned"),
        ("warning", "turn.completed"),
        ("info", "run.stopping"),
        ("info", "run.finished"),
        ("info", "retry.scheduled"),
        ("info", "wait.ended"),
        ("warning", "budget.low"),
        ("warning", "budget.spent"),
        ("warning", "agent.limited"),
        ("info", "agent.limit_over"),
        ("warning", "issue.held"),
        ("warning", "hold.restored"),
        ("info", "hold.ended"),
        ("warning", "question.asked"),
        ("info", "question.answered"),
        ("info", "question.withdrawn"),
        ("warning", "hook.completed"),
        ("info", "delivery.advanced"),
        ("info", "command.verified"),
        ("warning", "review.finished"),
        ("info", "watch.began"),
        ("info", "watch.ended"),
        ("debug", "pull_requests.seen"),
        ("info", "reaction.planned"),
        ("warning", "reaction.ended"),
        ("warning", "merge.attempted"),
        ("warning", "errand.failed"),
        ("debug", "webhook.received"),
        ("warning", "webhook.rejected"),
        ("warning", "webhook.lost"),
        ("debug", "webhook.followed"),
        ("info", "webhooks.arriving"),
        ("info", "webhooks.silent"),
        ("warning", "webhooks.missed"),
        ("info", "work.rescued"),
        ("info", "issue.moved"),
        ("debug", "issue.handed_off"),
        ("warning", "comment.failed"),
        ("info", "agent.status"),
        ("info", "tool.called"),
        ("info", "tool.called"),
        ("info", "agent.noted"),
        ("warning", "tools.client_lost"),
        ("warning", "tools.lost"),
        ("warning", "workspace.kept"),
        ("info", "workspace.removed"),
        ("info", "workflow.reloaded"),
        ("info", "dispatch.paused"),
        ("error", "store.failed"),
        ("info", "store.recovered"),
        ("warning", "orphans.reaped"),
        ("error", "orphans.left"),
        ("info", "orphans.sought"),
        ("info", "state.restored"),
        ("warning", "run.interrupted"),
        ("info", "run.taken_over"),
        ("info", "run.handed_over"),
        ("warning", "agent.simulated"),
        ("warning", "host.rested"),
        ("warning", "host.noticed"),
        ("info", "host.isolation"),
        ("warning", "host.link_lost"),
        ("info", "host.link_restored"),
        ("info", "pod.ready"),
        ("info", "pods.warm"),
        ("warning", "pods.warm"),
        ("warning", "host.given_up"),
        ("debug", "notification.recorded"),
        ("warning", "notification.failed"),
        ("debug", "notification.sent"),
        ("info", "notification.target_recovered"),
        ("warning", "notification.dead"),
        ("info", "host.back"),
        ("info", "http.listening"),
        ("warning", "http.port_taken"),
        ("warning", "control.unavailable"),
        ("info", "agents.limited"),
        ("warning", "service_manager.unreachable"),
        ("debug", "http.answered"),
        ("warning", "traces.lost"),
        ("warning", "daemon.was_paused"),
        ("error", "daemon.crashed"),
        ("warning", "tracker.rests"),
        ("error", "shortage.began"),
        ("info", "shortage.ended"),
        ("error", "adapter.crashed"),
        ("error", "workflow.broken"),
        ("warning", "slots.overcommitted"),
        ("warning", "slots.unknown"),
        ("info", "slots.known"),
        ("debug", "network.connection"),
        ("info", "network.refused"),
        ("info", "lease.waiting"),
        ("warning", "lease.waiting"),
        ("info", "lease.acquired"),
        ("warning", "lease.acquired"),
        ("error", "lease.lost"),
        ("info", "lease.handing_over"),
        ("info", "lease.kept"),
    ]


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_a_sink_that_knows_the_level_writes_the_same(level: str) -> None:
    """What it does not make would not have been shown; failures are counted all the same."""
    failing = (StoreFailed(error="disk full"), TrackerAsked(**ASKED, result="error", error="down"))
    several = [*FACTS, *failing * (EVERY + 1), TrackerAsked(**ASKED, result="success"), *FACTS]

    assert lines(*several, level=level, sink=LogSink(level)) == lines(*several, level=level)


def test_lines_of_a_run_name_its_issue_while_it_lives() -> None:
    """A fact that knows its run only is bound to the issue too, until the run is finished."""
    turn = TurnBegan(run_id=RUN, turn=1, max_turns=3)

    written = lines(turn, RUN_STARTED, turn, RUN_FINISHED, turn)

    assert [line.get("issue") for line in written] == [None, "DEMO-1", "DEMO-1", "DEMO-1", None]


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (
            StatusFileRead(run_id=RUN, word="help", known=False),
            [("warning", "agent.status_unknown")],
        ),
        (
            TransitionCompleted(
                issue=ISSUE, lifecycle="handoff", state="Review", result="error", error="down"
            ),
            [("warning", "issue.move_failed")],
        ),
        (
            CommentCompleted(issue=ISSUE, lifecycle="dispatch", result="success"),
            [("debug", "comment.made")],
        ),
        (
            WorkspaceRemoved(
                issue_id=ISSUE.id, issue_identifier="DEMO-1", path="/w", error="in use"
            ),
            [("warning", "workspace.removal_failed")],
        ),
        (PauseChanged(paused=False), [("info", "dispatch.resumed")]),
    ],
)
def test_the_other_way_that_a_fact_can_go(
    fact: Fact, expected: list[tuple[object, object]]
) -> None:
    """A failure has a name of its own where an operator would filter for it."""
    assert heads(fact) == expected


def test_a_poll_that_keeps_failing_is_a_warning_now_and_then() -> None:
    """Of equal failures in a row the first and each EVERY-th is a warning; recovery is a line."""
    failed = PollCompleted(result="error", seconds=1.0, error="refused")
    good = PollCompleted(result="success", seconds=0.5, candidates=0)

    written = lines(*[failed] * (EVERY + 1), good, good, failed)

    told = [(line["event"], line.get("failures")) for line in written if line["level"] != "debug"]
    assert told == [
        ("poll.failed", 1),
        ("poll.failed", EVERY),
        ("poll.recovered", EVERY + 1),
        ("poll.failed", 1),
    ]


def test_a_closed_tracker_is_told_once_for_all_issues() -> None:
    """Each handoff that meets it is one more of the same, and its reopening is told with how many
    there were; a move that fails for the issue's own sake is told each time."""
    refused = TransitionCompleted(
        issue=ISSUE, lifecycle="handoff", state="Review", result="error", error="ro", closed=True
    )
    own = replace(refused, error="forbidden", closed=False)
    moved = replace(own, result="success", error=None)

    written = lines(refused, refused, own, own, refused, moved, moved)

    assert [(w["level"], w["event"], w.get("failures")) for w in written] == [
        ("warning", "tracker.closed", 1),
        ("debug", "tracker.closed", 2),
        ("warning", "issue.move_failed", None),
        ("warning", "issue.move_failed", None),
        ("debug", "tracker.closed", 3),
        ("info", "tracker.reopened", 3),
        ("info", "issue.moved", None),
        ("info", "issue.moved", None),
    ]


def test_lines_of_a_turn_name_it_and_those_of_a_trace_its_ids() -> None:
    """What happens between two turns names none; a run that is not traced has no such ids."""
    told = (
        replace(RUN_STARTED, traced=True),
        TurnBegan(run_id=RUN, turn=1, max_turns=3),
        ToolsTraced(run_id=RUN, model="m"),
        replace(TURN_FAILED, warnings=()),
        RunPhaseChanged(run_id=RUN, phase=Phase.REREAD),
        TurnBegan(run_id=RUN, turn=2, max_turns=3),
        ToolsTraced(run_id=RUN, model="m"),
        RUN_FINISHED,
    )
    plain = lines(*(replace(told[0], traced=False), *told[1:]))
    traced = lines(*told)
    parts = ["run", "turn/1", "turn/1", "turn/1", "run", "turn/2", "turn/2", "turn/2"]
    ids = [f"{span_id_of(RUN, part):016x}" for part in parts]

    assert [line.get("turn") for line in traced] == [None, 1, 1, 1, None, 2, 2, 2]
    assert [line["span_id"] for line in traced] == ids
    assert {line["trace_id"] for line in traced} == {f"{trace_id_of(RUN):032x}"}
    assert [line | {"trace_id": 0, "span_id": 0} for line in plain] == [
        line | {"trace_id": 0, "span_id": 0} for line in traced
    ]
    assert not any("trace_id" in line for line in plain)
