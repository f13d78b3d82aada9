"""Commands on the machine of a standby, and a leader that is drained or dies with one under way."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.failovers import SLOTS, Candidate, a_pair
from tests.e2e.place import Json, Place, Ran
from tests.e2e.test_common_limits import Sides
from tests.e2e.witnessing import witnessed
from tests.store.postgres_server import PostgresServer, postgres_running


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server with durable commits."""
    with postgres_running(fsync="on") as running:
        yield running


async def typed(candidate: Candidate, *words: str) -> Ran:
    """Run a command on the machine of a daemon."""
    return await candidate.place.sortie(*words, within=90.0, **candidate.daemon.environ)


async def done(candidate: Candidate, *words: str) -> str:
    """Run a command until it is obeyed: a leader may just be changing."""
    with trio.fail_after(90):
        while (ran := await typed(candidate, *words)).code != 0:
            await trio.sleep(0.2)
    return ran.out


async def test_any_daemon_answers_whichever_leads(place: Place, server: PostgresServer) -> None:
    """A standby passes commands on, a drained leader hands over, and a leader that dies with a
    command under way leaves its sender with what is known, and nothing done later."""
    async with a_pair(place, server) as pair:
        one = await pair.led()
        await _until_agents(place, SLOTS)
        two = next(each for each in pair.candidates if each is not one)
        await two.daemon.ready()
        stood_by = (await two.daemon.get("/readyz")).json()
        stopped = [await done(two, "stop", f"I-{number}") for number in range(SLOTS)]
        held = await _until_held(two)
        page = await two.daemon.get("/")

        drained = await done(one, "drain", "--wait", "60")
        following = await pair.led(but=one.pid)
        seen = await done(one, "status")

        two.daemon.signal(signal.SIGSTOP)
        message = await _sent_while_it_dies(one, two)
        pair.candidates.remove(two)
        unled = await _until_unled(one)
        cancelled = await done(one, "drain", "--cancel")
        await pair.led(but=two.pid)
        await done(one, "retry", "I-0")
        await _until_agents(place, SLOTS + 1)
        agents = Counter(_agents(place))
        assert pair.troubles() == []

    assert stood_by["status"] == "standby"
    assert f":{one.pid} leads the workflow" in stood_by["details"][0]
    assert all("is being stopped" in told for told in stopped)
    assert held == [f"I-{number}" for number in range(SLOTS)]
    assert page.status_code == 200
    assert "I-0" in page.text
    assert drained == "the daemon is drained: it leads no workflow\n"
    assert following is two
    assert "3 held" in seen
    assert message.endswith("nothing was done\n")
    assert "no daemon leads this workflow" in unled
    assert cancelled.startswith("the daemon is not drained")
    assert agents == {"I-0": 2, "I-1": 1, "I-2": 1}
    assert [row[2] for row in pair.leaderships()] == ["drained", "expired", "released"]


def _agents(place: Place) -> list[str]:
    """Return the issue of each run whose agent has begun."""
    rows = [row for row in witnessed(place, "start") if row["program"] == "agent"]
    return [issue for issue, _ in {(row["issue"], row["run_id"]) for row in rows}]


@pytest.mark.full
async def test_processes_of_several_workflows_answer_for_each(
    place: Place, server: PostgresServer, start: Start
) -> None:
    """Wherever it is led; the page of all has its rows, and a drain hands over what it can."""
    sides = Sides(place, server)
    sides.write()
    sides.add(1, "delay=600", "docs")
    url = server.url

    async with start("east", SORTIE_STORE_URL=url) as east:
        await _until_docs(east, status="running")
        async with start("west", SORTIE_STORE_URL=url) as west:
            leader, other = await _led_by(east, west)
            shown = await _until_docs(other, status="standby", running=1)
            page = await other.get("/")
            board = await other.get("/workflows/docs/")
            side = "west" if other is west else "east"
            file = str(sides.of[side, "docs"].workflow)
            stopped = await place.sortie("stop", "docs-0", file, SORTIE_STORE_URL=url)
            side = "east" if other is west else "west"
            file = str(sides.of[side, "docs"].workflow)
            drained = await place.sortie("drain", file, "--wait", "60", SORTIE_STORE_URL=url)
            await _until_docs(other, status="running")
            await leader.ready(saying="standby")
            after = (await leader.get("/api/v1/state")).json()

    assert shown["lease"]["leader"].endswith(f":{leader.process.pid}")
    assert 'href="/workflows/docs/issues/docs-0"' in page.text
    assert 'href="/workflows/docs/issues/docs-0"' in board.text
    assert (stopped.code, stopped.err) == (0, "")
    assert (drained.code, drained.out) == (0, "the daemon is drained: it leads no workflow\n")
    assert after["drain"] == "drained"
    assert {one["status"] for one in after["workflows"]} == {"standby"}


async def _led_by(*daemons: Daemon) -> tuple[Daemon, Daemon]:
    """Return the daemon that leads the workflow docs, and the one that stands by for it."""
    with trio.fail_after(60):
        while True:
            states = [(await _docs(each))["status"] for each in daemons]
            if sorted(states) == ["running", "standby"]:
                one, two = daemons
                return (one, two) if states[0] == "running" else (two, one)
            await trio.sleep(0.1)


async def _docs(daemon: Daemon) -> Json:
    """Return how a process shows the workflow docs."""
    state = (await daemon.get("/api/v1/state")).json()
    return next(one for one in state["workflows"] if one["name"] == "docs")


async def _until_docs(daemon: Daemon, *, running: int | None = None, **wanted: object) -> Json:
    """Wait until a process shows the workflow docs so; return what it shows."""
    with trio.fail_after(90):
        while True:
            shown = await _docs(daemon)
            counted = running is None or (shown["counts"] or {}).get("running") == running
            if counted and wanted.items() <= shown.items():
                return shown
            await trio.sleep(0.1)


async def _until_agents(place: Place, count: int) -> None:
    with trio.fail_after(60):
        while len(_agents(place)) < count:
            await trio.sleep(0.1)


async def _until_held(candidate: Candidate) -> list[str]:
    """Return the issues that are held, once nothing runs."""
    with trio.fail_after(60):
        while True:
            state: Json = (await candidate.daemon.get("/api/v1/state")).json()
            if not state["running"]:
                return sorted(row["issue_identifier"] for row in state["held"])
            await trio.sleep(0.1)


async def _sent_while_it_dies(asked: Candidate, leader: Candidate) -> str:
    """Give a command to a leader that is killed meanwhile; return what its sender is told."""
    told: list[Ran] = []

    async def send() -> None:
        ran = await typed(asked, "retry", "I-1", "--format", "json")
        assert ran.code == 1
        told.append(ran)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.sleep(0.5)
        leader.daemon.kill()
    return told[0].err


async def _until_unled(candidate: Candidate) -> str:
    """Return what a reader is told once the lease of a dead leader is over."""
    with trio.fail_after(60):
        while True:
            answer = await candidate.daemon.get("/api/v1/state")
            message = str(answer.json()["error"]["message"])
            if answer.status_code == 503 and "no daemon leads" in message:
                return message
            await trio.sleep(0.1)
