"""The labels of a team that stand for states: found by their names, made where they are missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import uuid4

from msgspec import Struct

from sortie.http.budget import Use
from sortie.model import LostAnswer, TrackerError, TrackerErrorKind, same_state, state_key
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi, nodes_of


class TeamLabel(Struct, frozen=True, kw_only=True):
    """A label that issues of a team can have; a group of labels is on no issue itself."""

    id: str
    name: str
    is_group: bool
    of_team: bool


async def labels_named(api: LinearApi, team_id: str, names: Iterable[str]) -> Sequence[TeamLabel]:
    """Return the labels with these names, the team's own before those of the whole workspace."""
    alike = [{"name": {"eqIgnoreCase": name}} for name in names]
    ours = [{"team": {"id": {"eq": team_id}}}, {"team": {"null": True}}]
    data = await api.ask(
        queries.TEAM_LABELS,
        "cannot look for labels that stand for states",
        filter={"and": [{"or": alike}, {"or": ours}]},
    )
    found = [
        TeamLabel(
            id=str(node["id"]),
            name=str(node["name"]),
            is_group=bool(node["isGroup"]),
            of_team=node["team"] is not None,
        )
        for node in nodes_of(data["issueLabels"])
        if node["retiredAt"] is None
    ]
    return sorted(found, key=lambda label: (label.is_group, not label.of_team))


class StateLabels:
    """The ids of labels that stand for states, by team and state."""

    def __init__(self, api: LinearApi) -> None:
        self._api = api
        self._known: dict[tuple[str, str], str] = {}

    def forget(self) -> None:
        """Look for all labels again."""
        self._known.clear()

    async def id_of(self, team_id: str, state: str) -> str:
        """Return the id of the label of a state; where the team has none, it is made."""
        key = team_id, state_key(state)
        if key not in self._known:
            found = await self._found(team_id, state)
            self._known[key] = await self._made(team_id, state) if found is None else found
        return self._known[key]

    async def _found(self, team_id: str, state: str) -> str | None:
        for label in await labels_named(self._api, team_id, [state]):
            if same_state(label.name, state):
                if label.is_group:
                    raise TrackerError(
                        TrackerErrorKind.INVALID,
                        f"the label {label.name} of Linear is a group, and can be on no issue; "
                        "rename it, or call the state of tracker.label_states otherwise",
                    )
                return label.id
        return None

    async def _made(self, team_id: str, state: str) -> str:
        what, label_id = f"cannot make the label {state} for a state", str(uuid4())
        try:
            data = await self._api.ask(
                queries.MAKE_LABEL, what, Use.WRITE, id=label_id, name=state, team=team_id
            )
            if data["issueLabelCreate"]["success"]:
                return label_id
            raise LostAnswer(TrackerErrorKind.UNAVAILABLE, f"{what}: Linear says no success")
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.PERMISSION:
                raise TrackerError(exc.kind, f"{exc}; make it in Linear, for the team") from exc
            is_lost = isinstance(exc, LostAnswer)
            if exc.retry_after is not None or (exc.kind is TrackerErrorKind.CLOSED and not is_lost):
                raise
            # Lost, or somebody has made it meanwhile.
            found = await self._found(team_id, state)
            if found is None:
                raise
            return found
