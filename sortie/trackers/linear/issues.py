"""Linear's issues as the program's: one node of an answer to one Issue, or why it is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sortie.http.json_values import time_of
from sortie.model import (
    Blocker,
    Comment,
    Issue,
    IssueId,
    TrackerError,
    TrackerErrorKind,
    state_key,
)
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.linear.api import nodes_of

Node = Mapping[str, Any]

TERMINAL_TYPES = frozenset({"completed", "canceled", "duplicate"})
"""The types of states in which an issue is over, whatever a team calls them."""

_PRIORITIES = (1, 2, 3, 4)


class ListedIssue(Struct, frozen=True, kw_only=True):
    """An issue of the list as it was last told; ``error`` says why it cannot be given.

    ``changed_at`` is Linear's time of its last change, None where that cannot be read.
    """

    id: IssueId
    identifier: str
    changed_at: datetime | None
    issue: Issue | None = None
    error: TrackerError | None = None


def listed(node: Node, added: AddedStates) -> ListedIssue:
    """Return a node as an entry of the list, readable or not."""
    issue, error = None, None
    try:
        issue = issue_of(node, added)
    except TrackerError as exc:
        error = exc
    return ListedIssue(
        id=IssueId(str(node["id"])),
        identifier=str(node.get("identifier") or node["id"]),
        changed_at=issue.updated_at if issue else None,
        issue=issue,
        error=error,
    )


def is_gone(node: Node) -> bool:
    """Tell whether an issue is archived or in the trash: it is not worked on."""
    return bool(node.get("trashed")) or node.get("archivedAt") is not None


def state_of(node: Node, added: AddedStates) -> str:
    """Return the state that an issue is in, by its own and its labels."""
    own, labels = node["state"], (str(label["name"]) for label in nodes_of(node["labels"]))
    return added.state_of(str(own["name"]), labels, ended=own["type"] in TERMINAL_TYPES)


def issue_of(node: Node, added: AddedStates, comments: tuple[Comment, ...] = ()) -> Issue:
    """Return a node as an issue. Raises TrackerError (INVALID) where it cannot be read."""
    name = str(node.get("identifier") or node.get("id"))
    try:
        title, state = str(node["title"]), state_of(node, added)
        if not title.strip() or not state.strip():
            what = "title" if not title.strip() else "state"
            raise _unreadable(name, f"has no {what}; give it one")
        return Issue(
            id=IssueId(str(node["id"])),
            identifier=name,
            title=title,
            state=state,
            description=node.get("description") or "",
            priority=_priority(node.get("priority")),
            url=node.get("url") or None,
            branch_name=node.get("branchName") or None,
            labels=tuple(str(label["name"]) for label in nodes_of(node["labels"])),
            author=_author(node, "creator", "externalUserCreator"),
            author_id=id_of(node.get("creator")),
            assignee=_person(node.get("assignee")),
            parent=(node.get("parent") or {}).get("identifier"),
            comments=comments,
            blocked_by=tuple(
                blockers_of(nodes_of(node["inverseRelations"]), added.states.terminal)
            ),
            created_at=time_of(node["createdAt"], "createdAt"),
            updated_at=time_of(node["updatedAt"], "updatedAt"),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise _unreadable(name, f"makes no sense as Linear tells it: {exc!r}") from exc


def _unreadable(name: str, why: str) -> TrackerError:
    return TrackerError(TrackerErrorKind.INVALID, f"Linear issue {name} {why}")


def _priority(value: Any) -> int | None:
    return int(value) if value in _PRIORITIES else None


def _person(user: Node | None) -> str | None:
    return (user.get("displayName") or user.get("name") or None) if user else None


def blockers_of(relations: Sequence[Node], terminal: Sequence[str]) -> list[Blocker]:
    """Return what blocks an issue: the other end of its inverse relations of that type.

    What was put into the trash blocks no issue. One that cannot be read has no state, and blocks.
    """
    return [
        blocker_of(relation["issue"], terminal)
        for relation in relations
        if relation["type"] == "blocks" and not relation["issue"].get("trashed")
    ]


def blocker_of(node: Node, terminal: Sequence[str]) -> Blocker:
    """Return a blocker; where it is over in a state that the settings do not name, as in another
    team, it is given as in the first terminal state that they do name."""
    identifier = str(node["identifier"])
    if not str(node["title"]).strip():
        return Blocker(identifier=identifier)
    state, named = str(node["state"]["name"]), set(map(state_key, terminal))
    if node["state"]["type"] in TERMINAL_TYPES and state_key(state) not in named and terminal:
        state = terminal[0]
    return Blocker(identifier=identifier, id=IssueId(str(node["id"])), state=state)


def with_blockers_moved(issue: Issue, moved: Mapping[str, Node], terminal: Sequence[str]) -> Issue:
    """Return an issue with those of its blockers as they are now that ``moved`` has, by id."""
    present: list[Blocker] = []
    for blocker in issue.blocked_by:
        node = moved.get(blocker.id) if blocker.id is not None else None
        if node is None:
            present.append(blocker)
        elif not node.get("trashed"):
            present.append(blocker_of(node, terminal))
    return replace(issue, blocked_by=tuple(present))


def comments_of(nodes: Sequence[Node]) -> tuple[Comment, ...]:
    """Return comments oldest first, which come newest first. Raises ValueError for an odd one."""
    found = [
        Comment(
            author=_author(node, "user", "externalUser") or "?",
            body=str(node["body"]),
            created_at=time_of(node["createdAt"], "createdAt"),
            author_id=id_of(node.get("user")),
        )
        for node in reversed(nodes)
    ]
    return tuple(sorted(found, key=attrgetter("created_at")))


def _author(node: Node, user: str, external: str) -> str | None:
    bot = node.get("botActor") or {}
    return _person(node.get(user)) or bot.get("name") or _person(node.get(external))


def id_of(user: Node | None) -> str | None:
    """Return by what Linear knows somebody: the address by which they log in."""
    return str(user["email"]) if user else None
