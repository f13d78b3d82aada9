"""The log and the metrics after a day on which everything happened."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Start
from tests.e2e.place import Place

STALL, TURN = 10.0, 14.0

LABELS = {
    "sortie_turns_total": {"agent", "outcome", "error_kind"},
    "sortie_turn_timeouts_total": {"kind"},
    "sortie_turn_credits_total": {"agent"},
    "sortie_turn_output_lines_total": {"agent"},
    "sortie_turn_duration_seconds_bucket": {"agent", "outcome", "le"},
    "sortie_sessions_running": set(),
    "sortie_sessions_retrying": set(),
    "sortie_issues_held": set(),
    "sortie_slots_available": set(),
    "sortie_active_sessions_elapsed_seconds": set(),
    "sortie_dispatch_paused": set(),
    "sortie_workflow_valid": set(),
    "sortie_issues_queued": set(),
    "sortie_issues_blocked": set(),
    "sortie_ready": set(),
    "sortie_disk_free_bytes": {"place"},
    "sortie_disk_size_bytes": {"place"},
    "sortie_process_start_time_seconds": set(),
    "sortie_process_open_fds": set(),
    "sortie_build_info": {"version", "python_version"},
    "sortie_tokens_total": {"type"},
    "sortie_agent_runtime_seconds_total": set(),
    "sortie_dispatches_total": {"outcome"},
    "sortie_worker_exits_total": {"exit_type", "rule"},
    "sortie_retries_total": {"trigger"},
    "sortie_reconciliation_actions_total": {"action"},
    "sortie_poll_cycles_total": {"result"},
    "sortie_tracker_requests_total": {"operation", "result"},
    "sortie_handoff_transitions_total": {"result"},
    "sortie_dispatch_transitions_total": {"result"},
    "sortie_tracker_comments_total": {"lifecycle", "result"},
    "sortie_hook_runs_total": {"hook", "result"},
    "sortie_holds_total": {"reason"},
    "sortie_workflow_reloads_total": {"result"},
    "sortie_orphans_reaped_total": {"where"},
    "sortie_http_requests_total": {"route", "status"},
    "sortie_turn_startup_seconds_bucket": {"agent", "le"},
    "sortie_model_answer_seconds_bucket": {"agent", "le"},
    "sortie_worker_duration_seconds_bucket": {"exit_type", "le"},
    "sortie_poll_duration_seconds_bucket": {"le"},
    "sortie_dispatch_latency_seconds_bucket": {"le"},
    "sortie_hook_duration_seconds_bucket": {"hook", "le"},
    "sortie_pod_start_seconds_bucket": {"origin", "le"},
}
"""Every metric that there is without SSH hosts, with the labels of its samples."""

DAY = {
    "DONE-1": "credits=0.25 output=8000",
    "DONE-2": "credits=0.5",
    "FAILS": "exit=1 stderr=whatever",
    "SILENT": "hang=1",
    "ENDLESS": "delay=600",
    "KILLED": "signal=KILL",
    "NOT-FOUND": "exit=127",
    "BLOCKED": "status=blocked",
}


KINDS = {"turn": 1, "stall": 1, "read": 0}


async def test_a_mixed_day_is_in_the_metrics(place: Place, start: Start) -> None:
    """Every metric is there with its labels, and those of turns hold the day's sums."""
    place.write_workflow(
        agent={
            "command": "sortie-kiro-sim",
            "max_turns": 1,
            "stall_timeout_ms": int(STALL * 1000),
            "turn_timeout_ms": int(TURN * 1000),
            "stop_grace_ms": 500,
        },
        hooks={"before_run": "true", "after_run": "false"},
    )
    for name, directives in DAY.items():
        place.add_issue(name, directives)

    async with start("--log-level", "debug") as daemon:
        await daemon.line("run.started", nth=len(DAY))
        assert (await place.sortie("pause")).code == 0  # what has failed is not tried again
        await daemon.line("run.finished", issue="ENDLESS")
        await daemon.line("run.finished", nth=len(DAY))
        await daemon.line("issue.moved", lifecycle="handoff", nth=2)
        state, metrics = await daemon.state(), await daemon.metrics()

    assert {name: metrics.labels(name) for name in LABELS} == LABELS
    turns = {
        ("completed", ""): 3,
        ("failed", "port_exit"): 1,
        ("stalled", "turn_stalled"): 1,
        ("timed_out", "turn_timeout"): 1,
        ("cancelled", "turn_cancelled"): 1,
        ("failed", "agent_not_found"): 1,
    }
    assert metrics.total("sortie_turns_total", agent="kiro") == len(DAY)
    for (outcome, kind), count in turns.items():
        labels = {"agent": "kiro", "outcome": outcome, "error_kind": kind}
        assert metrics.total("sortie_turns_total", **labels) == count
    for outcome in ("completed", "failed", "stalled", "timed_out", "cancelled"):
        assert metrics.total("sortie_turns_total", outcome=outcome) == metrics.total(
            "sortie_turn_duration_seconds_count", agent="kiro", outcome=outcome
        )
    durations = "sortie_turn_duration_seconds_sum"
    assert STALL <= metrics.total(durations, outcome="stalled") < TURN + 10
    assert TURN <= metrics.total(durations, outcome="timed_out") < TURN + 10
    assert metrics.total("sortie_agent_runtime_seconds_total") == pytest.approx(
        metrics.total(durations)
    )
    assert {k: metrics.total("sortie_turn_timeouts_total", kind=k) for k in KINDS} == KINDS
    assert metrics.total("sortie_turn_credits_total", agent="kiro") == pytest.approx(0.8)
    assert metrics.total("sortie_turn_output_lines_total", agent="kiro") > 100
    assert metrics.total("sortie_dispatches_total", outcome="started") == len(DAY)
    assert metrics.total("sortie_worker_exits_total") == len(DAY)
    assert metrics.total("sortie_retries_total", trigger="stall") == 1
    assert metrics.total("sortie_retries_total", trigger="timeout") == 1
    assert metrics.total("sortie_handoff_transitions_total", result="success") == 2
    assert metrics.total("sortie_dispatch_transitions_total", result="success") == len(DAY)
    assert metrics.total("sortie_hook_runs_total", hook="after_run", result="failed") == len(DAY)
    assert metrics.total("sortie_issues_held") == state["counts"]["held"] == 2
    assert metrics.total("sortie_sessions_retrying") == state["counts"]["waiting"] == 4
    assert metrics.total("sortie_dispatch_latency_seconds_count") == len(DAY)
    assert metrics.total("sortie_http_requests_total", route="/api/v1/state", status="200") == 1
    assert state["totals"]["credits"] == pytest.approx(0.8)
    assert state["totals"]["tokens"] is None


