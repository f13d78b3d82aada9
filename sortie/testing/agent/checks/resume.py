"""A conversation goes on: in the next turn, in the next session, and after a kill."""

from __future__ import annotations

import trio

from sortie.agents import Session
from sortie.model import TurnOutcome
from sortie.testing.agent.check import check
from sortie.testing.agent.subject import AgentRefusal, Subject, ending_text
from sortie.testing.agent.turn_record import TurnRecord
from sortie.testing.checks import NotTried, require

UNKNOWN_ID = "0f0e0d0c-0b0a-4908-8706-050403020100"


@check("resume.next-turn", "the turns of a session are one conversation")
async def next_turn(subject: Subject) -> None:
    """The second turn knows what the first one was given."""
    first = subject.scenario("remember")
    subject.scenario("recall")
    async with subject.session(first) as session:
        await _remember(subject, session)
        await _recall(subject, session)


@check("resume.next-session", "a session goes on with an earlier one, by its id")
async def next_session(subject: Subject) -> None:
    """The earlier one was left in good order."""
    session_id = await _remembering_session(subject, kill=False)

    async with subject.session(resume_session_id=session_id) as session:
        await _recall(subject, session)


@check("resume.after-kill", "a session goes on with one whose program was killed in mid-turn")
async def after_kill(subject: Subject) -> None:
    """What was said before the turn that died is known."""
    session_id = await _remembering_session(subject, kill=True)

    async with subject.session(resume_session_id=session_id) as session:
        await _recall(subject, session)


@check("resume.unknown-id", "a session with an unknown id begins anew, or fails in good order")
async def unknown_id(subject: Subject) -> None:
    """The agent's own files may be lost, and its host another one."""
    if not subject.adapter.resumes:
        raise NotTried("the adapter does not resume sessions by their ids")
    scenario = subject.scenario("success")
    with subject.within(60 + subject.stop_bound, "the session"):
        end = await subject.attempt(scenario, resume_session_id=UNKNOWN_ID)
    if not isinstance(end, AgentRefusal):
        require(end.outcome is not TurnOutcome.CANCELLED, ending_text(end))


async def _remembering_session(subject: Subject, *, kill: bool) -> str:
    if not subject.adapter.resumes:
        raise NotTried("the adapter does not resume sessions by their ids")
    first = subject.scenario("remember")
    subject.scenario("recall")
    async with subject.session(first) as session:
        record = await _remember(subject, session)
        session_id = session.id or record.session_id
        require(session_id, "no id of the session was given")
        if kill:
            await _kill(subject, session)
    return session_id


async def _remember(subject: Subject, session: Session) -> TurnRecord:
    result, record = await subject.turn(session, subject.scenario("remember").prompt)
    require(result.outcome is TurnOutcome.COMPLETED, f"the turn of remember: {ending_text(result)}")
    return record


async def _recall(subject: Subject, session: Session) -> None:
    scenario = subject.scenario("recall")
    result, record = await subject.turn(session, scenario.prompt)
    require(result.outcome is TurnOutcome.COMPLETED, f"the turn of recall: {ending_text(result)}")
    require(scenario.says, "the scenario recall says nothing")
    said = " ".join(record.messages)
    require(scenario.says in said, f"{scenario.says!r} was not recalled; said was {said!r:.200}")


async def _kill(subject: Subject, session: Session) -> None:
    """Kill the agent in mid-turn; the turn ends, however.

    One that was killed before it said anything may be prompted once more, in another process.
    """
    scenario, record = subject.scenario("hang", "tool"), TurnRecord()
    killed: set[int] = set()
    with subject.within(2 * subject.stop_bound, "the end of the killed turn"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(subject.turn, session, scenario.prompt, record)
            await record.until(record.launched, "it was launched")
            while not record.over.is_set():
                for pid in record.pids:
                    if pid not in killed:
                        killed.add(pid)
                        await subject.signal(pid, "KILL")
                await trio.sleep(0.01)
