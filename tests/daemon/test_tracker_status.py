"""What the tracker holds is shown as of now, however little of it is looked at again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from sortie.config.settings import Settings, TrackerSettings, WorkspaceSettings
from sortie.daemon.tracker_status import TrackerStatus
from sortie.model import Issue, IssueId, RateBudget
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.trackers import Overview
from sortie.web.issue import BudgetView
from tests.trackers.fake import FakeTracker


def settings_of(tracker: TrackerSettings) -> Settings:
    return Settings(tracker=tracker, workspace=WorkspaceSettings(root="/w"), db_path="/w.db")


class Knowing(FakeTracker):
    """A tracker that knows of these issues, and gives the same overview until it changes."""

    known = Overview()

    def overview(self) -> Overview:
        return self.known


def an_overview(*states: str) -> Overview:
    return Overview(
        issues=tuple(
            Issue(id=IssueId(f"{number}"), identifier=f"I-{number}", title="t", state=state)
            for number, state in enumerate(states)
        )
    )


def unnamed(status: TrackerStatus) -> dict[str, int]:
    return {view.state: view.issues for view in status.view().unnamed_states}


async def test_states_that_no_setting_names_are_those_of_now() -> None:
    """Other issues, or other settings, and they are others; else they are not looked for."""
    tracker = Knowing()
    tracked = TrackerSettings(kind="file", active_states=("Todo",), terminal_states=("Done",))
    present = settings_of(tracked)
    guarded = GuardedTracker(tracker, lambda _fact: None)
    status = TrackerStatus(tracker=guarded, settings=lambda: present)

    tracker.known = an_overview("Todo", "Later", "Later")
    first, again = status.view(), status.view()
    tracker.known = an_overview("Todo", "Sometime")
    others = unnamed(status)
    present = settings_of(tracked.model_copy(update={"active_states": ("Todo", "Sometime")}))
    named = unnamed(status)

    assert {view.state: view.issues for view in first.unnamed_states} == {"Later": 2}
    assert again.unnamed_states is first.unnamed_states
    assert (others, named) == ({"Sometime": 1}, {})


async def test_budgets_are_those_of_the_last_answer_in_utc() -> None:
    """They are shown as they are, and said in words; an adapter's bug is no budget."""
    tracker = FakeTracker()
    eastern = timezone(timedelta(hours=2))
    tracker.limits = (
        RateBudget(
            name="requests",
            remaining=3,
            limit=50,
            resets_at=datetime(2026, 5, 1, 14, tzinfo=eastern),
        ),
    )
    settings = settings_of(TrackerSettings(kind="file", active_states=("Todo",)))
    guarded = GuardedTracker(tracker, lambda _fact: None)
    status = TrackerStatus(tracker=guarded, settings=lambda: settings)

    (budget,) = status.view().budgets
    words = status.budget_sentences()
    tracker.limits = None  # type: ignore[assignment]

    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert budget == BudgetView(name="requests", remaining=3, limit=50, resets_at=noon)
    assert budget.is_low
    assert words == ("the tracker's budget of requests: 3 of 50 left until 12:00:00Z",)
    assert status.budgets() == ()
