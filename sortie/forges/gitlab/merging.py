"""What brings a merge request up to date, merges it, and clears up behind it."""

from __future__ import annotations

from typing import Any

import trio

from sortie.forges.gitlab.looks import GitLabLooks
from sortie.forges.http_forge import conflict, invalid
from sortie.http.client import segment
from sortie.http.json_values import number_of, text_of, word_of
from sortie.model import PullRequest, TrackerErrorKind
from sortie.model.pull_requests import MergeMethod

_READS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each read that looks whether a rebase is done: GitLab makes it in a job."""


class GitLabMerging(GitLabLooks):
    """The changes that merge, of one project of GitLab."""

    async def bring_up_to_date(self, pull_request: PullRequest, head: str) -> bool:
        """Have GitLab rebase the branch where commits of its base are missing."""
        path = f"/merge_requests/{pull_request.number}"
        what = f"cannot bring merge request {pull_request.number} up to date"
        params = [("include_diverged_commits_count", "true"), _PROGRESS]
        item = (await self.ask(path, what, params=params)).json()
        if word_of(item.get("sha")) != head:
            raise conflict(f"{what}: its head is {word_of(item.get('sha'))[:12]} by now")
        if not number_of(item.get("diverged_commits_count")):
            return False
        if not item.get("rebase_in_progress"):
            answer = await self.write("PUT", f"{path}/rebase", what, wanted=frozenset({403, 409}))
            if not answer.ok:
                raise self.refused(TrackerErrorKind.INVALID, what, answer)
        self.known.forget(pull_request.id)
        for pause in _READS:
            await trio.sleep(pause)
            item = (await self.ask(path, what, params=[_PROGRESS])).json()
            if not item.get("rebase_in_progress"):
                break
        if word_of(item.get("sha")) == head and (why := text_of(item.get("merge_error"))):
            raise invalid(f"{what}: {why}")
        return True

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """Merge a merge request whose head is this commit; how, the project's settings say, but for
        squashing."""
        await self._merge(pull_request, {"sha": head, "squash": method == "squash"})

    async def merge_when_ready(
        self, pull_request: PullRequest, head: str, method: MergeMethod
    ) -> None:
        """Have GitLab merge it by itself; earlier servers have another word for that."""
        automatic = {"auto_merge": True, "merge_when_pipeline_succeeds": True}
        await self._merge(pull_request, {"sha": head, "squash": method == "squash", **automatic})

    async def _merge(self, pull_request: PullRequest, body: dict[str, Any]) -> None:
        path = f"/merge_requests/{pull_request.number}/merge"
        what = f"cannot merge merge request {pull_request.number}"
        wanted = frozenset({401, 405, 409, 422})
        answer = await self.write("PUT", path, what, body, wanted=wanted)
        self.known.forget(pull_request.id)
        if answer.status == 401:  # so GitLab tells that somebody may not merge
            raise self.refused(TrackerErrorKind.PERMISSION, what, answer)
        if answer.status == 409:
            raise self.refused(TrackerErrorKind.CONFLICT, what, answer)
        if answer.status in wanted:
            raise self.refused(TrackerErrorKind.INVALID, what, answer)

    async def cancel_merge(self, pull_request: PullRequest) -> None:
        """Have GitLab no longer merge it by itself; it refuses that where it would not."""
        path = f"/merge_requests/{pull_request.number}/cancel_merge_when_pipeline_succeeds"
        what = f"cannot take back the merge of merge request {pull_request.number}"
        await self.write("POST", path, what, wanted=frozenset({405, 406}))
        self.known.forget(pull_request.id)

    async def delete_branch(self, branch: str) -> None:
        """Delete a branch, which is never a base; one that is not there is no error."""
        await self.require_no_base(branch)
        what = f"cannot delete the branch {branch}"
        path = f"/repository/branches/{segment(branch)}"
        await self.write("DELETE", path, what, wanted=frozenset({404}))


_PROGRESS = ("include_rebase_in_progress", "true")
