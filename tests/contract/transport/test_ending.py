"""Ending a program and everything that it started, whoever started it."""

from __future__ import annotations

import os
import sys

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from sortie.model import LOCAL, RunId
from sortie.transports import Exit, Process, Transport
from tests.contract.transport.launching import (
    CHAIN,
    ESCAPE,
    Launch,
    everything,
    pids_from,
    program_of,
)
from tests.transports.leftovers import bearers, holders, is_alive


def word_of(cookie: RunId) -> str:
    """Return an argument by which what a program starts is known, and nobody else."""
    return f"of-{cookie}"


async def test_a_polite_program_is_ended_politely(transport: Transport, launch: Launch) -> None:
    """SIGTERM comes first, its handler has the grace time, and what it writes is read."""
    script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done"

    async with transport.process(launch.sh(script)) as process:
        output = process.output()
        assert await anext(output) == (1, b"ready\n")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process.end)
            last = [chunk async for chunk in output]
        exit_ = await process.wait()

    assert b"".join(chunk for number, chunk in last if number == 1) == b"bye\n"
    assert exit_ == Exit(status=5, by_us=True)


async def test_a_stubborn_program_is_killed_after_the_grace_time(
    transport: Transport, launch: Launch
) -> None:
    """What ignores SIGTERM dies by SIGKILL, not before the grace time is over."""
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"

    async with transport.process(launch.sh(script, grace=0.5)) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        began = trio.current_time()
        exit_ = await process.end()
        seconds = trio.current_time() - began

    assert exit_ == Exit(signal=9, by_us=True)
    assert 0.5 <= seconds < 60


async def test_a_stopped_program_is_ended_politely_too(
    transport: Transport, launch: Launch
) -> None:
    """A process stopped by SIGSTOP is continued so that it can take SIGTERM."""
    script = "trap 'exit 5' TERM; echo ready; kill -STOP $$; while :; do sleep 0.05; done"

    async with transport.process(launch.sh(script)) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        while (await _state(process)) != "T":
            await trio.sleep(0.005)
        exit_ = await process.end()

    assert exit_ == Exit(status=5, by_us=True)


async def _state(process: Process) -> str:
    stat = await trio.Path(f"/proc/{await program_of(process)}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]


async def test_end_may_be_called_again(transport: Transport, launch: Launch) -> None:
    """Ends in a row and at once, and after the exit, all tell the same."""
    async with transport.process(launch("sleep", "1000")) as process:
        ends: list[Exit] = []

        async def end() -> None:
            ends.append(await process.end())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end)
            nursery.start_soon(end)
        await end()

    assert ends == [Exit(signal=15, by_us=True)] * 3


WORDS = ("ignore", "fork", "fork hold ignore", "fork cleared away ignore", "tree fork ignore")
"""What a child does to escape."""
WEAKER = ("", "fork ignore", "fork cleared", "tree")
"""What is weaker than one of those."""
LEAVES = ("end", "exit", "block", "cancel")
OFTEN = {
    *((words, leave) for words in WORDS for leave in ("end", "exit")),
    *((WORDS[3], leave) for leave in LEAVES),
}
"""Each word with the two ends that a transport tells apart, and the worst one with all."""


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        pytest.param(leave, words, marks=() if (words, leave) in OFTEN else pytest.mark.full)
        for leave in LEAVES
        for words in (*WORDS, *WEAKER)
    ],
)
async def test_nothing_that_descends_from_a_process_outlives_it(
    transport: Transport, launch: Launch, cookie: RunId, words: str, leave: str
) -> None:
    """Whatever a child does to escape, it is gone when the block is left, however that is."""
    extra = ("exit",) if leave == "exit" else ()
    command = launch(*ESCAPE, *words.split(), *extra, word_of(cookie), grace=0.2)

    with trio.CancelScope() as scope:
        async with transport.process(command) as process:
            output = process.output()
            pids, rest = await pids_from(output)
            match leave:
                case "end":
                    assert (await process.end()).by_us
                case "exit":
                    assert await process.wait() == Exit(status=3)
                    assert rest + b"".join([c async for _, c in output]) == b"last words"
                case "cancel":
                    scope.cancel()
                    await trio.sleep_forever()
                case _:
                    assert len(bearers(word_of(cookie))) > len(pids)

    assert len(pids) == (3 if "tree" in words else 1)
    assert bearers(word_of(cookie)) == []


