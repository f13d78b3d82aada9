"""People of a test server: what they may do, and what they have done to issues."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sortie.model.trust import Right


@dataclass
class Crowd:
    """``rights`` are by login; ``labels`` and ``edits`` by the number of an issue, oldest first.

    ``refuses``: the account of the token may not ask about people. ``asked`` is who was asked for.
    """

    rights: dict[str, Right] = field(default_factory=dict)
    refuses: bool = False
    asked: list[str] = field(default_factory=list)
    labels: dict[str, list[tuple[str, str, datetime, bool]]] = field(default_factory=dict)
    edits: dict[str, list[tuple[str, str, datetime]]] = field(default_factory=dict)

    def may(self, login: str, right: Right) -> bool:
        """Tell whether somebody has a right; whoever may write is a member."""
        has = self.rights.get(login)
        return has is Right.WRITE or has is right

    def past(self, number: object) -> list[tuple[str, str, datetime, str]]:
        """Return what was done to an issue in order: what, who, when, and a label."""
        labels = [
            ("add" if is_set else "remove", who, at, name)
            for name, who, at, is_set in self.labels.get(str(number), [])
        ]
        edits = [(what, who, at, "") for what, who, at in self.edits.get(str(number), [])]
        return sorted([*labels, *edits], key=lambda one: one[2])


class CrowdRig:
    """What a rig of a server with a crowd does for the suite; see RulesPeople."""

    crowd: Crowd

    def number_of(self, issue_id: str) -> str:
        """Return the number by which the crowd knows an issue."""
        raise NotImplementedError

    def grant(self, author: str, right: Right | None) -> None:
        """Give somebody a right, or take it."""
        self.crowd.rights.pop(author, None)
        if right is not None:
            self.crowd.rights[author] = right

    def refuse_people(self) -> None:
        """Tell nothing of people any more."""
        self.crowd.refuses = True

    def label(self, issue_id: str, name: str, by: str, at: datetime, *, on: bool = True) -> None:
        """Have somebody put a label on an issue, or take it off."""
        self.crowd.labels.setdefault(self.number_of(issue_id), []).append((name, by, at, on))

    def edit(self, issue_id: str, what: str, by: str, at: datetime) -> None:
        """Have somebody change the title or the description of an issue."""
        self.crowd.edits.setdefault(self.number_of(issue_id), []).append((what, by, at))
