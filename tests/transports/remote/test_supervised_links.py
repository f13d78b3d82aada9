"""Supervised programs on this machine, over links that are cut at any byte.

``SORTIE_TEST_CUTS`` says how many games of cuts are played with each shell.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import trio

from sortie.transports import Stdin
from sortie.transports.remote.supervision import END, Supervision
from tests.transports.remote.links import Host, Link, Program

CUTS = int(os.environ.get("SORTIE_TEST_CUTS", "4"))
_PATIENCE = 240.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need /proc")

ECHO = (
    "import os\n"
    "while chunk := os.read(0, 65536):\n"
    "    os.write(1, chunk)\n"
    "    os.write(2, chunk.swapcase())\n"
)


def noted(host: Host, name: str) -> int:
    """Return the pid of who works for the only supervisor of a host."""
    (place,) = host.directory.glob("sortie-run.*")
    return int((place / name).read_text().split()[0])


def has_ended(pid: int) -> bool:
    """Tell whether a process has ended, though its parent may not know it yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def come(condition: Callable[[], object]) -> None:
    with trio.fail_after(_PATIENCE):
        while not condition():
            await trio.sleep(0.005)


async def attach_until_over(program: Program, nursery: trio.Nursery, cuts: list[int | None]) -> int:
    """Attach again whenever the link is over, each time with a cut; return how often."""
    times = 0
    with trio.fail_after(_PATIENCE):
        while program.supervision.gone is None:
            assert program.link is not None
            if "over" in program.link.messages:
                await program.reattach(nursery, cuts.pop() if cuts else None)
                times += 1
            await trio.sleep(0.002)
    return times


async def play(host: Host, seed: int) -> int:
    """Send bytes to a program that writes them back, and cut links at random bytes."""
    rng = random.Random(seed)
    size = rng.choice([10, 1000, 100_000, 700_000])
    content = rng.randbytes(size)
    program = Program(
        host,
        sys.executable,
        "-c",
        ECHO,
        stdin=Stdin.PIPE,
        kept=rng.choice([65536, 1 << 20]),
    )
    cuts: list[int | None] = [
        rng.choice([rng.randrange(1, 600), rng.randrange(1500, 6000 + 3 * size)])
        for _ in range(rng.randrange(2, 8))
    ]
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        assert program.link is not None
        program.link.carry_only(rng.choice([rng.randrange(1, 300), rng.randrange(1, 3 * size)]))

        async def send() -> None:
            at = 0
            while at < len(content):
                length = rng.choice([1, 100, 5000, 70_000])
                await program.send(content[at : at + length])
                at += length
            assert program.link is not None
            await program.link.write(program.supervision.close_stdin())

        nursery.start_soon(send)
        times = await attach_until_over(program, nursery, cuts)
        await program.finish()
    assert bytes(program.output[1]) == content, seed
    assert bytes(program.output[2]) == content.swapcase(), seed
    assert program.supervision.exit == 0
    assert program.supervision.gone == []
    await program.cleared()
    return times


@pytest.mark.parametrize("host", ["dash", "bash"], indirect=True)
@pytest.mark.parametrize("seed", range(CUTS))
async def test_no_byte_is_lost_or_comes_twice_wherever_links_are_cut(host: Host, seed: int) -> None:
    """In both directions, with any number of links, and nothing is left at the end."""
    await play(host, seed)


@pytest.mark.full
@pytest.mark.timeout(7200)
async def test_many_games_of_cuts_are_exact(host: Host) -> None:
    """As above, a hundred times."""
    times = [await play(host, seed) for seed in range(1000, 1100)]
    sys.stdout.write(f"{len(times)} games, {sum(times)} links beside the first\n")


@pytest.mark.full
@pytest.mark.timeout(7200)
async def test_a_gigabyte_comes_through_cuts(host: Host) -> None:
    """Its checksum is that of what was written."""
    script = (
        "import os, random, hashlib\n"
        "rng, digest = random.Random(7), hashlib.sha256()\n"
        "for _ in range(1024):\n"
        "    chunk = rng.randbytes(1 << 20)\n"
        "    digest.update(chunk)\n"
        "    while chunk: chunk = chunk[os.write(1, chunk):]\n"
        "os.write(2, digest.hexdigest().encode())\n"
    )
    program = Program(host, sys.executable, "-c", script)
    digest, size = hashlib.sha256(), 0

    def take(stream: int, chunk: bytes) -> None:
        nonlocal size
        if stream == 1:
            digest.update(chunk)
            size += len(chunk)
        else:
            program.output[2] += chunk

    program.sink = take
    rng = random.Random(3)
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        assert program.link is not None
        program.link.carry_only(rng.randrange(50 << 20))
        with trio.fail_after(7000):
            times = 0
            while program.supervision.gone is None:
                if "over" in program.link.messages:
                    await program.reattach(nursery, rng.randrange(1 << 10, 60 << 20))
                    times += 1
                await trio.sleep(0.01)
        await program.finish()
    assert size == 1 << 30
    assert digest.hexdigest() == program.output[2].decode()
    assert times >= 10
    await program.cleared()