async def test_a_canary_that_takes_too_long_is_a_read_timeout(place: Place, start: Start) -> None:
    """Its run fails as ``response_error``, and the limit that ran out is counted."""
    place.write_workflow(agent={"command": "sortie-kiro-sim", "read_timeout_ms": 300})
    place.add_issue("A")

    async with start(KIRO_SIM_WHOAMI_DELAY="60") as daemon:
        finished = await daemon.line("run.finished", issue="A")
        metrics = await daemon.metrics()

    assert (finished["status"], finished["error_kind"]) == ("failed", "response_error")
    assert metrics.total("sortie_turn_timeouts_total", kind="read") == 1
    assert metrics.total("sortie_turns_total") == 0


async def test_every_log_line_is_an_event_that_names_its_issue(place: Place, start: Start) -> None:
    """As JSON each line has time, level and event, and lines of a run have issue and run."""
    place.add_issue("A", "delay=0.5 output=5000 tools=old")

    async with start("--log-level", "debug") as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    told = [line["event"] for line in daemon.log]

    assert all(list(line)[:3] == ["time", "level", "event"] for line in daemon.log)
    assert sorted(line["time"] for line in daemon.log) == [line["time"] for line in daemon.log]
    assert all("issue" in line for line in daemon.log if "run" in line)
    for event in (
        "daemon.started",
        "agent.simulated",
        "poll.completed",
        "run.started",
        "workspace.ready",
        "session.started",
        "turn.started",
        "agent.launched",
        "agent.answered",
        "agent.spoke",
        "turn.completed",
        "run.finished",
        "issue.moved",
        "daemon.stopping",
        "daemon.stopped",
    ):
        assert event in told
