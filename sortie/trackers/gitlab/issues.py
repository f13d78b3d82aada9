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

from sortie.http.comments import key_in, without_mark
from sortie.http.gitlab_notes import original
from sortie.http.json_values import (
    list_of,
    mapping_of,
    required_number,
    required_text,
    shown,
    text_of,
    time_of,
    word_of,
)
from sortie.model import (
    Blocker,
    Comment,
    Issue,
    IssueId,
    TrackerError,
    TrackerErrorKind,
    state_key,
)
from sortie.trackers import TrackerStates
from sortie.trackers.http.label_states import LabelStates

GitLabIssue = Mapping[str, Any]
"""An issue, or a project, note or label, as GitLab's JSON has it."""

OPENED, CLOSED = "opened", "closed"
"""GitLab's own two states. Named in the settings, they are those of issues without a label."""


def gitlab_states(states: TrackerStates, prefix: str | None = None) -> LabelStates:
    """Return the states that labels stand for at GitLab."""
    return LabelStates(states, opened=OPENED, closed=CLOSED, prefix=prefix or "", own_names=True)


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
    """Return where an issue is. Raises ValueError."""
    told = mapping_of(item)
    return IssueKey(
        required_number(told.get("project_id"), "project_id"),
        required_number(told.get("iid"), "iid"),
    )


def by_key(items: Iterable[GitLabIssue]) -> dict[IssueKey, GitLabIssue]:
    """Return issues by where they are; what does not say that is left out."""
    found: dict[IssueKey, GitLabIssue] = {}
    for item in items:
        try:
            found[key_of(item)] = item
        except ValueError:
            continue
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def is_moved(item: GitLabIssue) -> bool:
    """Tell whether an issue lives on in another project, under another id."""
    return item.get("moved_to_id") is not None


class IssueReader:
    """Makes issues of what GitLab answers.

    ``root`` is the path of the project or group that is worked on, which identifiers leave out;
    ``priorities`` are by the compared form of a label.
    """

    def __init__(
        self,
        labels: LabelStates,
        priorities: Mapping[str, int],
        root: str,
        *,
        with_confidential: bool,
    ) -> None:
        self.labels = labels
        self._priorities = priorities
        self.root = root
        self._with_confidential = with_confidential

    def identifier_of(self, item: GitLabIssue) -> str:
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

    def state_of(self, item: GitLabIssue) -> str:
        """Return the state that an issue is in. Raises ValueError."""
        if (state := item.get("state")) not in (OPENED, CLOSED):
            raise ValueError(f"its state is {shown(state)}, neither opened nor closed")
        return self.labels.state_of(labels_of(item), closed=state == CLOSED)

    def issue(self, item: GitLabIssue) -> Issue:
        """Return an issue without blockers and comments.

        Raises TrackerError (INVALID), which names it.
        """
        try:
            return self._issue(item)
        except ValueError as exc:
            where = item.get("web_url") or item.get("iid")
            raise TrackerError(
                TrackerErrorKind.INVALID, f"GitLab issue {where} cannot be read: {exc}"
            ) from exc

    def _issue(self, item: GitLabIssue) -> Issue:
        if item.get("confidential") is True and not self._with_confidential:
            raise ValueError("it is confidential, and gitlab.confidential is not true")
        title, labels = item.get("title"), labels_of(item)
        if not isinstance(title, str) or not title.strip():
            raise ValueError("it has no title")
        return Issue(
            id=key_of(item).id,
            identifier=self.identifier_of(item),
            title=title,
            state=self.state_of(item),
            description=text_of(item.get("description")) or "",
            priority=self._priority(labels),
            url=text_of(item.get("web_url")),
            labels=self.labels.plain(labels),
            author=_username(item),
            author_id=_username(item),
            assignee=_assignee(item),
            issue_type=text_of(item.get("issue_type")),
            parent=_epic(item.get("epic")),
            created_at=time_in(item, "created_at"),
            updated_at=time_in(item, "updated_at"),
        )

    def blocker(self, item: GitLabIssue) -> Blocker:
        """Return an issue as what another one waits for; a closed one is in a terminal state."""
        try:
            state = self.state_of(item)
            return Blocker(identifier=self.identifier_of(item), id=key_of(item).id, state=state)
        except ValueError:
            return Blocker(identifier=self._name_of(item))

    def _name_of(self, item: GitLabIssue) -> str:
        try:
            return self.identifier_of(item)
        except ValueError:
            return str(item.get("web_url") or item.get("id"))

    def _priority(self, labels: Sequence[str]) -> int | None:
        found = (self._priorities.get(state_key(label)) for label in labels)
        return min((number for number in found if number is not None), default=None)


def comments_of(notes: Sequence[GitLabIssue], *, with_internal: bool) -> tuple[Comment, ...]:
    """Return what people have written, oldest first; what GitLab notes by itself is left out.

    Raises ValueError where a note is not what it should be.
    """
    found = []
    for note in notes:
        body = required_text(mapping_of(note).get("body"), "the text of a note")
        hidden = note.get("internal") or note.get("confidential")
        if note.get("system") is True or (hidden is True and not with_internal):
            continue
        if key_in(body) is not None:
            body = original(without_mark(body))
        name = _username(note)
        found.append(
            Comment(
                author=name or "ghost",
                body=body,
                created_at=time_in(note, "created_at"),
                author_id=name,
            )
        )
    return tuple(found)


def path_of(item: GitLabIssue) -> str | None:
    """Return the path of an issue's project, None where GitLab does not tell it."""
    full = word_of(mapping_of(item.get("references")).get("full"))
    path, hash_sign, _ = full.rpartition("#")
    return path if hash_sign and path else None


def time_in(item: GitLabIssue, name: str) -> datetime | None:
    """Return a time, None where there is none. Raises ValueError where it cannot be read."""
    return None if item.get(name) is None else time_of(item[name], f"its {name}")


def labels_of(item: GitLabIssue) -> tuple[str, ...]:
    """Return the labels of an issue; they are texts, or objects where details were asked for."""
    found = item.get("labels") or ()
    names = (label.get("name") if isinstance(label, Mapping) else label for label in found)
    return tuple(name for name in names if isinstance(name, str))


def _username(item: GitLabIssue) -> str | None:
    """Return who wrote an issue or a note."""
    return word_of(mapping_of(item.get("author")).get("username")) or None


def _assignee(item: GitLabIssue) -> str | None:
    people = list_of(item.get("assignees")) or [item.get("assignee")]
    return text_of(mapping_of(people[0]).get("username"))


def _epic(epic: object) -> str | None:
    iid = mapping_of(epic).get("iid")
    return None if iid is None else f"&{iid}"
