"""States of issues as labels, for providers that know no states but open and closed; pure.

A move may be cut off, and people label as they like, so an issue may have the labels of several
states. Their precedence is fixed: work that was handed over or finished never begins again.

1. A closed issue is in the first terminal state that a label names, else in the one for closed
   issues without a label.
2. An open issue is in the handoff state, else in a terminal state, if a label names that.
3. Else it is in a state that only its label names, where labels have a prefix.
4. Else it is in the last one of its active states, in the order of ``tracker.active_states``.
5. Else it is in the state for open issues without a label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sortie.model import same_state, state_key
from sortie.trackers import TrackerStates


class LabelStates:
    """Which labels stand for which states; a label is ``prefix`` and the state's name.

    ``opened`` and ``closed`` are the provider's own names of its two states. ``unlabeled`` is the
    state of an open issue without a label, where the settings say one. With a prefix every label
    that begins with it is a state. ``own_names``: the provider's own two names are no labels.
    """

    def __init__(
        self,
        states: TrackerStates,
        *,
        opened: str,
        closed: str = "closed",
        unlabeled: str | None = None,
        prefix: str = "",
        own_names: bool = False,
    ) -> None:
        self.states = states
        self.unlabeled = unlabeled
        self._opened, self._closed = opened, closed
        self._prefix = prefix
        self._prefix_key = state_key(prefix)
        self._own = frozenset({opened, closed}) if own_names else frozenset[str]()
        self._names = {state_key(name): name for name in reversed(states.named)}
        self._terminal = tuple(map(state_key, states.terminal))
        self._never_started = (*map(state_key, states.handoffs), *self._terminal)
        self._active = tuple(map(state_key, reversed(states.active)))

    def named(self, state: str) -> str | None:
        """Return a state as the settings spell it; None where they do not name it."""
        return self._names.get(state_key(state))

    def can_be(self, state: str) -> bool:
        """Tell whether an issue can be moved to a state."""
        return self.named(state) is not None or bool(self._prefix_key)

    def label_of(self, state: str) -> str | None:
        """Return the label that stands for a state; None for one of the provider's own two."""
        if state_key(state) in self._own:
            return None
        return f"{self._prefix}{self.named(state) or state.strip()}"

    def needed(self) -> list[str]:
        """Return the labels of all states that the settings name, each once."""
        names = dict.fromkeys(self._names[state_key(name)] for name in self.states.named)
        return [label for name in names if (label := self.label_of(name))]

    def state_of(self, labels: Iterable[str], *, closed: bool) -> str:
        """Return the state of an issue, spelled as the settings spell it."""
        found: dict[str, str] = {}
        for label in labels:
            if (key := self._key_of(label)) is not None:
                found.setdefault(key, label.strip()[len(self._prefix.strip()) :].strip())
        if closed:
            done = next((key for key in self._terminal if key in found), None)
            return self.finished if done is None else self._names[done]
        unnamed = (key for key in found if key not in self._names)
        active = (key for key in self._active if key in found)
        first = next((key for key in self._never_started if key in found), None)
        key = first or next(unnamed, None) or next(active, None)
        if key is not None:
            return self._names.get(key) or found[key]
        return self.unlabeled or self._names.get(self._opened, self._opened)

    @property
    def finished(self) -> str:
        """The state of a closed issue that no label puts into another one."""
        if self._own and self._closed in self._names:
            return self._names[self._closed]
        return self.states.terminal[0] if self.states.terminal else self._closed

    def closes(self, state: str) -> bool:
        """Tell whether an issue in this state is closed."""
        key = state_key(state)
        return key in self._terminal or key in self._own - {self._opened}

    def has_closed(self, wanted: Collection[str]) -> bool:
        """Tell whether closed issues are among those in these states, given by ``state_key``."""
        return not {*self._terminal, state_key(self.finished)}.isdisjoint(wanted)

    def others(self, labels: Iterable[str], state: str) -> tuple[str, ...]:
        """Return the labels of other states than this one, as the issue spells them."""
        own = None if (label := self.label_of(state)) is None else state_key(label)
        states = (label for label in labels if self.is_state(label))
        return tuple(label for label in states if state_key(label) != own)

    def is_exactly(self, labels: Collection[str], state: str, *, closed: bool) -> bool:
        """Tell whether an issue is in a state, with no label of another one."""
        is_there = same_state(self.state_of(labels, closed=closed), state)
        return is_there and closed is self.closes(state) and not self.others(labels, state)

    def plain(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Return the labels that stand for no state."""
        return tuple(label for label in labels if not self.is_state(label))

    def is_state(self, label: str) -> bool:
        """Tell whether a label stands for a state."""
        return self._key_of(label) is not None

    def _key_of(self, label: str) -> str | None:
        """Return the ``state_key`` of the state that a label stands for, None for other labels."""
        key = state_key(label)
        if not key.startswith(self._prefix_key):
            return None
        key = key[len(self._prefix_key) :].strip()
        if not key or key in self._own:
            return None
        return key if self._prefix_key or key in self._names else None
