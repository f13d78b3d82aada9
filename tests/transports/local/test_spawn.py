"""A program's start: in a thread, known from its first moment, and lost under no circumstances."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.model import ProcessIdentity
from sortie.resources.process_identity import identity_of
from sortie.transports import Command
from sortie.transports.local.spawn import spawn
from tests.descriptors import no_descriptor_stays_open

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

_CONTENT_CLASS, _ADD, _ASKED_BEFORE_EXEC, _HERE = 0x4, 0x1, 0x40000, -100  # fanotify(7)
_EVENT = struct.Struct("IBBHQii")


def command(*argv: str, cwd: str = "/") -> Command:
    return Command(argv=argv, cwd=cwd, env={"PATH": os.environ["PATH"]})


async def test_who_starts_a_program_is_told_of_it_in_the_thread_that_does(tmp_path: Path) -> None:
    """First the real path of its directory, while there is no process; then its pid."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    told: list[object] = []
    threads: set[int] = set()

    def take(said: object) -> None:
        told.append(said)
        threads.add(threading.get_ident())

    root, pipes = await spawn(
        command("true", cwd=str(tmp_path / "link")), located=take, started=take
    )
    await root.exited()
    root.reap()
    pipes.close()

    assert told == [str((tmp_path / "real").resolve()), root.pid]
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_program_that_cannot_be_taken_in_is_ended() -> None:
    """Where ``started`` raises, nothing runs, nothing is a zombie, and no descriptor stays open."""
    pids: list[int] = []

    def refuse(pid: int) -> None:
        pids.append(pid)
        raise PermissionError("not here")

    with no_descriptor_stays_open(), pytest.raises(PermissionError, match="not here"):
        await spawn(command("sleep", "60"), started=refuse)

    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], os.WNOHANG)


async def test_a_program_that_proc_hides_at_first_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one does until it may be traced, under a unit with ProtectProc=invisible."""
    looks: list[int] = []

    def hidden_at_first(pid: int) -> ProcessIdentity:
        looks.append(pid)
        if len(looks) < 4:
            raise FileNotFoundError(f"/proc/{pid}/stat")
        return identity_of(pid)

    monkeypatch.setattr("sortie.transports.local.spawn.identity_of", hidden_at_first)
    root, pipes = await spawn(command("true"))
    await root.exited()
    root.reap()
    pipes.close()

    assert looks == [root.pid] * 4


async def test_several_tasks_wait_for_one_exit() -> None:
    """One of them waits for all, and where it is cancelled another one does."""
    root, pipes = await spawn(command("sleep", "60"))
    first = trio.CancelScope()
    over: list[int | None] = []

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            over.append((await root.exited()).signal)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, first)
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(3):
                nursery.start_soon(wait, trio.CancelScope())
            await trio.testing.wait_all_tasks_blocked()
            first.cancel()
            await trio.testing.wait_all_tasks_blocked()
            os.kill(root.pid, 9)
    root.reap()
    pipes.close()

    assert over == [9, 9, 9]


@contextmanager
def answered_late(program: Path) -> Iterator[threading.Event]:
    """Have the kernel ask before a program is executed, and answer once the event is set."""
    libc = ctypes.CDLL(None, use_errno=True)
    group = libc.fanotify_init(_CONTENT_CLASS, os.O_RDONLY | os.O_CLOEXEC)
    event = ctypes.c_uint64(_ASKED_BEFORE_EXEC)
    if group < 0 or libc.fanotify_mark(group, _ADD, event, _HERE, os.fsencode(program)) < 0:
        with suppress(OSError):
            os.close(group)
        pytest.skip("the kernel lets nobody here watch what is executed")
    answer = threading.Event()

    def serve() -> None:
        asked = os.read(group, 4096)
        answer.wait(30)
        fd = _EVENT.unpack_from(asked)[5]
        os.write(group, struct.pack("iI", fd, 1))
        os.close(fd)

    server = threading.Thread(target=serve)
    server.start()
    try:
        yield answer
    finally:
        answer.set()
        server.join(30)
        os.close(group)


@pytest.mark.skipif(
    sys.version_info < (3, 11, 4), reason="Python keeps its lock until the program is executed"
)
async def test_a_program_on_a_file_system_that_hangs_holds_up_nobody_else(tmp_path: Path) -> None:
    """While the kernel does not execute it, other programs start, and end."""
    program = tmp_path / "hangs"
    true = shutil.which("true")
    assert true is not None
    shutil.copy(true, program)
    order: list[str] = []

    async def run(name: str) -> None:
        root, pipes = await spawn(command(name))
        await root.exited()
        root.reap()
        pipes.close()
        order.append(name)

    with answered_late(program) as answer, trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, str(program))
            await trio.sleep(0)
            before = time.monotonic()
            await run("true")
            took = time.monotonic() - before
            answer.set()

    assert order == ["true", str(program)]
    assert took < 30
    assert subprocess.run([program], check=True).returncode == 0
