"""Pull requests of a repository on Gitea or Forgejo."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
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
)
from sortie.forges.http_forge import HttpForge, conflict, invalid, log, missing, names_in
from sortie.http.client import open_client, segment
from sortie.http.comments import harmless_mentions
from sortie.http.credentials import header
from sortie.http.gitea import PAGE, PROVIDER, api_of
from sortie.http.json_values import mapping_of, text_of, word_of
from sortie.model import PullRequest

_DRAFT = "WIP: "
_CONFLICT = frozenset({409})
_SCHEME = "token "
_CHECKS = {
    "success": CheckState.SUCCESS,
    "failure": CheckState.FAILURE,
    "error": CheckState.FAILURE,
    "warning": CheckState.NEUTRAL,
    "skipped": CheckState.NEUTRAL,
}
_REVIEWS: dict[str, Literal["approved", "changes_requested", "commented"]] = {
    "APPROVED": "approved",
    "REQUEST_CHANGES": "changes_requested",
    "COMMENT": "commented",
}


@asynccontextmanager
async def opened(context: ForgeContext) -> AsyncIterator[GiteaForge]:
    """Hold the client open. Raises TrackerError (INVALID) where the settings cannot be used."""
    url = context.url
    owner, _, name = url.path.rpartition("/")
    if not owner:
        raise invalid(f"repository.url: {url.path} is no OWNER/REPOSITORY of Gitea")
    # Behind a path of the server, the owner is the last part before the name.
    prefix, _, owner = owner.rpartition("/")
    root = url.root if url.is_http else f"https://{url.host}"
    endpoint = api_of(context.endpoint or (f"{root}/{prefix}" if prefix else root))
    credential = header("Authorization", f"{_SCHEME}{context.token}")
    async with open_client(PROVIDER, endpoint, credential, context.progress) as client:
        path = f"/repos/{segment(owner)}/{segment(name)}"
        yield GiteaForge(client, path, f"{owner}/{name}")


class GiteaForge(HttpForge):
    """One repository of Gitea."""

    page = ("limit", PAGE)

    async def git_credential(self) -> GitCredential:
        """Return the token, which is a password whatever the name is."""
        headers = await self.client.credential.headers()
        token = headers["Authorization"].removeprefix(_SCHEME)
        return GitCredential(username="sortie", password=token)

    async def find(self, branch: str) -> PullRequest | None:
        """Return the open pull request of a branch; all that are open have to be looked at."""
        what = f"cannot look for a pull request of {branch}"
        found = await self.listed("/pulls", what, [("state", "open"), ("sort", "recentupdate")])
        own = (item for item in found if _is_ours(item, self.name))
        return next((pr for item in own if (pr := _pull_request(item)).branch == branch), None)

    async def open(self, proposal: Proposal) -> PullRequest:
        """Open a pull request. Raises CONFLICT where one is open for the branch."""
        what = f"cannot open a pull request of {proposal.branch}"
        body = {
            "title": f"{_DRAFT}{proposal.title}" if proposal.draft else proposal.title,
            "head": proposal.branch,
            "base": proposal.base,
            "body": harmless_mentions(proposal.body),
            "assignees": list(proposal.assignees),
            "labels": await self._label_ids(proposal.labels),
        }
        answer = await self.write("POST", "/pulls", what, body, wanted=_CONFLICT)
        if answer.status == 409:
            raise conflict(f"{what}: {answer.text()}")
        item = answer.json()
        await self.as_far_as_it_goes(
            "reviewers",
            proposal.reviewers,
            lambda: self.write(
                "POST",
                f"/pulls/{item['number']}/requested_reviewers",
                what,
                {"reviewers": list(proposal.reviewers)},
            ),
        )
        return _pull_request(item)

    async def update(self, pull_request: PullRequest, proposal: Proposal) -> PullRequest:
        """Bring title and body up to date, and add labels that are missing."""
        what = f"cannot change pull request {pull_request.number}"
        title = f"{_DRAFT}{proposal.title}" if pull_request.draft else proposal.title
        body: dict[str, Any] = {"title": title, "body": harmless_mentions(proposal.body)}
        answer = await self.write("PATCH", f"/pulls/{pull_request.number}", what, body)
        item = answer.json()
        wanted = missing(proposal.labels, names_in(item.get("labels"), "name"))
        if ids := await self._label_ids(wanted):
            path = f"/issues/{pull_request.number}/labels"
            await self.write("POST", path, what, {"labels": ids})
        return _pull_request(item)

    async def _label_ids(self, names: Sequence[str]) -> list[int]:
        if not names:
            return []
        known = await self.listed("/labels", f"cannot read the labels of {self.name}")
        ids = {str(label["name"]).casefold(): int(label["id"]) for label in known}
        absent = [name for name in names if name.casefold() not in ids]
        if absent:
            error = "there is no such label"
            log.warning("forge.left_out", what="labels", names=", ".join(absent), error=error)
        return [ids[name.casefold()] for name in names if name.casefold() in ids]

    async def read(self, pull_request: PullRequest) -> PullRequestState:
        """Return how a pull request stands at this moment; of threads Gitea's API tells little."""
        number, what = pull_request.number, f"cannot read pull request {pull_request.number}"
        item = (await self.ask(f"/pulls/{number}", what)).json()
        known = _pull_request(item)
        statuses = await self.listed(f"/commits/{segment(known.head or '')}/statuses", what)
        reviews = await self.listed(f"/pulls/{number}/reviews", what)
        mergeable = item.get("mergeable")
        newest = {str(status.get("context")): status for status in reversed(statuses)}
        return PullRequestState(
            pull_request=known,
            conflicts=None if mergeable is None else not mergeable,
            checks=tuple(map(_check, newest.values())),
            reviews=tuple(_review(one) for one in reviews if one.get("state") in _REVIEWS),
        )

    async def set_status(self, status: CommitStatus) -> None:
        """Tell of a commit."""
        body = {
            "state": status.state.value,
            "context": status.context,
            "description": status.sentence,
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
        """Answer a thread by a comment on the whole: the API has no answer in a thread."""
        del thread
        what = f"cannot answer in pull request {pull_request.number}"
        path = f"/issues/{pull_request.number}/comments"
        await self.write("POST", path, what, {"body": harmless_mentions(body)})

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """Merge a pull request whose head is this commit."""
        path = f"/pulls/{pull_request.number}/merge"
        what = f"cannot merge pull request {pull_request.number}"
        body = {"Do": method, "head_commit_id": head}
        wanted = frozenset({405, 409})
        answer = await self.write("POST", path, what, body, wanted=wanted)
        if answer.status == 409:
            raise conflict(f"{what}: {answer.text()}")
        if answer.status == 405:
            raise invalid(f"{what}: {answer.text()}")


def _is_ours(item: Any, name: str) -> bool:
    """Tell whether a pull request is of a branch of the repository itself, and of no fork."""
    repo = mapping_of(mapping_of(item.get("head")).get("repo"))
    return word_of(repo.get("full_name")).casefold() in ("", name.casefold())


def _pull_request(item: Any) -> PullRequest:
    state: Literal["open", "merged", "closed"] = "open" if item["state"] == "open" else "closed"
    if item.get("merged"):
        state = "merged"
    return PullRequest(
        id=str(item["id"]),
        number=item["number"],
        url=str(item["html_url"]),
        state=state,
        branch=item["head"]["ref"],
        base=item["base"]["ref"],
        title=str(item["title"]).removeprefix(_DRAFT),
        body=text_of(item.get("body")) or "",
        head=text_of(item["head"].get("sha")),
        draft=bool(item.get("draft")) or str(item["title"]).startswith(_DRAFT),
    )


def _check(item: Any) -> HeadCheck:
    return HeadCheck(
        id=str(item["id"]),
        name=str(item.get("context")),
        state=_CHECKS.get(word_of(item.get("status")), CheckState.PENDING),
        url=text_of(item.get("target_url")),
    )


def _review(item: Any) -> Review:
    return Review(
        id=str(item["id"]),
        author=word_of(mapping_of(item.get("user")).get("login")),
        state=_REVIEWS[item["state"]],
        body=text_of(item.get("body")) or "",
    )
