"""States that are kept as labels, for providers that have states of their own, but few; pure.

1. An issue whose own state is over is in that one, whatever its labels.
2. Else it is in the first state of ``tracker.label_states`` whose label it has.
3. Else it is in its own state.

So a move between two of these states changes labels alone. A move to an own state that is not over
counts once the label is off, which therefore is the last step of such a move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sortie.model import Issue, TrackerError, TrackerErrorKind, state_key
from sortie.trackers import TrackerStates


class AddedStates:
    """Which states of the settings are labels (``states.labels``), and in which an issue is.

    ``ended``, where it is asked for, tells that the provider itself takes an own state for an end.
    """

    def __init__(self, states: TrackerStates) -> None:
        self.states = states
        self._names = {state_key(name): name for name in states.labels}
        self._terminal = frozenset(map(state_key, states.terminal))
        self._active = frozenset(map(state_key, states.active))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._names)

    @property
    def names(self) -> tuple[str, ...]:
        """The states that are labels, as the settings spell them."""
        return tuple(self._names.values())

    def is_over(self, own: str, *, ended: bool) -> bool:
        """Tell whether no label counts in an own state: it is terminal, or it is an end to the
        provider, and no active one."""
        key = state_key(own)
        return key in self._terminal or (ended and key not in self._active)

    def state_of(self, own: str, labels: Iterable[str], *, ended: bool) -> str:
        """Return the state of an issue."""
        if not self._names or self.is_over(own, ended=ended):
            return own
        keys = set(map(state_key, labels))
        return next((name for key, name in self._names.items() if key in keys), own)

    def is_added(self, state: str) -> bool:
        """Tell whether a state is a label."""
        return state_key(state) in self._names

    def has(self, labels: Iterable[str], state: str) -> bool:
        """Tell whether the label of a state is among these."""
        return state_key(state) in map(state_key, labels)

    def added(self, states: Iterable[str]) -> list[str]:
        """Return those of these states that are labels, as the settings spell them."""
        keys = set(map(state_key, states))
        return [name for key, name in self._names.items() if key in keys]

    def own(self, states: Iterable[str]) -> list[str]:
        """Return those of these states that are the provider's."""
        return [state for state in states if not self.is_added(state)]

    def others(self, labels: Iterable[str], state: str) -> tuple[str, ...]:
        """Return the labels of states other than this one, as the issue spells them."""
        key = state_key(state)
        return tuple(lb for lb in labels if self.is_added(lb) and state_key(lb) != key)

    def in_both(self, own: Collection[str]) -> list[str]:
        """Return those of these states of the provider's, quoted, that are to be labels as well."""
        return [f'"{name}"' for name in own if self.is_added(name)]

    def reopened(self, issue: Issue, state: str) -> str:
        """Return the own state into which an issue that is over goes with a label.

        Raises TrackerError (INVALID) where the settings name none.
        """
        if active := self.own(self.states.active):
            return active[0]
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f"cannot move {issue.identifier} from {issue.state} to {state}: it is over, so that no "
            "label counts, and no active state is one of the tracker's own; reopen it first",
        )
