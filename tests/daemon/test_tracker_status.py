"""What the tracker holds is shown as of now, however little of it is looked at again."""

from __future__ import annotations

from sortie.config import TrackerSettings
from sortie.daemon.tracker_status import TrackerStatus
from sortie.model import Issue, IssueId
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.trackers import Overview
from tests.trackers.fake import FakeTracker


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
    present = TrackerSettings(kind="file", active_states=("Todo",), terminal_states=("Done",))
    guarded = GuardedTracker(tracker, lambda _fact: None)
    status = TrackerStatus(tracker=guarded, settings=lambda: present)

    tracker.known = an_overview("Todo", "Later", "Later")
    first, again = status.view(), status.view()
    tracker.known = an_overview("Todo", "Sometime")
    others = unnamed(status)
    present = present.model_copy(update={"active_states": ("Todo", "Sometime")})
    named = unnamed(status)

    assert {view.state: view.issues for view in first.unnamed_states} == {"Later": 2}
    assert again.unnamed_states is first.unnamed_states
    assert (others, named) == ({"Sometime": 1}, {})
