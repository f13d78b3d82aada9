"""What the workflows of a process share: usage limits, slots, and what must not be shared."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from pydantic import SecretStr
from trio.testing import MockClock

from sortie.config.settings import Isolation, Settings, WorkspaceSettings
from sortie.config.store import StoreSettings
from sortie.daemon.several.conflicts import conflict
from sortie.daemon.several.shared_slots import LOOK_EVERY, SharedSlots
from sortie.facts import Fact, SlotsOvercommitted
from sortie.model import RunId
from sortie.orchestrator import Orchestrator
from sortie.scheduler import events as ev
from sortie.scheduler.grants import SlotGrant
from tests.orchestrator.world import World
from tests.worker.rig import settings_of


def settings(path: Path, **more: object) -> Settings:
    """Return the settings of a workflow that has a directory for itself."""
    return settings_of().model_copy(
        update={
            "db_path": str(path / ".sortie.db"),
            "workspace": WorkspaceSettings(root=str(path / "workspaces")),
            **more,
        }
    )


def test_what_two_workflows_must_not_share(tmp_path: Path) -> None:
    """Database, workspace roots, and one way of isolation."""
    one, other = settings(tmp_path / "one"), settings(tmp_path / "other")
    assert conflict("other", other, {"one": one}) is None

    same = other.model_copy(update={"db_path": one.db_path})
    assert "have the same database" in str(conflict("other", same, {"one": one}))
    rows = StoreSettings(url=SecretStr("postgresql://h/d"))
    first, second = (each.model_copy(update={"store": rows}) for each in (one, other))
    assert "have the same database on a server" in str(conflict("other", second, {"one": first}))
    apart = second.model_copy(update={"store": rows.model_copy(update={"schema_name": "o"})})
    assert conflict("other", apart, {"one": first}) is None
    for root in (one.workspace.root, f"{one.workspace.root}/below", str(tmp_path / "one")):
        inside = other.model_copy(update={"workspace": WorkspaceSettings(root=root)})
        assert "workspace roots of one and other overlap" in str(
            conflict("other", inside, {"one": one})
        )
    bare = other.model_copy(update={"isolation": Isolation.NONE})
    assert "isolation is auto for one and none for other" in str(
        conflict("other", bare, {"one": one})
    )


class Sharing:
    """Two workflows with the same account, for as long as ``run`` does."""

    def __init__(self, most: int | None = None, **share: int) -> None:
        self.facts: list[Fact] = []
        self.worlds = {name: World(share=share) for name in "ab"}
        self.live: dict[str, Orchestrator] = {}
        self.slots = SharedSlots(
            most, lambda: [one.settings for one in self.live.values()], self.facts.append
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[tuple[Orchestrator, Orchestrator]]:
        """Let both live and share."""
        first, second = self.worlds.values()
        async with first.life() as a, second.life() as b, trio.open_nursery() as nursery:
            for name, one in (("a", a), ("b", b)):
                one.tell(ev.SlotsGranted(SlotGrant()))
                self.live[name] = one
                self.slots.join(name, one)
            nursery.start_soon(self.slots.run)
            await trio.sleep(2 * LOOK_EVERY)
            yield a, b
            nursery.cancel_scope.cancel()


def met(orchestrator: Orchestrator, seconds: float) -> ev.UsageLimitMet:
    """Return the news that a run has met the limit of a workflow's account."""
    (account,) = orchestrator.account_limits()
    return ev.UsageLimitMet(RunId("r"), account, "no more for now", seconds=seconds)


async def test_a_usage_limit_holds_all_with_the_account(autojump_clock: MockClock) -> None:
    """Who has not met it knows its end as well; when it is over for one, the others try it."""
    async with Sharing().run() as (first, second):
        first.tell(met(first, 600.0))
        await trio.sleep(2 * LOOK_EVERY)
        assert first.usage_limit is not None
        assert second.usage_limit is not None
        assert second.usage_limit.until == pytest.approx(first.usage_limit.until, abs=1.0)

        first.tell(ev.PauseAsked(False))
        await trio.sleep(2 * LOOK_EVERY)
        assert first.usage_limit is None
        assert second.usage_limit is not None
        assert not second.usage_limit.backing_off


async def test_a_newcomer_hears_of_a_limit_before_it_gets_a_slot(
    autojump_clock: MockClock,
) -> None:
    """A workflow that begins again later starts no run against a limit that others know."""
    sharing = Sharing()
    async with sharing.run() as (first, second):
        sharing.slots.leave("b")
        first.tell(met(first, 600.0))
        await trio.sleep(2 * LOOK_EVERY)
        assert second.usage_limit is None

        sharing.slots.join("b", second)
        await trio.sleep(2 * LOOK_EVERY)
        assert second.usage_limit is not None


async def test_more_than_there_is_cannot_be_guaranteed(autojump_clock: MockClock) -> None:
    """The first have what they are guaranteed, all together no more than there is, and the log
    tells it once."""
    sharing = Sharing(4, guaranteed=3)
    async with sharing.run() as (first, second):
        grants = [one.snapshot().grant for one in (first, second)]

    assert [grant.slots for grant in grants if grant is not None] == [3, 1]
    assert sharing.facts == [SlotsOvercommitted(guaranteed=6, slots=4)]


async def test_a_workflow_that_dies_keeps_its_slots_until_it_is_gone(
    autojump_clock: MockClock,
) -> None:
    """They are given to others only when its runs have ended for certain."""
    sharing = Sharing(4, guaranteed=2)
    async with sharing.run() as (_, second):
        sharing.slots.freeze("a")
        await trio.sleep(2 * LOOK_EVERY)
        assert second.slot_use().grant.slots == 2

        sharing.slots.leave("a")
        assert sharing.slots.used == 0
