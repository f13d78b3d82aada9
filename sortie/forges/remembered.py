"""How pull requests stood when they were read whole, for as long as the forge shows no change.

Rule 1: checks that may change unseen are read each time: one that is pending, those of a head that
came up only lately and may still register. One that has failed may be made again by somebody, and
is read after a while.
Rule 2: nothing is believed for longer than LIFE, or TOLD_LIFE where webhooks tell of changes; where
that would cost too much, each is read again at an hour of the day of its own.
Rule 3: what the list of pull requests tells is taken from it each time, and costs nothing.
Rule 4: what is known to have changed is read, and all else as if that were not known.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from sortie.model.pull_requests import CheckState, PullRequestState
from sortie.model.webhooks import Part

LIFE = 3600.0
"""Seconds after which everything is read again, whatever the forge shows."""

TOLD_LIFE = 6 * 3600.0
"""Seconds after which everything is read again where webhooks tell of changes."""

DAY = 24 * 3600.0

SETTLING = 300.0
"""Seconds for which the checks of a new head are read each time: they register late."""

_MOST = 2000


class Mark(Struct, frozen=True, kw_only=True):
    """What a list shows of a pull request: what changes with its reviews, threads and comments, and
    what changes besides with its checks."""

    talk: tuple[object, ...]
    checks: object = None


class Remembered(Struct, frozen=True, kw_only=True):
    """A state with its mark, and times by the monotonic clock.

    ``checks_at`` is when its checks were read, ``talk_at`` when its reviews, threads and comments
    were, and ``head_at`` when the head was seen first. ``events`` are what the forge notes of a
    pull request beside comments, such as that it was reviewed, as they were when the reviews were
    read.
    """

    mark: Mark
    state: PullRequestState
    checks_at: float
    talk_at: float
    head_at: float
    events: tuple[str, ...] = ()

    def is_settled(self, now: float, told: bool) -> bool:
        """Tell whether no check may change unseen."""
        if self.state.pull_request.state != "open":
            return True
        if now - self.head_at < SETTLING:
            return False
        states = {check.state for check in self.state.checks}
        if CheckState.FAILURE in states and not told and now - self.checks_at >= SETTLING:
            return False
        return CheckState.PENDING not in states


class Compared(Struct, frozen=True, kw_only=True):
    """What is known of a pull request, and what the forge shows of it now.

    ``part`` is what is known to have changed, None for nothing; ``told``: webhooks tell of changes.
    ``hour`` is that of the day at which it is read again then, None for every TOLD_LIFE.
    """

    known: Remembered | None
    mark: Mark
    head: str | None
    part: Part | None
    told: bool
    now: float
    hour: int | None = None

    @property
    def talk_known(self) -> Remembered | None:
        """What is known, if reviews, threads and comments are still that."""
        known = self._known_without("talk")
        return known if known is not None and known.mark.talk == self.mark.talk else None

    @property
    def checks_known(self) -> Remembered | None:
        """What is known, if the checks of the head are still that. Where talk has changed, a mark
        that shows so says nothing of them."""
        known = self._known_without("checks")
        if known is None or known.mark.checks != self.mark.checks:
            return None
        if self.head != known.state.pull_request.head or self._is_old(known.checks_at):
            return None
        same = known.mark == self.mark or self.part == "talk"
        return known if same and known.is_settled(self.now, self.told) else None

    @property
    def has_moved(self) -> bool:
        """Whether checks, or reviews, threads and comments, have to be read again."""
        return self.checks_known is None or self.talk_known is None

    def reviews_known(self, events: tuple[str, ...]) -> Remembered | None:
        """Return what is known, if the reviews are still that: talk has changed, and comments and
        events show how."""
        known = self.known
        if known is None or self.part != "talk" or self._is_old(known.talk_at):
            return None
        return known if known.mark.talk != self.mark.talk and known.events == events else None

    def _known_without(self, part: Part) -> Remembered | None:
        known = self.known
        if known is None or self.part in ("all", part) or self._is_old(known.talk_at):
            return None
        return known

    def _is_old(self, at: float) -> bool:
        if not self.told or self.hour is None:
            return self.now - at >= (TOLD_LIFE if self.told else LIFE)
        begin = self.hour * 3600.0
        return (self.now - begin) // DAY > (at - begin) // DAY


class RememberedStates:
    """The states by the ids of their pull requests; the one longest unused is forgotten first."""

    def __init__(self) -> None:
        self._states: OrderedDict[str, Remembered] = OrderedDict()

    def get(self, id_: str) -> Remembered | None:
        """Return what is known of a pull request."""
        if (known := self._states.get(id_)) is not None:
            self._states.move_to_end(id_)
        return known

    def put(
        self,
        compared: Compared,
        state: PullRequestState,
        *,
        checks_at: float,
        talk_at: float,
        events: tuple[str, ...],
    ) -> PullRequestState:
        """Remember a state and return it, with when its checks and its talk were read."""
        id_, head = state.pull_request.id, state.pull_request.head
        before = self._states.get(id_)
        same = before is not None and before.state.pull_request.head == head
        self._states[id_] = Remembered(
            mark=compared.mark,
            state=state,
            checks_at=checks_at,
            talk_at=talk_at,
            head_at=before.head_at if before is not None and same else compared.now,
            events=events,
        )
        self._states.move_to_end(id_)
        while len(self._states) > _MOST:
            self._states.popitem(last=False)
        return state

    def forget(self, id_: str) -> None:
        """Forget a pull request that is gone, or that was just changed."""
        self._states.pop(id_, None)

    def forget_check(self, id_: str) -> None:
        """Forget the pull requests of a check that is made again."""
        for known in list(self._states.values()):
            if any(check.id == id_ for check in known.state.checks):
                self.forget(known.state.pull_request.id)
