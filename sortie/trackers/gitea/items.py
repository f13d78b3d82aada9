"""Issues of Gitea as it tells them, and as the port gives them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sortie.http.json_values import (
    list_of,
    mapping_of,
    required_number,
    required_text,
    shown,
    time_of,
    word_of,
)
from sortie.model import Blocker, Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.trackers import TrackerStates
from sortie.trackers.http.comments import author_of
from sortie.trackers.http.label_states import LabelStates

OPEN = "open"


def gitea_states(states: TrackerStates, unlabeled: str | None) -> LabelStates:
    """Return which labels stand for which states."""
    return LabelStates(states, opened=OPEN, unlabeled=unlabeled)


class GiteaItem(Struct, frozen=True, kw_only=True):
    """An issue as it was read; ``issue`` has all labels and no state yet, ``label_ids`` are by
    name. ``comments`` is how many it has, and ``told`` what was read."""

    issue: Issue
    closed: bool
    updated_at: datetime
    comments: int
    label_ids: Mapping[str, int]
    told: Mapping[str, Any]

    def state(self, states: LabelStates) -> str:
        """Return the state that labels, and open or closed, put it into."""
        return states.state_of(self.issue.labels, closed=self.closed)


class GiteaReader(Struct, frozen=True, kw_only=True):
    """Reads the issues of one repository; priorities are by label, as ``state_key`` gives it."""

    name: str
    priorities: Mapping[str, int]

    @property
    def short(self) -> str:
        """The repository's name without its owner."""
        return self.name.partition("/")[2]

    def identifier(self, number: object) -> str:
        """Return what people call an issue; it can be the name of a directory."""
        return f"{self.short}-{number}"

    def number_in(self, name: str) -> str | None:
        """Return the number that an id or an identifier says, None where it is neither."""
        prefix = f"{self.short}-".casefold()
        text = name[len(prefix) :] if name.casefold().startswith(prefix) else name
        text = text.removeprefix("#")
        return text if text.isascii() and text.isdigit() and text[0] != "0" else None

    def path(self, issue_id: IssueId) -> str:
        """Return the path of an issue. Raises NOT_FOUND for what is no number of one."""
        number = self.number_in(issue_id)
        if number is None:
            what = f"{issue_id} is no number of an issue of {self.name}"
            raise TrackerError(TrackerErrorKind.NOT_FOUND, what)
        return f"/issues/{number}"

    def item(self, data: Any) -> GiteaItem | None:
        """Return an issue, None for a pull request. Raises TrackerError (INVALID)."""
        told = mapping_of(data)
        if told.get("pull_request") is not None:
            return None
        try:
            return self._item(told)
        except ValueError as exc:
            what = f"{self.name}#{word_of(told.get('number'))} cannot be read: {exc}"
            raise TrackerError(TrackerErrorKind.INVALID, what) from exc

    def _item(self, data: Mapping[str, Any]) -> GiteaItem:
        number, state = required_number(data.get("number"), "number"), data.get("state")
        if state not in ("open", "closed"):
            raise ValueError(f"its state is {shown(state)}")
        ids = {
            required_text(mapping_of(label).get("name"), "a label's name"): required_number(
                mapping_of(label).get("id"), "a label's id"
            )
            for label in list_of(data.get("labels"))
        }
        found = [self.priorities[k] for k in map(state_key, ids) if k in self.priorities]
        assignees = list_of(data.get("assignees"))
        updated_at = time_of(data.get("updated_at"), "updated_at")
        return GiteaItem(
            issue=Issue(
                id=IssueId(str(number)),
                identifier=self.identifier(number),
                title=required_text(data.get("title"), "title"),
                state="",
                description=required_text(data.get("body") or "", "body"),
                priority=min(found, default=None),
                url=required_text(data.get("html_url"), "html_url"),
                labels=tuple(ids),
                author=author_of(data),
                author_id=author_of(data),
                assignee=word_of(mapping_of(assignees[0]).get("login")) if assignees else None,
                created_at=time_of(data.get("created_at"), "created_at"),
                updated_at=updated_at,
            ),
            closed=state == "closed",
            updated_at=updated_at,
            comments=required_number(data.get("comments"), "comments"),
            label_ids=ids,
            told=data,
        )

    def issue(
        self, item: GiteaItem, states: LabelStates, blocked_by: tuple[Blocker, ...] = ()
    ) -> Issue:
        """Return an issue as the port gives it, without comments."""
        plain = states.plain(item.issue.labels)
        return replace(item.issue, state=item.state(states), labels=plain, blocked_by=blocked_by)

    def blocker(self, data: Any, states: LabelStates) -> Blocker:
        """Return an issue that another waits for; one of another repository is open or finished."""
        told = mapping_of(data)
        home = word_of(mapping_of(told.get("repository")).get("full_name")) or self.name
        number = word_of(told.get("number"))
        if home.casefold() != self.name.casefold():
            state = states.finished if told.get("state") == "closed" else OPEN
            return Blocker(identifier=f"{home}#{number}", state=state)
        try:
            item = self._item(told)
        except ValueError:
            return Blocker(identifier=self.identifier(number))
        return Blocker(
            identifier=self.identifier(number), id=item.issue.id, state=item.state(states)
        )
