"""The state of an issue as its labels and its being open or closed tell it; pure.

GitHub has no states but these two, and nothing that compares and sets. A move is several requests,
and one that broke off leaves the labels of two states. So labels have a fixed precedence, by which
work that was handed over or finished is never begun again:

1. A closed issue is in the terminal state that a label names, else in the first terminal state.
2. An open issue is in the handoff state, else in a terminal state, if a label names that.
3. Else it is in the last one of its active states, in the order of ``tracker.active_states``.
4. Else, without any such label, it is in the state for issues without one, or in ``open``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from sortie.model import state_key
from sortie.trackers import TrackerStates

OPEN = "open"
"""The state of an open issue that no label puts into another one."""

CLOSED = "closed"
"""The state of a closed issue where no terminal state is named."""


@dataclass(frozen=True, kw_only=True)
class LabelStates:
    """The states that the settings name, as labels; ``unlabeled`` is that of issues without one."""

    states: TrackerStates
    unlabeled: str | None = None

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(map(state_key, self.states.named))

    @cached_property
    def _precedence(self) -> tuple[str, ...]:
        """The states of open issues, those that win first."""
        states = self.states
        handoff = (states.handoff,) if states.handoff is not None else ()
        return (*handoff, *states.terminal, *reversed(states.active))

    def state_of(self, labels: Iterable[str], *, closed: bool) -> str:
        """Return the state of an issue, spelled as the settings spell it."""
        keys = set(map(state_key, labels))
        if closed:
            labelled = (name for name in self.states.terminal if state_key(name) in keys)
            return next(labelled, self.finished)
        labelled = (name for name in self._precedence if state_key(name) in keys)
        return next(labelled, self.unlabeled or OPEN)

    @property
    def finished(self) -> str:
        """The state of an issue that was closed without a label."""
        return next(iter(self.states.terminal), CLOSED)

    def is_state(self, label: str) -> bool:
        """Tell whether a label names a state."""
        return state_key(label) in self._keys

    def others(self, labels: Iterable[str], state: str) -> tuple[str, ...]:
        """Return the labels of other states than this one, as they are spelled on the issue."""
        key = state_key(state)
        return tuple(name for name in labels if self.is_state(name) and state_key(name) != key)

    def plain(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Return the labels that name no state."""
        return tuple(name for name in labels if not self.is_state(name))

    def named(self, state: str) -> str | None:
        """Return a state as the settings spell it; None where they do not name it."""
        return next((n for n in self.states.named if state_key(n) == state_key(state)), None)

    def is_terminal(self, state: str) -> bool:
        """Tell whether an issue in this state is closed."""
        return state_key(state) in set(map(state_key, self.states.terminal))

    def has_closed(self, wanted: Collection[str]) -> bool:
        """Tell whether closed issues are among those in these states (as keys)."""
        terminal = {state_key(name) for name in (*self.states.terminal, self.finished)}
        return bool(terminal & set(wanted))
