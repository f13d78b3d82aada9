"""Two daemons that lead three workflows of one database: their slots together, and who divides."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, Json, Place
from tests.e2e.test_several import most_at_once
from tests.store.postgres_server import PostgresServer, postgres_running

TURNS = ("turn.started", "turn.completed")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this module."""
    with postgres_running() as running:
        yield running


class Sides:
    """Two directories with workflows: ``east`` has api and docs, ``west`` has docs and web. The
    issues of a workflow are the same on both sides."""

    def __init__(self, place: Place, server: PostgresServer) -> None:
        place.workflow.unlink()
        place.issues.rmdir()
        self.all = place
        self.server = server
        shared = server.schema()
        self.schemas = {name: server.schema() for name in ("api", "docs", "web")}
        self.shared = shared
        self.of: dict[tuple[str, str], Place] = {}
        for side, name in (("east", "api"), ("east", "docs"), ("west", "docs"), ("west", "web")):
            (place.root / side / name).mkdir(parents=True)
            self.of[side, name] = Place(place.root / side / name)
        self.issues = {
            "api": self.of["east", "api"],
            "docs": self.of["east", "docs"],
            "web": self.of["west", "web"],
        }

    def write(self) -> None:
        """Write all workflow files."""
        for (_, name), place in self.of.items():
            place.write_workflow(**self._blocks(name))

    def _blocks(self, name: str) -> dict[str, Any]:
        store: dict[str, object] = {
            "url": "$SORTIE_STORE_URL",
            "schema": self.schemas[name],
            "shared_schema": self.shared,
        }
        return {"store": store, "file": {"path": str(self.issues[name].issues)}}

    def docs_with_budget(self) -> dict[str, Any]:
        """Return the settings of the workflow docs, with a budget of a day."""
        return {**self._blocks("docs"), "budget": {"daily_credits": 5}}

    async def until_shut(self, gate: str, issue: str, side: str, name: str) -> str:
        """Wait until a gate keeps an issue from a run; return why, as the daemon says it."""
        asked = ("explain", issue, str(self.of[side, name].workflow), "--format", "json")
        with trio.fail_after(2 * PATIENCE):
            while True:
                ran = await self.all.sortie(*asked, SORTIE_STORE_URL=self.server.url)
                gates = json.loads(ran.out)["gates"] if ran.out.startswith("{") else []
                for each in gates:
                    if each["gate"] == gate and not each["open"]:
                        return str(each["reason"])
                await trio.sleep(0.2)

    def add(self, count: int, directives: str, *names: str) -> None:
        """Give workflows so many issues."""
        for name in names:
            for number in range(count):
                self.issues[name].add_issue(f"{name}-{number}", directives)

    def handed_off(self, name: str) -> int:
        """Count the issues of a workflow that were handed off."""
        place = self.issues[name]
        return sum(
            place.state_of(path.stem) == "Human Review" for path in place.issues.glob("*.md")
        )

    async def until_handed_off(self, count: int, *names: str) -> None:
        """Wait until each of these workflows has handed so many issues off."""
        with trio.fail_after(2 * PATIENCE):
            while any(self.handed_off(name) < count for name in names):
                await trio.sleep(0.1)


@pytest.fixture
def sides(place: Place, server: PostgresServer) -> Sides:
    """Both directories."""
    return Sides(place, server)


def both(*daemons: Daemon) -> list[Json]:
    """Return the log lines of all, with which of them it was."""
    return [line for daemon in daemons for line in daemon.log]


async def test_slots_are_those_of_both_daemons(sides: Sides, start: Start) -> None:
    """There are never more runs than the limit of both together, and all issues are worked on."""
    sides.write()
    sides.add(2, "delay=0.3", "api", "docs", "web")
    url = sides.server.url

    async with (
        start("east", "--max-agents", "2", SORTIE_STORE_URL=url) as east,
        start("west", "--max-agents", "2", SORTIE_STORE_URL=url) as west,
    ):
        await sides.until_handed_off(2, "api", "docs", "web")

    assert most_at_once(both(east, west), events=TURNS) <= 2
    assert east.lines("turn.completed", workflow="api")
    assert west.lines("turn.completed", workflow="web")


@pytest.mark.full
async def test_what_a_killed_daemon_had_is_granted_once_its_workflow_is_led(
    sides: Sides, start: Start
) -> None:
    """Until then it counts; the other daemon takes over what it can lead, and goes on with the
    rest of the slots. In the end all slots are granted again."""
    sides.write()
    sides.add(2, "hang=true", "api")
    url = sides.server.url

    async with start("west", "--max-agents", "3", SORTIE_STORE_URL=url) as west:
        async with start("east", "--max-agents", "3", SORTIE_STORE_URL=url) as east:
            await east.line("turn.started", workflow="api", nth=2, within=3 * PATIENCE)
            await trio.sleep(2.0)  # what api does not want is granted to it no more
            east.signal(signal.SIGKILL)
            await east.exit_code()
        west.log.clear()
        sides.add(3, "delay=0.2", "docs", "web")
        await sides.until_handed_off(3, "docs", "web")
        assert most_at_once(west.log, events=TURNS) == 1
        for number in range(2):
            sides.issues["api"].add_issue(f"api-{number}", "delay=0.2")
        async with start("east", "--max-agents", "3", SORTIE_STORE_URL=url) as east:
            await sides.until_handed_off(2, "api")
            west.log.clear()
            done = sides.handed_off("web")
            for number in range(3):
                sides.issues["web"].add_issue(f"last-{number}", "delay=5")
            await sides.until_handed_off(done + 3, "web")
            assert most_at_once(west.log, events=TURNS) == 3


@pytest.mark.full
async def test_issues_say_which_common_limit_they_wait_for(sides: Sides, start: Start) -> None:
    """All slots that a daemon has are missing at the other one. When the first is killed, its slot
    still is, and the budget that it used up holds the daemon that takes its workflow over."""
    sides.write()
    sides.of["east", "docs"].write_workflow(**sides.docs_with_budget())
    sides.of["west", "docs"].write_workflow(**sides.docs_with_budget())
    sides.add(1, "credits=5.5", "docs")
    url = sides.server.url

    async with AsyncExitStack() as undo:
        async with start("east", "--max-agents", "1", SORTIE_STORE_URL=url) as east:
            await sides.until_handed_off(1, "docs")
            sides.add(1, "hang=true", "api")
            await east.line("turn.started", workflow="api")
            west = start("west", "--max-agents", "1", SORTIE_STORE_URL=url)
            await undo.enter_async_context(west)
            sides.add(1, "delay=0.1", "web")
            slot = await sides.until_shut("slot", "web-0", "west", "web")
            east.signal(signal.SIGKILL)
            await east.exit_code()
        await west.line("lease.acquired", workflow="docs")
        sides.issues["docs"].add_issue("docs-1", "delay=0.1")
        budget = await sides.until_shut("daily budget", "docs-1", "west", "docs")
        still = await sides.until_shut("slot", "web-0", "west", "web")

    assert "all 1 slots of the daemons of this database are taken" in slot
    assert "all 1 slots of the daemons of this database are taken" in still
    assert "budget.daily_credits is used up" in budget
