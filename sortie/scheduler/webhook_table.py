"""What is known of webhooks: of what changes they tell, and what they have named.

Times are monotonic seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import IssueId

Subject = Literal["issues", "pull_requests"]
"""Of what a service tells changes: a tracker of issues, a forge of pull requests."""

TRUST = 3600.0
"""Seconds after a delivery for which further ones are counted on."""

SHORTEST_GAP = 5.0
"""Seconds, at least, between two looks at the same thing that deliveries have asked for."""

LONGEST_GAP = 60.0
"""Seconds up to which that grows where such looks find nothing new."""

GRACE = 60.0
"""Seconds that a delivery may come later than a poll finds what it would tell."""

_LONGEST_DISTRUST = 86_400.0


class Arrival(Struct, frozen=True, kw_only=True):
    """How deliveries of one kind about one subject arrive.

    ``last`` is when the last one came, ``missed`` how many changes were found that none has told,
    the last at ``missed_at``. After that they are not counted on until ``distrusted_until``;
    ``strikes`` counts how often that was so within a day. ``told``: the log says that they arrive.
    """

    kind: str
    subject: Subject
    last: float = -math.inf
    missed: int = 0
    missed_at: float = -math.inf
    strikes: int = 0
    distrusted_until: float = -math.inf
    told: bool = False

    @property
    def trusted_until(self) -> float:
        """Until when deliveries are counted on, if nothing changes."""
        return self.last + TRUST

    def counts(self, now: float) -> bool:
        """Tell whether deliveries are counted on."""
        return self.distrusted_until <= now < self.trusted_until

    def came(self, now: float) -> Arrival:
        """Return it after a delivery."""
        strikes = self.strikes if now < self.missed_at + _LONGEST_DISTRUST else 0
        return replace(self, last=now, strikes=strikes)

    def failed(self, changes: int, now: float) -> Arrival:
        """Return it after changes were found that no delivery has told."""
        distrust = min(TRUST * 2.0 ** min(self.strikes, 16), _LONGEST_DISTRUST)
        return replace(
            self,
            missed=self.missed + changes,
            missed_at=now,
            strikes=self.strikes + 1,
            distrusted_until=now + distrust,
        )


class Suspect(Struct, frozen=True):
    """A change that was found ``since``, and that a delivery would have told by one of ``names``:
    those of the issue in lower case."""

    kind: str
    subject: Subject
    since: float
    names: frozenset[str]


class WebhookTable:
    """The arrivals, and what is to be looked at. ``named`` are issues, by id or identifier in lower
    case, that deliveries have named since the last poll began.

    ``poll_asked`` is when the delivery came for which the next poll is made, None where it is made
    for none, and ``poll_woken`` whether that is so of the poll under way, the last of which began
    at ``polled_at``. ``rereads`` are the issues in hand that are read again at ``reread_at``, with
    the time of the delivery. ``compared``: the last poll was made by the settings in force, so that
    what another one finds is new; ``counted_on``: deliveries were counted on when it was made.
    """

    def __init__(self) -> None:
        self.arrivals: dict[str, Arrival] = {}
        self.suspects: dict[str, Suspect] = {}
        self.named: dict[str, float] = {}
        self.poll_asked: float | None = None
        self.poll_woken = False
        self.polled_at = -math.inf
        self.poll_gap = SHORTEST_GAP
        self.put_off_until = -math.inf
        self.rereads: dict[IssueId, float] = {}
        self.reread_at = -math.inf
        self.looked_at = -math.inf
        self.compared = False
        self.counted_on = False

    def arrival(self, kind: str, subject: Subject) -> Arrival:
        """Return how deliveries of a kind about a subject arrive."""
        known = self.arrivals.get(f"{kind} {subject}")
        return known or Arrival(kind=kind, subject=subject)

    def put(self, arrival: Arrival) -> None:
        """Replace what is known of arrivals."""
        self.arrivals[f"{arrival.kind} {arrival.subject}"] = arrival

    def deadlines(self) -> Iterator[float]:
        """Yield when suspects count as missed, and trust in arrivals ends or begins."""
        yield from (suspect.since + GRACE for suspect in self.suspects.values())
        for one in self.arrivals.values():
            if one.told:
                yield one.trusted_until
            elif -math.inf < one.distrusted_until < one.trusted_until:
                yield one.distrusted_until
