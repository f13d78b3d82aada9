"""How the pull request of an issue stands, as an agent is told of it by a tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sortie.forges import Forge
from sortie.model import PullRequest, SortieError, cut
from sortie.model.outside import OutsideLog, on_one_line
from sortie.model.pull_requests import CheckState, HeadCheck, Note, PullRequestState
from sortie.model.texts import end_of

LOG_LINES = 100
"""Lines of the log of a failed check, its last ones."""

LOGS_SHOWN = 5
"""Failed checks of which the log is shown."""

LOG_SHOWN = 8000
CHECKS_SHOWN = 50
THREADS_SHOWN = 20
NOTES_SHOWN = 5
NOTE_SHOWN = 1000
_LINE_SHOWN = 300

Quote = Callable[[str, str], str]
"""Returns a text of strangers as an agent is shown it; the second is what it is."""


async def shown_pull_request(forge: Forge, request: PullRequest, quote: Quote) -> dict[str, Any]:
    """Return how a pull request stands. Raises TrackerError."""
    state = (await forge.look([request])).get(request.id)
    if state is None:
        return {"url": request.url, "state": "gone"}
    found = state.pull_request
    return {
        "url": found.url,
        "number": found.number,
        "state": found.state,
        "draft": found.draft,
        "title": _line(found.title),
        "branch": found.branch,
        "base": found.base,
        "head": found.head,
        "conflicts": state.conflicts,
        "refusal": None if state.refusal is None else _line(state.refusal),
        "checks": [
            {"name": _line(check.name), "state": check.state.value, "required": check.required}
            for check in state.checks[:CHECKS_SHOWN]
        ],
        "failed_check_logs": await _logs(forge, state, quote),
        "reviews": [
            {
                "author": _line(review.author),
                "state": review.state,
                "body": quote(cut(review.body, NOTE_SHOWN), "a review") if review.body else None,
            }
            for review in state.reviews[-THREADS_SHOWN:]
        ],
        "open_threads": _threads(state, quote),
    }


async def _logs(forge: Forge, state: PullRequestState, quote: Quote) -> list[dict[str, Any]]:
    shown = []
    failed = [check for check in state.checks if check.state is CheckState.FAILURE]
    for check in failed[:LOGS_SHOWN]:
        log = await _log(forge, check, quote)
        shown.append({"check": _line(check.name), "url": check.url, "end_of_log": log})
    return shown


async def _log(forge: Forge, check: HeadCheck, quote: Quote) -> str:
    try:
        log = await forge.check_log(check, LOG_LINES)
    except SortieError as exc:
        return f"(it could not be read: {_line(str(exc))})"
    return quote(OutsideLog(end_of(log, LOG_SHOWN), "the log of a check"), "the log of a check")


def _threads(state: PullRequestState, quote: Quote) -> list[dict[str, Any]]:
    unresolved = [thread for thread in state.threads if not thread.resolved]
    return [
        {
            "path": None if thread.path is None else _line(thread.path),
            "line": thread.line,
            "outdated": thread.outdated,
            "notes": [_note(note, quote) for note in thread.notes[-NOTES_SHOWN:] if note.body],
        }
        for thread in unresolved[-THREADS_SHOWN:]
    ]


def _note(note: Note, quote: Quote) -> dict[str, Any]:
    body = quote(cut(note.body, NOTE_SHOWN), "a review")
    return {"author": _line(note.author), "body": body}


def _line(text: str) -> str:
    return cut(on_one_line(text), _LINE_SHOWN)
