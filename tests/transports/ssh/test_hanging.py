"""Logins that hang, end, or repeat what they are given, and hosts without room for a process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import trio
from msgspec.structs import replace

from sortie.model import HostError, HostTrouble, RunId, TransportError
from sortie.transports import Command, Process
from sortie.transports.remote import process as process_module
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.protocol import ScriptOutput
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh import connection_pool as pool_module
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.leftovers import is_alive
from tests.transports.ssh.pipes import Logins, PipeChannel
from tests.transports.ssh.raw import open_raw, running
from tests.transports.ssh.sshd import Sshd, requires_sshd, until

PATIENCE = 60.0
QUICK = Bounds(handshake=0.3)
SECRET, PLAIN = "sk-'0123456789", "tk-0123456789"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the host's /proc is looked at")

Use = Callable[[ShellTransport], Awaitable[object]]


def a_command(*argv: str, cwd: str = "/", **env: str) -> Command:
    given = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": str(uuid.uuid4()), **env}
    return Command(argv=argv, cwd=cwd, env=given, grace=0.3)


async def start(transport: ShellTransport) -> None:
    async with transport.process(a_command("true", KEY=SECRET, PLAIN=PLAIN)):
        pass


async def sweep(transport: ShellTransport) -> None:
    await transport.sweep([RunId("run")], grace=0.0)


async def find(transport: ShellTransport) -> None:
    await transport.resolve_program("kiro-cli")


async def look(transport: ShellTransport) -> None:
    await transport.files.contained("/", "/tmp")


USES = [pytest.param(use, id=use.__name__) for use in (start, sweep, find, look)]


@pytest.mark.parametrize("use", USES)
async def test_a_login_that_hangs_is_the_hosts_trouble(tmp_path: Path, use: Use) -> None:
    """Whatever the host is asked for, its shell has the time of the handshake to begin."""
    os.mkfifo(tmp_path / "never")
    logins = Logins(tmp_path, ("sh", "-c", "read x <never; exit 1", "x"))
    transport = ShellTransport("h", logins.connections, bounds=QUICK)

    refused = pytest.raises(HostError, match=r"did not answer in 0\.3 s.*read_timeout_ms")
    with trio.fail_after(PATIENCE), refused as caught:
        await use(transport)
    async with await trio.open_file(tmp_path / "never", "w") as fifo:
        await fifo.write("go on\n")
    await logins.quiet()

    assert caught.value.trouble is HostTrouble.UNREACHABLE


@pytest.mark.parametrize("use", [pytest.param(use, id=use.__name__) for use in (sweep, find, look)])
async def test_a_login_that_ends_is_the_hosts_trouble(tmp_path: Path, use: Use) -> None:
    """What it says is told; a program is not missing because nobody looked for it."""
    script = "echo 'fork: Resource temporarily unavailable' >&2; exit 254"
    logins = Logins(tmp_path, ("sh", "-c", script, "x"))

    with pytest.raises(HostError, match="254") as caught:
        await use(ShellTransport("h", logins.connections))

    assert caught.value.trouble is HostTrouble.UNREACHABLE


async def test_a_shell_that_takes_no_stdin_is_the_hosts_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt that is larger than what its pipe holds is not sent for ever."""
    for bound in ("KILL_BOUND", "FINISH_BOUND", "_ROUND_TRIP"):
        monkeypatch.setattr(process_module, bound, 0.1)
    monkeypatch.setattr("sortie.transports.remote.forced_end.FINISH_BOUND", 0.1)
    script = (
        "import os, re, time\n"
        "read = b''\n"
        "while (found := re.search(rb\"nonce='([^']*)'\", read)) is None:\n"
        "    read += os.read(0, 65536)\n"
        "for word in (b'here 1 - ', b'send'):\n"
        "    os.write(1, b'\\1' + found[1] + b' ' + word + b'\\n')\n"
        "time.sleep(1000)\n"
    )
    logins = Logins(tmp_path, (sys.executable, "-c", script))
    transport = ShellTransport("h", logins.connections, bounds=Bounds(start=0.3))
    given = replace(a_command("cat"), stdin=bytes(8 << 20))

    with trio.fail_after(PATIENCE), pytest.raises(HostError) as caught:
        async with transport.process(given):
            pass
    for entry in logins.running():
        os.kill(int(entry.split()[0]), signal.SIGKILL)

    assert "did not start" in str(caught.value.__context__)


