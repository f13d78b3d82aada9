"""What a forge could not tell is an error, and never looks as if all were well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie.model import TrackerError, TrackerErrorKind
from tests.forges.rig import BRANCH, Rig
from tests.forges.test_looking import look
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import Instead, Refuse

LISTS = {
    "github": (),
    "gitlab": ("/statuses$", "/reviewers$", "/discussions$"),
    "gitea": ("/statuses$", "/reviews$", r"/reviews/\d+/comments$", "/timeline$"),
}


async def test_a_forge_that_fails_tells_nothing(rig: Rig) -> None:
    """No pull request without checks, where only the answer was none."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        # What GraphQL of GitLab does not answer is asked of REST.
        rig.server.inject(Refuse(status=502), times=2 if rig.kind == "gitlab" else 1)
        with pytest.raises(TrackerError) as closed:
            await forge.look([opened])
        if rig.kind == "gitlab":
            rig.server.inject(Refuse(status=500), path="graphql")
        rig.server.inject(Refuse(status=500), skip=1 if rig.kind != "github" else 0)
        with pytest.raises(TrackerError) as failed:
            await forge.look([opened])
        found = await forge.look([opened])

    assert closed.value.kind is TrackerErrorKind.CLOSED
    assert failed.value.kind is TrackerErrorKind.UNAVAILABLE
    assert opened.id in found


async def test_a_list_that_is_not_there_is_no_empty_one(rig: Rig) -> None:
    """No checks, no reviews and no threads would look as if all were well."""
    rig.push()
    rig.service.set_check(BRANCH, "test", "failure")
    kinds = []
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        rig.service.start_thread(1, "ann", "README", 1, "Why?")
        for path in LISTS[rig.kind]:
            if rig.kind == "gitlab":
                rig.server.inject(Refuse(status=500), path="graphql")
            rig.server.inject(Refuse(status=404), path=path)
            with pytest.raises(TrackerError) as refused:
                await look(forge, opened)
            kinds.append(refused.value.kind)
        state = await look(forge, opened)

    assert kinds == [TrackerErrorKind.NOT_FOUND] * len(LISTS[rig.kind])
    assert (len(state.checks), len(state.threads)) == (1, 1)


async def test_a_repository_that_cannot_be_seen_is_not_gone(rig: Rig) -> None:
    """A forge says the same of what is gone and of what a token may not see any more."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        rig.service.gone.add(1)
        rig.server.inject(Refuse(status=404), path="/team(/|%2F)thing$")
        with pytest.raises(TrackerError) as refused:
            await forge.look([opened])
        rig.server.heal()
        found = await forge.look([opened])

    assert refused.value.kind is TrackerErrorKind.NOT_FOUND
    assert found == {}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "FORBIDDEN", "path": ["p0", "commits"]}, TrackerErrorKind.PERMISSION),
        ({"type": "RATE_LIMITED"}, TrackerErrorKind.UNAVAILABLE),
        ({"path": ["p0", "comments", "nodes", 0]}, TrackerErrorKind.UNAVAILABLE),
        ({"type": "RESOURCE_LIMITS_EXCEEDED"}, TrackerErrorKind.UNAVAILABLE),
    ],
)
async def test_half_an_answer_of_graphql_is_an_error(
    github: Rig, error: dict[str, object], kind: TrackerErrorKind
) -> None:
    """Checks that may not be seen are not none at all."""
    github.push()
    told = {"message": "Resource not accessible", **error}

    def spoil(reply: Reply) -> Reply:
        return replace(reply, body={**reply.body, "errors": [told]})

    async with github.opened() as forge:
        opened = await github.open_one(forge)
        github.server.inject(Instead(spoil), path="graphql", times=2)
        with pytest.raises(TrackerError) as refused:
            await forge.look([opened])

    assert refused.value.kind is kind


async def test_a_server_that_is_too_old_says_what_to_do(github: Rig) -> None:
    """An earlier GitHub Enterprise Server does not know all fields."""
    github.push()
    message = "Field 'fullDatabaseId' doesn't exist on type 'IssueComment'"
    error = {"message": message, "extensions": {"code": "undefinedField"}}
    async with github.opened() as forge:
        opened = await github.open_one(forge)
        github.server.inject(Refuse(status=200, body={"errors": [error]}), path="graphql")
        with pytest.raises(TrackerError, match="update GitHub Enterprise Server") as refused:
            await look(forge, opened)

    assert message in str(refused.value)
    assert refused.value.kind is TrackerErrorKind.INVALID


async def test_a_list_whose_next_page_is_gone_is_not_whole(github: Rig) -> None:
    """As of checks, where a push came in between."""
    github.push()
    for at in range(101):
        github.service.set_check(BRANCH, f"check {at}", "success")
    async with github.opened() as forge:
        opened = await github.open_one(forge)
        gone = Refuse(status=200, body={"data": {"node": {"commits": {"nodes": []}}}})
        github.server.inject(gone, path="graphql", body="query More")
        with pytest.raises(TrackerError, match="has changed while it was read"):
            await look(forge, opened)


async def test_too_much_at_once_is_asked_for_in_halves(github: Rig) -> None:
    """Until GitHub answers."""
    for at in (1, 2, 3):
        github.push(f"sortie/T-{at}")
    async with github.opened() as forge:
        opened = [await github.open_one(forge, f"sortie/T-{at}") for at in (1, 2, 3)]
        told = {"type": "RESOURCE_LIMITS_EXCEEDED", "message": "Resource limits exceeded."}
        body = {"data": None, "errors": [told]}
        github.server.inject(Refuse(status=200, body=body), body=r"\$p2")
        github.server.inject(Refuse(status=200, body=body), body=r"\$p1: ID!\) ")
        found = await forge.look(opened)

    assert len(found) == 3
    assert github.server.count(path="graphql") >= 3
