"""Issues as GitHub's JSON has them, read once; what cannot be read is an error of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import Blocker, Comment, Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.model.texts import start_of
from sortie.trackers.github.label_states import OPEN, LabelStates
from sortie.trackers.http.comments import without_mark


class Item(Struct, frozen=True, kw_only=True):
    """An issue before its state is told: ``issue`` has neither that, nor labels of states left out.

    ``blockers`` is how many issues it waits for, ``open_blockers`` how many of those are open;
    None where the server does not say. ``updated_at`` is never None.
    """

    issue: Issue
    closed: bool
    updated_at: datetime
    comments: int
    blockers: int | None
    open_blockers: int | None

    @property
    def number(self) -> str:
        """Its number as text, which is its id."""
        return self.issue.id

    def state(self, states: LabelStates) -> str:
        """Return the state it is in."""
        return states.state_of(self.issue.labels, closed=self.closed)

    def changed(self, labels: tuple[str, ...], *, closed: bool) -> Item:
        """Return it with other labels, open or closed."""
        return replace(self, issue=replace(self.issue, labels=labels), closed=closed)


class Repository(Struct, frozen=True, kw_only=True):
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

    def item(self, data: Any) -> Item | None:
        """Return an issue; None for a pull request, which GitHub lists among them.

        Raises TrackerError (INVALID) where it cannot be read.
        """
        if not isinstance(data, dict):
            raise _unreadable(self.full_name, f"it is {start_of(repr(data), 80)}")
        if data.get("pull_request") is not None:
            return None
        place = f"{self.full_name}#{data.get('number')}"
        try:
            return self._item(data)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise _unreadable(place, f"{type(exc).__name__}: {exc}") from exc

    def _item(self, data: Mapping[str, Any]) -> Item:
        number, state = _whole(data["number"]), data["state"]
        if state not in ("open", "closed"):
            raise ValueError(f"its state is {start_of(repr(state), 80)}")
        labels = labels_of(data["labels"])
        summary = data.get("issue_dependencies_summary")
        counts = summary if isinstance(summary, dict) else {}
        created_at, updated_at = _time(data["created_at"]), _time(data["updated_at"])
        return Item(
            issue=Issue(
                id=IssueId(str(number)),
                identifier=self.identifier(number),
                title=_text(data["title"]),
                state="",
                description=_text(data.get("body") or ""),
                priority=self._priority(labels),
                url=_text(data["html_url"]),
                labels=labels,
                assignee=_assignee(data),
                issue_type=_name_of(data.get("type")),
                parent=self._parent(data.get("parent_issue_url")),
                created_at=created_at,
                updated_at=updated_at,
            ),
            closed=state == "closed",
            updated_at=updated_at,
            comments=_whole(data["comments"]),
            blockers=_count(counts.get("total_blocked_by")),
            open_blockers=_count(counts.get("blocked_by")),
        )

    def _priority(self, labels: tuple[str, ...]) -> int | None:
        found = [self.priorities[k] for k in map(state_key, labels) if k in self.priorities]
        return min(found, default=None)

    def _parent(self, address: object) -> str | None:
        """Return the identifier of the issue at an address such as .../repos/O/R/issues/7."""
        parts = address.rstrip("/").split("/") if isinstance(address, str) else []
        if len(parts) < 4 or parts[-2] != "issues" or not parts[-1].isdigit():
            return None
        owner, name, number = parts[-4], parts[-3], parts[-1]
        return self._called(owner, name, number)

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
            raise _unreadable("a blocker", f"it is {start_of(repr(data), 80)}")
        place, number = data.get("repository_url", ""), data.get("number")
        owner, name = ["", "", *str(place).rstrip("/").split("/")][-2:]
        called = self._called(owner, name, number) if owner else self.identifier(number)
        is_ours = called == self.identifier(number)
        try:
            item = None if number is None else self._item(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            item = None
        if item is None:
            return Blocker(identifier=called), data.get("state") != "closed"
        if is_ours:
            state = item.state(states)
            return Blocker(identifier=called, id=item.issue.id, state=state), not item.closed
        state = states.finished if item.closed else OPEN
        return Blocker(identifier=called, state=state), not item.closed


def issue_of(item: Item, states: LabelStates, blocked_by: tuple[Blocker, ...] = ()) -> Issue:
    """Return an issue as the port gives it, without comments."""
    plain = states.plain(item.issue.labels)
    return replace(item.issue, state=item.state(states), labels=plain, blocked_by=blocked_by)


def comment_of(data: Any) -> Comment:
    """Return a comment without our mark. Raises TrackerError (INVALID)."""
    try:
        return Comment(
            author=_text((data.get("user") or {}).get("login") or "ghost"),
            body=without_mark(_text(data.get("body") or "")),
            created_at=_time(data["created_at"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise _unreadable("a comment", f"{type(exc).__name__}: {exc}") from exc


def number_of(data: Any) -> str:
    """Return the number of what cannot be read, as far as it can be told; else ""."""
    number = data.get("number") if isinstance(data, dict) else None
    return str(number) if isinstance(number, int) else ""


def labels_of(data: Any) -> tuple[str, ...]:
    """Return the names in a list of labels. Raises ValueError, TypeError or KeyError."""
    if not isinstance(data, list):
        raise TypeError(f"a list of labels was expected, not {start_of(repr(data), 80)}")
    return tuple(map(_label, data))


def _unreadable(place: str, why: str) -> TrackerError:
    return TrackerError(TrackerErrorKind.INVALID, f"{place} cannot be read: {why}")


def _label(data: Any) -> str:
    return _text(data if isinstance(data, str) else data["name"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {start_of(repr(value), 80)}")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"a number was expected, not {start_of(repr(value), 80)}")
    return value


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _time(value: Any) -> datetime:
    found = datetime.fromisoformat(_text(value))
    if found.tzinfo is None:
        raise ValueError(f"the time {value!r} has no zone")
    return found


def _name_of(data: Any) -> str | None:
    return None if data is None else _text(data["name"])


def _assignee(data: Mapping[str, Any]) -> str | None:
    """Return the first of the assignees; the field ``assignee`` is gone in later versions."""
    people = data.get("assignees") or []
    return _text(people[0]["login"]) if people else None
