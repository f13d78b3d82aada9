"""Agents on remote hosts: real daemons, real sshds, and a home for each."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.e2e.remote import Fleet, explained
from tests.transports.ssh.sshd import requires_sshd

pytestmark = requires_sshd

KEEPER = Path(__file__).parent / "programs" / "keeper.py"
HOOKS = ("after_create", "before_run", "after_run", "before_remove")


async def test_three_hosts_share_the_issues(place: Place, start: Start, fleet: Fleet) -> None:
    """Each host gets what its limit allows, and all that is shown names the host."""
    fleet.add("one", "two", "three")
    fleet.write_workflow(worker={"max_concurrent_agents_per_host": 2})
    names = [f"R-{number}" for number in range(12)]
    for name in names:
        place.add_issue(name, "delay=1")

    async with start() as daemon:
        await daemon.line("turn.started", nth=6)
        busy, gauges = await daemon.state(), await daemon.metrics()
        await daemon.line("issue.moved", lifecycle="handoff", nth=len(names))
        idle = await daemon.metrics()
    rows = await place.history()

    assert Counter(run["host"] for run in busy["running"]) == {"one": 2, "two": 2, "three": 2}
    assert busy["slots"]["by_host"] == {"one": 0, "two": 0, "three": 0}
    for name in fleet.hosts:
        assert gauges.total("sortie_ssh_host_usage", host=name) == 2
        assert idle.total("sortie_ssh_host_usage", host=name) == 0
        assert idle.total("sortie_ssh_host_up", host=name) == 1
        assert fleet.most_at_once(name) == 2
    assert {(row["status"], row["attempt"]) for row in rows} == {("succeeded", 0)}
    assert Counter(row["issue"] for row in rows) == Counter(names)
    assert {row["host"] for row in rows} == set(fleet.hosts)
    assert all(fleet.host_of(row["workspace"]) == row["host"] for row in rows)
    fleet.require_nothing_local()


@pytest.mark.skipif(sys.platform != "linux", reason="the login shell has to be bash")
async def test_an_issue_takes_few_logins(place: Place, start: Start, fleet: Fleet) -> None:
    """Where a login takes long, logins are what a run costs: it asks for nothing of a new workspace
    that cannot be there yet."""
    (host,) = fleet.add("one")
    logins = place.root / "logins"
    (host.home / ".bashrc").write_text(f"echo >>{logins}\n")
    place.add_issue("A")

    async with start() as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")

    assert len(logins.read_text().splitlines()) <= 15


@pytest.mark.full  # the scheduler's own tests spread runs, and one below shares three hosts
async def test_runs_are_spread_evenly(place: Place, start: Start, fleet: Fleet) -> None:
    """With room everywhere, each host gets as many runs as the others, and its Kiro's own record
    tells what they did."""
    fleet.add("one", "two", "three")
    for number in range(6):
        place.add_issue(f"R-{number}")

    async with start() as daemon:
        await daemon.line("issue.moved", lifecycle="handoff", nth=6)
    rows = await place.history()

    assert Counter(row["host"] for row in rows) == {"one": 2, "two": 2, "three": 2}
    assert [row["files_modified"] for row in rows] == [["SORTIE_DEMO.md"]] * 6
    assert {row["model"] for row in rows} == {"auto"}


async def test_hooks_run_in_the_workspace_on_its_host(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Each hook runs there, the last one before the workspace of a finished issue is removed."""
    (host,) = fleet.add("one")
    fleet.write_workflow(hooks=noting_hooks())
    place.add_issue("A", "hang=1")

    async with start() as daemon:
        await daemon.line("turn.started", issue="A")
        made = (host.home / "workspaces" / "A").is_dir()
        place.add_issue("A", state="Done")
        await daemon.line("workspace.removed", issue="A")

    workspace = str(host.home / "workspaces" / "A")
    assert made
    assert noted(host.home) == [[name, "one", workspace, workspace] for name in HOOKS]
    assert noted(place.home) == []
    assert list((host.home / "workspaces").glob("A*")) == []
    fleet.require_nothing_local()


