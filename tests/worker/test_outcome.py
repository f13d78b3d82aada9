"""What a run does after a turn."""

from __future__ import annotations

import errno

import pytest
from msgspec.structs import replace

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HostError,
    HostTrouble,
    RunEnd,
    RunStatus,
    TransportError,
    TurnOutcome,
    TurnResult,
)
from sortie.worker.outcome import REASON_LIMIT, AgentStatus, StatusWord, after_turn
from sortie.worker.reread import Gone, Reread, Unreadable
from tests.worker.rig import issue

GOOD = TurnResult(outcome=TurnOutcome.COMPLETED)


@pytest.mark.parametrize(
    ("read", "finish"),
    [
        (Reread(issue(state="Done")), Finish.LEFT_ACTIVE),
        (Gone(), Finish.GONE),
        (Unreadable("down"), Finish.UNREADABLE),
        (None, Finish.UNREADABLE),
    ],
)
def test_a_good_turn_ends_as_its_issue_reads(
    read: Reread | Gone | Unreadable | None, finish: Finish
) -> None:
    """What the tracker says of the issue decides."""
    assert after_turn(GOOD, None, read=read) == Finished(finish=finish)


@pytest.mark.parametrize(
    ("outcome", "kind", "status"),
    [
        (TurnOutcome.FAILED, ErrorKind.PORT_EXIT, RunStatus.FAILED),
        (TurnOutcome.TIMED_OUT, ErrorKind.TURN_TIMEOUT, RunStatus.TIMED_OUT),
        (TurnOutcome.STALLED, ErrorKind.TURN_STALLED, RunStatus.STALLED),
        (TurnOutcome.CANCELLED, ErrorKind.TURN_CANCELLED, RunStatus.CANCELLED),
    ],
)
def test_a_bad_turn_fails_the_run(outcome: TurnOutcome, kind: ErrorKind, status: RunStatus) -> None:
    """Kind, words and status are the turn's."""
    result = TurnResult(outcome=outcome, error_kind=kind, message="why")

    end = after_turn(result, None, read=None)

    assert end == Failed(kind=kind, message="why", status=status)


def test_a_failure_without_words_gets_some() -> None:
    """An adapter that gives neither kind nor message has failed all the same."""
    result = TurnResult(outcome=TurnOutcome.FAILED)

    assert after_turn(result, None, read=None) == Failed(
        kind=ErrorKind.TURN_FAILED, message="the turn failed"
    )


WHY = Failed(kind=ErrorKind.PORT_EXIT, message="why")


@pytest.mark.parametrize(
    ("trouble", "began", "end"),
    [
        (None, True, WHY),
        (HostTrouble.UNREACHABLE, False, replace(WHY, unreached=True)),
        (HostTrouble.UNREACHABLE, True, replace(WHY, adrift=True)),
        (HostTrouble.DROPPED, False, replace(WHY, adrift=True)),
        (HostTrouble.DROPPED, True, replace(WHY, adrift=True)),
        (HostTrouble.DISRUPTED, False, replace(WHY, disrupted=True)),
        (HostTrouble.DISRUPTED, True, replace(WHY, disrupted=True)),
        (HostTrouble.BUSY, False, replace(WHY, unreached=True)),
        (HostTrouble.BUSY, True, replace(WHY, shortage=True)),
    ],
)
def test_a_turn_that_its_host_failed_blames_the_host(
    trouble: HostTrouble | None, began: bool, end: Failed
) -> None:
    """What the host or this machine lacked is passed on, so that no issue is blamed for it."""
    result = TurnResult(outcome=TurnOutcome.FAILED, error_kind=ErrorKind.PORT_EXIT, message="why")
    error = HostError(trouble, "why") if trouble else TransportError("why")
    short = TransportError("why")
    short.__cause__ = OSError(errno.EMFILE, "Too many open files")

    assert after_turn(result, None, read=None, error=error, began=began) == end
    assert after_turn(result, None, read=None, error=short, began=began) == replace(
        WHY, shortage=True
    )


@pytest.mark.parametrize("outcome", list(TurnOutcome))
@pytest.mark.parametrize(
    ("word", "end"),
    [
        (StatusWord.BLOCKED, Finished(finish=Finish.BLOCKED, reason="why")),
        (StatusWord.DONE, Finished(finish=Finish.DONE, reason="why")),
        (StatusWord.NEEDS_HUMAN_REVIEW, Finished(finish=Finish.REVIEW, reason="why")),
    ],
)
def test_the_agents_word_counts_most(outcome: TurnOutcome, word: StatusWord, end: RunEnd) -> None:
    """Whatever the turn's outcome, and whatever the tracker says."""
    result = TurnResult(outcome=outcome)

    assert after_turn(result, AgentStatus(word, "why"), read=None) == end
    assert after_turn(result, AgentStatus(word, "why"), read=Gone()) == end


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("blocked", StatusWord.BLOCKED),
        ("  BLOCKED \n", StatusWord.BLOCKED),
        ("needs-human-review", StatusWord.NEEDS_HUMAN_REVIEW),
        ("", None),
        ("not blocked", None),
        ("blocked!", None),
    ],
)
def test_words_are_read_as_people_write_them(text: str, word: StatusWord | None) -> None:
    """Case and blanks around it do not matter; anything else is unknown."""
    found = AgentStatus.of(text)

    assert (found and found.word) is word


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("blocked", ""),
        ("blocked: the database\x1b[2J has no password", "the database [2J has no password"),
        ("blocked \u2014 why\n\n  and   how", "why and how"),
        ("needs-human-review\nLook at src/a.py.", "Look at src/a.py."),
    ],
)
def test_what_follows_the_word_is_the_reason(text: str, reason: str) -> None:
    """It is on one line, without what steers a terminal, whatever parts it from the word."""
    found = AgentStatus.of(text)

    assert found is not None
    assert found.reason == reason


def test_a_reason_is_bounded() -> None:
    """However long it is, and without half a word."""
    found = AgentStatus.of("blocked " + "word " * 800)

    assert found is not None
    assert len(found.reason) <= REASON_LIMIT
    assert set(found.reason.split()) == {"word", "[3999", "characters,", "cut]"}
