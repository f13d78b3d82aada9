"""What notifications say; pure.

Rule 1: words of issues, agents and programs stand on a line of bounded length and call nobody: no
mention of a person, a channel or everybody in any chat is left in them.
Rule 2: each text says what happened first, and then what can be done.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import UTC
from urllib.parse import quote

from sortie.facts import AgentLimited, BudgetRunsLow, BudgetSpent, QuestionAsked, ReactionEnded
from sortie.model import ErrorKind, HoldReason, Issue, RunStatus, Spending
from sortie.model.numbers import counted, span
from sortie.model.spending import told_amounts
from sortie.model.texts import start_of

TITLE_LENGTH, WORDS_LENGTH = 120, 500
"""Characters of an issue's title, and of what else comes from outside."""

QUESTION_LENGTH = 2000
"""Characters of a question."""

_NO_MENTION = {"@": "@\u200b", "<": "\u2039", ">": "\u203a"}
"""Chats find people by ``@name`` and ``<!channel>``; a space without width makes both plain."""


def harmless(text: str, limit: int = WORDS_LENGTH) -> str:
    """Return a text from outside on one line, cut, without anything that could call people."""
    visible = (" " if c.isspace() else c for c in text if c.isspace() or _is_shown(c))
    shown = start_of(" ".join("".join(visible).split()), limit)
    return "".join(_NO_MENTION.get(c, c) for c in shown)


