"""A team of Linear and the states that it has; two teams may have states of the same name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from sortie.model import TrackerError, TrackerErrorKind, state_key
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi, nodes_of
from sortie.trackers.linear.issues import TERMINAL_TYPES

Node = Mapping[str, Any]


class TeamState(Struct, frozen=True, kw_only=True):
    """A workflow state of a team; ``type`` is Linear's word for what it means."""

    id: str
    name: str
    type: str
    position: float = 0.0

    @property
    def is_terminal(self) -> bool:
        """Whether Linear takes an issue in it to be over."""
        return self.type in TERMINAL_TYPES


class Team(Struct, frozen=True, kw_only=True):
    """A team, with its states in the order of its workflow."""

    id: str
    key: str
    name: str
    states: tuple[TeamState, ...]

    def ids_of(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the states with these names, however they are spelled."""
        wanted = set(map(state_key, names))
        return tuple(state.id for state in self.states if state_key(state.name) in wanted)

    def over_ids(self, added: AddedStates) -> tuple[str, ...]:
        """Return the ids of the states in which no label counts as a state."""
        over = (s for s in self.states if added.is_over(s.name, ended=s.is_terminal))
        return tuple(state.id for state in over)

    def check_labels(self, added: AddedStates) -> None:
        """Raise TrackerError (INVALID) where a state that is to be a label is one of the team's."""
        if both := added.in_both(self.state_names):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"tracker.label_states: {' and '.join(both)} is a state of team {self.key} itself; "
                "a state is a label or one of the team's, and not both",
            )

    def missing(self, names: Collection[str]) -> list[str]:
        """Return the names that no state of the team has."""
        there = {state_key(state.name) for state in self.states}
        return [name for name in names if state_key(name) not in there]

    @property
    def state_names(self) -> list[str]:
        """The names of its states."""
        return [state.name for state in self.states]

    @property
    def states_text(self) -> str:
        """The names of its states, for people."""
        return ", ".join(self.state_names)


def states_of(connection: Node) -> tuple[TeamState, ...]:
    """Return states in the order of the team's workflow. Raises TrackerError for too many."""
    nodes = nodes_of(connection)
    if connection["pageInfo"]["hasNextPage"]:
        what = f"a team of Linear has more than {len(nodes)} states; that is not provided for"
        raise TrackerError(TrackerErrorKind.INVALID, what)
    found = [
        TeamState(
            id=str(node["id"]),
            name=str(node["name"]),
            type=str(node["type"]),
            position=float(node["position"]),
        )
        for node in nodes
    ]
    return tuple(sorted(found, key=lambda state: state.position))


def state_named(states: Sequence[TeamState], name: str) -> TeamState | None:
    """Return the state of a name: the one spelled so, else the first that is alike."""
    alike = [state for state in states if state_key(state.name) == state_key(name)]
    exact = [state for state in alike if state.name == name.strip()]
    return next(iter([*exact, *alike]), None)


def state_in(node: Node, identifier: str, name: str) -> TeamState:
    """Return the state of a name of an issue's team. Raises TrackerError (INVALID) for none."""
    states = states_of(node["team"]["states"])
    if (found := state_named(states, name)) is not None:
        return found
    names = ", ".join(each.name for each in states)
    raise TrackerError(
        TrackerErrorKind.INVALID,
        f"cannot move {identifier} to {name!r}: its team has the states {names}",
    )


async def find_team(api: LinearApi, key: str) -> Team:
    """Return the team of a key. Raises TrackerError (NOT_FOUND) where it cannot be seen."""
    data = await api.ask(queries.TEAM, f"cannot read team {key}", key=key)
    nodes = nodes_of(data["teams"])
    if not nodes:
        raise TrackerError(
            TrackerErrorKind.NOT_FOUND,
            f"Linear shows no team with the key {key} to this API key; look at tracker.project, and"
            " whether the key's owner is in the team and the key is for all teams",
        )
    (node,) = nodes
    return Team(
        id=str(node["id"]),
        key=str(node["key"]),
        name=str(node["name"]),
        states=states_of(node["states"]),
    )