async def test_a_slow_login_is_waited_for(tmp_path: Path) -> None:
    """The handshake bounds its beginning, not what it then takes."""
    mkdir = tmp_path / "mkdir"
    mkdir.write_text(f'#!/bin/sh\nsleep 5; exec {shutil.which("mkdir")} "$@"\n')
    mkdir.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    logins = Logins(tmp_path, ("sh", "-c", "sleep 0.1; exec /bin/sh", "x"), PATH=path)
    transport = ShellTransport("h", logins.connections, bounds=Bounds(handshake=4.0))

    _, new = await transport.files.make_directory(str(tmp_path / "root"), "KEY")

    assert new


@pytest.mark.parametrize(
    "login",
    [
        'while IFS= read -t 0.5 -r line; do echo "unknown command: $line" >&2; done',
        "head -c 400 >/dev/null; timeout 0.5 cat >&2",
        "timeout 0.5 cat | tail -c 300 >&2",
        "timeout 0.5 cat | sed -n \"s/^export PLAIN='\\(.*\\)'/\\1/p\" >&2",
        "timeout 0.5 cat | sed s/6789.*// >&2",
        "timeout 0.5 cat >&2",
    ],
)
async def test_a_login_that_repeats_what_it_is_given_shows_no_secret(
    tmp_path: Path, login: str
) -> None:
    """What it says is told, but for what is secret in our script."""
    logins = Logins(tmp_path, ("bash", "-c", f"echo welcome >&2; {login}; exit 1", "x"))

    with pytest.raises(TransportError, match="ended without starting it") as caught:
        await start(ShellTransport("h", logins.connections))

    assert "012345" not in str(caught.value)


@pytest.mark.parametrize(
    "login",
    [
        'echo "$OUT, once more $OUT; and $LONG" >&2',
        'timeout 0.5 cat | sed -n "s/^export KEY=\\(.*\\)/\\1 \\1/p" >&2',
        "N=$(timeout 0.5 cat | sed -n \"s/^nonce='\\(.*\\)'/\\1/p\");"
        " printf '\\001%s here 1 -\\n' \"$N\";"
        ' printf \'\\001%s missing no %s, %s nor %s\\n\' "$N" "$OUT" "$OUT" "$LONG"',
    ],
)
async def test_a_secret_is_struck_wherever_it_is_repeated(tmp_path: Path, login: str) -> None:
    """Each time, in whatever the host says, and where one secret begins with another."""
    long = PLAIN + "-and-more"
    shell = ("bash", "-c", f"{login}; exit 1", "x")
    transport = ShellTransport("h", Logins(tmp_path, shell, OUT=PLAIN, LONG=long).connections)

    with pytest.raises(TransportError) as caught:
        async with transport.process(a_command("true", KEY=SECRET, PLAIN=PLAIN, LONG=long)):
            pass

    assert "[...]" in str(caught.value)
    assert "012345" not in str(caught.value)
    assert "and-more" not in str(caught.value)