async def test_hooks_of_the_orchestrator_run_here(place: Place, start: Start, fleet: Fleet) -> None:
    """They run beside the workflow file and are told host and workspace."""
    (host,) = fleet.add("one")
    fleet.write_workflow(hooks=noting_hooks() | {"run_on": "orchestrator"})
    place.add_issue("A", "hang=1")

    async with start() as daemon:
        await daemon.line("turn.started", issue="A")
        place.add_issue("A", state="Done")
        await daemon.line("workspace.removed", issue="A")

    workspace = str(host.home / "workspaces" / "A")
    assert noted(place.home) == [[name, "one", workspace, str(place.root)] for name in HOOKS]
    assert noted(host.home) == []


def noting_hooks() -> dict[str, str]:
    """Return hooks that note in their home who, where and what for they are."""
    words = '$SORTIE_SSH_HOST $SORTIE_WORKSPACE $PWD" >>$HOME/hooks'
    return {name: f'echo "{name} {words}' for name in HOOKS}


def noted(home: Path) -> list[list[str]]:
    """Return what such hooks noted in a home."""
    path = home / "hooks"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


EVERY = "".join(map(chr, range(1, 256)))
TITLE = "--version $(touch pwned) 'quoted"
NASTY = f"-x `touch pwned` ${{HOME}} \\ ' \" '\"'\"' !! %s\n\n--\r\n{EVERY}\n  end"
"""Text that means something to every shell and option parser on the way."""


@pytest.mark.parametrize("times", [1, 400], ids=["argument", "stdin"])
async def test_a_prompt_arrives_as_it_is(
    place: Place, start: Start, fleet: Fleet, times: int
) -> None:
    """Every character, quotes, substitutions and a leading dash reach the agent unchanged."""
    (host,) = fleet.add("one")
    # The tracker cleans what it reads, so the text stands in the template.
    fleet.write_workflow(
        f"{{{{ issue.title }}}}\n{{{{ {json.dumps(NASTY)} * {times} }}}}",
        agent={"command": [sys.executable, str(KEEPER)], "status_instructions": False},
        trust={"fences": False},
    )
    place.add_issue("A", title=TITLE)

    async with start() as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")

    workspace = host.home / "workspaces" / "A"
    given = json.loads((workspace / "given.json").read_text())
    assert given["prompt"] == f"{TITLE}\n{NASTY * times}"
    assert (given["arguments"][-1] == given["prompt"]) == (times == 1)
    assert sorted(path.name for path in workspace.iterdir()) == [".sortie", "given.json"]


