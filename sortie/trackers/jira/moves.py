"""Requests about the transitions of an issue."""

from __future__ import annotations

from sortie.model import Issue, TrackerError
from sortie.trackers.http.budget import Use
from sortie.trackers.http.client import HttpClient, segment
from sortie.trackers.http.errors import LostAnswer
from sortie.trackers.http.requests import Request
from sortie.trackers.jira.editions import Edition
from sortie.trackers.jira.transitions import Transition, transitions_in


def _path(edition: Edition, issue: Issue) -> str:
    return f"{edition.api}/issue/{segment(issue.id)}/transitions"


async def offered_transitions(
    client: HttpClient, edition: Edition, issue: Issue
) -> list[Transition]:
    """Return the transitions that an issue can take now, with the fields that they need."""
    request = Request(
        path=_path(edition, issue),
        what=f"cannot ask for the transitions of {issue.identifier}",
        params=[("expand", "transitions.fields")],
        list_at=("transitions",),
    )
    return transitions_in((await client.ask(request)).json())


async def take(
    client: HttpClient, edition: Edition, issue: Issue, transition: Transition
) -> TrackerError | None:
    """Take a transition, and return what it was refused with.

    What is returned does not say that it was not made: the issue does. Raises TrackerError where
    Jira wants to be left alone.
    """
    try:
        await client.ask(
            Request(
                method="POST",
                path=_path(edition, issue),
                what=f"cannot move {issue.identifier} from {issue.state} to {transition.to}",
                body={"transition": {"id": transition.id}},
                use=Use.WRITE,
            )
        )
    except TrackerError as exc:
        if exc.retry_after is not None and not isinstance(exc, LostAnswer):
            raise
        return exc
    return None
