"""Codes and sessions: once, for a time, so many, and no secret is kept."""

from __future__ import annotations

import secrets

import pytest

from sortie.web.sessions import (
    CODE_SECONDS,
    MOST_CODES,
    MOST_SESSIONS,
    SESSION_SECONDS,
    BrowserSessions,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> BrowserSessions:
    return BrowserSessions(clock)


def opened(sessions: BrowserSessions) -> str:
    session = sessions.open(sessions.make_code())
    assert session is not None
    return session


def test_both_end_after_a_time(sessions: BrowserSessions, clock: Clock) -> None:
    """A code after two minutes, a session after its hours."""
    late, session = sessions.make_code(), opened(sessions)

    clock.now += CODE_SECONDS
    assert sessions.open(late) is None
    clock.now += SESSION_SECONDS - CODE_SECONDS - 1
    assert sessions.is_open(session)
    clock.now += 1
    assert not sessions.is_open(session)


def test_the_newest_are_kept(sessions: BrowserSessions) -> None:
    """Beyond the most that there may be, the oldest give way."""
    codes = [sessions.make_code() for _ in range(MOST_CODES + 1)]
    assert sessions.open(codes[0]) is None
    assert sessions.open(codes[1]) is not None

    opened_ones = [opened(sessions) for _ in range(MOST_SESSIONS + 1)]
    assert [sessions.is_open(one) for one in opened_ones[:2]] == [False, True]
    assert sessions.is_open(opened_ones[-1])


def test_no_secret_is_kept(sessions: BrowserSessions) -> None:
    """Nothing that the object holds is, or contains, a code or a session."""
    code, session = sessions.make_code(), opened(sessions)

    held = repr([vars(part) for part in (sessions._codes, sessions._sessions)])

    assert code not in held
    assert session not in held


def test_words_cannot_be_guessed(
    sessions: BrowserSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have 256 random bits."""
    asked: list[int] = []

    def token_urlsafe(size: int) -> str:
        asked.append(size)
        return "word"

    monkeypatch.setattr(secrets, "token_urlsafe", token_urlsafe)

    opened(sessions)

    assert asked == [32, 32]
