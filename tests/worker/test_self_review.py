"""What a reviewer is given, and what of it reaches the run's own records."""

from __future__ import annotations

from sortie.facts import Fact
from sortie.model import ProcessIdentity, Spending
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker import Assignment, RunReporter
from sortie.worker.environment import RunEnvironment
from sortie.worker.review_conversation import reporter_of
from sortie.workflow.review_prompt import cut_diff
from sortie.workspaces import Workspace
from tests.worker.rig import RUN, Rig

PROCESS = ProcessIdentity(pid=7, started_at=1.0)


async def _nothing(_: Event) -> None:
    """Commit nothing."""


def test_what_would_be_taken_for_the_run_is_kept_back() -> None:
    """The id of its session and what it did; its process and what it used are the run's."""
    told: list[Event] = []
    published: list[Fact] = []
    reporter = reporter_of(
        RunReporter(
            tell=told.append,
            commit=_nothing,
            publish=published.append,
            is_active=lambda _issue: True,
        )
    )

    launched = ev.ProcessLaunched(RUN, PROCESS)
    spent = ev.SpendingReported(RUN, Spending(credits=1.0))
    for event in (ev.AgentSessionKnown(RUN, "kiro", "s-2"), launched, spent):
        reporter.tell(event)
    reporter.publish(
        facts.AgentLaunched(run_id=RUN, turn=1, process=PROCESS, seconds_since_fetch=3.0)
    )

    assert told == [launched, spent]
    assert published == [facts.AgentLaunched(run_id=RUN, turn=1, process=PROCESS, role="reviewer")]


def test_a_reviewer_has_no_credential_to_push_with() -> None:
    """No secret of the settings, no SSH agent, and no helper of git's; the clone is its place."""
    rig = Rig()
    rig.environ |= {"SSH_AUTH_SOCK": "/run/agent", "MODEL_KEY": "m"}
    job = Assignment(run_id=RUN, issue=rig.issue, attempt=0, fetched_at=0.0)
    clone = Workspace(path="/root/@review/A", key="A", created=True, host="local")

    env = RunEnvironment(job, rig.context(), clone).for_reviewer()

    assert "SSH_AUTH_SOCK" not in env
    assert "TRACKER_KEY" not in env
    assert env["MODEL_KEY"] == "m"
    assert env["SORTIE_WORKSPACE"] == "/root/@review/A"
    assert (env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_VALUE_0"]) == ("credential.helper", "")


def test_a_long_difference_is_cut_at_a_line() -> None:
    """By bytes; a short one is whole."""
    assert cut_diff("+a\n+b\n", 6) == ("+a\n+b\n", False)
    assert cut_diff("+ä\n+öö\n+c\n", 8) == ("+ä", True)
    assert cut_diff("x" * 20, 10) == ("", True)
