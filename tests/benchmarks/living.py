"""What an agent costs that lives for its session, beside one with a process for each turn."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tests.benchmarks.place import BenchmarkPlace, Daemon, benchmark_place
from tests.benchmarks.row import Scale, Value

SESSIONS = 100
TURNS = 150
SETTING_UP = 5
"""Turns that are not counted: the first ones import and fill caches."""

ANSWER = '{{"jsonrpc":"2.0","id":%d,"result":{{{}}}}}\\n'
_AGENT = """#!/bin/sh
exec 3>{marks}
read -r line
printf '{initialized}' 1
read -r line
printf '{opened}' 2
turn=2
while read -r line; do
    turn=$((turn + 1))
    echo begun >&3
    {turn}
    echo over >&3
    printf '{update}'
    printf '{ended}' $turn
done
"""
"""An agent that speaks ACP in few words; each of its answers has the id of the next request."""

_SETTINGS = {"permissions": {"inside": {"default": "allow"}}}


def living(scale: Scale) -> Mapping[str, Value]:
    """Measure silent sessions of living agents, and turns of both sorts in the same run."""
    alive, started = _turns(scale, lives=True), _turns(scale, lives=False)
    return {
        "living.memory": Value(ours=_memory(scale)),
        "living.turn": Value(
            ours=100 * alive / started,
            also={"of a living agent [ms]": alive, "of a process a turn [ms]": started},
        ),
    }


def _memory(scale: Scale) -> float:
    """Return what a session costs the daemon whose agent lives and is silent, in KiB."""
    count = scale.of(SESSIONS, 4)
    with benchmark_place() as place:
        _write_agent(place, "read -r line")
        place.configure(
            agent={"kind": "acp", "max_concurrent_agents": count, "stop_grace_ms": 5000},
            acp=_SETTINGS,
        )
        with place.crowded_daemon() as daemon:
            daemon.wait("http.listening")
            place.add_issues(["FIRST"])
            daemon.refresh()
            place.marks.wait("begun")  # what is imported for the first one is nobody's
            time.sleep(scale.of(2.0, 0.2))
            before = daemon.memory()
            place.add_issues([f"L-{number}" for number in range(count - 1)])
            daemon.refresh()
            place.marks.wait("begun", count)
            time.sleep(scale.of(3.0, 0.3))
            return (daemon.memory() - before) / (count - 1) / 1024


def _turns(scale: Scale, *, lives: bool) -> float:
    """Return the daemon's processor time for a turn of one session, in milliseconds."""
    count, skipped = scale.of(TURNS, 4), scale.of(SETTING_UP, 1)
    with benchmark_place() as place:
        agent: dict[str, object] = {"max_turns": count + skipped}
        if lives:
            _write_agent(place, ":")
            place.configure(agent=agent | {"kind": "acp"}, acp=_SETTINGS)
        else:
            place.write_agent("echo said\necho over >&3")
            place.configure(agent=agent)
        place.add_issue("ONE")
        with place.daemon() as daemon:
            return _each(place, daemon, skipped, count)


def _each(place: BenchmarkPlace, daemon: Daemon, skipped: int, count: int) -> float:
    place.marks.wait("begun", skipped + 1)
    before = daemon.spent()
    place.marks.wait("over", skipped + count)
    used = (daemon.spent() - before) / count
    daemon.wait("run.finished", status="succeeded")
    return used.own * 1e3


def _write_agent(place: BenchmarkPlace, turn: str) -> None:
    """Write an agent; ``turn`` is what it does before it says anything."""
    session = '"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"said"}'
    params = f'"params":{{"sessionId":"s","update":{{{session}}}}}'
    place.agent.write_text(
        _AGENT.format(
            marks=place.marks.path,
            turn=turn,
            initialized=ANSWER.format('"protocolVersion":1'),
            opened=ANSWER.format('"sessionId":"s"'),
            update=f'{{"jsonrpc":"2.0","method":"session/update",{params}}}\\n',
            ended=ANSWER.format('"stopReason":"end_turn"'),
        )
    )
    place.agent.chmod(0o755)
