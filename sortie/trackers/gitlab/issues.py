"""GitLab's issues as everybody else sees them.

Rule 1: an issue's id is the number of its project and its number in there, ``42:7``, which stay
when project or issue are renamed; GitLab's own id of an issue opens no route.
Rule 2: a time that cannot be read is a fault of that issue, never another time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from sortie.model import (
    Blocker,
    Comment,
    Issue,
    IssueId,
    TrackerError,
    TrackerErrorKind,
    state_key,
)
from sortie.model.texts import start_of
from sortie.trackers.gitlab.labels import CLOSED, OPENED, StateLabels
from sortie.trackers.gitlab.notes import original
from sortie.trackers.http.comments import key_in, without_mark

Item = Mapping[str, Any]


class NoIssue(ValueError):
    """What came is no issue; the text says what it lacks."""


class IssueKey(Struct, frozen=True, order=True):
    """Where an issue is: the numbers of its project, and of the issue in it."""

    project: int
    iid: int

    @property
    def id(self) -> IssueId:
        """Return the issue's id."""
        return IssueId(f"{self.project}:{self.iid}")


def key_of_id(issue_id: str) -> IssueKey | None:
    """Return where the issue with an id is; None where it is no id of this tracker's."""
    project, colon, iid = issue_id.partition(":")
    if not colon or not _is_number(project) or not _is_number(iid):
        return None
    return IssueKey(int(project), int(iid))


def key_of(item: object) -> IssueKey:
    """Return where an issue is. Raises NoIssue."""
    if not isinstance(item, Mapping):
        raise NoIssue("GitLab gave something that is no issue")
    project, iid = item.get("project_id"), item.get("iid")
    if not isinstance(project, int) or not isinstance(iid, int):
        raise NoIssue("GitLab gave an issue without project_id and iid")
    return IssueKey(project, iid)


def by_key(items: Iterable[Item]) -> dict[IssueKey, Item]:
    """Return issues by where they are; what does not say that is left out."""
    found: dict[IssueKey, Item] = {}
    for item in items:
        try:
            found[key_of(item)] = item
        except NoIssue:
            continue
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def is_moved(item: Item) -> bool:
    """Tell whether an issue lives on in another project, under another id."""
    return item.get("moved_to_id") is not None


class IssueReader:
    """Makes issues of what GitLab answers.

    ``root`` is the path of the project or group that is worked on, which identifiers leave out;
    ``priorities`` are by the compared form of a label.
    """

    def __init__(
        self,
        labels: StateLabels,
        priorities: Mapping[str, int],
        root: str,
        *,
        with_confidential: bool,
    ) -> None:
        self.labels = labels
        self._priorities = priorities
        self.root = root
        self._with_confidential = with_confidential

    def identifier_of(self, item: Item) -> str:
        """Return the name of an issue for people, which is good as the name of a directory.

        No part of a path has two hyphens in a row, so no two issues share one.
        """
        key, path = key_of(item), path_of(item)
        if path is None:
            return f"{key.project}-{key.iid}"
        folded = path.casefold()
        if folded == self.root.casefold():
            path = path.rpartition("/")[2]
        elif folded.startswith(f"{self.root.casefold()}/"):
            path = path[len(self.root) + 1 :]
        return f"{path.replace('/', '--')}-{key.iid}"

    def state_of(self, item: Item) -> str:
        """Return the state that an issue is in. Raises NoIssue."""
        if item.get("state") not in (OPENED, CLOSED):
            raise NoIssue(
                f"its state is {start_of(repr(item.get('state')), 40)}, neither opened nor closed"
            )
        return self.labels.state_of(labels_of(item), is_open=item["state"] == OPENED)

    def issue(
        self,
        item: Item,
        *,
        blocked_by: tuple[Blocker, ...] = (),
        comments: tuple[Comment, ...] = (),
    ) -> Issue:
        """Return an issue. Raises TrackerError (INVALID), which names it."""
        try:
            return self._issue(item, blocked_by, comments)
        except NoIssue as exc:
            where = item.get("web_url") or item.get("iid")
            raise TrackerError(
                TrackerErrorKind.INVALID, f"GitLab issue {where} cannot be read: {exc}"
            ) from exc

    def _issue(
        self, item: Item, blocked_by: tuple[Blocker, ...], comments: tuple[Comment, ...]
    ) -> Issue:
        if item.get("confidential") is True and not self._with_confidential:
            raise NoIssue("it is confidential, and gitlab.confidential is not true")
        title, labels = item.get("title"), labels_of(item)
        if not isinstance(title, str) or not title.strip():
            raise NoIssue("it has no title")
        return Issue(
            id=key_of(item).id,
            identifier=self.identifier_of(item),
            title=title,
            state=self.state_of(item),
            description=_text(item.get("description")) or "",
            priority=self._priority(labels),
            url=_text(item.get("web_url")),
            labels=self.labels.plain(labels),
            assignee=_assignee(item),
            issue_type=_text(item.get("issue_type")),
            parent=_epic(item.get("epic")),
            comments=comments,
            blocked_by=blocked_by,
            created_at=time_of(item, "created_at"),
            updated_at=time_of(item, "updated_at"),
        )

    def blocker(self, item: Item) -> Blocker:
        """Return an issue as what another one waits for; a closed one is in a terminal state."""
        try:
            state = self.state_of(item)
            return Blocker(identifier=self.identifier_of(item), id=key_of(item).id, state=state)
        except NoIssue:
            return Blocker(identifier=self._name_of(item))

    def _name_of(self, item: Item) -> str:
        try:
            return self.identifier_of(item)
        except NoIssue:
            return str(item.get("web_url") or item.get("id"))

    def _priority(self, labels: Sequence[str]) -> int | None:
        found = (self._priorities.get(state_key(label)) for label in labels)
        return min((number for number in found if number is not None), default=None)


