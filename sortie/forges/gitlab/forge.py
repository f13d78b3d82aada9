"""Merge requests of a project on GitLab."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from sortie.forges import (
    CheckState,
    CommitState,
    CommitStatus,
    ForgeContext,
    GitCredential,
    HeadCheck,
    MergeMethod,
    Proposal,
    PullRequestState,
    Review,
    ReviewThread,
    ThreadNote,
)
from sortie.forges.http_forge import HttpForge, conflict, invalid, log
from sortie.http.client import open_client, segment
from sortie.http.credentials import header
from sortie.http.gitlab import PROVIDER
from sortie.http.gitlab_notes import harmless
from sortie.http.json_values import list_of, mapping_of, number_of, text_of, word_of
from sortie.http.requests import HttpRequest
from sortie.model import PullRequest, TrackerError, TrackerErrorKind

_API = "/api/v4"
_DRAFT = "Draft: "
_CONFLICT = frozenset({409})
_STATES: dict[str, Literal["open", "merged", "closed"]] = {
    "opened": "open",
    "locked": "open",
    "merged": "merged",
}
_STATUSES = {
    CommitState.PENDING: "pending",
    CommitState.SUCCESS: "success",
    CommitState.FAILURE: "failed",
}
_CHECKS = {
    "success": CheckState.SUCCESS,
    "failed": CheckState.FAILURE,
    "canceled": CheckState.NEUTRAL,
    "skipped": CheckState.NEUTRAL,
    "manual": CheckState.NEUTRAL,
}
_UNKNOWN = frozenset({"unchecked", "checking", "preparing", "approvals_syncing"})


@asynccontextmanager
async def opened(context: ForgeContext) -> AsyncIterator[GitLabForge]:
    """Hold the client open for as long as the forge is."""
    url = context.url
    address = context.endpoint or (url.root if url.is_http else f"https://{url.host}")
    endpoint = f"{address.rstrip('/').removesuffix(_API)}{_API}"
    credential = header("PRIVATE-TOKEN", context.token)
    async with open_client(PROVIDER, endpoint, credential, context.progress) as client:
        yield GitLabForge(client, f"/projects/{segment(url.path)}", url.path)


class GitLabForge(HttpForge):
    """One project of GitLab."""

    async def git_credential(self) -> GitCredential:
        """Return the token."""
        headers = await self.client.credential.headers()
        return GitCredential(username="oauth2", password=headers["PRIVATE-TOKEN"])

    async def find(self, branch: str) -> PullRequest | None:
        """Return the open merge request of a branch."""
        what = f"cannot look for a merge request of {branch}"
        params = [("state", "opened"), ("source_branch", branch)]
        found = [_pull_request(item) for item in await self.listed("/merge_requests", what, params)]
        return next((request for request in found if request.branch == branch), None)

    async def open(self, proposal: Proposal) -> PullRequest:
        """Open a merge request. Raises CONFLICT where one is open for the branch."""
        what = f"cannot open a merge request of {proposal.branch}"
        title = f"{_DRAFT}{proposal.title}" if proposal.draft else proposal.title
        body: dict[str, Any] = {
            "source_branch": proposal.branch,
            "target_branch": proposal.base,
            "title": title,
            "description": harmless(proposal.body),
            "remove_source_branch": True,
            **await self._people(proposal),
        }
        if proposal.labels:
            body["labels"] = ",".join(proposal.labels)
        answer = await self.write("POST", "/merge_requests", what, body, wanted=_CONFLICT)
        if answer.status == 409:
            raise conflict(f"{what}: {answer.text()}")
        return _pull_request(answer.json())

    async def update(self, pull_request: PullRequest, proposal: Proposal) -> PullRequest:
        """Bring title and description up to date, and add labels."""
        what = f"cannot change merge request {pull_request.number}"
        title = f"{_DRAFT}{proposal.title}" if pull_request.draft else proposal.title
        body: dict[str, Any] = {"title": title, "description": harmless(proposal.body)}
        if proposal.labels:
            body["add_labels"] = ",".join(proposal.labels)
        answer = await self.write("PUT", f"/merge_requests/{pull_request.number}", what, body)
        return _pull_request(answer.json())

    async def _people(self, proposal: Proposal) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for key, names in (
            ("reviewer_ids", proposal.reviewers),
            ("assignee_ids", proposal.assignees),
        ):
            ids = [number for name in names if (number := await self._user(name)) is not None]
            if ids:
                found[key] = ids
        return found

    async def _user(self, name: str) -> int | None:
        request = HttpRequest(
            path="/users",
            what=f"cannot look for the user {name}",
            params=[("username", name)],
            list_at=(),
        )
        users = (await self.client.ask(request)).json()
        if not users:
            log.warning(
                "forge.left_out", what="a person", names=name, error="there is no such user"
            )
            return None
        return number_of(users[0].get("id"))

    async def read(self, pull_request: PullRequest) -> PullRequestState:
        """Return how a merge request stands at this moment."""
        number, what = pull_request.number, f"cannot read merge request {pull_request.number}"
        path = f"/merge_requests/{number}"
        item = (await self.ask(path, what)).json()
        status = word_of(item.get("detailed_merge_status"))
        head = segment(word_of(item.get("sha")))
        statuses = await self.listed(f"/repository/commits/{head}/statuses", what)
        reviewers = await self.listed(f"{path}/reviewers", what)
        discussions = await self.listed(f"{path}/discussions", what)
        return PullRequestState(
            pull_request=_pull_request(item),
            conflicts=None if status in _UNKNOWN else status == "conflict",
            checks=tuple(map(_check, statuses)),
            reviews=tuple(found for one in reviewers if (found := _review(one)) is not None),
            threads=tuple(_threads(discussions, word_of(item.get("sha")))),
        )

    async def set_status(self, status: CommitStatus) -> None:
        """Tell of a commit; that it is told already is no error."""
        body = {
            "state": _STATUSES[status.state],
            "name": status.context,
            "description": status.sentence[:255],
        }
        what = f"cannot tell the status of {status.commit[:12]}"
        try:
            await self.write("POST", f"/statuses/{segment(status.commit)}", what, body)
        except TrackerError as exc:
            if exc.kind is not TrackerErrorKind.INVALID or "transition" not in str(exc):
                raise

    async def comment(self, pull_request: PullRequest, body: str, key: str) -> None:
        """Comment on a merge request, once for a key."""
        path = f"/merge_requests/{pull_request.number}/notes"
        what = f"cannot comment on merge request {pull_request.number}"
        await self.comment_once(
            harmless(body), key, path, what, lambda one: text_of(one.get("body")) or ""
        )

    async def reply(self, pull_request: PullRequest, thread: ReviewThread, body: str) -> None:
        """Answer in a discussion."""
        discussion = f"/merge_requests/{pull_request.number}/discussions/{segment(thread.id)}"
        what = f"cannot answer in merge request {pull_request.number}"
        await self.write("POST", f"{discussion}/notes", what, {"body": harmless(body)})

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """Merge a merge request whose head is this commit; how, the project's settings say, but for
        squashing."""
        path = f"/merge_requests/{pull_request.number}/merge"
        what = f"cannot merge merge request {pull_request.number}"
        body = {"sha": head, "squash": method == "squash"}
        wanted = frozenset({405, 409, 422})
        answer = await self.write("PUT", path, what, body, wanted=wanted)
        if answer.status == 409:
            raise conflict(f"{what}: {answer.text()}")
        if answer.status in wanted:
            raise invalid(f"{what}: {answer.text()}")


def _pull_request(item: Any) -> PullRequest:
    return PullRequest(
        id=str(item["id"]),
        number=item["iid"],
        url=str(item["web_url"]),
        state=_STATES.get(word_of(item.get("state")), "closed"),
        branch=item["source_branch"],
        base=item["target_branch"],
        title=str(item["title"]).removeprefix(_DRAFT),
        body=text_of(item.get("description")) or "",
        head=text_of(item.get("sha")),
        draft=bool(item.get("draft")),
    )


def _check(item: Any) -> HeadCheck:
    state = _CHECKS.get(word_of(item.get("status")), CheckState.PENDING)
    if state is CheckState.FAILURE and item.get("allow_failure"):
        state = CheckState.NEUTRAL
    return HeadCheck(
        id=str(item["id"]),
        name=str(item["name"]),
        state=state,
        required=not item.get("allow_failure"),
        url=text_of(item.get("target_url")),
    )


def _review(item: Any) -> Review | None:
    words: dict[str, Literal["approved", "changes_requested", "commented"]] = {
        "approved": "approved",
        "requested_changes": "changes_requested",
        "reviewed": "commented",
    }
    user, state = mapping_of(item.get("user")), words.get(word_of(item.get("state")))
    if state is None:
        return None
    return Review(id=word_of(user.get("id")), author=word_of(user.get("username")), state=state)


def _threads(discussions: Sequence[Any], head: str) -> list[ReviewThread]:
    found = []
    for item in discussions:
        notes = [note for note in list_of(item.get("notes")) if not note.get("system")]
        if not notes or not notes[0].get("resolvable"):
            continue
        place = mapping_of(notes[0].get("position"))
        found.append(
            ReviewThread(
                id=str(item["id"]),
                path=text_of(place.get("new_path")),
                line=number_of(place.get("new_line")),
                resolved=all(note.get("resolved") for note in notes if note.get("resolvable")),
                outdated=bool(place) and place.get("head_sha") != head,
                notes=tuple(
                    ThreadNote(
                        author=word_of(mapping_of(note.get("author")).get("username")),
                        body=text_of(note.get("body")) or "",
                    )
                    for note in notes
                ),
            )
        )
    return found
