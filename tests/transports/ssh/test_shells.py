"""Every byte arrives, whichever shell logs in and whatever it says meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from pathlib import Path

import pytest

from sortie.model import TransportError
from sortie.transports import HOST_VARIABLES, Command, Exit
from sortie.transports.remote.transport import ShellTransport
from tests.run_ids import own_run_id
from tests.transports.leftovers import is_alive
from tests.transports.ssh.pipes import Logins

SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name}"))
    for name in ("sh", "dash", "bash", "zsh", "fish")
]
EVERY_BYTE = os.fsdecode(bytes(range(1, 256)))
NASTY = [
    EVERY_BYTE,
    "",
    "-n",
    "--",
    "a'b\"c`id`$(id)${HOME}$$\\",
    "line\nline\n\n",
    " lead and trail ",
    "*?[a-z]~!#;&|<>",
    "\\'\\\\''",
    "naïve ☃",
    os.fsdecode(b"\xff\xfe bad utf-8 \xc3"),
]
SHOW = (
    "import json, os, sys;"
    "sys.stdout.buffer.write(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode())"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give a login's home whose files of every shell are noisy."""
    noise = "echo noise; echo noise without end >&2; printf 'no newline'; printf '\\001half' >&2\n"
    fish = tmp_path / ".config" / "fish"
    fish.mkdir(parents=True)
    for name in (".zshenv", ".bashrc", "env"):
        (tmp_path / name).write_text(noise)
    (fish / "config.fish").write_text(noise)
    return tmp_path


def logins(home: Path, shell: str, sh: str = "/bin/sh") -> Logins:
    return Logins(home, (shell,), sh, BASH_ENV=str(home / "env"), ENV=str(home / "env"))


async def show(host: Logins, command: Command) -> tuple[list[str], dict[str, str], str]:
    """Return the arguments, environment and directory that a program has on a host."""
    read = {1: b"", 2: b""}
    async with ShellTransport("h", host.connections).process(command) as process:
        async for number, chunk in process.output():
            read[number] += chunk
        assert await process.wait() == Exit(status=0)
    assert read[2] == b""
    arguments, environ, cwd = json.loads(read[1])
    return arguments, environ, cwd


def command(cwd: Path, *arguments: str, **env: str) -> Command:
    env = {"SORTIE_RUN_ID": str(uuid.uuid4()), **env}
    return Command(argv=(sys.executable, "-c", SHOW, *arguments), cwd=str(cwd), env=env)


@pytest.mark.parametrize("shell", SHELLS)
async def test_every_byte_arrives_through_every_login_shell(shell: str, home: Path) -> None:
    """Arguments, variables and the directory come through unchanged, the noise does not."""
    host = logins(home, shell)
    place = home / NASTY[0].replace("/", "")[:200] / "-x"
    place.mkdir(parents=True)
    given = {f"NASTY_{n}": value for n, value in enumerate(NASTY)}

    arguments, environ, cwd = await show(host, command(place, *NASTY, **given))

    assert arguments == NASTY
    assert {name: environ[name] for name in given} == given
    assert cwd == str(place)
    await host.quiet()


@pytest.fixture(params=["dash", "bash", "busybox"])
def host(request: pytest.FixtureRequest, home: Path) -> Logins:
    """Give a host whose /bin/sh is one of those that there are."""
    if not (found := shutil.which(request.param)):
        pytest.skip(f"no {request.param}")
    (home / "sh").symlink_to(found)
    return logins(home, "bash", str(home / "sh"))


async def test_the_wrapper_runs_in_every_sh(host: Logins, home: Path) -> None:
    """What stands as /bin/sh may be dash, bash or busybox."""
    arguments, _, _ = await show(host, command(home, *NASTY))

    assert arguments == NASTY
    await host.quiet()


async def test_the_watchdog_runs_in_every_sh(host: Logins, home: Path) -> None:
    """What has left its parent and its session is ended, and nobody has to ask for it."""
    script = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; exit 3"
    given = Command(argv=("sh", "-c", script), cwd=str(home), env={"PATH": os.environ["PATH"]})

    async with ShellTransport("h", host.connections).process(given) as process:
        said = b"".join([chunk async for number, chunk in process.output() if number == 1])
        assert await process.wait() == Exit(status=3)

    assert not is_alive(int(said))
    assert len(host.commands) == 1
    await host.quiet()