def comments_of(notes: Sequence[Item], *, with_internal: bool) -> tuple[Comment, ...]:
    """Return what people have written, oldest first; what GitLab notes by itself is left out.

    Raises NoIssue where a note is not what it should be.
    """
    found = []
    for note in notes:
        if not isinstance(note, Mapping) or not isinstance(note.get("body"), str):
            raise NoIssue("one of its notes cannot be read")
        hidden = note.get("internal") or note.get("confidential")
        if note.get("system") is True or (hidden is True and not with_internal):
            continue
        author, body = note.get("author"), note["body"]
        if key_in(body) is not None:
            body = original(without_mark(body))
        name = author.get("username") if isinstance(author, Mapping) else None
        found.append(
            Comment(
                author=_text(name) or "ghost",
                body=body,
                created_at=time_of(note, "created_at"),
            )
        )
    return tuple(found)


def path_of(item: Item) -> str | None:
    """Return the path of an issue's project, None where GitLab does not tell it."""
    references = item.get("references")
    full = references.get("full") if isinstance(references, Mapping) else None
    path, hash_sign, _ = full.rpartition("#") if isinstance(full, str) else ("", "", "")
    return path if hash_sign and path else None


def time_of(item: Item, name: str) -> datetime | None:
    """Return a time, None where there is none. Raises NoIssue where it cannot be read."""
    text = item.get(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except (ValueError, TypeError) as exc:
        raise NoIssue(f"its {name} is no time: {start_of(repr(text), 40)}") from exc
    if found.utcoffset() is None:
        raise NoIssue(f"its {name} has no offset: {start_of(repr(text), 40)}")
    return found


def labels_of(item: Item) -> tuple[str, ...]:
    """Return the labels of an issue; they are texts, or objects where details were asked for."""
    found = item.get("labels") or ()
    names = (label.get("name") if isinstance(label, Mapping) else label for label in found)
    return tuple(name for name in names if isinstance(name, str))


def _assignee(item: Item) -> str | None:
    people = item.get("assignees") or [item.get("assignee")]
    first = people[0] if isinstance(people, Sequence) and people else None
    return _text(first.get("username")) if isinstance(first, Mapping) else None


def _epic(epic: object) -> str | None:
    iid = epic.get("iid") if isinstance(epic, Mapping) else None
    return None if iid is None else f"&{iid}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
