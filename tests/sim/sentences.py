"""What the scheduler says to people and counts in metrics, word for word.

Whoever changes a sentence changes it here too: somebody may look for it in a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_SPOKEN = ("reason", "detail", "message", "error", "verdict", "action", "outcome", "lifecycle")

ISSUE, STATE, RUN = "[A-H]", "[ A-Za-z]+", "[0-9a-f-]{36}"
BLOCKED = rf"it is blocked by {ISSUE} \(({STATE}|state unknown)\)"
MISSING, UNREAD = "the tracker no longer knows it", "it could not be re-read: down"
MOVED = f"it was moved to {STATE}"
SLOT = "no available orchestrator slots"
HOST = (
    r"(local|east|west|north) (has \d of \d runs|rests after trouble"
    r"|is being tried again after trouble)"
)
ITS_HOSTS = rf"no host is free \({HOST}(, {HOST})*, and its workspace is there\)"
TROUBLED_HOST = (
    rf"no host is free \({HOST}(, {HOST})*, and its workspace is there"
    r"; after 10 minutes of trouble it goes elsewhere\)"
)
ROOM = (
    BLOCKED,
    "it lacks the label ready",
    "kiro-cli was not found",
    "dispatch is paused",
    "the tracker wants to be left alone for a while",
    "the usage limit of (kiro|another) is reached; it ends at [0-9T:Z-]+",
    "the usage limit of (kiro|another) is reached; nobody said until when, so it is tried again"
    " after a while",
    "the usage limit of (kiro|another) may be over, and one run tries that first",
    r"budget\.daily_credits is used up: [\d.]+ credits of 6 credits; runs start again at midnight"
    r" \(UTC\)",
    SLOT,
    f"{SLOT} for state {STATE}",
    rf"no host is free \({HOST}(, {HOST})*\)",
    ITS_HOSTS,
    TROUBLED_HOST,
)
SPENT = (
    r"it has used [\d,]+ tokens, and agent\.max_tokens allows 300 tokens",
    r"it has used [\d.]+ credits, and agent\.max_credits allows 2 credits",
    r"it has used \$[\d.]+, and agent\.max_cost_usd allows \$1\.50",
)
INACTIVE_GRACE = r"; its turn has 30 s to end"
NEITHER = "it neither waits nor is held"
UNKNOWN = (
    r"[a-h] neither runs, waits nor is held, and is not among the \d issues in an active state"
    r" that the last poll found( \(the last poll failed: (down|no preflight has been made yet)\))?"
    "; look at its spelling, and in the tracker at its state"
)

EXPECTED: dict[str, tuple[str, ...]] = {
    "AnswerCommand.verdict": ("done", "conflict", "unknown"),
    "AnswerCommand.message": (
        UNKNOWN,
        r"a poll was asked for(; the tracker wants to be left alone for [\dhms. ]+ more)?",
        f"{ISSUE} is due now",
        f"{ISSUE} is due now, but .+",
        f"the handoff of {ISSUE} is tried now",
        f"the workspace of {ISSUE} is looked at now",
        f"{ISSUE} cannot be retried: it is {STATE}, and its workspace is being removed",
        rf"{ISSUE} cannot be retried: it is running \({RUN}\)",
        f"{ISSUE} cannot be retried: {NEITHER}(, but .+)?",
        f"{ISSUE} cannot be retried: it was chosen to run and is being re-read",
        f"{ISSUE} cannot be retried: its handoff is under way",
        f"{ISSUE} cannot be retried: its run is being stopped; try again when it is over",
        f"{ISSUE} cannot be retried: its state {STATE} is not active",
        f"{ISSUE} has no question that waits for an answer",
        f"the question of {ISSUE} is answered: .+",
        f"the question of {ISSUE} is no longer open: (jo|kim) has answered it .+",
        f"the question of {ISSUE} is no longer open: nobody has answered it in time, .+",
        f"the question of {ISSUE} was withdrawn: .+",
        f"the answer to the question of {ISSUE} is (not empty|one of these: .+)",
    ),
    "PostComment.lifecycle": ("completion", "failure"),
    "DispatchDropped.outcome": ("dropped", "error"),
    "DispatchDropped.reason": (
        MISSING,
        UNREAD,
        f"its state {STATE} is not active",
        f"its state {STATE} is terminal",
        *ROOM,
    ),
    "HoldEnded.reason": (
        MISSING,
        "an operator asked for a retry",
        f"it is {STATE}",
        "its content changed",
        f"its state changed from {STATE} to {STATE}",
        "the agent's program is found",
        "the settings changed",
        "the agent's program is found",
        f"it was moved to {STATE}",
    ),
    "AgentLimitEnded.reason": (
        "an operator had dispatch go on",
        "a run works that has not met it",
        "a run ended that has not met it",
    ),
    "HostPaused.error": ("connection refused", "it broke"),
    "IssueReconciled.action": ("keep", "stop", "cleanup"),
    "IssueReconciled.reason": (
        "",
        f"it is {STATE}",
        MISSING,
        MISSING + INACTIVE_GRACE,
        MOVED,
        MOVED + INACTIVE_GRACE,
    ),
    "RecordHold.detail": (
        "an operator stopped it",
        "it broke",
        f"it could not be moved to {STATE}: no",
        *SPENT,
        r"it had \d sessions, as many as agent.max_sessions allows",
        "the agent says it is done, and no handoff state is configured",
        "the agent asks for a review, and no handoff state is configured",
        "the agent says it is blocked",
        "Which one\\?",
        "the agent has a question, and the settings allow none: Which one\\?",
        "the daemon crashed 2 times in a row while it handled this issue; see its log",
    ),
    "WaitEnded.reason": (MISSING, MOVED, "no", "no handoff state is configured any more"),
    "Waiting.reason": (
        "",
        UNREAD,
        "no preflight has been made yet",
        "the tracker did not say how the issues stand that were chosen last",
        *ROOM,
        *SPENT,
    ),
}
"""Patterns of what is said, by who says it."""

_RARE = (
    "AnswerCommand.message: [A-H] cannot be retried: its state",
    "HoldEnded.reason: it was moved",
    "Waiting.reason: the tracker did not",
    "Waiting.reason: it has used",
    "DispatchDropped.reason: ",
)


def sentences_of(thing: object) -> Iterator[str]:
    """Yield what a decision or claim says, each with where it says it."""
    for name in _spoken_by(thing):
        text = getattr(thing, name)
        if type(text) is str:
            yield f"{type(thing).__name__}.{name}: {text}"


_SPOKEN_BY: dict[Any, tuple[str, ...]] = {}


def _spoken_by(thing: Any) -> tuple[str, ...]:
    kind = type(thing)
    if kind not in _SPOKEN_BY:
        _SPOKEN_BY[kind] = tuple(name for name in _SPOKEN if hasattr(kind, name))
    return _SPOKEN_BY[kind]


def unexpected(said: set[str]) -> list[str]:
    """Return what was said, by who is listed, that is not expected."""
    mine = [text for text in said if text.partition(":")[0] in EXPECTED]
    return sorted(text for text in mine if not any(p.fullmatch(text) for p in _PATTERNS))


def unsaid(said: set[str]) -> list[str]:
    """Return what is expected of some hundred days, and was not said."""
    return [
        f"{where}: {pattern}"
        for where, patterns in EXPECTED.items()
        for pattern in patterns
        if not f"{where}: {pattern}".startswith(_RARE)
        and not any(re.fullmatch(f"{re.escape(where)}: {pattern}", text) for text in said)
    ]


_PATTERNS = [re.compile(f"{re.escape(where)}: {p}") for where, ps in EXPECTED.items() for p in ps]