@pytest.mark.parametrize("leave", ["exit", "end", "cancel"])
async def test_what_leaves_everything_behind_does_not_outlive_its_program(
    transport: Transport, launch: Launch, cookie: RunId, leave: str
) -> None:
    """A child without environment, directory, session and limits of its parent is gone, too."""
    word = word_of(cookie)
    daemon = f"(cd /; env -i setsid -f sh -c 'while :; do sleep 0.2; done' {word})"
    rest = "exit 0" if leave == "exit" else "exec sleep 1000"

    with trio.CancelScope() as scope:
        async with transport.process(launch.sh(f"{daemon}; echo ready; {rest}")) as process:
            assert await anext(process.output()) == (1, b"ready\n")
            match leave:
                case "exit":
                    assert await process.wait() == Exit(status=0)
                case "end":
                    await process.end()
                case _:
                    scope.cancel()
                    await trio.sleep_forever()

    assert bearers(word) == []


@pytest.mark.parametrize(
    "words",
    ["exit", "apart exit", *(pytest.param(w, marks=pytest.mark.full) for w in ("", "apart"))],
)
async def test_what_forks_and_exits_all_the_time_is_ended(
    transport: Transport, launch: Launch, place: str, words: str
) -> None:
    """A chain of processes, each of which lives for 3 ms, is found and does not go on."""
    link = trio.Path(place, "link")
    command = launch(*CHAIN, str(link), *words.split(), grace=0.2)

    for _ in range(3):
        async with transport.process(command) as process:
            assert await anext(process.output()) == (1, b"ready\n")
            if "exit" not in words:
                await process.end()
        await link.unlink(missing_ok=True)
        await trio.sleep(0.1)

        assert not await link.exists()


async def test_a_program_leads_a_session_of_its_own(transport: Transport, launch: Launch) -> None:
    """No terminal's signal reaches it, and its group can be signalled as a whole."""
    script = "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))"

    async with transport.process(launch(sys.executable, "-c", script)) as process:
        read = await everything(process)

    assert read == {1: b"True\n", 2: b""}


async def test_a_child_in_the_background_does_not_outlive_a_clean_exit(
    transport: Transport, launch: Launch, cookie: RunId
) -> None:
    """What a shell leaves running in its own session is ended when the shell is done."""
    script = f"sh -c 'while :; do sleep 1; done' {word_of(cookie)} >/dev/null 2>&1 & echo left"

    async with transport.process(launch.sh(script)) as process:
        read = await everything(process)
        exit_ = await process.wait()

    assert (exit_, read[1]) == (Exit(status=0), b"left\n")
    assert bearers(word_of(cookie)) == []


async def test_what_the_block_raises_leaves_it_unchanged(
    transport: Transport, launch: Launch
) -> None:
    """An error in the block is not wrapped, and the process is ended all the same."""
    with pytest.raises(LookupError, match=r"^mine$"):
        async with transport.process(launch("sleep", "1000")):
            raise LookupError("mine")


async def test_a_flood_is_held_back_by_its_reader(
    transport: Transport, launch: Launch, place: str
) -> None:
    """While nobody takes output, a program can write what the pipes hold and little more."""
    script = (
        "import os\n"
        "progress = os.open('progress', os.O_CREAT | os.O_WRONLY)\n"
        "for n in range(400):\n"
        "    os.write(1, bytes(65536))\n"
        "    os.pwrite(progress, b'%d' % (n + 1), 0)\n"
    )
    progress = trio.Path(place, "progress")

    async with transport.process(launch(sys.executable, "-c", script)) as process:
        output = process.output()
        first = len((await anext(output))[1])
        seen = [await progress.read_text()]
        while len(seen) < 10 or len(set(seen[-10:])) > 1:
            await trio.sleep(0.01)
            seen.append(await progress.read_text())
        written = first + sum([len(chunk) async for _, chunk in output])

    # A window of output may be on its way from another host, and another one wait here.
    assert int(seen[-1]) <= (8 if transport.host == LOCAL else 24)
    assert written == 400 * 65536


