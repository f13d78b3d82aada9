"""Pull requests of a repository on Gitea or Forgejo."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from sortie.forges import CommitStatus, ForgeContext, GitCredential, Proposal
from sortie.forges.gitea.merging import GiteaMerging
from sortie.forges.gitea.state import DRAFT, is_ours, labels_of, pull_request_of
from sortie.forges.http_forge import invalid, log, missing, names_in
from sortie.http.client import open_client, segment
from sortie.http.comments import harmless_mentions
from sortie.http.credentials import header
from sortie.http.gitea import PAGE, PROVIDER, api_of
from sortie.model import PullRequest, TrackerErrorKind
from sortie.model.pull_requests import HeadCheck, ReviewThread
from sortie.model.texts import NOT_ON_A_LINE

_CONFLICT = frozenset({409})
_SCHEME = "token "
_MISSING = frozenset({404})


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


class GiteaForge(GiteaMerging):
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
        own = (item for item in found if is_ours(item, self.name))
        return next((pr for item in own if (pr := pull_request_of(item)).branch == branch), None)

    async def open(self, proposal: Proposal) -> PullRequest:
        """Open a pull request. Raises CONFLICT where one is open for the branch."""
        what = f"cannot open a pull request of {proposal.branch}"
        body = {
            "title": f"{DRAFT}{proposal.title}" if proposal.draft else proposal.title,
            "head": proposal.branch,
            "base": proposal.base,
            "body": harmless_mentions(proposal.body),
            "labels": await self._label_ids(proposal.labels),
        }
        answer = await self.write("POST", "/pulls", what, body, wanted=_CONFLICT)
        if answer.status == 409:
            raise self.refused(TrackerErrorKind.CONFLICT, what, answer)
        item = answer.json()
        await self._assign(item, proposal.assignees, what)
        await self._ask_reviewers(item["number"], proposal.reviewers, what)
        return self.seen(pull_request_of(item))

    async def update(self, pull_request: PullRequest, proposal: Proposal) -> PullRequest:
        """Bring title and body up to date, add labels and assignees that are missing, and ask for
        reviews where nobody was asked."""
        what = f"cannot change pull request {pull_request.number}"
        title = f"{DRAFT}{proposal.title}" if pull_request.draft else proposal.title
        body: dict[str, Any] = {"title": title, "body": harmless_mentions(proposal.body)}
        answer = await self.write("PATCH", f"/pulls/{pull_request.number}", what, body)
        item = answer.json()
        wanted = missing(proposal.labels, labels_of(item))
        if ids := await self._label_ids(wanted):
            path = f"/issues/{pull_request.number}/labels"
            await self.write("POST", path, what, {"labels": ids})
        await self._assign(item, proposal.assignees, what)
        path = f"/pulls/{pull_request.number}/reviews"
        if proposal.reviewers and not await self.listed(path, what):
            await self._ask_reviewers(pull_request.number, proposal.reviewers, what)
        return self.seen(pull_request_of(item))

    async def _assign(self, item: Any, names: Sequence[str], what: str) -> None:
        """Add assignees. Gitea refuses a whole change that names somebody it does not know, so that
        this is one of its own."""
        present = names_in(item.get("assignees"), "login")
        absent = missing(names, present)
        path, body = f"/pulls/{item['number']}", {"assignees": [*present, *absent]}
        await self.as_far_as_it_goes(
            "assignees", absent, lambda: self.write("PATCH", path, what, body)
        )

    async def _ask_reviewers(self, number: int, names: Sequence[str], what: str) -> None:
        path, body = f"/pulls/{number}/requested_reviewers", {"reviewers": list(names)}
        await self.as_far_as_it_goes(
            "reviewers", names, lambda: self.write("POST", path, what, body)
        )

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
        await self.comment_once(harmless_mentions(body), key, path, what)

    async def reply(
        self, pull_request: PullRequest, thread: ReviewThread, body: str, key: str
    ) -> None:
        """Answer a thread by a comment on the whole: the API has no answer in a thread."""
        known = self.known.get(pull_request.id)
        threads = () if known is None else known.state.threads
        seen = next((one for one in threads if one.id == thread.id), thread)
        about = ""
        if seen.path:
            place = seen.path if seen.line is None else f"{seen.path}:{seen.line}"
            about = f"About `{NOT_ON_A_LINE.sub('', place).replace('`', '')}`:\n\n"
        await self.comment(pull_request, f"{about}{body}", key)

    async def label(
        self, pull_request: PullRequest, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> None:
        """Add and remove labels, which Gitea knows by their numbers."""
        what = f"cannot label pull request {pull_request.number}"
        path = f"/issues/{pull_request.number}/labels"
        if ids := await self._label_ids(add):
            await self.write("POST", path, what, {"labels": ids})
        gone = {name.casefold() for name in remove}
        for item in await self.listed(path, what) if gone else ():
            if str(item["name"]).casefold() in gone:
                await self.write("DELETE", f"{path}/{int(item['id'])}", what, wanted=_MISSING)

    async def check_log(self, check: HeadCheck, lines: int) -> str:
        """Return "": the API has no logs of what has set a status."""
        del check, lines
        await trio.lowlevel.checkpoint()
        return ""

    async def rerun(self, check: HeadCheck) -> bool:
        """Return False: what has set a status cannot be asked again."""
        del check
        await trio.lowlevel.checkpoint()
        return False
