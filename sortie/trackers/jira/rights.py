"""What Jira tells of people: who may have issues assigned, and who has labelled and edited one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.http.answers import HttpAnswer
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import list_of, mapping_of, time_of, word_of
from sortie.http.pages import walk
from sortie.http.requests import HttpRequest, Params, error_text_in_json
from sortie.model import Issue, TrackerError, TrackerErrorKind, state_key
from sortie.model.trust import Edit, Endorsement, Right, login_key
from sortie.trackers.jira.editions import Cloud
from sortie.trackers.jira.people import person_of
from sortie.trackers.jira.site import Site, SiteMemory

_PAGE = 100
_REFUSED = frozenset({400, 403, 404})


class JiraPeople:
    """People of the project: those to whom its issues may be assigned.

    Customers of a service desk, and who merely may look, are none of them. Who may edit issues is
    told to administrators only.
    """

    def __init__(self, client: HttpClient, site: SiteMemory) -> None:
        self._client = client
        self._site = site

    async def may(self, author_id: str, right: Right) -> bool:
        """Ask whether issues of the project may be assigned to somebody."""
        what = f"cannot see whether {author_id} {right.lacking}"
        if right is Right.WRITE:
            raise TrackerError(TrackerErrorKind.PERMISSION, f"{what}: Jira does not tell that")
        site = await self._site.get()
        key = "accountId" if isinstance(site.edition, Cloud) else "username"
        params: Params = [("project", site.project.key), (key, author_id)]
        path = f"{site.edition.api}/user/assignable/search"
        request = HttpRequest(path=path, what=what, params=params, wanted=_REFUSED)
        answer = await self._client.ask(request)
        if not answer.ok:
            told = error_text_in_json(answer)
            kind = TrackerErrorKind.INVALID if answer.status == 400 else TrackerErrorKind.PERMISSION
            raise self._client.error(kind, request, told)
        found = [mapping_of(one) for one in list_of(answer.json())]
        return any(
            one.get("active") is True and login_key(person_of(one).login) == login_key(author_id)
            for one in found
        )

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        """Read what was changed in an issue."""
        site = await self._site.get()
        what = f"cannot see who has labelled {issue.identifier}"
        found: tuple[str | None, Any] | None = None
        edits: list[Edit] = []
        try:
            past = [
                (time_of(h.get("created"), "created"), h) for h in await self._past(site, issue)
            ]
            for at, history in sorted(past, key=lambda one: one[0]):
                by = person_of(history.get("author")).login or None
                for item in map(mapping_of, list_of(history.get("items"))):
                    field = word_of(item.get("field")).casefold()
                    if field == "labels":
                        before, after = (
                            _has(item.get(name), label) for name in ("fromString", "toString")
                        )
                        found = (by, at) if after and not before else found if after else None
                    elif field in ("summary", "description"):
                        edits.append(Edit(by=by, at=at))
        except ValueError as exc:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, f"{what}: {exc}") from exc
        if found is None:
            return None
        return Endorsement(by=found[0], at=found[1], edits=tuple(edits))

    async def _past(self, site: Site, issue: Issue) -> list[Mapping[str, Any]]:
        """Return all changes of an issue."""
        what = f"cannot read what was changed in {issue.identifier}"
        path = f"{site.edition.api}/issue/{segment(issue.id)}"
        if not isinstance(site.edition, Cloud):
            params: Params = [("fields", "updated"), ("expand", "changelog")]
            answer = await self._client.ask(HttpRequest(path=path, what=what, params=params))
            told = mapping_of(mapping_of(answer.json()).get("changelog"))
            return list(map(mapping_of, list_of(told.get("histories"))))
        found: list[Mapping[str, Any]] = []

        def page() -> HttpRequest:
            params = [("startAt", len(found)), ("maxResults", _PAGE)]
            return HttpRequest(
                path=f"{path}/changelog", what=what, params=params, list_at=("values",)
            )

        def take(answer: HttpAnswer) -> HttpRequest | None:
            told = mapping_of(answer.json())
            values = list_of(told.get("values"))
            found.extend(map(mapping_of, values))
            return page() if values and told.get("isLast") is False else None

        await walk(self._client, page(), take)
        return found


def _has(labels: object, label: str) -> bool:
    """Tell whether a label is among those of a change, which stand on one line."""
    return state_key(label) in map(state_key, word_of(labels).split())
