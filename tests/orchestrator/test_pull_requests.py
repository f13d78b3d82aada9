"""What is done at a forge for the scheduler, and what it is told of that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from sortie.config.reactions import MergeReaction, MergeRequirements, ReactionsSettings
from sortie.model import TrackerError, TrackerErrorKind
from sortie.model.pull_requests import CheckState, HeadCheck, PullRequestState
from sortie.orchestrator.pull_requests import merge
from sortie.scheduler import Event
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from tests.scheduler.driver import issue
from tests.store.watches import REQUEST

HEAD = REQUEST.head or ""
READY = PullRequestState(pull_request=REQUEST, conflicts=False)
PENDING = HeadCheck(id="1", name="test", state=CheckState.PENDING, required=True)


class ForgeAtMerge:
    """Shows one pull request, and writes down what it is told to do."""

    def __init__(self, shown: PullRequestState, *, behind: bool = False) -> None:
        self.shown = shown
        self.behind = behind
        self.schedules = True
        self.did: list[str] = []

    async def look(
        self, asked: Any, *, afresh: bool, changed: Any, told: bool
    ) -> dict[str, PullRequestState]:
        """See Forge."""
        assert (afresh, changed, told) == (True, {}, False)
        return {asked[0].id: self.shown}

    async def may_write(self, _user: str) -> bool:
        """See Forge."""
        return True

    async def bring_up_to_date(self, _request: Any, head: str) -> bool:
        """See Forge."""
        self.did.append(f"update {head}")
        return self.behind

    async def merge(self, _request: Any, head: str, _method: str) -> None:
        """See Forge."""
        self.did.append(f"merge {head}")

    async def merge_when_ready(self, _request: Any, head: str, _method: str) -> None:
        """See Forge."""
        if not self.schedules:
            raise TrackerError(TrackerErrorKind.INVALID, "clean status")
        self.did.append(f"schedule {head}")


async def tried(forge: ForgeAtMerge, *, stands_in: str = "review") -> tuple[str, str]:
    """Return what the scheduler is told of a merge."""
    reactions = ReactionsSettings(
        merge=MergeReaction(require=MergeRequirements(approvals=0), settle_ms=0)
    )

    async def fetch_by_ids(_ids: Any) -> Any:
        return SimpleNamespace(issues=[issue("a", state=stands_in)], failed={})

    settings = SimpleNamespace(reactions=reactions, tracker=SimpleNamespace(handoff_state="Review"))
    run = SimpleNamespace(
        remote=SimpleNamespace(forge=forge), redact=lambda text: text, settings=settings
    )
    context: Any = SimpleNamespace(
        run_context_for=lambda _host, _rule: run,
        tracker=SimpleNamespace(fetch_by_ids=fetch_by_ids),
        publish=lambda _fact: None,
    )
    told: list[Event] = []
    question = do.MergePullRequest(1, issue("a", state="Review"), REQUEST, HEAD)
    await merge(context, question, told.append)
    (answer,) = told
    assert isinstance(answer, ev.MergeTried)
    return answer.outcome, answer.message


@pytest.mark.parametrize("state", ["Dropped", "Backlog", "Todo"])
async def test_an_issue_that_was_moved_has_nothing_merged(state: str) -> None:
    """Somebody may have put it away a moment ago: only the tracker knows."""
    forge = ForgeAtMerge(READY)

    assert await tried(forge, stands_in=state) == ("refused", f"its issue stands in {state}")
    assert forge.did == []


async def test_what_is_ready_is_merged_at_the_head_that_was_judged() -> None:
    """After a look at whether its base has moved on."""
    forge = ForgeAtMerge(READY)

    assert await tried(forge) == ("merged", "")
    assert forge.did == [f"update {HEAD}", f"merge {HEAD}"]


async def test_what_is_behind_its_base_is_brought_up_to_date_first() -> None:
    """It is merged once its checks have succeeded with it."""
    forge = ForgeAtMerge(READY, behind=True)

    assert await tried(forge) == ("updated", "")
    assert forge.did == [f"update {HEAD}"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pull_request": replace(REQUEST, head="f" * 40)}, "its head is another by now"),
        ({"pull_request": replace(REQUEST, state="closed")}, "it is closed"),
        ({"checks": (PENDING,)}, "waited for: test"),
    ],
)
async def test_what_is_not_as_it_was_judged_is_not_merged(
    changes: dict[str, Any], message: str
) -> None:
    """Between the look and the merge anything may happen."""
    forge = ForgeAtMerge(replace(READY, **changes))

    assert await tried(forge) == ("not_ready", message)
    assert forge.did == []


@pytest.mark.parametrize("schedules", [True, False])
async def test_the_forge_waits_itself_where_it_can(schedules: bool) -> None:
    """Where it will not after all, what it would have waited for is waited for here."""
    forge = ForgeAtMerge(replace(READY, checks=(PENDING,), automatic=True))
    forge.schedules = schedules

    outcome = await tried(forge)

    assert outcome == (("queued", "") if schedules else ("not_ready", "waited for: test"))
    assert forge.did == [f"update {HEAD}", *([f"schedule {HEAD}"] if schedules else [])]
