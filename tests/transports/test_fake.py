"""The fake transport and the local one, asked the same.

What the fake does not keep, and the contract suite therefore cannot be run over it: real programs
and their descendants, links and real paths, modes, the PATH, and files that a test puts on disk.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import ProgramNotFound, RunId, TransportError
from sortie.transports import Command, Exit, Stdin, Transport
from sortie.transports.local import LocalTransport, become_subreaper
from tests.transports.fake import NEVER, Does, FakeTransport


@pytest.fixture(params=["local", "fake"])
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> Transport:
    """Give one of each."""
    if request.param == "fake":
        return FakeTransport(directories=[str(tmp_path)])
    become_subreaper()
    return LocalTransport(os.environ["PATH"])


async def test_directories_come_and_go(transport: Transport, tmp_path: Path) -> None:
    """New the first time only, contained while there, removed once."""
    root = f"{tmp_path}/root"

    answers = [
        await transport.files.contained(root, f"{root}/A"),
        await transport.files.make_directory(root, "A"),
        await transport.files.make_directory(root, "A"),
        await transport.files.contained(root, f"{root}/A"),
        await transport.files.contained(root, f"{root}/A/.."),
        await transport.files.contained("/", f"{root}/A"),
        await transport.files.contained(f"{root}/A", f"{root}/A"),
        await transport.files.remove_directory(root, "A"),
        await transport.files.remove_directory(root, "A"),
        await transport.files.contained(root, f"{root}/A"),
    ]

    path = f"{root}/A"
    assert answers == [
        False,
        (path, True),
        (path, False),
        True,
        False,
        True,
        False,
        True,
        False,
        False,
    ]


async def test_files_come_and_go(transport: Transport, tmp_path: Path) -> None:
    """Written with their directories, read to a limit, removed with the workspace."""
    root = f"{tmp_path}/root"
    path, _ = await transport.files.make_directory(root, "A")

    absent = await transport.files.read_file(path, ".sortie/status", 10)
    await transport.files.write_file(path, ".sortie/status", b"one")
    await transport.files.write_file(path, ".sortie/status", b"two words")
    beginning = await transport.files.read_file(path, ".sortie/status", 3)
    await transport.files.remove_file(path, ".sortie/status")
    await transport.files.remove_file(path, ".sortie/status")
    removed = await transport.files.read_file(path, ".sortie/status", 10)
    await transport.files.write_file(path, "a/b/c", b"deep")
    await transport.files.remove_directory(root, "A")
    made_anew = await transport.files.make_directory(root, "A")
    lost = await transport.files.read_file(path, "a/b/c", 10)

    assert (absent, beginning, removed, made_anew, lost) == (None, b"two", None, (path, True), None)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/etc", "a\0b", "x" * 300])
async def test_a_name_that_could_escape_is_refused(
    transport: Transport, tmp_path: Path, name: str
) -> None:
    """No name leads out of the root or the directory."""
    place = str(tmp_path)

    for refused in (
        transport.files.make_directory(place, name),
        transport.files.remove_directory(place, name),
        transport.files.write_file(place, name, b"x"),
        transport.files.remove_file(place, name),
    ):
        with pytest.raises(TransportError):
            await refused


async def test_a_directory_is_no_file_and_a_file_no_directory(
    transport: Transport, tmp_path: Path
) -> None:
    """What is in the way is an error and stays."""
    place = str(tmp_path)
    await transport.files.make_directory(place, "folder")
    await transport.files.write_file(place, "file", b"x")

    for refused in (
        transport.files.make_directory(place, "file"),
        transport.files.remove_directory(place, "file"),
        transport.files.read_file(place, "folder", 10),
        transport.files.write_file(place, "folder", b"x"),
        transport.files.remove_file(place, "folder"),
    ):
        with pytest.raises(TransportError):
            await refused
    assert await transport.files.read_file(place, "file", 10) == b"x"
    assert await transport.files.contained(place, f"{place}/folder")


def command(script: str, grace: float = 5.0, run: str = "run-1") -> Command:
    return Command(
        argv=("/bin/sh", "-c", script), cwd="/w", env={"SORTIE_RUN_ID": run}, grace=grace
    )


async def test_a_script_runs_for_its_time(autojump_clock: MockClock) -> None:
    """Output, status and duration are as the table says; an unknown script is not found."""
    fake = FakeTransport({"work": Does(seconds=3, status=7, output=b"hi")}, directories=["/w"])

    async with fake.process(command("work")) as process:
        read = [chunk async for chunk in process.output()]
        exit_ = await process.wait()
    async with fake.process(command("nonsense")) as process:
        unknown = await process.wait()

    assert (read, exit_, unknown.status) == ([(1, b"hi")], Exit(status=7), 127)
    assert [ran.seconds for ran in fake.ran] == [3.0, 0.0]
    assert fake.alive == []


@pytest.mark.parametrize(
    ("dies_after", "exit_", "seconds"),
    [(2.0, Exit(signal=15, by_us=True), 2.0), (math.inf, Exit(signal=9, by_us=True), 5.0)],
)
async def test_leaving_the_block_ends_a_script(
    autojump_clock: MockClock, dies_after: float, exit_: Exit, seconds: float
) -> None:
    """Politely, or by force after the grace time."""
    fake = FakeTransport(
        {"work": Does(seconds=math.inf, dies_after=dies_after)}, directories=["/w"]
    )

    async with fake.process(command("work")):
        assert len(await fake.occupied("/w")) == 1

    assert [(ran.exit, ran.seconds) for ran in fake.ran] == [(exit_, seconds)]
    assert await fake.occupied("/w") == []


async def test_hurry_and_sweep_end_scripts(autojump_clock: MockClock) -> None:
    """A sweep ends the runs it names; hurry takes the grace from what is being ended."""
    fake = FakeTransport(
        {"stay": NEVER, "cling": Does(seconds=math.inf, dies_after=math.inf)}, directories=["/w"]
    )

    async with fake.process(command("stay")) as one, fake.process(command("stay", run="other")):
        swept = await fake.sweep([RunId("run-1")], grace=0)
        alive = len(fake.alive), one.exit
        async with (
            trio.open_nursery() as nursery,
            fake.process(command("cling", grace=1000)) as clinging,
        ):
            nursery.start_soon(clinging.end)
            await trio.sleep(5)
            fake.hurry()
            await clinging.wait()

    assert (swept, alive) == (1, (2, Exit(signal=15, by_us=True)))
    assert trio.current_time() == 5.0


async def test_a_sweep_knows_recorded_roots(autojump_clock: MockClock) -> None:
    """A recorded root is ended where it names no run; one of another run or time is not."""
    fake = FakeTransport({"stay": NEVER}, directories=["/w"])
    nameless = Command(argv=("sh", "-c", "stay"), cwd="/w", env={})

    async with fake.process(nameless) as one, fake.process(command("stay")) as other:
        later = replace(one.identity, started_at=one.identity.started_at + 1)
        spared = await fake.sweep([], grace=0, roots={RunId("a"): other.identity})
        missed = await fake.sweep([], grace=0, roots={RunId("a"): later})
        ended = await fake.sweep([], grace=0, roots={RunId("a"): one.identity})

        assert (spared, missed, ended) == (0, 0, 1)
        assert (one.exit, other.exit) == (Exit(signal=15, by_us=True), None)


async def test_what_is_not_there_cannot_be_started() -> None:
    """Another program than the shell, and a directory that is not there."""
    fake = FakeTransport({"work": Does()})

    with pytest.raises(TransportError):
        async with fake.process(command("work")):
            pass
    with pytest.raises(ProgramNotFound):
        async with fake.process(Command(argv=("kiro",), cwd="/", env={})):
            pass


async def test_what_the_block_raises_leaves_it_unchanged() -> None:
    """An error in the block is not wrapped, and the script is ended all the same."""
    fake = FakeTransport({"stay": NEVER}, directories=["/w"])

    with pytest.raises(LookupError, match=r"^mine$"):
        async with fake.process(command("stay")):
            raise LookupError("mine")

    assert fake.alive == []


async def test_a_stdin_that_is_asked_for_can_be_written(
    transport: Transport, tmp_path: Path
) -> None:
    """While the program lives, and until it is closed; without asking there is none."""
    if isinstance(transport, FakeTransport):
        transport.scripts["sleep 1000"] = NEVER
    env = {"PATH": os.environ["PATH"]}
    argv = ("/bin/sh", "-c", "sleep 1000")
    command = Command(argv=argv, cwd=str(tmp_path), env=env)

    async with transport.process(command) as process:
        assert process.stdin is None
    async with transport.process(replace(command, stdin=Stdin.PIPE)) as process:
        assert process.stdin is not None
        await process.stdin.send_all(b"one")
        await process.end()
        with pytest.raises(trio.BrokenResourceError):
            await process.stdin.send_all(b"two")
        await process.stdin.aclose()
        await process.stdin.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await process.stdin.send_all(b"three")
