"""Pull requests of a repository on GitHub, by its REST API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from sortie.forges import (
    CheckState,
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
from sortie.forges.http_forge import HttpForge, conflict, invalid, missing, names_in
from sortie.http.client import open_client, segment
from sortie.http.comments import harmless_mentions
from sortie.http.credentials import Credential, bearer
from sortie.http.github import PROVIDER
from sortie.http.github_app import AppCredential
from sortie.http.json_values import list_of, mapping_of, number_of, text_of, word_of
from sortie.model import PullRequest, TrackerError, TrackerErrorKind

ENDPOINT = "https://api.github.com"

_SENTENCE_LIMIT = 140
_EXISTS = "already exists"

_STATES: dict[str, CheckState] = {
    "success": CheckState.SUCCESS,
    "failure": CheckState.FAILURE,
    "error": CheckState.FAILURE,
    "timed_out": CheckState.FAILURE,
    "action_required": CheckState.FAILURE,
    "startup_failure": CheckState.FAILURE,
    "neutral": CheckState.NEUTRAL,
    "skipped": CheckState.NEUTRAL,
    "cancelled": CheckState.NEUTRAL,
    "stale": CheckState.NEUTRAL,
}
_REVIEWS: dict[str, Literal["approved", "changes_requested", "commented", "dismissed"]] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes_requested",
    "COMMENTED": "commented",
    "DISMISSED": "dismissed",
}


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


class GitHubForge(HttpForge):
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
        requests = [_pull_request(item) for item in found]
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
        return _pull_request(answer.json())

    async def update(self, pull_request: PullRequest, proposal: Proposal) -> PullRequest:
        """Bring title and body up to date, and add what is missing."""
        what = f"cannot change pull request {pull_request.number}"
        path = f"/pulls/{pull_request.number}"
        body = {"title": proposal.title, "body": harmless_mentions(proposal.body)}
        answer = await self.write("PATCH", path, what, body)
        await self._complete(answer.json(), proposal)
        return _pull_request(answer.json())

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

    async def read(self, pull_request: PullRequest) -> PullRequestState:
        """Return how a pull request stands at this moment."""
        number, what = pull_request.number, f"cannot read pull request {pull_request.number}"
        item = (await self.ask(f"/pulls/{number}", what)).json()
        known = _pull_request(item)
        mergeable = item.get("mergeable")
        runs = await self.listed(f"/commits/{known.head}/check-runs", what, (), ("check_runs",))
        statuses = mapping_of((await self.ask(f"/commits/{known.head}/status", what)).json())
        reviews = await self.listed(f"/pulls/{number}/reviews", what)
        comments = await self.listed(f"/pulls/{number}/comments", what)
        return PullRequestState(
            pull_request=known,
            conflicts=None if mergeable is None else not mergeable,
            checks=(
                *map(_check_run, runs),
                *map(_status, list_of(statuses.get("statuses"))),
            ),
            reviews=tuple(_review(r) for r in reviews if r.get("state") in _REVIEWS),
            threads=tuple(_threads(comments)),
        )

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
        text = harmless_mentions(body)
        await self.comment_once(text, key, path, what, lambda one: text_of(one.get("body")) or "")

    async def reply(self, pull_request: PullRequest, thread: ReviewThread, body: str) -> None:
        """Answer in a review thread."""
        path = f"/pulls/{pull_request.number}/comments/{segment(thread.id)}/replies"
        what = f"cannot answer in pull request {pull_request.number}"
        await self.write("POST", path, what, {"body": harmless_mentions(body)})

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """Merge a pull request whose head is this commit."""
        path = f"/pulls/{pull_request.number}/merge"
        what = f"cannot merge pull request {pull_request.number}"
        body = {"sha": head, "merge_method": method}
        answer = await self.write("PUT", path, what, body, wanted=frozenset({405}))
        if answer.status == 405:
            raise invalid(f"{what}: {answer.text()}")


def _pull_request(item: Any) -> PullRequest:
    state: Literal["open", "merged", "closed"] = "open" if item["state"] == "open" else "closed"
    if item.get("merged_at"):
        state = "merged"
    return PullRequest(
        id=word_of(item.get("node_id")) or str(item["id"]),
        number=item["number"],
        url=str(item["html_url"]),
        state=state,
        branch=item["head"]["ref"],
        base=item["base"]["ref"],
        title=str(item["title"]),
        body=text_of(item.get("body")) or "",
        head=item["head"]["sha"],
        draft=bool(item.get("draft")),
    )


def _check_run(item: Any) -> HeadCheck:
    done = item.get("status") == "completed"
    state = _STATES.get(word_of(item.get("conclusion")), CheckState.PENDING)
    return HeadCheck(
        id=str(item["id"]),
        name=str(item["name"]),
        state=state if done else CheckState.PENDING,
        url=text_of(item.get("html_url")),
    )


def _status(item: Any) -> HeadCheck:
    return HeadCheck(
        id=f"status:{item['context']}",
        name=str(item["context"]),
        state=_STATES.get(word_of(item.get("state")), CheckState.PENDING),
        url=text_of(item.get("target_url")),
    )


def _review(item: Any) -> Review:
    return Review(
        id=str(item["id"]),
        author=word_of(mapping_of(item.get("user")).get("login")),
        state=_REVIEWS[item["state"]],
        body=text_of(item.get("body")) or "",
    )


def _threads(comments: list[Any]) -> list[ReviewThread]:
    """Return review comments by the first one of each thread; REST tells of none whether it is
    resolved."""
    threads: dict[int, list[Any]] = {}
    for one in comments:
        threads.setdefault(number_of(one.get("in_reply_to_id")) or one["id"], []).append(one)
    return [
        ReviewThread(
            id=str(first),
            path=text_of(notes[0].get("path")),
            line=number_of(notes[0].get("line")),
            outdated=notes[0].get("line") is None,
            notes=tuple(
                ThreadNote(
                    author=word_of(mapping_of(note.get("user")).get("login")),
                    body=text_of(note.get("body")) or "",
                )
                for note in notes
            ),
        )
        for first, notes in threads.items()
    ]
