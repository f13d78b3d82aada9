"""What issues wait for: links of the kind "is blocked by", of which GitLab tells issue by issue.

Only paid editions have such links. A list of issues says nothing of them, and a new link need not
change an issue's ``updated_at``, so they are asked for anew now and then, those first which the
scheduler is about to choose.

Rule: at most LINKS_A_LIST requests are made for one list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from sortie.model import Issue
from sortie.trackers.gitlab.issues import IssueKey, Item, key_of_id

LINKS_A_LIST = 10
"""Requests for links that one list costs at most."""

NEXT = 10
"""Candidates, in the order of their dispatch, whose links are looked at; each that starts is
read again by itself."""

BLOCKED_FOR = 60.0
"""Seconds after which a candidate that waits for another issue is looked at again."""

KNOWN_FOR = 600.0
"""Seconds after which any other is."""

_BLOCKED_BY = "is_blocked_by"


class KnownLinks(Struct, frozen=True, kw_only=True):
    """The issues that block one, as of an answer; ``version`` is the ``updated_at`` it had."""

    asked: float
    version: object
    blockers: tuple[Item, ...]


class LinkMemory:
    """What is known of the links of issues; ``now`` is in trio's time."""

    def __init__(self) -> None:
        self._known: dict[IssueKey, KnownLinks] = {}

    def take(self, key: IssueKey, item: Item, links: Sequence[Item], now: float) -> None:
        """Take over an answer. What ``links`` says is seen from the issue that was asked for."""
        blockers = tuple(link for link in links if link.get("link_type") == _BLOCKED_BY)
        self._known[key] = KnownLinks(asked=now, version=item.get("updated_at"), blockers=blockers)

    def blockers(self, key: IssueKey) -> tuple[Item, ...]:
        """Return the issues that block one, as far as is known."""
        known = self._known.get(key)
        return () if known is None else known.blockers

    def is_fresh(self, key: IssueKey, item: Item, now: float, within: float) -> bool:
        """Tell whether what is known of an issue is of this version and age."""
        known = self._known.get(key)
        return (
            known is not None
            and known.version == item.get("updated_at")
            and now - known.asked < within
        )

    def age(self, key: IssueKey, now: float) -> float:
        """Return how old what is known is; endless where nothing is."""
        known = self._known.get(key)
        return float("inf") if known is None else now - known.asked

    def keep_only(self, keys: Iterable[IssueKey]) -> None:
        """Forget all other issues."""
        kept = set(keys)
        self._known = {key: known for key, known in self._known.items() if key in kept}

    def to_ask(
        self,
        candidates: Iterable[tuple[Issue, Item]],
        is_blocked: Callable[[IssueKey], bool],
        now: float,
    ) -> list[tuple[IssueKey, Item]]:
        """Return those of the candidates, given in the order of dispatch, to ask about now."""
        asked: list[tuple[IssueKey, Item]] = []
        free = 0
        for issue, item in candidates:
            if free == NEXT or len(asked) == 4 * LINKS_A_LIST:
                break
            key = key_of_id(issue.id)
            assert key is not None  # it was made by this adapter
            blocked = is_blocked(key)
            free += not blocked
            if not self.is_fresh(key, item, now, BLOCKED_FOR if blocked else KNOWN_FOR):
                asked.append((key, item))
        asked.sort(key=lambda each: -self.age(each[0], now))
        return asked[:LINKS_A_LIST]


def order_of_dispatch(issue: Issue) -> tuple[int, bool, float, str]:
    """Return by what the scheduler sorts: priority 1..4 first, then older, then the identifier."""
    priority = issue.priority if issue.priority in (1, 2, 3, 4) else 5
    created = issue.created_at
    return (
        priority,
        created is None,
        0.0 if created is None else created.timestamp(),
        issue.identifier,
    )
