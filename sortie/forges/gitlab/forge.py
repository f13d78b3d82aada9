"""Merge requests of a project on GitLab."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sortie.forges import CommitState, CommitStatus, ForgeContext, GitCredential, Proposal
from sortie.forges.check_logs import last_lines
from sortie.forges.gitlab.merging import GitLabMerging
from sortie.forges.gitlab.state import DRAFT, is_ours, pull_request_of
from sortie.forges.http_forge import has_key, log
from sortie.http.client import open_client, segment
from sortie.http.comments import marked
from sortie.http.credentials import header
from sortie.http.gitlab import PROVIDER
from sortie.http.gitlab_notes import harmless
from sortie.http.json_values import list_of, mapping_of, number_of, word_of
from sortie.http.permissions import DEVELOPER, access_level
from sortie.http.requests import HttpRequest
from sortie.model import PullRequest, TrackerError, TrackerErrorKind
from sortie.model.pull_requests import HeadCheck, Note, ReviewThread

_API = "/api/v4"
_CONFLICT = frozenset({409})
_STATUSES = {
    CommitState.PENDING: "pending",
    CommitState.SUCCESS: "success",
    CommitState.FAILURE: "failed",
}
_MISSING = frozenset({404})
_DONE_ALREADY = frozenset({404, 409})
_IMPOSSIBLE = frozenset({403, 404})


@asynccontextmanager
async def opened(context: ForgeContext) -> AsyncIterator[GitLabForge]:
    """Hold the client open for as long as the forge is."""
    url = context.url
    address = context.endpoint or (url.root if url.is_http else f"https://{url.host}")
    endpoint = f"{address.rstrip('/').removesuffix(_API)}{_API}"
    credential = header("PRIVATE-TOKEN", context.token)
    async with open_client(PROVIDER, endpoint, credential, context.progress) as client:
        yield GitLabForge(client, f"/projects/{segment(url.path)}", url.path)


class GitLabForge(GitLabMerging):
    """One project of GitLab."""

    async def git_credential(self) -> GitCredential:
        """Return the token."""
        headers = await self.client.credential.headers()
        return GitCredential(username="oauth2", password=headers["PRIVATE-TOKEN"])

    async def find(self, branch: str) -> PullRequest | None:
        """Return the open merge request of a branch."""
        what = f"cannot look for a merge request of {branch}"
        params = [("state", "opened"), ("source_branch", branch)]
        items = await self.listed("/merge_requests", what, params)
        found = [self.seen(pull_request_of(item)) for item in items if is_ours(item)]
        return next((request for request in found if request.branch == branch), None)

    async def open(self, proposal: Proposal) -> PullRequest:
        """Open a merge request. Raises CONFLICT where one is open for the branch."""
        what = f"cannot open a merge request of {proposal.branch}"
        title = f"{DRAFT}{proposal.title}" if proposal.draft else proposal.title
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
            raise self.refused(TrackerErrorKind.CONFLICT, what, answer)
        return self.seen(pull_request_of(answer.json()))

    async def update(self, pull_request: PullRequest, proposal: Proposal) -> PullRequest:
        """Bring title and description up to date, and add labels."""
        what = f"cannot change merge request {pull_request.number}"
        title = f"{DRAFT}{proposal.title}" if pull_request.draft else proposal.title
        body: dict[str, Any] = {"title": title, "description": harmless(proposal.body)}
        if proposal.labels:
            body["add_labels"] = list(proposal.labels)
        answer = await self.write("PUT", f"/merge_requests/{pull_request.number}", what, body)
        return self.seen(pull_request_of(answer.json()))

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
        """Return the number of somebody, and log that there is none."""
        if (number := await self._user_id(name)) is None:
            error = "there is no such user"
            log.warning("forge.left_out", what="a person", names=name, error=error)
        return number

    async def _user_id(self, name: str) -> int | None:
        request = HttpRequest(
            path="/users",
            what=f"cannot look for the user {name}",
            params=[("username", name)],
            list_at=(),
        )
        users = (await self.client.ask(request)).json()
        of_name = (user for user in users if _name_of(user) == name.casefold())
        return next((number_of(user.get("id")) for user in of_name), None)

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
        await self.comment_once(harmless(body), key, path, what)

    async def reply(
        self, pull_request: PullRequest, thread: ReviewThread, body: str, key: str
    ) -> None:
        """Answer in a discussion, once for a key."""
        path = f"/merge_requests/{pull_request.number}/discussions/{segment(thread.id)}"
        what = f"cannot answer in merge request {pull_request.number}"
        text = marked(harmless(body), key)

        async def post() -> None:
            await self.write("POST", f"{path}/notes", what, {"body": text})

        async def is_there() -> bool:
            discussion = mapping_of((await self.ask(path, what)).json())
            return has_key(list_of(discussion.get("notes")), key)

        await self.once(key, post, is_there)

    async def acknowledge(self, pull_request: PullRequest, note: Note) -> None:
        """Put eyes on a note; that they are there is no error."""
        what = f"cannot react to a note of merge request {pull_request.number}"
        path = f"/merge_requests/{pull_request.number}/notes/{segment(note.id)}/award_emoji"
        await self.write("POST", path, what, {"name": "eyes"}, wanted=_DONE_ALREADY)

    async def label(
        self, pull_request: PullRequest, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> None:
        """Add and remove labels, in one change; GitLab would make one that it does not know."""
        what = f"cannot label merge request {pull_request.number}"
        add = await self.known_labels(_single(add), what)
        body = {"add_labels": add, "remove_labels": _single(remove)}
        if wanted := {key: names for key, names in body.items() if names}:
            await self.write("PUT", f"/merge_requests/{pull_request.number}", what, wanted)

    async def read_permission(self, user: str) -> bool:
        """Ask for the level of a member, of the project itself or of a group above it."""
        return await access_level(self.client, self.root, user) >= DEVELOPER

    async def check_log(self, check: HeadCheck, lines: int) -> str:
        """Return the end of a job's log; a status of another service has none."""
        if not check.id.isdecimal():
            return ""
        what = f"cannot read the log of {check.name}"
        return last_lines(await self.log_at(f"/jobs/{check.id}/trace", what), lines)

    async def rerun(self, check: HeadCheck) -> bool:
        """Have a job run again."""
        if not check.id.isdecimal():
            return False
        what = f"cannot have {check.name} made again"
        answer = await self.write("POST", f"/jobs/{check.id}/retry", what, wanted=_IMPOSSIBLE)
        self.known.forget_check(check.id)
        return answer.ok


def _name_of(user: object) -> str:
    return word_of(mapping_of(user).get("username")).casefold()


def _single(names: Sequence[str]) -> list[str]:
    """Return the names that stand for one label each, where commas part them."""
    return [name for name in names if "," not in name]
