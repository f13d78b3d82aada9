"""The labels of an issue that stand for states, added and taken off by one request."""

from __future__ import annotations

from collections.abc import Collection

from sortie.http.budget import Use
from sortie.http.client import HttpClient, segment
from sortie.http.requests import HttpRequest
from sortie.model import Issue, LostAnswer, TrackerError, TrackerErrorKind
from sortie.trackers.jira.editions import Edition

_REFUSED = (TrackerErrorKind.INVALID, TrackerErrorKind.PERMISSION)


async def change_labels(
    client: HttpClient,
    edition: Edition,
    issue: Issue,
    add: Collection[str],
    remove: Collection[str],
) -> None:
    """Change some labels of an issue and leave the others; none are no request.

    Raises TrackerError, which does not say that nothing was changed: the issue does.
    """
    changes = [{"add": label} for label in add] + [{"remove": label} for label in remove]
    if not changes:
        return
    request = HttpRequest(
        method="PUT",
        path=f"{edition.api}/issue/{segment(issue.id)}",
        what=f"cannot change the labels of {issue.identifier}",
        body={"update": {"labels": changes}},
        use=Use.WRITE,
    )
    try:
        await client.ask(request)
    except TrackerError as exc:
        if exc.kind not in _REFUSED or isinstance(exc, LostAnswer):
            raise
        hint = (
            "states of tracker.label_states need the field Labels on the screen by which issues "
            "are edited, and the permission Edit issues"
        )
        raise TrackerError(exc.kind, f"{exc}; {hint}") from exc
