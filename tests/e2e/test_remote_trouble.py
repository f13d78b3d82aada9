"""Remote hosts that cannot be used: the others work on, and no issue pays for it."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, Json, Place
from tests.e2e.remote import Fleet, explained
from tests.transports.mounts import full_disk, requires_mounts
from tests.transports.ssh.sshd import Sshd, new_key, requires_sshd

pytestmark = requires_sshd

QUICK_REST = {"command": "sortie-kiro-sim", "max_turns": 1, "max_retry_backoff_ms": 1000}


def forge(fleet: Fleet, host: Sshd) -> None:
    """Have the client know another key for a host than the one it has."""
    public = Path(f"{new_key(host.directory / 'other_key')}.pub").read_text().split()[:2]
    with fleet.keys.known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{host.port} {' '.join(public)}\n")


def spoil(fleet: Fleet) -> dict[str, tuple[str, ...]]:
    """Make four hosts that cannot be used; return words that the advice for each must hold."""
    forged, locked, deaf = fleet.add("forged", "locked", "deaf")
    forge(fleet, forged)
    locked.authorized_keys.write_text("")
    deaf.stop()
    return {
        "forged": (str(fleet.keys.known_hosts), "ssh-keygen -R"),
        "locked": ("authorized_keys", "worker.ssh_identity_files"),
        "deaf": ("nothing listens there", "check that sshd runs"),
        "nowhere.invalid": ("no address for the name", "worker.ssh_hosts"),
    }


async def test_bad_hosts_are_rested_with_advice_and_the_others_work_on(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """A forged key, a refused login, a closed port and an unknown name each rest their host."""
    advice = spoil(fleet)
    fleet.add("good")
    fleet.write_workflow(hosts=["good", *advice], worker={"max_concurrent_agents_per_host": 2})
    names = [f"R-{number}" for number in range(6)]
    for name in names:
        place.add_issue(name, "delay=0.5")

    async with start() as daemon:
        rested = {host: await daemon.line("host.rested", host=host) for host in advice}
        await daemon.line("issue.moved", lifecycle="handoff", nth=len(names))
        metrics = await daemon.metrics()
    rows = await place.history()

    for host, words in advice.items():
        assert rested[host]["level"] == "warning"
        assert all(word in rested[host]["error"] for word in words), rested[host]["error"]
        assert metrics.total("sortie_ssh_host_up", host=host) == 0
    assert metrics.total("sortie_ssh_host_up", host="good") == 1
    assert {row["attempt"] for row in rows} == {0}
    done = [row for row in rows if row["status"] == "succeeded"]
    assert sorted(row["issue"] for row in done) == names
    assert {row["host"] for row in done} == {"good"}
    assert len(fleet.agents("start")) == len(names)
    fleet.require_nothing_local()


@requires_mounts
async def test_a_host_with_a_full_disk_is_rested_and_its_issues_go_elsewhere(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Nobody pays for it, the probe and the status say why, and with room it is used again."""
    full, _ = fleet.add("full", "good")
    fleet.write_workflow(
        worker={"max_concurrent_agents_per_host": 2},
        agent={"command": "sortie-kiro-sim", "max_turns": 1, "max_retry_backoff_ms": 1000},
    )
    names = [f"R-{number}" for number in range(6)]
    for name in names:
        place.add_issue(name, "delay=0.5")

    with full_disk(full.home / "workspaces") as ballast:
        async with start() as daemon:
            rested = await daemon.line("host.rested", host="full")
            ready = await daemon.get("/readyz")
            shown = (await place.sortie("status")).out
            await daemon.line("issue.moved", lifecycle="handoff", nth=len(names))
            for name in ("STAYS", "TOO"):  # they take both slots of the other host
                place.add_issue(name, "hang=1")
                await daemon.line("turn.started", issue=name)
            ballast.unlink()
            place.add_issue("LAST", "delay=0.5")
            await daemon.line("host.back", host="full")
            await daemon.line("issue.moved", lifecycle="handoff", issue="LAST")
            held = daemon.lines("issue.held")
        rows = await place.history()

    assert "nothing can be written to the workspace root" in rested["error"]
    assert "look at the space" in rested["error"]
    assert ready.status_code == 200
    (told,) = [each for each in ready.json()["details"] if "PID namespace" not in each]
    assert re.match("host full (rests|is tried again): nothing can be written", told)
    assert "look at the space" in shown
    assert held == []
    assert {row["attempt"] for row in rows} == {0}
    done = {row["issue"]: row["host"] for row in rows if row["status"] == "succeeded"}
    assert done == {**dict.fromkeys(names, "good"), "LAST": "full"}