async def test_questions_are_answered_in_every_sh(host: Logins, home: Path) -> None:
    """Files are written, read and removed, and refused with the reason."""
    transport, root = ShellTransport("h", host.connections), str(home / "root")

    path, new = await transport.files.make_directory(root, "KEY")
    await transport.files.write_file(path, "a/b", EVERY_BYTE.encode("utf-8", "surrogateescape"))
    inside = await transport.files.contained(root, path)
    content = await transport.files.read_file(path, "a/b", 1000)
    absent = await transport.files.read_file(path, "a/c", 1000)
    with pytest.raises(TransportError, match="no regular file"):
        await transport.files.read_file(path, "a", 1000)
    lives = await transport.occupied(path)
    removed = await transport.files.remove_directory(root, "KEY")

    assert (new, inside, absent, lives, removed) == (True, True, None, [], True)
    assert content == bytes(range(1, 256))
    await host.quiet()


async def test_a_program_gets_its_variables_and_the_hosts_few(home: Path) -> None:
    """What the login has else is taken away; what the command names wins."""
    host = Logins(home, TZ="UTC", LANG="C", SECRET="x", SORTIE_RUN_ID="other", IFS="x", PS4="$(id)")
    given = command(home, LANG="C.UTF-8", UID="7", OPTIND="3")

    _, environ, _ = await show(host, given)

    assert {k: environ.get(k) for k in given.env} == given.env
    assert set(environ) - set(given.env) <= {*HOST_VARIABLES}
    assert (environ["TZ"], environ["HOME"]) == ("UTC", str(home))


async def test_nothing_but_the_shell_stands_in_a_command_line(home: Path) -> None:
    """Who lists the host's processes sees no variable of a program."""
    host = Logins(home)
    script = "cat /proc/[0-9]*/cmdline"
    secret = f"secret-{uuid.uuid4()}"
    given = Command(argv=("sh", "-c", script), cwd=str(home), env={"KEY": secret})

    async with ShellTransport("h", host.connections).process(given) as process:
        seen = b"".join([chunk async for _, chunk in process.output()]).decode("utf-8", "replace")

    assert host.commands == ["exec /bin/sh"]
    assert "/proc/[0-9]*/cmdline" in seen
    assert secret not in seen


async def test_inline_delivery_is_a_plain_command_line(home: Path) -> None:
    """Variables and arguments are quoted in the line; the command is a piece of shell."""
    (home / "a dir").mkdir()
    host = Logins(home)
    given = Command(
        argv=(f"TWO=2 nice -n 1 '{sys.executable}'", "-c", SHOW, "it's"),
        cwd=str(home / "a dir"),
        env={"KIRO_API_KEY": "k'ey", "SORTIE_RUN_ID": own_run_id("i")},
        stdin=b"said",
    )
    transport = ShellTransport("h", host.connections, delivery="inline")

    async with transport.process(given) as process:
        said = b"".join([chunk async for _, chunk in process.output()])
        exit_ = await process.wait()

    arguments, environ, cwd = json.loads(said)
    assert (exit_, arguments, cwd) == (Exit(status=0), ["it's"], given.cwd)
    assert (environ["KIRO_API_KEY"], environ["TWO"]) == ("k'ey", "2")
    assert "KIRO_API_KEY=" in host.commands[0]
    assert await transport.resolve_program("any piece of 'shell'") == "any piece of 'shell'"
    await host.quiet()


@pytest.mark.parametrize("shell", SHELLS)
async def test_every_byte_arrives_inline_through_every_login_shell(shell: str, home: Path) -> None:
    """Quotes and backslashes too, which not every shell takes in the same way."""
    host = logins(home, shell)
    words = ["it's", "a\\b", "a\\\\b", "x\\", "\\'", "$(id)", "new\nline"]
    given = Command(argv=("printf '[%s]'", *words), cwd=str(home), env={"KEY": "it's\\"})

    transport = ShellTransport("h", host.connections, delivery="inline")
    async with transport.process(given) as process:
        said = b"".join([chunk async for number, chunk in process.output() if number == 1])

    assert said.decode() == "".join(f"[{word}]" for word in words)


async def test_an_inline_command_has_to_fit_a_line() -> None:
    """What is too long or no UTF-8 is refused with the way out."""
    transport = ShellTransport("h", Logins(Path("/")).connections, delivery="inline")

    for argument in ("x" * 130_000, "\udcff"):
        with pytest.raises(TransportError, match="ssh_secret_delivery"):
            async with transport.process(Command(argv=("true", argument), cwd="/", env={})):
                pass
