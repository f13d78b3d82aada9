"""What GitHub tells of people: who may push, and who has labelled and edited an issue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sortie.http.client import HttpClient, segment
from sortie.http.github import errors_in, graphql_request, messages_of
from sortie.http.json_values import list_of, mapping_of, time_of, word_of
from sortie.http.permissions import is_collaborator, may_push
from sortie.model import Issue, TrackerError, TrackerErrorKind, state_key
from sortie.model.trust import Edit, Endorsement, Right
from sortie.trackers.github.items import GitHubRepository

MOST = 100
"""Events and edits that are looked at, the last ones."""

_ACTOR = "{ __typename login }"
_QUERY = f"""
query Trust($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{
    issue(number: $number) {{
      lastEditedAt editor {_ACTOR}
      userContentEdits(first: {MOST}) {{
        nodes {{ editedAt editor {_ACTOR} }} pageInfo {{ hasNextPage }}
      }}
      timelineItems(last: {MOST}, itemTypes: [LABELED_EVENT, RENAMED_TITLE_EVENT]) {{
        nodes {{
          __typename
          ... on LabeledEvent {{ actor {_ACTOR} createdAt label {{ name }} }}
          ... on RenamedTitleEvent {{ actor {_ACTOR} createdAt }}
        }}
        pageInfo {{ hasPreviousPage }}
      }}
    }}
  }}
}}
"""


class GitHubPeople:
    """People of one repository."""

    def __init__(self, client: HttpClient, repository: GitHubRepository) -> None:
        self._client = client
        self._repository = repository
        self._root = f"/repos/{segment(repository.owner)}/{segment(repository.name)}"

    async def may(self, author_id: str, right: Right) -> bool:
        """Ask for somebody's permission, or whether they are a collaborator."""
        if right is Right.WRITE:
            return await may_push(self._client, self._root, author_id)
        return await is_collaborator(self._client, self._root, author_id)

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        """Ask GraphQL, as REST does not tell who has edited a description."""
        what = f"cannot see who has labelled {issue.identifier}"
        variables = {
            "owner": self._repository.owner,
            "name": self._repository.name,
            "number": int(issue.id),
        }
        request = graphql_request(self._client, what, _QUERY, variables)
        body = (await self._client.ask(request)).json()
        if errors := errors_in(body):
            told = messages_of(errors)
            raise self._client.error(TrackerErrorKind.PERMISSION, request, told)
        data = mapping_of(mapping_of(mapping_of(body).get("data")).get("repository"))
        node = mapping_of(data.get("issue"))
        try:
            return _endorsement(node, label)
        except ValueError as exc:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, f"{what}: {exc}") from exc


def _endorsement(node: Mapping[str, Any], label: str) -> Endorsement | None:
    """Return what an answer tells. Raises ValueError for a time that cannot be read."""
    timeline = mapping_of(node.get("timelineItems"))
    events = list(map(mapping_of, list_of(timeline.get("nodes"))))
    set_by = [
        event
        for event in events
        if event.get("__typename") == "LabeledEvent"
        and state_key(word_of(mapping_of(event.get("label")).get("name"))) == state_key(label)
    ]
    edits = list(_edits(node, events))
    if not set_by:
        return None
    last = set_by[-1]
    at = time_of(last.get("createdAt"), "createdAt")
    pages = mapping_of(mapping_of(node.get("userContentEdits")).get("pageInfo"))
    if pages.get("hasNextPage") is not False:
        return None  # what was edited since may not all be here
    return Endorsement(by=_login(last.get("actor")), at=at, edits=tuple(edits))


def _edits(node: Mapping[str, Any], events: list[Mapping[str, Any]]) -> Iterator[Edit]:
    for one in map(mapping_of, list_of(mapping_of(node.get("userContentEdits")).get("nodes"))):
        yield Edit(by=_login(one.get("editor")), at=time_of(one.get("editedAt"), "editedAt"))
    if node.get("lastEditedAt") is not None:
        at = time_of(node.get("lastEditedAt"), "lastEditedAt")
        yield Edit(by=_login(node.get("editor")), at=at)
    for event in events:
        if event.get("__typename") == "RenamedTitleEvent":
            at = time_of(event.get("createdAt"), "createdAt")
            yield Edit(by=_login(event.get("actor")), at=at)


def _login(actor: object) -> str | None:
    """Return somebody's login as REST tells it."""
    told = mapping_of(actor)
    login = word_of(told.get("login")) or None
    return f"{login}[bot]" if login and told.get("__typename") == "Bot" else login
