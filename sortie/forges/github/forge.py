"""Pull requests of a repository on GitHub, by its REST API and, to look at them, GraphQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sortie.forges import NOTHING_CHANGED, CommitStatus, ForgeContext, GitCredential, Proposal
from sortie.forges.github.check_runs import GitHubCheckRuns
from sortie.forges.github.merging import GitHubMerging
from sortie.forges.github.state import is_ours, pull_request_of_rest
from sortie.forges.http_forge import conflict, has_key, invalid, missing, names_in
from sortie.http.client import open_client, segment
from sortie.http.comments import harmless_mentions, marked
from sortie.http.credentials import Credential, bearer
from sortie.http.github import PROVIDER
from sortie.http.github_app import AppCredential
from sortie.http.json_values import word_of
from sortie.model import PullRequest, TrackerError, TrackerErrorKind
from sortie.model.pull_requests import PullRequestState, ReviewThread
from sortie.model.webhooks import Part

ENDPOINT = "https://api.github.com"

_SENTENCE_LIMIT = 140
_EXISTS = "already exists"

_MISSING = frozenset({404})


@asynccontextmanager
async def opened(context: ForgeContext) -> AsyncIterator[GitHubForge]:
    """Hold the client open. Raises TrackerError (INVALID) where the settings cannot be used."""
    owner, _, name = context.url.path.rpartition("/")
    if not owner or "/" in owner:
        raise invalid(f"repository.url: {context.url.path} is no OWNER/REPOSITORY of GitHub")
    endpoint = context.endpoint or _endpoint(context)
    credential: Credential = bearer(context.token)
    if context.app is not None:
        app_id, installation = context.app
        credential = AppCredential(app_id, context.token, installation, f"{owner}/{name}")
    async with open_client(PROVIDER, endpoint, credential, context.progress) as client:
        if isinstance(client.credential, AppCredential):
            client.credential.client = client
        yield GitHubForge(client, f"/repos/{segment(owner)}/{segment(name)}", f"{owner}/{name}")


def _endpoint(context: ForgeContext) -> str:
    url = context.url
    if url.host.casefold() in ("github.com", "ssh.github.com"):
        return ENDPOINT
    return f"{url.root if url.is_http else f'https://{url.host}'}/api/v3"


class GitHubForge(GitHubMerging, GitHubCheckRuns):
    """One repository of GitHub."""

    async def git_credential(self) -> GitCredential:
        """Return the token, of an App one that lives for a while yet."""
        headers = await self.client.credential.headers()
        token = headers["Authorization"].removeprefix("Bearer ")
        return GitCredential(username="x-access-token", password=token)

    async def find(self, branch: str) -> PullRequest | None:
        """Return the open pull request of a branch."""
        head = f"{self.name.partition('/')[0]}:{branch}"
        what = f"cannot look for a pull request of {branch}"
        found = await self.listed("/pulls", what, [("state", "open"), ("head", head)])
        requests = [self.seen(pull_request_of_rest(item)) for item in found if is_ours(item)]
        # A filter that a server does not know is ignored by it.
        return next((request for request in requests if request.branch == branch), None)

    async def open(self, proposal: Proposal) -> PullRequest:
        """Open a pull request. Raises CONFLICT where one is open for the branch."""
        what = f"cannot open a pull request of {proposal.branch}"
        body = {
            "title": proposal.title,
            "head": proposal.branch,
            "base": proposal.base,
            "body": harmless_mentions(proposal.body),
            "draft": proposal.draft,
        }
        try:
            answer = await self.write("POST", "/pulls", what, body)
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.INVALID and _EXISTS in str(exc):
                raise conflict(str(exc)) from exc
            raise
        await self._complete(answer.json(), proposal)
        return self.seen(pull_request_of_rest(answer.json()))

    async def update(self, pull_request: PullRequest, proposal: Proposal) -> PullRequest:
        """Bring title and body up to date, and add what is missing."""
        what = f"cannot change pull request {pull_request.number}"
        path = f"/pulls/{pull_request.number}"
        body = {"title": proposal.title, "body": harmless_mentions(proposal.body)}
        answer = await self.write("PATCH", path, what, body)
        await self._complete(answer.json(), proposal)
        return self.seen(pull_request_of_rest(answer.json()))

    async def _complete(self, item: Any, proposal: Proposal) -> None:
        """Add labels, assignees and reviewers that are not there."""
        number = item["number"]
        labels = missing(proposal.labels, names_in(item.get("labels"), "name"))
        what = f"cannot label pull request {number}"
        await self.as_far_as_it_goes(
            "labels",
            labels,
            lambda: self.write("POST", f"/issues/{number}/labels", what, {"labels": labels}),
        )
        assignees = missing(proposal.assignees, names_in(item.get("assignees"), "login"))
        await self.as_far_as_it_goes(
            "assignees",
            assignees,
            lambda: self.write(
                "POST", f"/issues/{number}/assignees", what, {"assignees": assignees}
            ),
        )
        if names_in(item.get("requested_reviewers"), "login") or not proposal.reviewers:
            return
        if await self.listed(f"/pulls/{number}/reviews", f"cannot read reviews of {number}"):
            return  # who has reviewed is not asked again by each run
        await self.as_far_as_it_goes(
            "reviewers",
            proposal.reviewers,
            lambda: self.write(
                "POST",
                f"/pulls/{number}/requested_reviewers",
                what,
                {"reviewers": list(proposal.reviewers)},
            ),
        )

    async def look(
        self,
        pull_requests: Sequence[PullRequest],
        *,
        afresh: bool = False,
        changed: Mapping[str, Part] = NOTHING_CHANGED,
        told: bool = False,
    ) -> Mapping[str, PullRequestState]:
        """Return how pull requests stand; a batch costs one request, so none is remembered."""
        del afresh, changed, told
        found = await self.batches.read(pull_requests)
        if any(one.id not in found for one in pull_requests):
            await self.require_visible()
        for state in found.values():
            self.seen(state.pull_request)
        return found

    async def set_status(self, status: CommitStatus) -> None:
        """Tell of a commit."""
        body = {
            "state": status.state.value,
            "context": status.context,
            "description": status.sentence[:_SENTENCE_LIMIT],
        }
        what = f"cannot tell the status of {status.commit[:12]}"
        await self.write("POST", f"/statuses/{segment(status.commit)}", what, body)

    async def comment(self, pull_request: PullRequest, body: str, key: str) -> None:
        """Comment on a pull request, once for a key."""
        path = f"/issues/{pull_request.number}/comments"
        what = f"cannot comment on pull request {pull_request.number}"
        await self.comment_once(harmless_mentions(body), key, path, what)

    async def reply(
        self, pull_request: PullRequest, thread: ReviewThread, body: str, key: str
    ) -> None:
        """Answer in a review thread, behind its first comment, once for a key."""
        what = f"cannot answer in pull request {pull_request.number}"
        text = marked(harmless_mentions(body), key)
        notes = await self.batches.notes_of(what, thread.id)

        async def post() -> None:
            first = segment(word_of(notes[0].get("fullDatabaseId")))
            path = f"/pulls/{pull_request.number}/comments/{first}/replies"
            await self.write("POST", path, what, {"body": text})

        async def is_there() -> bool:
            return has_key(await self.batches.notes_of(what, thread.id), key)

        await self.once(key, post, is_there)

    async def label(
        self, pull_request: PullRequest, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> None:
        """Add and remove labels; GitHub would make one that it does not know."""
        what = f"cannot label pull request {pull_request.number}"
        path = f"/issues/{pull_request.number}/labels"
        if wanted := await self.known_labels(add, what):
            await self.write("POST", path, what, {"labels": wanted})
        for name in remove:
            await self.write("DELETE", f"{path}/{segment(name)}", what, wanted=_MISSING)