async def test_a_block_can_be_cancelled_at_any_moment(transport: Transport, launch: Launch) -> None:
    """From before the start to after the exit, a deadline leaves no process behind."""
    for step in range(13):
        command = launch(*ESCAPE, "fork", "exit", grace=0.1)

        with trio.move_on_after(step * 0.016):
            async with transport.process(command) as process:
                await everything(process)
                await process.end()


async def test_hurry_ends_the_grace_time(transport: Transport, launch: Launch) -> None:
    """A long grace time is cut short, for what is being ended and for what comes later."""
    command = launch.sh("trap '' TERM; echo ready; while :; do sleep 0.05; done", grace=1000)

    with trio.fail_after(60):
        async with transport.process(command) as process, trio.open_nursery() as nursery:
            await anext(process.output())
            nursery.start_soon(process.end)
            await trio.testing.wait_all_tasks_blocked(0.01)
            transport.hurry()
        async with transport.process(command) as process:
            await anext(process.output())


async def test_a_sweep_ends_what_holds_the_cookie(
    transport: Transport, launch: Launch, cookie: RunId
) -> None:
    """Runs are found by their id wherever they went, and other runs are left alone."""
    async with transport.process(launch(*ESCAPE, "fork", "ignore", word_of(cookie))) as process:
        await pids_from(process.output())

        others = await transport.sweep([RunId("another")], grace=0)
        nobody = await transport.sweep([], grace=0)
        before = len(bearers(word_of(cookie)))
        ended = await transport.sweep([RunId("another"), cookie], grace=0.1)
        exit_ = await process.wait()

        # Of several, a namespace's kernel may end the others before they are signalled and counted.
        assert (others, nobody, ended >= 1, before >= 2) == (0, 0, True, True)
        assert exit_.signal == 15
        assert bearers(word_of(cookie)) == []


@pytest.mark.parametrize("words", [pytest.param("exit", marks=pytest.mark.full), "apart exit"])
async def test_a_sweep_ends_what_forks_and_exits_all_the_time(
    transport: Transport, cookie: RunId, place: str, words: str
) -> None:
    """Each link of the chain has the cookie, and lives for 3 ms."""
    link = trio.Path(place, "link")
    env = {**os.environ, "SORTIE_RUN_ID": cookie}
    for _ in range(3):
        await trio.run_process([*CHAIN, str(link), *words.split()], env=env)

        try:
            ended = await transport.sweep([cookie], grace=0.1)
        finally:  # what was not ended goes on for as long as the link is there
            await link.unlink(missing_ok=True)
        await trio.sleep(0.1)

        assert not await link.exists()
        assert ended > 0


async def test_a_sweep_ends_a_recorded_root_without_a_cookie(
    transport: Transport, launch: Launch, cookie: RunId
) -> None:
    """A root that replaced its environment is known by its identity, and by nothing less."""
    script = "sleep 1000 </dev/null >/dev/null & echo ready; wait"
    async with transport.process(launch("env", "-i", "/bin/sh", "-c", script)) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        if holders(cookie):
            pytest.skip("what waits for the program has replaced nothing")
        identity = process.identity
        another = replace(identity, started_at=identity.started_at - 1)

        by_cookie = await transport.sweep([cookie], grace=1.0)
        by_pid = await transport.sweep([cookie], grace=1.0, roots={cookie: another})
        alive = is_alive(identity.pid)
        has_init = await program_of(process) != identity.pid
        by_identity = await transport.sweep([cookie], grace=1.0, roots={cookie: identity})
        exit_ = await process.wait()

    assert (by_cookie, by_pid, alive) == (0, 0, True)
    # Where an init leads a namespace, what it has with it may end by itself before it is counted.
    assert by_identity in ((1, 2, 3) if has_init else (2,))
    assert exit_.signal == 15
