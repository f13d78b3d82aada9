"""The views of webhooks: what has come of each kind, and whether it is counted on."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.facts.webhooks import Rejection, Subject
from sortie.web.times import Time


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionsView:
    """Deliveries that were not taken for a ``reason``; ``last_at`` is when the last one came."""

    reason: Rejection
    count: int
    last_at: Time

    @property
    def words(self) -> str:
        """What it is, for people."""
        return f"{self.count:,} for their {self.reason}, the last at {_clock(self.last_at)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalView:
    """How deliveries about a ``subject`` arrive. ``counted_on``: they do, so that polls, or looks
    at pull requests, are rare. ``missed`` counts the changes that none has told, the last at
    ``missed_at``; after that they are not counted on until ``distrusted_until``."""

    subject: Subject
    counted_on: bool
    last_at: Time | None
    missed: int
    missed_at: Time | None
    distrusted_until: Time | None

    @property
    def words(self) -> str:
        """What it is, for people."""
        name = self.subject.replace("_", " ")
        if self.distrusted_until is not None and self.missed_at is not None:
            return (
                f"a change of {name} was missed at {_clock(self.missed_at)}, so that deliveries are"
                f" not counted on until {_clock(self.distrusted_until)}"
            )
        if self.last_at is None:
            return f"none about {name}"
        rare = "" if self.counted_on else ", too long ago to be counted on"
        return f"the last about {name} at {_clock(self.last_at)}{rare}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookView:
    """The webhooks of a kind. What was ``received`` and ``rejected`` has come to this process since
    it began; ``arrivals`` are also of deliveries that other daemons have passed on."""

    kind: str
    received: int
    last_at: Time | None
    rejected: tuple[RejectionsView, ...]
    arrivals: tuple[ArrivalView, ...]

    @property
    def is_well(self) -> bool:
        """Whether all that this kind is to tell is counted on."""
        return all(arrival.counted_on for arrival in self.arrivals)

    @property
    def words(self) -> str:
        """What they are, for people."""
        came = f"{self.received:,} {'delivery' if self.received == 1 else 'deliveries'}"
        parts = [f"{self.kind}: {came} taken", *(arrival.words for arrival in self.arrivals)]
        refused = [one.words for one in self.rejected if one.reason != "replayed"]
        if refused:
            parts.append(f"rejected {', '.join(refused)}")
        return "; ".join(parts)


def _clock(time: Time) -> str:
    return f"{time:%Y-%m-%d %H:%M:%SZ}"
