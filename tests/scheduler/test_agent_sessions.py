"""Which session of its agent a run goes on with."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import LOCAL, AgentSession, ErrorKind, Failed, KnownWorkspace
from sortie.scheduler import Memory
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from tests.scheduler.driver import POLICY, Driver, issue, starts

PLACE = KnownWorkspace(issue_id=issue().id, identifier="A", host=LOCAL, path="/w/A")
KNOWN = AgentSession(host=LOCAL, agent=POLICY.agent, workspace="/w/A", session_id="s-1")


def handed_back(known: AgentSession, agent: str = POLICY.agent) -> str | None:
    """Return the session that a run on this machine gets after a restart."""
    memory = Memory(agent_sessions={issue().id: known}, workspaces=(PLACE,))
    (run,) = Driver(replace(POLICY, agent=agent), memory).start(issue())
    return run.resume.session_id if run.resume else None


@pytest.mark.parametrize(
    ("known", "agent", "session_id"),
    [
        (KNOWN, POLICY.agent, "s-1"),
        (replace(KNOWN, host="east"), POLICY.agent, None),
        (KNOWN, "another", None),
        (replace(KNOWN, workspace="/w/former"), POLICY.agent, None),
    ],
)
def test_a_session_is_resumed_where_it_was(
    known: AgentSession, agent: str, session_id: str | None
) -> None:
    """It belongs to one host, one directory and one kind of agent."""
    assert handed_back(known, agent) == session_id


def test_the_next_run_gets_what_the_last_one_told() -> None:
    """Each id is recorded with its run, and the newest one is handed on."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.tell(ev.WorkspaceMade(run.run_id, PLACE, True))
    told = [
        record
        for session_id in ("s-1", "s-2")
        for record in driver.tell(ev.AgentSessionKnown(run.run_id, POLICY.agent, session_id))
    ]

    driver.end(run.run_id, Failed(kind=ErrorKind.TURN_FAILED, message="why"))
    (again,) = starts(driver.pass_time(10.0))

    assert told == [
        rec.RecordSession(run_id=run.run_id, session_id="s-1"),
        rec.RecordSession(run_id=run.run_id, session_id="s-2"),
    ]
    assert (run.resume, again.resume) == (None, replace(KNOWN, session_id="s-2"))


def test_a_finished_issue_has_no_session_to_go_on_with() -> None:
    """Where it is opened again, its work begins anew."""
    driver = Driver(memory=Memory(agent_sessions={issue().id: KNOWN}, workspaces=(PLACE,)))
    driver.put(issue(state="Done"))
    driver.pass_time(7200.0)
    driver.settle(driver.tell(ev.WorkspaceCleaned(issue().id, (PLACE,))))

    (run,) = driver.start(issue())

    assert run.resume is None


def test_a_directory_that_was_lost_and_made_anew_has_no_session() -> None:
    """Nobody worked in it, whatever happened in another of the same name."""
    driver = Driver(memory=Memory(agent_sessions={issue().id: KNOWN}, workspaces=(PLACE,)))
    (run,) = driver.start(issue())

    made = driver.tell(ev.WorkspaceMade(run.run_id, PLACE, True))
    driver.end(run.run_id, Failed(kind=ErrorKind.TURN_FAILED, message="why"))
    (again,) = starts(driver.pass_time(10.0))

    assert made == [
        rec.ForgetWorkspace(host=LOCAL, path="/w/A"),
        rec.RecordWorkspace(run_id=run.run_id, workspace=PLACE),
    ]
    assert (run.resume, again.resume) == (KNOWN, None)
