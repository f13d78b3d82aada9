"""How pull requests stood when they were read whole, for as long as the forge shows no change.

Rule 1: checks that may change unseen are read each time: one that is pending, those of a head that
came up only lately and may still register. One that has failed may be made again by somebody, and
is read after a while.
Rule 2: nothing is believed for longer than LIFE, or TOLD_LIFE where webhooks tell of changes.
Rule 3: what the list of pull requests tells is taken from it each time, and costs nothing.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from sortie.model.pull_requests import CheckState, PullRequestState

LIFE = 3600.0
"""Seconds after which everything is read again, whatever the forge shows."""

TOLD_LIFE = 6 * 3600.0
"""Seconds after which everything is read again where webhooks tell of changes."""

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

    ``read_at`` is when it was read, ``talk_at`` when its reviews, threads and comments were, and
    ``head_at`` when the head was seen first.
    """

    mark: Mark
    state: PullRequestState
    read_at: float
    talk_at: float
    head_at: float

    def has_talk(self, mark: Mark, now: float, *, told: bool) -> bool:
        """Tell whether reviews, threads and comments are still what they were."""
        life = TOLD_LIFE if told else LIFE
        return self.mark.talk == mark.talk and now - self.talk_at < life

    def is_whole(self, mark: Mark, now: float, *, told: bool) -> bool:
        """Tell whether nothing has to be read again."""
        same = self.mark == mark and self.has_talk(mark, now, told=told)
        return same and self._is_settled(now, told)

    def _is_settled(self, now: float, told: bool) -> bool:
        if self.state.pull_request.state != "open":
            return True
        if now - self.head_at < SETTLING:
            return False
        states = {check.state for check in self.state.checks}
        if CheckState.FAILURE in states and not told and now - self.read_at >= SETTLING:
            return False
        return CheckState.PENDING not in states


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
        self, mark: Mark, state: PullRequestState, now: float, talk_at: float | None = None
    ) -> PullRequestState:
        """Remember a state and return it; ``talk_at`` where its talk is older than it."""
        id_, head = state.pull_request.id, state.pull_request.head
        before = self._states.get(id_)
        same = before is not None and before.state.pull_request.head == head
        self._states[id_] = Remembered(
            mark=mark,
            state=state,
            read_at=now,
            talk_at=now if talk_at is None else talk_at,
            head_at=before.head_at if before is not None and same else now,
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
