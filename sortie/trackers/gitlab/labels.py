"""States of an issue as GitLab has them: a label, and opened or closed.

Rule 1: of several labels of states the one counts that keeps an agent from starting: a closed
issue is in a terminal state, an open one rather handed over or finished than active.
Rule 2: of two active ones the later counts, as the settings list them.
Rule 3: no two spellings of a label are two states; what is written is what the project has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from sortie.model import same_state, state_key
from sortie.trackers import TrackerStates

OPENED, CLOSED = "opened", "closed"
"""GitLab's own two states. Named in the settings, they are those of issues without a label."""


class LabelChange(Struct, frozen=True, kw_only=True):
    """What brings an issue to a state; ``event`` is ``close``, ``reopen`` or None."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    event: str | None = None


class StateLabels:
    """Which labels stand for which states; a label is ``prefix`` and the state's name.

    With a prefix every label that begins with it is a state, whether the settings name it or not.
    """

    def __init__(self, states: TrackerStates, prefix: str = "") -> None:
        self._prefix = prefix
        self._key = state_key(prefix) if prefix.strip() else ""
        self._names = {state_key(name): name for name in reversed(states.named)}
        active = _keys(states.active)
        others = (key for key in _keys(states.named) if key not in active)
        handoff = [state_key(states.handoff)] if states.handoff is not None else []
        self._resting = tuple(dict.fromkeys([*handoff, *others]))
        self._active = tuple(reversed(active))
        self._terminal = _keys(states.terminal)
        self._terminal_names = states.terminal

    def knows(self, state: str) -> bool:
        """Tell whether an issue can be moved to a state."""
        return state_key(state) in self._names or bool(self._key)

    def name_of(self, state: str) -> str:
        """Return a state as the settings spell it."""
        return self._names.get(state_key(state), state.strip())

    def label_of(self, state: str) -> str | None:
        """Return the label that stands for a state; None for GitLab's own two."""
        if state_key(state) in (OPENED, CLOSED):
            return None
        return f"{self._prefix}{self.name_of(state)}"

    def needed(self) -> Iterator[tuple[str, str]]:
        """Yield each state of the settings that has a label, and the label."""
        for name in dict.fromkeys(self._names.values()):
            if (label := self.label_of(name)) is not None:
                yield name, label

    def state_of(self, labels: Collection[str], *, is_open: bool) -> str:
        """Return the state of an issue with these labels."""
        found = self._found(labels)
        if not is_open:
            done = next((key for key in self._terminal if key in found), None)
            return self._names[done] if done is not None else self._closed()
        resting = next((key for key in self._resting if key in found), None)
        if resting is not None:
            return self._names[resting]
        for key, written in found.items():
            if key not in self._names:
                return written
        active = next((key for key in self._active if key in found), OPENED)
        return self._names.get(active, OPENED)

    def plain(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the labels that stand for no state."""
        return tuple(label for label in labels if self._state_key(label) is None)

    def change(self, labels: Collection[str], state: str, *, is_open: bool) -> LabelChange:
        """Return what brings an issue with these labels to a state.

        ``add`` is spelled as the settings have it, ``remove`` as the issue has it.
        """
        wanted, target = self.label_of(state), state_key(state)
        closes = target == CLOSED or target in self._terminal
        mine = [label for label in labels if self._state_key(label) is not None]
        right = [label for label in mine if wanted is not None and same_state(label, wanted)]
        return LabelChange(
            add=(wanted,) if wanted is not None and not right else (),
            remove=tuple(label for label in mine if label not in right),
            event=None if is_open is not closes else "close" if closes else "reopen",
        )

    def _closed(self) -> str:
        """Return the state of a closed issue without a label of a terminal state."""
        if CLOSED in self._names or not self._terminal_names:
            return self._names.get(CLOSED, CLOSED)
        return self._terminal_names[0]

    def _found(self, labels: Collection[str]) -> dict[str, str]:
        """Return the states that labels stand for, by their compared form, as they are written."""
        found: dict[str, str] = {}
        for label in labels:
            if (key := self._state_key(label)) is not None:
                found.setdefault(key, label.strip()[len(self._prefix.strip()) :].strip())
        return found

    def _state_key(self, label: str) -> str | None:
        """Return the compared form of the state that a label stands for, None for other labels."""
        key = state_key(label)
        if not key.startswith(self._key):
            return None
        key = key[len(self._key) :].strip()
        if not key or key in (OPENED, CLOSED):
            return None
        return key if self._key or key in self._names else None


def _keys(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(state_key, names)))