HANGING = """#!/bin/sh
IFS= read -r first; IFS= read -r second; IFS= read -r third; IFS= read -r fourth
case $fourth in program=*) exec cat >/dev/null ;; esac
pipe=$(mktemp -u) && mkfifo "$pipe" && exec 3<&0
{ printf '%s\\n' "$first" "$second" "$third" "$fourth"; exec cat <&3; } >"$pipe" &
/bin/sh <"$pipe"
code=$?
kill $!
rm "$pipe"
exit $code
"""
"""A login that gives a shell to whoever asks for a workspace, and none to a program."""


async def test_an_issue_whose_workspace_was_only_made_goes_elsewhere(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """A host that starts no program in time is rested, and nothing had run in that directory."""
    login = place.root / "login"
    login.write_text(HANGING)
    login.chmod(0o755)
    fleet.add("good")
    fleet.add("slow", ForceCommand=str(login))
    agent = {"command": "sortie-kiro-sim", "max_turns": 1, "read_timeout_ms": 8000}
    fleet.write_workflow(hosts=["slow"], agent=agent)
    place.add_issue("A")

    async with start() as daemon:
        await daemon.line("workspace.ready", issue="A")
        fleet.write_workflow(hosts=["slow", "good"], agent=agent)
        rested = await daemon.line("host.rested", host="slow")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert "did not answer in 8 s" in rested["error"]
    ends = [(row["host"], row["status"], row["attempt"]) for row in rows]
    assert sorted(ends) == [("good", "succeeded", 0), ("slow", "failed", 0)]


async def test_without_a_good_host_issues_wait_and_nothing_runs_here(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """The issue keeps its attempt, explain names every host, and the hosts say what is wrong."""
    advice = spoil(fleet)
    fleet.write_workflow(hosts=list(advice))
    place.add_issue("A")

    async with start() as daemon:
        for host in advice:
            await daemon.line("host.rested", host=host)
        seen, why, text = await told_of_one_wait(place, daemon)
    rows = await place.history()

    (closed,) = [gate for gate in why["gates"] if not gate["open"]]
    assert closed["gate"] == "host slot"
    (waiting,) = seen["waiting"]
    troubles = {host["host"]: host["reason"] for host in seen["hosts"]}
    for host, words in advice.items():
        for told in (waiting["reason"], closed["reason"], text):
            assert host in told
        assert all(word in troubles[host] for word in words)
    assert waiting["attempt"] == 0
    assert {row["attempt"] for row in rows} == {0}
    assert place.agents("start") == []
    fleet.require_nothing_local()


async def told_of_one_wait(place: Place, daemon: Daemon) -> tuple[Json, Json, str]:
    """Return what the state and explain, as JSON and as text, say while issue A waits.

    Whenever a host has rested, the issue leaves its wait to try it; what was told meanwhile is
    asked again.
    """
    with trio.fail_after(PATIENCE):
        while True:
            before = await daemon.state()
            if [count for count in before["counts"].items() if count[1]] == [("waiting", 1)]:
                why = await explained(place, "A")
                text = (await place.sortie("explain", "A")).out
                after = await daemon.state()
                if all(after[key] == before[key] for key in ("counts", "totals")):
                    return before, why, text
            await trio.sleep(0.05)


async def test_a_dead_host_costs_no_attempt_and_is_used_again(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Where nothing of an issue had run there, it moves on at once; the host works when back."""
    one, _ = fleet.add("one", "two")
    fleet.write_workflow(hosts=["one"], agent=QUICK_REST)
    place.add_issue("FIRST")

    async with start() as daemon:
        await daemon.line("issue.moved", issue="FIRST", lifecycle="handoff")
        one.crash()
        fleet.write_workflow(agent=QUICK_REST)
        await daemon.line("workflow.reloaded")
        place.add_issue("MOVES")
        rested = await daemon.line("host.rested", host="one")
        await daemon.line("issue.moved", issue="MOVES", lifecycle="handoff")
        down = await daemon.metrics()
        why = await rested_by_explain(place, daemon)
        one.start()
        await daemon.line("host.back", host="one")
        await daemon.line("issue.moved", issue="FIRST", lifecycle="handoff", nth=2)
        up = await daemon.metrics()
    rows = await place.history()

    assert "nothing listens there" in rested["error"] or "lost the link" in rested["error"]
    assert "one rests after trouble" in why or "one is being tried again" in why
    assert "its workspace is there" in why
    assert (
        down.total("sortie_ssh_host_up", host="one"),
        up.total("sortie_ssh_host_up", host="one"),
    ) == (0, 1)
    assert {row["attempt"] for row in rows} == {0}
    ends = [(row["issue"], row["host"]) for row in rows if row["status"] == "succeeded"]
    assert ends == [("FIRST", "one"), ("MOVES", "two"), ("FIRST", "one")]


async def rested_by_explain(place: Place, daemon: Daemon) -> str:
    """Let the issue with a workspace on the dead host be active again, and return why it waits."""
    place.add_issue("FIRST", "credits=1")
    with trio.fail_after(PATIENCE):
        while True:
            why = await explained(place, "FIRST")
            # Before the next poll the issue is not known to be active again.
            closed = [gate["reason"] for gate in why.get("gates", ()) if not gate["open"]]
            if closed and "no host is free" in closed[0]:
                return str(closed[0])


async def test_a_host_without_the_program_is_rested(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """The others go on with the same attempt."""
    fleet.add("bare", has_program=False)
    fleet.add("good")
    names = [f"R-{number}" for number in range(4)]
    for name in names:
        place.add_issue(name, "delay=0.5")

    async with start() as daemon:
        rested = await daemon.line("host.rested", host="bare")
        await daemon.line("issue.moved", lifecycle="handoff", nth=len(names))
        held = daemon.lines("issue.held")
        metrics = await daemon.metrics()
    rows = await place.history()

    assert "'sortie-kiro-sim' was not found on bare" in rested["error"]
    assert held == []
    assert metrics.total("sortie_ssh_host_up", host="bare") == 0
    done = [row for row in rows if row["status"] == "succeeded"]
    assert sorted(row["issue"] for row in done) == names
    assert {row["host"] for row in done} == {"good"}
    assert {row["attempt"] for row in rows} == {0}


async def test_without_the_program_on_any_host_issues_are_held_until_it_is_installed(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Held as agent_not_found when all have said so; installed and SIGHUP, it runs."""
    hosts = fleet.add("one", "two", has_program=False)
    place.add_issue("A")

    async with start() as daemon:
        held = await daemon.line("issue.held", issue="A")
        place.add_issue("B")
        state = await daemon.state()
        for host in hosts:
            fleet.install(host)
        daemon.signal(signal.SIGHUP)
        for name in ("A", "B"):
            await daemon.line("issue.moved", issue=name, lifecycle="handoff")
        metrics = await daemon.metrics()
    rows = await place.history()

    assert held["reason"] == "agent_not_found"
    assert [held["issue_identifier"] for held in state["held"]] == ["A"]
    for name in fleet.hosts:
        assert metrics.total("sortie_ssh_host_up", host=name) == 1
    assert [row["attempt"] for row in rows if row["status"] == "succeeded"] == [0, 0]
    assert len(fleet.agents("start")) == 2