async def test_the_program_cannot_speak_for_its_watchdog(tmp_path: Path) -> None:
    """What the watchdog's last word begins with stands nowhere that others can list."""
    logins = Logins(tmp_path)
    nonce = f"sortie-{uuid.uuid4()}"
    transport = ShellTransport("h", logins.connections, new_nonce=lambda: nonce)
    script = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ"

    async with transport.process(a_command("sh", "-c", script)) as process:
        seen = b"".join([chunk async for _, chunk in process.output()])
    await logins.quiet()

    assert b"/bin/sh\0-s" in seen
    assert nonce.encode() not in seen


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become a user with limits of its own")
async def test_a_host_without_room_for_a_process_keeps_nobody(tmp_path: Path) -> None:
    """A watchdog that cannot start its tools ends the program by itself."""
    for above in (tmp_path, *tmp_path.parents):
        if above.owner() == "root" and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o055)
    user = ("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups")
    logins = Logins(tmp_path, (*user, "sh"))
    transport = ShellTransport("h", logins.connections, bounds=Bounds(beat=0.2, lease=3.0))
    script = "sleep 1000 & echo $!; exec sleep 1000"

    with pytest.raises(HostError) as caught:
        async with transport.process(a_command("sh", "-c", script)) as process:
            child = int((await anext(process.output()))[1])
            limit = ("prlimit", "--nproc=1:1", "--pid", str(watchdog_of(process)))
            subprocess.run([*user, *limit], check=True)
            await until(lambda: not is_alive(process.identity.pid) and not is_alive(child))
            logins.shell = ("false",)

    assert caught.value.trouble is HostTrouble.DROPPED


def watchdog_of(process: Process) -> int:
    """Return the pid of a program's watchdog, which has the program's among its arguments."""
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.cmdline()[:4] == ["/bin/sh", "-s", "--", str(process.identity.pid)]:
                return one.pid
    raise AssertionError("there is no watchdog")


class Refusing(Logins):
    """A host that lets us in once."""

    async def open(self, command: str, text: bytes, parser: ScriptOutput) -> PipeChannel:
        """See Logins."""
        if self.commands:
            raise HostError(HostTrouble.UNREACHABLE, "no route to the host")
        return await super().open(command, text, parser)


async def test_a_program_that_was_started_is_not_taken_for_one_that_was_not(
    tmp_path: Path,
) -> None:
    """Where the host cannot be asked any more, the program may live: as after a lost link."""
    logins = Refusing(tmp_path)
    transport = ShellTransport("h", logins.connections)

    with pytest.raises(HostError, match="no route to the host") as caught:
        async with transport.process(a_command("sleep", "1000")) as process:
            os.kill(watchdog_of(process), signal.SIGKILL)
    psutil.Process(process.identity.pid).kill()
    await logins.quiet()

    assert caught.value.trouble is HostTrouble.DROPPED


@requires_sshd
async def test_a_host_without_room_for_a_session_is_not_waited_for_for_ever(
    sshd: Sshd, thread: AsyncioThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions that hang keep their place; who waits behind them is told what to look for."""
    monkeypatch.setattr(pool_module, "_MOST_CONNECTIONS", 1)
    monkeypatch.setattr(pool_module, "ROOM_BOUND", 0.5)
    sshd.stop()
    sshd.options["MaxSessions"] = 1
    sshd.start()
    connections = ConnectionPool(sshd.host, sshd.settings, thread)

    async with running(connections, "exec cat"):
        with pytest.raises(HostError, match=r"no room for another session.*MaxSessions"):
            await open_raw(connections, "true")
    await connections.aclose()


@requires_sshd
@pytest.mark.skipif(os.geteuid() == 0, reason="sshd passes no signals on to root's programs")
async def test_a_login_that_hangs_is_killed(sshd: Sshd, thread: AsyncioThread) -> None:
    """Or it would keep its session for as long as it hangs."""
    (sshd.home / ".bashrc").write_text("sleep 1000\n")
    connections = ConnectionPool(sshd.host, sshd.settings, thread)

    with pytest.raises(HostError):
        await start(ShellTransport("h", connections, bounds=QUICK))
    await until(lambda: not sshd.running())
    await connections.aclose()


@requires_sshd
@pytest.mark.parametrize("name", ["build..1", "b" * 70])
async def test_a_name_that_no_resolver_takes_is_the_hosts_trouble(
    sshd: Sshd, thread: AsyncioThread, name: str
) -> None:
    """The encoder's complaint is passed on with the setting to look at."""
    connections = ConnectionPool(name, sshd.settings, thread)

    with pytest.raises(HostError, match=r"could not reach host.*worker\.ssh_hosts"):
        await open_raw(connections, "true")
    await connections.aclose()
