"""What brings a pull request of GitHub up to date, merges it, and clears up behind it."""

from __future__ import annotations

from collections.abc import Mapping

from sortie.forges.github.batches import PullRequestBatches
from sortie.forges.github.queries import (
    DEQUEUE,
    DISABLE_AUTO_MERGE,
    ENABLE_AUTO_MERGE,
    ENQUEUE,
    MERGING,
)
from sortie.forges.http_forge import HttpForge, conflict
from sortie.http.budget import Use
from sortie.http.client import segment
from sortie.http.json_values import mapping_of, word_of
from sortie.http.requests import error_text_in_json
from sortie.model import PullRequest, TrackerError, TrackerErrorKind
from sortie.model.pull_requests import MergeMethod

_REFUSED = frozenset({403, 422})
_NOT_BEHIND = "no new commits on the base"
_MOVED = "expected head sha"


class GitHubMerging(HttpForge):
    """The changes that merge, of one repository of GitHub."""

    @property
    def batches(self) -> PullRequestBatches:
        """GraphQL of the repository's server."""
        return PullRequestBatches(self.client)

    async def bring_up_to_date(self, pull_request: PullRequest, head: str) -> bool:
        """Have GitHub merge the base into the branch where that is behind."""
        what = f"cannot bring pull request {pull_request.number} up to date"
        base = segment(pull_request.base)
        path = f"/compare/{base}...{segment(head)}"
        compared = await self.ask(path, what, params=[("per_page", 1), ("page", 2)])
        if mapping_of(compared.json()).get("behind_by") == 0:
            return False
        path = f"/pulls/{pull_request.number}/update-branch"
        body = {"expected_head_sha": head}
        answer = await self.write("PUT", path, what, body, wanted=_REFUSED)
        if answer.status not in _REFUSED:
            return True
        told = error_text_in_json(self.permitted(answer, what))
        if _NOT_BEHIND in told.casefold():
            return False
        if _MOVED in told.casefold():
            raise self.refused(TrackerErrorKind.CONFLICT, what, answer)
        raise self.refused(TrackerErrorKind.INVALID, what, answer)

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """Merge a pull request whose head is this commit."""
        path = f"/pulls/{pull_request.number}/merge"
        what = f"cannot merge pull request {pull_request.number}"
        body = {"sha": head, "merge_method": method}
        wanted = frozenset({403, 405})
        answer = self.permitted(await self.write("PUT", path, what, body, wanted=wanted), what)
        if answer.status == 405:
            raise self.refused(TrackerErrorKind.INVALID, what, answer)

    async def merge_when_ready(
        self, pull_request: PullRequest, head: str, method: MergeMethod
    ) -> None:
        """Put it into the merge queue of its base, or enable auto-merge where there is none."""
        what = f"cannot have pull request {pull_request.number} merged"
        node = await self._merging(pull_request, what)
        _require_head(node, head, what)
        queued = node["isMergeQueueEnabled"]
        variables = {"id": pull_request.id, "head": head}
        if not queued:
            variables["method"] = method.upper()
        change = ENQUEUE if queued else ENABLE_AUTO_MERGE
        try:
            await self.batches.ask(what, change, variables, Use.WRITE)
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.INVALID:
                _require_head(await self._merging(pull_request, what), head, what)
            raise

    async def cancel_merge(self, pull_request: PullRequest) -> None:
        """Take it out of the merge queue, or disable auto-merge."""
        what = f"cannot take back the merge of pull request {pull_request.number}"
        node = await self._merging(pull_request, what)
        if node["isInMergeQueue"] or node["autoMergeRequest"]:
            change = DEQUEUE if node["isInMergeQueue"] else DISABLE_AUTO_MERGE
            await self.batches.ask(what, change, {"id": pull_request.id}, Use.WRITE)

    async def _merging(self, pull_request: PullRequest, what: str) -> dict[str, object]:
        """Return how it is to be merged."""
        node = (await self.batches.ask(what, MERGING, {"id": pull_request.id})).get("node")
        if not isinstance(node, dict) or "headRefOid" not in node:
            raise TrackerError(TrackerErrorKind.NOT_FOUND, f"{what}: it is not there")
        return node

    async def delete_branch(self, branch: str) -> None:
        """Delete a branch, which is never a base; one that is not there is no error."""
        await self.require_no_base(branch)
        what = f"cannot delete the branch {branch}"
        ref = "/".join(map(segment, branch.split("/")))
        wanted = frozenset({404, 422})
        answer = await self.write("DELETE", f"/git/refs/heads/{ref}", what, wanted=wanted)
        told = error_text_in_json(answer)
        if answer.status == 422 and "does not exist" not in told.casefold():
            raise self.refused(TrackerErrorKind.INVALID, what, answer)


def _require_head(node: Mapping[str, object], head: str, what: str) -> None:
    """Raise CONFLICT where the head is another by now."""
    if (found := word_of(node["headRefOid"])) != head:
        raise conflict(f"{what}: its head is {found[:12]} by now")
