"""Issues as GitHub's JSON has them, read once; what cannot be read is an error of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sortie.http.json_values import (
    list_of,
    mapping_of,
    number_of,
    required_number,
    required_text,
    shown,
    text_of,
    time_of,
    word_of,
)
from sortie.model import Blocker, Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.trackers import TrackerStates
from sortie.trackers.http.comments import author_of
from sortie.trackers.http.label_states import LabelStates

OPEN = "open"
"""The state of an open issue that no label puts into another one."""


def github_states(states: TrackerStates, unlabeled: str | None = None) -> LabelStates:
    """Return the states that labels stand for at GitHub."""
    return LabelStates(states, opened=OPEN, unlabeled=unlabeled)


class GitHubItem(Struct, frozen=True, kw_only=True):
    """An issue before its state is told: ``issue`` has neither that, nor labels of states left out.

    ``blockers`` is how many issues it waits for, ``open_blockers`` how many of those are open;
    None where the server does not say. ``updated_at`` is never None. ``comment_data`` are its
    comments, where they came with it.
    """

    issue: Issue
    closed: bool
    updated_at: datetime
    comments: int
    blockers: int | None
    open_blockers: int | None
    comment_data: Sequence[Mapping[str, Any]] | None = None

    @property
    def number(self) -> str:
        """Its number as text, which is its id."""
        return self.issue.id

    def state(self, states: LabelStates) -> str:
        """Return the state it is in."""
        return states.state_of(self.issue.labels, closed=self.closed)

    def changed(self, labels: tuple[str, ...], *, closed: bool) -> GitHubItem:
        """Return it with other labels, open or closed."""
        return replace(self, issue=replace(self.issue, labels=labels), closed=closed)


class GitHubRepository(Struct, frozen=True, kw_only=True):
    """The repository whose issues are meant, and how what is in it is read."""

    owner: str
    name: str
    priorities: Mapping[str, int]  # by label, as ``state_key`` gives it

    @property
    def full_name(self) -> str:
        """Owner and name."""
        return f"{self.owner}/{self.name}"

    def identifier(self, number: object) -> str:
        """Return what people call an issue here; it can be the name of a directory."""
        return f"{self.name}-{number}"

    def number_in(self, name: str) -> str | None:
        """Return the number that an id or an identifier says, None where it is neither."""
        prefix = f"{self.name}-".casefold()
        text = name[len(prefix) :] if name.casefold().startswith(prefix) else name
        text = text.removeprefix("#")
        return text if text.isascii() and text.isdigit() and text[0] != "0" else None

    def item(self, data: Any) -> GitHubItem | None:
        """Return an issue; None for a pull request, which GitHub lists among them.

        Raises TrackerError (INVALID) where it cannot be read.
        """
        if not isinstance(data, dict):
            raise _unreadable(self.full_name, f"it is {shown(data)}")
        if data.get("pull_request") is not None:
            return None
        try:
            return self._item(data)
        except ValueError as exc:
            raise _unreadable(f"{self.full_name}#{data.get('number')}", str(exc)) from exc

    def _item(self, data: Mapping[str, Any]) -> GitHubItem:
        number, state = required_number(data.get("number"), "number"), data.get("state")
        if state not in ("open", "closed"):
            raise ValueError(f"its state is {shown(state)}")
        labels = labels_of(data.get("labels"))
        counts = mapping_of(data.get("issue_dependencies_summary"))
        updated_at = time_of(data.get("updated_at"), "updated_at")
        assignees = list_of(data.get("assignees"))  # "assignee" is gone in later versions
        return GitHubItem(
            issue=Issue(
                id=IssueId(str(number)),
                identifier=self.identifier(number),
                title=required_text(data.get("title"), "title"),
                state="",
                description=required_text(data.get("body") or "", "body"),
                priority=self._priority(labels),
                url=required_text(data.get("html_url"), "html_url"),
                labels=labels,
                author=author_of(data),
                author_id=author_of(data),
                assignee=_login_of(assignees[0]) if assignees else None,
                issue_type=text_of(mapping_of(data.get("type")).get("name")),
                parent=self._parent(data.get("parent_issue_url")),
                created_at=time_of(data.get("created_at"), "created_at"),
                updated_at=updated_at,
            ),
            closed=state == "closed",
            updated_at=updated_at,
            comments=required_number(data.get("comments"), "comments"),
            blockers=number_of(counts.get("total_blocked_by")),
            open_blockers=number_of(counts.get("blocked_by")),
        )

    def _priority(self, labels: tuple[str, ...]) -> int | None:
        found = [self.priorities[k] for k in map(state_key, labels) if k in self.priorities]
        return min(found, default=None)

    def _parent(self, address: object) -> str | None:
        """Return the identifier of the issue at an address such as .../repos/O/R/issues/7."""
        parts = address.rstrip("/").split("/") if isinstance(address, str) else []
        if len(parts) < 4 or parts[-2] != "issues" or not parts[-1].isdigit():
            return None
        return self._called(parts[-4], parts[-3], parts[-1])

    def _called(self, owner: str, name: str, number: object) -> str:
        if f"{owner}/{name}".casefold() == self.full_name.casefold():
            return self.identifier(number)
        return f"{owner}/{name}#{number}"

    def blocker(self, data: Any, states: LabelStates) -> tuple[Blocker, bool]:
        """Return an issue that another waits for, and whether it is open.

        One of another repository has labels of its own: it is open, or finished when it is closed.
        One that cannot be read has no state, and blocks.
        """
        if not isinstance(data, dict):
            raise _unreadable("a blocker", f"it is {shown(data)}")
        place, number = data.get("repository_url", ""), data.get("number")
        owner, name = ["", "", *str(place).rstrip("/").split("/")][-2:]
        called = self._called(owner, name, number) if owner else self.identifier(number)
        try:
            item = self._item(data)
        except ValueError:
            return Blocker(identifier=called), data.get("state") != "closed"
        if called == self.identifier(number):
            state = item.state(states)
            return Blocker(identifier=called, id=item.issue.id, state=state), not item.closed
        state = states.finished if item.closed else OPEN
        return Blocker(identifier=called, state=state), not item.closed


def issue_of(item: GitHubItem, states: LabelStates, blocked_by: tuple[Blocker, ...] = ()) -> Issue:
    """Return an issue as the port gives it, without comments."""
    plain = states.plain(item.issue.labels)
    return replace(item.issue, state=item.state(states), labels=plain, blocked_by=blocked_by)


def number_in(data: Any) -> str:
    """Return the number of what cannot be read, as far as it can be told; else ""."""
    return word_of(mapping_of(data).get("number"))


def labels_of(data: Any) -> tuple[str, ...]:
    """Return the names in a list of labels. Raises ValueError."""
    if data != (labels := list_of(data)):
        raise ValueError(f"a list of labels was expected, not {shown(data)}")
    names = (label if isinstance(label, str) else mapping_of(label).get("name") for label in labels)
    return tuple(required_text(name, "a label's name") for name in names)


def _login_of(person: object) -> str:
    return required_text(mapping_of(person).get("login"), "a login")


def _unreadable(place: str, why: str) -> TrackerError:
    return TrackerError(TrackerErrorKind.INVALID, f"{place} cannot be read: {why}")
