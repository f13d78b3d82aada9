"""What brings a pull request of Gitea up to date, merges it, and clears up behind it."""

from __future__ import annotations

from typing import Any

from sortie.forges.gitea.looks import GiteaLooks
from sortie.forges.http_forge import conflict
from sortie.http.client import segment
from sortie.http.json_values import mapping_of, word_of
from sortie.http.requests import error_text_in_json
from sortie.model import PullRequest, TrackerErrorKind
from sortie.model.pull_requests import MergeMethod

_SCHEDULED = "already scheduled"
_MOVED = "out of date"


class GiteaMerging(GiteaLooks):
    """The changes that merge, of one repository of Gitea."""

    async def bring_up_to_date(self, pull_request: PullRequest, head: str) -> bool:
        """Have Gitea merge the base into the branch where that is behind."""
        path = f"/pulls/{pull_request.number}"
        what = f"cannot bring pull request {pull_request.number} up to date"
        item = (await self.ask(path, what)).json()
        found = word_of(mapping_of(item.get("head")).get("sha"))
        if found != head:
            raise conflict(f"{what}: its head is {found[:12]} by now")
        if item.get("merge_base") == mapping_of(item.get("base")).get("sha"):
            return False
        wanted = frozenset({409, 422})
        params = [("style", "merge")]
        answer = await self.write("POST", f"{path}/update", what, params=params, wanted=wanted)
        self.known.forget(pull_request.id)
        if not answer.ok:
            raise self.refused(TrackerErrorKind.INVALID, what, answer)
        return True

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """Merge a pull request whose head is this commit."""
        await self._merge(pull_request, {"Do": method, "head_commit_id": head})

    async def merge_when_ready(
        self, pull_request: PullRequest, head: str, method: MergeMethod
    ) -> None:
        """Schedule the merge for when all checks have succeeded; again is no error."""
        what = f"cannot merge pull request {pull_request.number}"
        item = (await self.ask(f"/pulls/{pull_request.number}", what)).json()
        found = word_of(mapping_of(item.get("head")).get("sha"))
        if found != head:  # a schedule has no head of its own
            raise conflict(f"{what}: its head is {found[:12]} by now")
        later = {"merge_when_checks_succeed": True}
        await self._merge(pull_request, {"Do": method, "head_commit_id": head, **later})

    async def _merge(self, pull_request: PullRequest, body: dict[str, Any]) -> None:
        path = f"/pulls/{pull_request.number}/merge"
        what = f"cannot merge pull request {pull_request.number}"
        answer = await self.write("POST", path, what, body, wanted=frozenset({405, 409}))
        self.known.forget(pull_request.id)
        told = error_text_in_json(answer).casefold()
        if answer.ok or (answer.status == 409 and _SCHEDULED in told):
            return
        if answer.status == 409 and _MOVED in told:
            raise self.refused(TrackerErrorKind.CONFLICT, what, answer)
        raise self.refused(TrackerErrorKind.INVALID, what, answer)

    async def cancel_merge(self, pull_request: PullRequest) -> None:
        """Take the schedule of its merge back; there may be none."""
        path = f"/pulls/{pull_request.number}/merge"
        what = f"cannot take back the merge of pull request {pull_request.number}"
        await self.write("DELETE", path, what, wanted=frozenset({404}))
        self.known.forget(pull_request.id)

    async def delete_branch(self, branch: str) -> None:
        """Delete a branch, which is never a base; one that is not there is no error."""
        await self.require_no_base(branch)
        what = f"cannot delete the branch {branch}"
        path = f"/branches/{segment(branch)}"
        await self.write("DELETE", path, what, wanted=frozenset({404}))
