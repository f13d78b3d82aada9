"""What the daemon shows of a life in a test, and what it lets people do."""

from __future__ import annotations

from datetime import UTC, datetime

from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.last_failures import LastFailures
from sortie.daemon.totals import RunTotals
from sortie.daemon.tracker_status import TrackerStatus
from sortie.orchestrator import Orchestrator
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.store import Totals
from sortie.telemetry.live_runs import LiveRuns
from sortie.web.state import WorkflowView
from tests.orchestrator.world import World
from tests.store.inline import MemoryStore
from tests.telemetry.transcripts.fake import EXAMPLE, FakeTranscripts, some_lines
from tests.trackers.fake import FakeTracker

NOTHING = Totals(runs=0, turns=0, credits=None, tokens=None, seconds_running=0.0)
VALID = WorkflowView(path="/w/WORKFLOW.md", valid=True)


def now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def view_of(
    orchestrator: Orchestrator, world: World | None = None, workflow: WorkflowView = VALID
) -> DaemonView:
    """Return a view on a life; of the world's facts it tells those that come from now on."""
    live_runs, totals, failures = LiveRuns(now), RunTotals(NOTHING), LastFailures(now)
    if world is not None:
        world.sinks += [live_runs, totals, failures]
    return DaemonView(
        orchestrator=orchestrator,
        store=MemoryStore() if world is None else world.store,
        transcripts=FakeTranscripts(lines={EXAMPLE: some_lines(["one", "two"])}),
        live_runs=live_runs,
        totals=totals,
        failures=failures,
        tracker=TrackerStatus(
            tracker=GuardedTracker(FakeTracker(), lambda _fact: None)
            if world is None
            else world.guarded,
            settings=lambda: orchestrator.settings,
        ),
        workflow=lambda: workflow,
    )