def _is_shown(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")


def name_of(issue: Issue) -> str:
    """Return an issue's identifier for a text."""
    return harmless(issue.identifier, TITLE_LENGTH)


def link_of(address: str | None) -> str | None:
    """Return an address that may stand in a message, None for what is no address of a page."""
    if address is None or not address.startswith(("https://", "http://")):
        return None
    return None if any(c.isspace() or c in "<>\"'|" for c in address) else address


def dashboard_link(public_url: str | None, issue: Issue | None) -> str | None:
    """Return where the dashboard shows an issue, or all; None where it has no address."""
    if public_url is None:
        return None
    page = "/" if issue is None else f"/issues/{quote(issue.identifier, safe='')}"
    return public_url.rstrip("/") + page


_STATUSES = {
    RunStatus.FAILED: "failed",
    RunStatus.TIMED_OUT: "took too long and was ended",
    RunStatus.STALLED: "was silent too long and was ended",
}


def run_failed(
    issue: Issue, status: RunStatus, kind: ErrorKind | None, error: str | None, next_: str
) -> tuple[str, str]:
    """Say that a run has failed; ``next_`` is what follows."""
    why = ": ".join(part for part in (kind and kind.value, error and harmless(error)) if part)
    said = f"A run {_STATUSES[status]}{f': {why}' if why else '.'}"
    what = f"sortie logs {name_of(issue)} shows what the agent did."
    return f"{name_of(issue)}: run failed", "\n".join(filter(None, (said, next_, what)))


_HOLDS: Mapping[HoldReason, tuple[str, str]] = {
    HoldReason.AGENT_NOT_FOUND: (
        "the agent's program was not found",
        "Install it, or set agent.command.",
    ),
    HoldReason.INVALID_WORKSPACE_CWD: (
        "its workspace cannot be used",
        "See what is in the way there.",
    ),
    HoldReason.ADAPTER_SETTINGS: ("the settings of the agent are wrong", "Correct them."),
    HoldReason.SESSION_BUDGET_EXHAUSTED: (
        "it has had as many runs as it may",
        "Raise agent.max_sessions, or let it run again.",
    ),
    HoldReason.USAGE_BUDGET_EXHAUSTED: (
        "it has used as much as it may",
        "Raise its limit, or let it run again.",
    ),
    HoldReason.HANDOFF_FAILED: (
        "it could not be moved to the handoff state",
        "Move it in the tracker, or mend what is in the way.",
    ),
    HoldReason.AGENT_BLOCKED: (
        "the agent cannot go on without a person",
        "Answer by editing the issue, or do what is missing.",
    ),
    HoldReason.VERIFICATION_FAILED: (
        "its checks fail",
        "Look at what failed, and change the issue or the branch.",
    ),
    HoldReason.NO_CHANGE: (
        "the agent finished without a change",
        "Say in the issue what is to be changed, or close it.",
    ),
    HoldReason.TOO_MANY_STAGES: (
        "too many stages followed each other",
        "See whether its rules lead in a circle.",
    ),
    HoldReason.INTERNAL_ERROR: (
        "Sortie itself failed while it handled it",
        "Look at the daemon's log before you let it run again.",
    ),
}


def held(issue: Issue, reason: HoldReason, detail: str) -> tuple[str, str]:
    """Say that an issue is parked until something changes."""
    name = name_of(issue)
    why, advice = _HOLDS.get(reason, (reason.value.replace("_", " "), ""))
    about = f" ({harmless(detail)})" if detail else ""
    said = f"{name} is held: {why}{about}."
    again = f"sortie retry {name} lets it run again; sortie explain {name} says what else does."
    return f"{name}: held", "\n".join(filter(None, (said, advice, again)))


def question_asked(fact: QuestionAsked) -> tuple[str, str]:
    """Say what an agent wants to know, and how it is answered."""
    name = name_of(fact.issue)
    lines = [harmless(fact.text, QUESTION_LENGTH)]
    lines += [f"{number}. {harmless(option)}" for number, option in enumerate(fact.options, 1)]
    if fact.deadline is not None and fact.default is not None:
        until = f"{fact.deadline.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        lines.append(f"Without an answer before {until} it is: {harmless(fact.default)}")
    lines.append(f"Answer with a comment on the issue, or: sortie answer {name} TEXT")
    return f"{name}: a question", "\n".join(lines)


def pull_request_opened(issue: Issue, title: str) -> tuple[str, str]:
    """Say that there is a pull request to be looked at."""
    name = name_of(issue)
    said = f"A pull request was opened: {harmless(title, TITLE_LENGTH)}"
    return f"{name}: pull request", f"{said}\nReview it, and merge or close it."


def reaction_exhausted(fact: ReactionEnded) -> tuple[str, str]:
    """Say that no further run answers what happens to a pull request."""
    name, kinds = name_of(fact.issue), " and ".join(fact.kinds)
    said = (
        f"The pull request needs a person: as many runs as there may be have answered its {kinds}."
    )
    return f"{name}: needs a person", f"{said}\nsortie retry {name} allows further runs."


def budget_low(fact: BudgetRunsLow) -> tuple[str, str]:
    """Say that little is left of a limit."""
    where = "today" if fact.issue is None else name_of(fact.issue)
    said = f"{fact.used} of {fact.limit} are used ({fact.key})."
    what = "At the limit no run is started before midnight."
    if fact.issue is not None:
        what = "At the limit the issue is held."
    return f"{where}: little is left of a budget", f"{said}\n{what}"


def budget_spent(fact: BudgetSpent) -> tuple[str, str]:
    """Say that the limit of a day is reached."""
    said = f"{fact.used} of {fact.limit} are used ({fact.key}): no run is started before midnight."
    return "The budget of the day is spent", f"{said}\nRaise budget.* to go on today."


def usage_limited(fact: AgentLimited) -> tuple[str, str]:
    """Say that an account may not be used for some time."""
    until = f"for {span(fact.seconds)}" if fact.resets_at is None else f"before {fact.resets_at}"
    said = f"{harmless(fact.agent)}: {harmless(fact.error)}"
    return (
        "The agent's usage limit is reached",
        f"{said}\nNo run with this account is started {until}. Nothing has to be done.",
    )


def daily_digest(
    day: str, runs: Mapping[str, int], spent: Spending, held_now: int, waiting: int
) -> tuple[str, str]:
    """Sum up a day, as 2026-11-22: its runs by status, what they used, and what waits now."""
    listed = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in runs.items())
    lines = [f"{counted(sum(runs.values()), 'run')} ended{f': {listed}' if listed else ''}."]
    if amounts := told_amounts(spent):
        lines.append(f"Used: {', '.join(amounts)}.")
    lines.append(f"Now {counted(held_now, 'issue')} held, {waiting} waiting to run again.")
    if held_now:
        lines.append("sortie status lists what is held, and why.")
    return f"Sortie on {day}", "\n".join(lines)