async def test_a_later_attachment_fences_an_earlier_one(host: Host) -> None:
    """Who comes back on an old link can neither write to the program nor keep it alive, and an old
    number is refused."""
    program = Program(host, "cat", stdin=Stdin.PIPE)
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        await program.send(b"one\n")
        await come(lambda: program.output[1] == b"one\n")
        old = program.link
        late = Supervision.attaching(program.supervision, "n-late")
        assert old is not None

        await program.reattach(nursery)
        await old.write(b"in 4 5\nevil\n" + END)
        delayed = Link(await host.shell(), program.supervision, None)
        nursery.start_soon(delayed.receive, lambda *_: None)
        await delayed.write(late)
        await come(lambda: "stale" in delayed.messages or "over" in delayed.messages)
        await program.send(b"two\n")
        await come(lambda: program.output[1] == b"one\ntwo\n")
        assert program.link is not None
        await program.link.write(program.supervision.close_stdin())
        await program.finish()

    assert "over" in old.messages
    assert bytes(program.output[1]) == b"one\ntwo\n"
    assert program.supervision.exit == 0
    await program.cleared()


async def test_nobody_who_comes_ends_the_program(host: Host) -> None:
    """It and its files are gone when the time for another link is over."""
    program = Program(host, "sleep", "1000", lease=1.0, reattach=1.0)
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        assert program.link is not None
        program.link.cut()
    await program.cleared()


async def test_an_exit_and_the_last_output_wait_for_a_link(host: Host) -> None:
    """What happens while there is no link is told on the next one."""
    program = Program(host, "sh", "-c", "read x; echo out; echo err >&2; exit 9", stdin=Stdin.PIPE)
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        assert program.link is not None
        await program.link.write(program.supervision.send(b"x\n"))
        await come(lambda: noted_files(host) & {"exit"})
        program.link.cut()
        await come(lambda: program.link is not None and "over" in program.link.messages)
        await program.reattach(nursery)
        await program.finish()

    assert [bytes(program.output[number]) for number in (1, 2)] == [b"out\n", b"err\n"]
    assert program.supervision.exit == 9
    await program.cleared()


def noted_files(host: Host) -> set[str]:
    return {path.name for place in host.directory.glob("sortie-run.*") for path in place.iterdir()}


async def test_without_a_link_a_program_writes_what_is_kept_and_waits(host: Host) -> None:
    """The files on the host do not grow beyond the bound, and go on when somebody comes."""
    script = (
        "import os\n"
        "for n in range(400):\n"
        "    os.write(1, bytes(16384))\n"
        "    open('progress', 'w').write(str(n))\n"
    )
    kept = 512 * 1024
    program = Program(host, sys.executable, "-c", script, kept=kept)
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        assert program.link is not None
        program.link.cut()
        await come(lambda: program.link is not None and "over" in program.link.messages)
        seen: list[int] = []
        while len(seen) < 20 or len(set(seen[-20:])) > 1:
            (place,) = host.directory.glob("sortie-run.*")
            seen.append(sum(path.stat().st_size for path in place.glob("o1.*")))
            await trio.sleep(0.02)
        await program.reattach(nursery)
        await program.finish()

    assert 0 < seen[-1] <= kept + 65536
    assert len(program.output[1]) == 400 * 16384
    await program.cleared()


async def test_a_program_is_ended_on_order(host: Host) -> None:
    """Also when the order comes on a later link."""
    program = Program(host, "sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.02; done")
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        assert program.link is not None
        program.link.cut()
        await come(lambda: program.link is not None and "over" in program.link.messages)
        await program.reattach(nursery)
        await program.link.write(END)
        await program.finish()
    assert program.supervision.exit == 5
    await program.cleared()


@pytest.mark.parametrize(
    "who", ["supervisor", "watchdog", "spool1", "spool2", "feeder", "at.1/link"]
)
async def test_who_is_killed_on_the_host_leaves_nobody(host: Host, who: str) -> None:
    """The next link learns what became of it, or ends it; the next program removes the files."""
    program = Program(host, "cat", stdin=Stdin.PIPE, reattach=4.0)
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        os.kill(noted(host, who), signal.SIGKILL)
        assert program.link is not None
        with trio.fail_after(_PATIENCE):
            for _ in range(3):
                await program.link.write(b"\n")
            if who == "at.1/link":
                await come(lambda: program.link is not None and "over" in program.link.messages)
                assert await program.reattach(nursery) == "attached"
            if who in ("at.1/link", "feeder"):
                await program.link.write(END)
            if who == "watchdog":
                while not program.supervision.unwatched:  # what was killed may take a moment
                    await program.link.write(b"\n")
                    await trio.sleep(0.05)
                nursery.cancel_scope.cancel()
            else:
                await program.finish()
    if who == "watchdog":
        (root,) = [m for m in program.said_everywhere() if m.startswith("root ")]
        os.kill(int(root.split()[1]), signal.SIGKILL)
        program.link.cut()
        another = Program(host, "true")
        async with trio.open_nursery() as nursery:
            await another.start(nursery)
            await another.finish()
    await program.cleared()