async def test_a_dropped_host_is_let_go_of_once_its_run_is_over(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Neither a connection nor the lock of its root stays, though nothing runs anywhere else."""
    (host,) = fleet.add("one")
    place.add_issue("A", "delay=4")

    async with start() as daemon:
        await daemon.line("turn.started", issue="A")
        fleet.write_workflow(hosts=[])
        await daemon.line("workflow.reloaded")
        with trio.fail_after(PATIENCE):
            while daemon.lines("run.finished", issue="A") == []:
                assert host.links() > 0
                await trio.sleep(0.1)
            while host.links() > 0 or host.running():
                await trio.sleep(0.1)
    rows = await place.history()

    assert [(row["host"], row["status"]) for row in rows] == [("one", "succeeded")]


async def test_hosts_come_and_go_with_a_reload(place: Place, start: Start, fleet: Fleet) -> None:
    """An added host is used at once; a run on a removed one goes on, and nothing new starts there.

    An issue whose only workspace was on the removed host begins anew elsewhere.
    """
    fleet.add("old")
    fleet.write_workflow(worker={"max_concurrent_agents_per_host": 1})
    place.add_issue("LONG", "delay=600", priority=1)
    place.add_issue("WAITS", priority=2)

    async with start() as daemon:
        await daemon.line("turn.started")
        alone = await daemon.state()
        fleet.add("new")
        fleet.write_workflow(worker={"max_concurrent_agents_per_host": 1})
        await daemon.line("issue.moved", issue="WAITS", lifecycle="handoff")
        fleet.write_workflow(hosts=["new"], worker={"max_concurrent_agents_per_host": 1})
        await daemon.line("workflow.reloaded", nth=2)
        place.add_issue("NEXT")
        await daemon.line("issue.moved", issue="NEXT", lifecycle="handoff")
        after = await daemon.state()
        living = fleet.living("old")
        place.add_issue("LONG", state="Backlog")
        await daemon.line("run.finished", issue="LONG", status="cancelled")
        place.add_issue("LONG", state="Todo")
        await daemon.line("issue.moved", issue="LONG", lifecycle="handoff")
    rows = await place.history()

    assert [run["issue_identifier"] for run in alone["running"]] == ["LONG"]
    assert [(run["issue_identifier"], run["host"]) for run in after["running"]] == [("LONG", "old")]
    assert living
    assert [(row["issue"], row["host"]) for row in rows] == [
        ("LONG", "old"),
        ("WAITS", "new"),
        ("NEXT", "new"),
        ("LONG", "new"),
    ]


async def test_an_issue_waits_for_the_host_of_its_workspace(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Another host is free, and the issue waits for its own, and says so, until there is room."""
    fleet.add("one", "two")
    per_host = {"max_concurrent_agents_per_host": 1}
    fleet.write_workflow(hosts=["one"], worker=per_host)
    place.add_issue("A")

    async with start() as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        place.add_issue("B", "delay=600")
        await daemon.line("turn.started", nth=2)
        fleet.write_workflow(worker=per_host)
        await daemon.line("workflow.reloaded")
        place.add_issue("A", "credits=1")
        place.add_issue("C")
        await daemon.line("issue.moved", issue="C", lifecycle="handoff")
        why = await explained(place, "A")
        place.add_issue("B", state="Backlog")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff", nth=2)
    rows = await place.history()

    (closed,) = [gate for gate in why["gates"] if not gate["open"]]
    assert closed["gate"] == "host slot"
    assert "one has 1 of 1 runs, and its workspace is there" in closed["reason"]
    assert [(row["issue"], row["host"]) for row in rows] == [
        ("A", "one"),
        ("B", "one"),
        ("C", "two"),
        ("A", "one"),
    ]


BARRIER = 'touch "$HOME/here-$SORTIE_RUN_ID"; : <"$HOME/gate"; exec sortie-kiro-sim "$@"'
"""An agent that begins when the gate, a FIFO, is opened."""


@pytest.mark.parametrize(
    "count", [12, pytest.param(100, marks=[pytest.mark.full, pytest.mark.timeout(300)])]
)
async def test_many_turns_at_once_on_one_host(
    place: Place, start: Start, fleet: Fleet, count: int
) -> None:
    """With sshd's default limits all are at work together, succeed, and leave no process."""
    (host,) = fleet.add("one")
    fleet.write_workflow(
        agent={
            "command": ["/bin/sh", "-c", BARRIER, "sh"],
            "max_turns": 1,
            "max_concurrent_agents": count,
        }
    )
    gate = host.home / "gate"
    os.mkfifo(gate)
    for number in range(count):
        place.add_issue(f"N-{number}")

    async with start() as daemon:
        with trio.fail_after(100):
            while len(list(host.home.glob("here-*"))) < count:
                await trio.sleep(0.05)
        links = host.links()
        opened = os.open(gate, os.O_RDWR)
        try:
            await daemon.line("issue.moved", lifecycle="handoff", nth=count, within=100)
        finally:
            os.close(opened)
        rested = daemon.lines("host.rested")
    rows = await place.history()

    assert rested == []
    assert links >= count / 10
    assert Counter(row["status"] for row in rows) == {"succeeded": count}
    assert {row["attempt"] for row in rows} == {0}
    assert len({line["run_id"] for line in fleet.agents("stop", on="one")}) == count
    assert host.running() == []
