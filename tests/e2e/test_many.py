"""Many issues at once."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import psutil
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import Place

ISSUES = 24
LIMIT = 8


def agents_alive(daemon_pid: int) -> int:
    """Count the agents below a daemon, as ``ps`` would."""
    count = 0
    for process in psutil.Process(daemon_pid).children(recursive=True):
        with suppress(psutil.Error):
            count += "chat" in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
    return count


async def watch(daemon_pid: int, seen: list[int], until: trio.Event) -> None:
    """Count again and again."""
    while not until.is_set():
        seen.append(await trio.to_thread.run_sync(agents_alive, daemon_pid))
        await trio.sleep(0.1)


def most_at_once(place: Place) -> int:
    """Return how many agents were at work at the same time, as they wrote it down themselves."""
    steps = [(line["time"], 1) for line in place.agents("start")]
    steps += [(line["time"], -1) for line in place.agents("stop")]
    alive = most = 0
    for _, step in sorted(steps):
        alive += step
        most = max(most, alive)
    return most


async def test_many_issues_share_eight_slots(
    place: Place, start: Start, nursery: trio.Nursery
) -> None:
    """Never more agents than allowed are alive; each issue runs once; each turn counts once."""
    names = [f"N-{number}" for number in range(ISSUES)]
    place.write_workflow(agent={"max_concurrent_agents": LIMIT})
    for name in names:
        place.add_issue(name, "delay=0.4")
    seen: list[int] = []
    done = trio.Event()

    async with start() as daemon:
        nursery.start_soon(watch, daemon.process.pid, seen, done)
        await daemon.line("issue.moved", lifecycle="handoff", nth=ISSUES)
        done.set()
        metrics, state = await daemon.metrics(), await daemon.state()
    rows = await place.history()

    # Whether a look meets all of them at once is luck on a busy machine; that every free slot is
    # used is held by the scheduler's own tests.
    assert 1 < max(seen) <= LIMIT
    # An agent's own account begins later than its process: on a busy machine, after another's end.
    assert most_at_once(place) <= LIMIT
    assert Counter(row["issue"] for row in rows) == Counter(names)
    assert {(row["status"], row["turns"], row["attempt"]) for row in rows} == {("succeeded", 1, 0)}
    assert metrics.total("sortie_turns_total") == ISSUES
    assert metrics.total("sortie_turns_total", agent="kiro", outcome="completed") == ISSUES
    assert (state["totals"]["runs"], state["totals"]["turns"]) == (ISSUES, ISSUES)
    assert len({line["run_id"] for line in place.agents("stop")}) == ISSUES
    assert len(place.agents(command="whoami")) == 1
    assert {place.state_of(name) for name in names} == {"Human Review"}
