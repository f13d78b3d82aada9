"""Facts: every kind is logged, documented, and counted unless there is nothing to count."""

from __future__ import annotations

import pytest

from sortie.facts import Fact
from sortie.facts.fact import RecurringFailures
from sortie.telemetry import facts
from sortie.telemetry.metrics import daemon, notifications, pull_requests, runs, turns, webhooks
from tests.docs.pages import page, table, word
from tests.telemetry.samples import FACTS, KINDS

DOCUMENTED = {word(row["event"]): row["level"] for row in table(page("log-events.md"), "event")}

NOT_COUNTED = {
    facts.RunHandedOver,
    facts.CommonSlotsKnown,
    facts.CommonSlotsUnknown,
    facts.SlotsOvercommitted,
    facts.WorkflowBroken,
    facts.AdapterCrashed,
    facts.AgentFilesRestored,
    facts.AgentSimulated,
    facts.AgentLimitEnded,
    facts.BudgetSpent,
    facts.ActivityChanged,
    facts.AgentUsed,
    facts.AgentWroteErrors,
    facts.AgentsLimited,
    facts.BudgetRunsLow,
    facts.ControlUnavailable,
    facts.DaemonCrashed,
    facts.DaemonStopped,
    facts.DaemonStopping,
    facts.DaemonWasPaused,
    facts.HoldEnded,
    facts.HoldRestored,
    facts.QuestionWithdrawn,
    facts.HostGivenUp,
    facts.HostIsolation,
    facts.HostLinkLost,
    facts.HostLinkRestored,
    facts.HostNoticed,
    facts.NotificationRecorded,
    facts.HostBack,
    facts.HostPaused,
    facts.HttpListening,
    facts.HttpPortTaken,
    facts.HandOverBegan,
    facts.HandOverEnded,
    facts.IssueRead,
    facts.IssueHandedOff,
    facts.LeaseAcquired,
    facts.LeaseAwaited,
    facts.LeaseEnded,
    facts.OrphansLeft,
    facts.OrphansSought,
    facts.PauseChanged,
    facts.PullRequestsLookedAt,
    facts.PermissionAnswered,
    facts.RunPhaseChanged,
    facts.RunStopping,
    facts.ServiceManagerUnreachable,
    facts.SessionNamed,
    facts.DevcontainerRestricted,
    facts.ContainerStarted,
    facts.SessionStarted,
    facts.SessionWaiting,
    facts.ShortageBegan,
    facts.ShortageEnded,
    facts.StateRestored,
    facts.StatusFileRead,
    facts.StoreFailed,
    facts.StoreRecovered,
    facts.TrackerPauseBegan,
    facts.EventLogFailed,
    facts.EventLogForgotten,
    facts.EventLogRecovered,
    facts.TranscriptsFailed,
    facts.TranscriptsForgotten,
    facts.TranscriptsRecovered,
    facts.AgentNoted,
    facts.ToolClientLost,
    facts.ToolCallEnded,
    facts.ToolCallStarted,
    facts.TurnBegan,
    facts.WatchBegan,
    facts.WebhooksArriving,
    facts.WebhooksSilent,
    facts.ToolsTraced,
    facts.ToolsUntraced,
    facts.WaitEnded,
    facts.WorkspaceKept,
    facts.WorkspaceReady,
    facts.WorkspaceRemoved,
}
"""Kinds of facts of which no metric is made."""


def test_every_kind_has_a_sample_and_is_counted_or_known_not_to_be() -> None:
    """No kind is forgotten by the tests that go through all samples, nor by the metrics."""
    sinks = (daemon, notifications, pull_requests, runs, turns, webhooks)
    counted = {kind for sink in sinks for kind in sink.count.registry}

    assert {type(sample) for sample in FACTS} == KINDS
    assert counted | NOT_COUNTED == KINDS | {object}
    assert not counted & NOT_COUNTED


@pytest.mark.parametrize("kind", sorted(KINDS, key=str))
def test_every_kind_is_documented(kind: type[Fact]) -> None:
    """The operator's page names the event of every kind, with its level."""
    assert DOCUMENTED[kind.EVENT] == kind.LEVEL


def test_no_two_kinds_are_told_under_one_name() -> None:
    """Who filters for an event gets facts of one kind."""
    assert len({kind.EVENT for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("sample", FACTS, ids=lambda sample: type(sample).__name__)
def test_what_is_told_is_documented(sample: Fact) -> None:
    """Each line that a kind gives itself has an event on the operator's page."""
    failures = RecurringFailures()

    assert {line.event for line in sample.log_lines(failures)} <= DOCUMENTED.keys()
