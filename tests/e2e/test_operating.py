"""People steer a running daemon from the command line, and over HTTP with the token."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from subprocess import DEVNULL, PIPE
from typing import cast

import httpx
import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, SORTIE, Json, Place, Ran
from tests.e2e.stubborn import in_short
from tests.e2e.test_secrets import watch_command_lines

WORD = ".sortie.db.daemon"


async def done(place: Place, *command: str) -> str:
    """Run a command that must succeed, and return what it said."""
    ran = await place.sortie(*command)
    assert (ran.code, ran.err) == (0, ""), ran
    return ran.out


async def explained(place: Place, issue: str) -> Json:
    """Return an issue's explanation."""
    return json.loads(await done(place, "explain", issue, "--format", "json"))


def failed_in_one_line(ran: Ran) -> bool:
    return (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


def word_of(place: Place) -> Json:
    return json.loads((place.root / WORD).read_text())


async def test_a_pause_survives_a_crash(place: Place, start: Start) -> None:
    """While dispatch is paused nothing starts, also after kill -9, until it is resumed."""
    async with start() as daemon:
        await daemon.ready()
        await done(place, "pause")
        place.add_issue("A")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start() as daemon:
        await daemon.ready()
        await done(place, "refresh")
        status = await done(place, "status")
        why = await explained(place, "A")
        before = daemon.lines("run.started")
        await done(place, "resume")
        await daemon.line("run.started", issue="A")

    assert status.startswith("status    paused, ready")
    gates = {gate["gate"]: gate["reason"] for gate in why["gates"] if not gate["open"]}
    assert gates == {"dispatch": "dispatch is paused"}
    assert before == []


async def test_stop_holds_and_retry_runs(place: Place, start: Start) -> None:
    """A stopped run is over and its issue held by the operator; a retry runs it anew."""
    place.add_issue("A", "hang=1")

    async with start() as daemon:
        await daemon.line("turn.started", issue="A")
        refused = await place.sortie("retry", "A")
        await done(place, "stop", "A")
        await daemon.line("issue.held", issue="A")
        held = await explained(place, "A")
        text = await done(place, "explain", "A")
        status = json.loads(await done(place, "status", "--format", "json"))
        place.require_no_process()
        place.add_issue("A", state="In Progress")
        again = await done(place, "retry", "A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert failed_in_one_line(refused)
    assert "running" in refused.err
    assert (held["standing"], held["issue_identifier"]) == ("held", "A")
    assert "operator" in held["detail"]
    assert "sortie retry A" in text
    assert [(h["issue_identifier"], h["reason"]) for h in status["held"]] == [("A", "operator")]
    assert (status["status"], status["ready"], status["reasons"]) == ("running", True, [])
    assert again
    assert in_short(rows) == [(0, "cancelled"), (0, "succeeded")]


async def test_refresh_polls_now(place: Place, start: Start) -> None:
    """With an hour between polls a new issue runs as soon as somebody asks."""
    place.write_workflow(polling={"interval_ms": 3_600_000})

    async with start() as daemon:
        await daemon.ready()
        place.add_issue("A")
        await done(place, "refresh")
        await daemon.line("run.started", issue="A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")


async def test_a_blocked_issue_names_its_blocker(place: Place, start: Start) -> None:
    """Explaining a blocked issue tells which issue blocks it, and in which state that is."""
    place.add_issue("B", "hang=1")
    place.add_issue("A", identifier="group/A 1 ü", blocked_by=["B"])

    async with start() as daemon:
        await daemon.line("turn.started", issue="B")
        with trio.fail_after(60):  # until a poll has seen where B is now
            while "B (In Progress)" not in (text := await done(place, "explain", "group/A 1 ü")):
                await trio.sleep(0.1)
        blocked = await explained(place, "group/A 1 ü")
        unknown = await place.sortie("explain", "nobody")

    (closed,) = [gate for gate in blocked["gates"] if not gate["open"]]
    assert (blocked["standing"], closed["gate"]) == ("candidate", "blockers")
    assert "B (In Progress)" in closed["reason"]
    assert "blockers" in text
    assert "B (In Progress)" in text
    assert failed_in_one_line(unknown)
    assert "nobody" in unknown.err


async def test_without_a_daemon_commands_say_so(place: Place, start: Start) -> None:
    """Before a daemon ran and after one ended in good order the answer is the same."""
    before = await place.sortie("status")
    async with start() as daemon:
        await daemon.ready()
        mode = stat.S_IMODE((place.root / WORD).stat().st_mode)
    after = await place.sortie("status")

    assert failed_in_one_line(before)
    assert before.err == (
        f"sortie: no daemon runs for WORKFLOW.md (database {place.root}/.sortie.db); start one"
        " with 'sortie run'\n"
    )
    assert after.err == before.err
    assert mode == 0o600
    assert not (place.root / WORD).exists()


async def test_what_a_killed_daemon_left_is_not_believed(place: Place, start: Start) -> None:
    """After kill -9 the commands say so, and whoever has the port then is sent nothing."""
    async with start() as daemon:
        await daemon.ready()
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    port = int(word_of(place)["url"].rstrip("/").rpartition(":")[2])
    with closing(socket.socket()) as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        stranger.setblocking(False)
        ran = await place.sortie("stop", "A")
        with pytest.raises(BlockingIOError):
            stranger.accept()

    assert failed_in_one_line(ran)
    assert f"the last one (pid {daemon.process.pid}, since " in ran.err
    assert "ended without taking its leave" in ran.err


async def test_a_broken_workflow_hides_no_daemon(place: Place, start: Start) -> None:
    """Who breaks the file while the daemon runs can still look and steer."""
    async with start() as daemon:
        await daemon.ready()
        place.write_text("---\ntracker: [\n---\n")
        await daemon.line("workflow.kept")
        ran = await place.sortie("status")
        paused = await place.sortie("pause")
        await daemon.line("dispatch.paused")

    assert ran.code == 0
    assert "NOT VALID; the last good settings stay in force" in ran.out
    assert ran.err.startswith("sortie: WORKFLOW.md is not valid as read here: WORKFLOW.md:")
    assert paused.code == 0


async def test_a_daemon_without_a_port_says_that(
    place: Place, start: Start, nursery: trio.Nursery
) -> None:
    """With port 0 there is a daemon, and the command says why it cannot be asked."""
    command = (SORTIE, "run", "--port", "0", "--log-format", "json")
    async with Daemon(place, nursery, command, None) as daemon:
        await daemon.line("daemon.started")
        ran = await place.sortie("status")

    assert failed_in_one_line(ran)
    assert "server.port is 0" in ran.err


async def test_a_file_that_cannot_be_written_stops_nothing(place: Place, start: Start) -> None:
    """The daemon warns that it cannot be found, and works."""
    (place.root / WORD).mkdir()
    place.add_issue("A")

    async with start() as daemon:
        warned = await daemon.line("control.unavailable")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        ran = await place.sortie("status")

    assert (warned["level"], warned["path"]) == ("warning", str(place.root / WORD))
    assert failed_in_one_line(ran)
    assert (place.root / WORD).is_dir()


@pytest.mark.parametrize("given", [None, "given-token-5f1c0de"])
async def test_the_token_stays_in_its_file(
    place: Place, start: Start, nursery: trio.Nursery, given: str | None
) -> None:
    """Made or given, the token is in no log, command line, answer or complaint.

    Not even where a hook prints the file: it runs as the same user and can read it.
    """
    place.loaded = None  # whose command lines are looked at
    place.write_workflow(hooks={"before_run": f"cat ../../{WORD}"})
    place.add_issue("A", "hang=1")
    seen: set[str] = set()
    over = trio.Event()

    async with start("--log-level", "debug", SORTIE_SERVER_AUTH_TOKEN=given) as daemon:
        await daemon.line("turn.started", issue="A")
        token = word_of(place)["token"]
        nursery.start_soon(watch_command_lines, seen, over)
        rans = [
            await place.sortie(*command.split())
            for command in ("status", "status --format json", "explain A", "retry A", "stop A")
        ]
        pages = [(await daemon.get(path)).text for path in ("/metrics", "/api/v1/state")]
        over.set()

    assert token == given or (given is None and len(token) >= 32)
    hook = json.dumps(daemon.lines("hook.completed", hook="before_run"))
    assert "***" in hook
    assert token not in json.dumps(daemon.log)
    assert any("sortie" in line and "explain A" in line for line in seen)
    for text in (*seen, *pages, *(ran.out + ran.err for ran in rans)):
        assert token not in text


async def test_only_the_token_commands(place: Place, start: Start) -> None:
    """Over HTTP a command without the right token is 401 and changes nothing; with it, it is
    done; and the refusals are counted under the route."""
    async with start() as daemon:
        await daemon.ready()
        right = {"Authorization": f"Bearer {word_of(place)['token']}"}
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            answers = [
                await client.post(f"{daemon.url}/api/v1/pause", headers=headers)
                for headers in ({}, {"Authorization": "Bearer wrong"}, right)
            ]
            strange = await client.post(
                f"{daemon.url}/api/v1/resume", headers=right | {"Origin": "http://evil.example"}
            )
        state = await daemon.state()
        metrics = await daemon.metrics()

    assert [answer.status_code for answer in answers] == [401, 401, 200]
    assert strange.status_code == 403
    assert state["status"] == "paused"
    pauses = {"route": "/api/v1/pause", "status": "401"}
    assert metrics.total("sortie_http_requests_total", **pauses) == 2


@asynccontextmanager
async def watching(place: Place) -> AsyncIterator[trio.Process]:
    """Follow the status as JSON for the length of the block."""
    process = await trio.lowlevel.open_process(
        [SORTIE, "status", "--watch", "--format", "json"],
        cwd=place.root,
        env=place.environ({}),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        with trio.fail_after(2.5 * PATIENCE):  # it sees two daemons come and go
            yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def read_line(stream: trio.abc.ReceiveStream, rest: bytearray) -> str:
    """Return the next line of a stream; ``rest`` is what came behind it."""
    while b"\n" not in rest:
        chunk = await stream.receive_some()
        assert chunk, "it ended"
        rest += chunk
    line, _, behind = bytes(rest).partition(b"\n")
    rest[:] = behind
    return line.decode()


async def test_a_watch_sees_the_daemon_come_back(place: Place, start: Start) -> None:
    """A watch that saw one daemon tells that it is gone, sees the next one, and ends with 130."""
    async with watching(place) as watch:
        out, err = bytearray(), bytearray()
        stdout = cast(trio.abc.ReceiveStream, watch.stdout)
        stderr = cast(trio.abc.ReceiveStream, watch.stderr)
        first_miss = await read_line(stderr, err)
        async with start() as daemon:
            await daemon.ready()
            seen = json.loads(await read_line(stdout, out))
        second_miss = await read_line(stderr, err)
        between = datetime.now(UTC).isoformat()
        async with start():
            while json.loads(await read_line(stdout, out))["generated_at"] < between:
                pass
            watch.send_signal(signal.SIGINT)
            code = await watch.wait()

    assert first_miss.endswith("looking on")
    assert second_miss.endswith("looking on")
    assert seen["status"] == "running"
    assert code == 130
    assert os.fspath(place.root) in first_miss
