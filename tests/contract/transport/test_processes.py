"""Starting a program: what it is given, what it tells, and why it cannot be started."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from sortie.model import LOCAL, ProgramNotFound, TransportError
from sortie.transports import HOST_VARIABLES, Exit, Transport
from tests.contract.transport.launching import Launch, everything, program_of


async def test_output_of_both_pipes_and_the_status_are_told(
    transport: Transport, launch: Launch
) -> None:
    """All bytes come with the number of their pipe, unterminated last lines too."""
    command = launch.sh("printf one; printf two >&2; exit 7")

    async with transport.process(command) as process:
        read = await everything(process)
        exit_ = await process.wait()

    assert read == {1: b"one", 2: b"two"}
    assert exit_ == Exit(status=7)


async def test_a_death_by_signal_is_told_as_one(transport: Transport, launch: Launch) -> None:
    """A signal that we did not send is shown, and is not by us."""
    async with transport.process(launch.sh("kill -SEGV $$")) as process:
        await everything(process)
        exit_ = await process.wait()

    assert exit_ == Exit(signal=11)


async def test_the_environment_is_given_whole(transport: Transport, launch: Launch) -> None:
    """A program sees the command's environment and directory and nothing else of ours."""
    script = "import json, os; print(json.dumps([dict(os.environ), os.getcwd()]))"
    command = launch(sys.executable, "-c", script)

    async with transport.process(command) as process:
        read = await everything(process)

    given = {"PATH", "SORTIE_RUN_ID"}
    login = set() if transport.host == LOCAL else set(HOST_VARIABLES)
    shown, cwd = json.loads(read[1])
    # Python itself sets LC_CTYPE where there is no locale, and bubblewrap PWD.
    assert given <= set(shown) <= given | login | {"LC_CTYPE", "PWD"}
    assert {name: shown[name] for name in given} == dict(command.env)
    assert cwd == os.path.realpath(command.cwd)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows the pipe, fcntl enlarges it")
async def test_what_an_enlarged_pipe_still_holds_is_read(
    transport: Transport, launch: Launch, place: str
) -> None:
    """A program that has exited left half a megabyte in it, and a stranger holds it open."""
    size = 2**19
    script = (
        "import fcntl, os, time\n"
        f"fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, {size})\n"
        "print('ready', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        f"os.write(1, bytes({size}))\n"
    )

    async with transport.process(launch(sys.executable, "-c", script)) as process:
        output = process.output()
        assert await anext(output) == (1, b"ready\n")
        stdout = os.open(f"/proc/{await program_of(process)}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
        try:
            Path(place, "go").touch()
            await process.wait()
            exit_ = await process.end()
            read = sum([len(chunk) async for number, chunk in output if number == 1])
        finally:
            os.close(stdout)

    assert exit_ == Exit(status=0)
    assert read == size


async def test_stdin_is_given_in_full_and_closed(transport: Transport, launch: Launch) -> None:
    """A megabyte goes through a program that answers while it reads."""
    content = os.urandom(1 << 20)

    async with transport.process(launch("cat", stdin=content)) as process:
        read = await everything(process)

    assert read[1] == content


@pytest.mark.parametrize("given", [None, b"", b"known before"])
async def test_a_stdin_that_is_given_cannot_be_written(
    transport: Transport, launch: Launch, given: bytes | None
) -> None:
    """Where it came with the command, or is empty, there is nothing to write to."""
    async with transport.process(launch("cat", stdin=given)) as process:
        assert process.stdin is None
        assert (await everything(process))[1] == (given or b"")


@pytest.mark.parametrize("stdin", [None, b""])
async def test_no_stdin_is_an_empty_stdin(
    transport: Transport, launch: Launch, stdin: bytes | None
) -> None:
    """A program that reads its stdin comes to its end at once."""
    async with transport.process(launch("cat", stdin=stdin)) as process:
        assert await everything(process) == {1: b"", 2: b""}

        assert await process.wait() == Exit(status=0)


async def test_a_program_may_read_none_of_its_stdin(transport: Transport, launch: Launch) -> None:
    """A megabyte that nobody reads neither blocks nor breaks anything."""
    async with transport.process(launch.sh("echo done", stdin=bytes(1 << 20))) as process:
        read = await everything(process)
        exit_ = await process.wait()

    assert (read[1], exit_) == (b"done\n", Exit(status=0))


async def test_output_can_be_iterated_once(transport: Transport, launch: Launch) -> None:
    """A second reader is refused, as it would take chunks from the first."""
    async with transport.process(launch.sh("echo x")) as process:
        await everything(process)

        with pytest.raises(RuntimeError):
            process.output()


async def test_a_program_that_is_not_there_is_not_found(
    transport: Transport, launch: Launch, place: str
) -> None:
    """Missing, not executable, not a program, or a script without its interpreter."""
    plain = Path(place, "plain")
    plain.write_text("#!/bin/sh\n")
    orphan = Path(place, "orphan")
    orphan.write_text("#!/no/such/interpreter -x\n")
    orphan.chmod(0o755)
    noise = Path(place, "noise")
    noise.write_bytes(b"\x00\x01\x02\x03")
    noise.chmod(0o755)

    for program in ("no-such-program", "/no/such/program", str(plain), str(noise), place):
        with pytest.raises(ProgramNotFound, match=r"could not|no program"):
            async with transport.process(launch(program)):
                pass
    with pytest.raises(ProgramNotFound, match="/no/such/interpreter"):
        async with transport.process(launch(str(orphan))):
            pass


async def test_a_directory_that_is_not_there_is_no_missing_program(
    transport: Transport, launch: Launch, place: str
) -> None:
    """A bad working directory is told apart from a missing program."""
    Path(place, "file").touch()

    for cwd in (f"{place}/missing", f"{place}/file"):
        with pytest.raises(TransportError, match=cwd) as caught:
            async with transport.process(launch("true", cwd=cwd)):
                pass
        assert not isinstance(caught.value, ProgramNotFound)


@pytest.mark.parametrize("argument", ["x" * 200_000, "a\0b", "\ud800"])
async def test_an_argument_that_cannot_be_passed_is_a_transport_error(
    transport: Transport, launch: Launch, argument: str
) -> None:
    """Too long, with a NUL, or not Unicode: an error, not a crash, that does not repeat it."""
    with pytest.raises(TransportError) as caught:
        async with transport.process(launch("true", argument)):
            pass

    assert argument not in str(caught.value)


async def test_a_program_is_resolved_as_a_shell_does(transport: Transport, place: str) -> None:
    """The first executable on the path wins; directories and plain files are passed over."""
    for number, mode in enumerate((0o644, 0o755, 0o755)):
        folder = Path(place, str(number))
        folder.mkdir()
        Path(folder, "tool").touch(mode=mode)
        Path(folder, "tool").chmod(mode)
    Path(place, "3").mkdir()
    Path(place, "3", "tool").mkdir()
    path = ":".join(f"{place}/{n}" for n in (3, 0, 1, 2))

    found = await transport.resolve_program("tool", path)
    absolute = await transport.resolve_program(f"{place}/2/tool", path)

    assert (found, absolute) == (f"{place}/1/tool", f"{place}/2/tool")
    with pytest.raises(ProgramNotFound, match=f"{place}/3"):
        await transport.resolve_program("no-such-tool", path)
    with pytest.raises(ProgramNotFound):
        await transport.resolve_program("", path)
