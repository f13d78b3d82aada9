"""What Linear tells of people: who is a full member, and who has labelled and edited an issue."""

from __future__ import annotations

from datetime import datetime

from sortie.http.json_values import time_of
from sortie.model import Issue, TrackerError, TrackerErrorKind, state_key
from sortie.model.trust import Edit, Endorsement, Right, login_key
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi, nodes_of
from sortie.trackers.linear.issues import Node, id_of


class LinearPeople:
    """People of the workspace."""

    def __init__(self, api: LinearApi) -> None:
        self._api = api

    async def may(self, author_id: str, right: Right) -> bool:
        """Tell whether somebody is an active member: no guest, no app. In Linear each of them may
        write."""
        what = f"cannot see whether {author_id} {right.lacking}"
        data = await self._api.ask(queries.PERSON, what, email=author_id)
        return any(
            user["active"] is True and user["guest"] is False and user["app"] is False
            for user in nodes_of(data["users"])
            if login_key(str(user["email"])) == login_key(author_id)
        )

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        """Read the history of an issue, as far as it comes in one answer."""
        what = f"cannot see who has labelled {issue.identifier}"
        data = await self._api.ask(queries.HISTORY, what, filter={"id": {"in": [str(issue.id)]}})
        nodes = nodes_of(data["issues"])
        if not nodes or nodes[0]["history"]["pageInfo"]["hasNextPage"]:
            return None
        found: tuple[str | None, datetime] | None = None
        edits: list[Edit] = []
        try:
            past = [
                (time_of(n["createdAt"], "createdAt"), n) for n in nodes_of(nodes[0]["history"])
            ]
            for at, node in sorted(past, key=lambda one: one[0]):
                if _names(node["addedLabels"], label):
                    found = id_of(node["actor"]), at
                if _names(node["removedLabels"], label):
                    found = None
                editors = [id_of(user) for user in node["descriptionUpdatedBy"] or ()]
                untold = node["updatedDescription"] and not editors
                if untold or node["fromTitle"] is not None:
                    editors.append(id_of(node["actor"]))
                # Changes that follow each other closely are one entry.
                end = max(at, time_of(node["updatedAt"], "updatedAt"))
                edits += [Edit(by=one, at=end) for one in editors]
            if found is None:
                return None
            return Endorsement(by=found[0], at=found[1], edits=tuple(edits))
        except (KeyError, TypeError, ValueError) as exc:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, f"{what}: {exc!r}") from exc


def _names(labels: list[Node] | None, name: str) -> bool:
    return any(state_key(str(label["name"])) == state_key(name) for label in labels or ())