@pytest.mark.parametrize("who", ["at.1/send1", "at.1/send2"])
async def test_another_link_brings_what_nobody_sends_any_more(host: Host, who: str) -> None:
    """A link ends at the next sign of life where one who sends on it was killed."""
    program = Program(host, "sh", "-c", "read x; echo out; echo err >&2", stdin=Stdin.PIPE)
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        await come(lambda: noted_files(host) & {"want1"} and noted_files(host) & {"want2"})
        await come(lambda: any(one.read_text() for one in host.directory.glob(f"*/{who}")))
        killed = noted(host, who)
        os.kill(killed, signal.SIGKILL)
        await come(lambda: has_ended(killed))
        assert program.link is not None
        await program.link.write(program.supervision.send(b"x\n") + b"\n")
        await come(lambda: program.link is not None and "over" in program.link.messages)
        await program.reattach(nursery)
        await program.finish()

    assert [bytes(program.output[number]) for number in (1, 2)] == [b"out\n", b"err\n"]
    assert program.supervision.exit == 0
    await program.cleared()


@pytest.mark.parametrize("who", ["spool1", "spool2"])
async def test_an_exit_is_told_behind_that_output_was_not_kept(host: Host, who: str) -> None:
    """A program ends where nobody takes what it writes: that is no failure of its own."""
    program = Program(host, "sh", "-c", "echo out; echo err >&2; read x; exit 3", stdin=Stdin.PIPE)
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        # A program that has not begun waits for who reads its streams.
        await come(lambda: program.output[1] and program.output[2])
        os.kill(noted(host, who), signal.SIGKILL)
        assert program.link is not None
        await program.link.write(program.supervision.send(b"x\n"))
        await program.finish()

    told = [message.partition(" ")[0] for message in program.said_everywhere()]
    assert "unkept" in told[: told.index("exit")]
    await program.cleared()


async def test_what_a_removal_left_goes_with_the_next_program(host: Host) -> None:
    """Whoever was killed while files were removed; and files of somebody alive stay."""
    living = Program(host, "cat", stdin=Stdin.PIPE)
    async with trio.open_nursery() as nursery:
        await living.start(nursery)
        (place,) = host.files()
        gone = host.directory / f"sortie-run.{'0' * 32}.gone"
        (gone / "at.3").mkdir(parents=True)
        another = Program(host, "true")
        await another.start(nursery)
        await another.finish()
        await come(lambda: host.files() == [place])
        assert living.link is not None
        await living.link.write(living.supervision.close_stdin())
        await living.finish()
    assert living.supervision.exit == 0
    await living.cleared()


async def test_what_is_half_made_goes_where_nobody_makes_it_any_more(host: Host) -> None:
    """Directories of whoever was killed, whatever stands in them; not that of somebody alive."""
    for name in (f"{'1' * 32}.{os.getpid()}.new", f"{'2' * 32}.{2**22 + 1}.new", "3" * 32):
        (host.directory / f"sortie-run.{name}" / "at.2").mkdir(parents=True)
    program = Program(host, "true")
    async with trio.open_nursery() as nursery:
        await program.start(nursery)
        await program.finish()
    living = host.directory / f"sortie-run.{'1' * 32}.{os.getpid()}.new"

    await come(lambda: host.files() == [living.name])

    (living / "at.2").rmdir()
    living.rmdir()
    await program.cleared()


SLOW_MKFIFO = """#!/bin/sh
: >making
while [ ! -e "$HOME/go on" ]; do sleep 0.02; done
exec /usr/bin/mkfifo "$@"
"""


async def test_a_program_is_not_cleaned_up_while_it_begins(host: Host, tmp_path: Path) -> None:
    """Its directory has its name only when it says who is there; others begin and end meanwhile."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mkfifo").write_text(SLOW_MKFIFO)
    (tools / "mkfifo").chmod(0o755)
    environ = host.env
    slow, quick = Program(host, "true"), Program(host, "true")
    async with trio.open_nursery() as nursery:
        host.env = {**environ, "PATH": f"{tools}:{environ['PATH']}"}
        nursery.start_soon(slow.start, nursery)
        await come(lambda: list(host.directory.glob("sortie-run.*/making")))
        (made,) = host.files()
        host.env = environ
        await quick.start(nursery)
        await quick.finish()
        await come(lambda: host.files() == [made])
        (host.directory / "go on").touch()
        await come(lambda: slow.link is not None and slow.supervision.attached)
        await slow.finish()

    assert made.endswith(".new")
    await slow.cleared()
