"""Bubblewrap on a host: what programs there are shown, who gets SIGTERM, and what is refused."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
import trio

from sortie.config.settings import Isolation
from sortie.model import ProgramNotFound, TransportError
from sortie.transports import Command, Exit
from sortie.transports.remote import questions
from sortie.transports.remote.namespaces import WAYS
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.walls.bubblewrap import find_paths, surroundings
from sortie.transports.walls.enclosure import Enclosure, Surroundings, arguments, view_of
from sortie.transports.walls.remote_bubblewrap import RemoteBubblewrapTransport
from sortie.transports.walls.wrapper import WrapperTransport
from tests.contract.transport.launching import program_of
from tests.run_ids import own_run_id
from tests.transports.endings import requires_namespaces
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.pipes import Logins

pytestmark = [requires_namespaces, requires_bubblewrap]
SHELLS = ["dash", "bash", "busybox"]


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    return Logins(tmp_path, TMPDIR=str(tmp_path))


def walled(
    logins: Logins, isolation: Isolation = Isolation.AUTO, **inside: object
) -> RemoteBubblewrapTransport:
    host = ShellTransport("h", logins.connections, isolation=isolation)
    return RemoteBubblewrapTransport(host, Enclosure(**inside))  # type: ignore[arg-type]


def sh(script: str, place: Path, *, grace: float = 5.0, **env: str) -> Command:
    return Command(
        argv=("sh", "-c", script),
        cwd=str(place),
        env={"SORTIE_RUN_ID": own_run_id(f"run-{place.name}"), **env},
        grace=grace,
    )


async def said_by(wall: RemoteBubblewrapTransport, command: Command) -> tuple[str, Exit]:
    async with wall.process(command) as process:
        said = b"".join([chunk async for _, chunk in process.output()])
        return said.decode(), await process.wait()


def script_of(path: Path, first_line: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", SHELLS)
async def test_a_host_tells_what_this_machine_would(tmp_path: Path, name: str) -> None:
    """Whatever stands as /bin/sh: the same directories, interpreters, links and hidden files."""
    if (shell := shutil.which(name)) is None:
        pytest.skip(f"no {name}")
    (tmp_path / "sh").symlink_to(shell)
    real = tmp_path / "a place" / "ws"
    real.mkdir(parents=True)
    (tmp_path / "ws").symlink_to(real)
    home = tmp_path / "home"
    home.mkdir()
    inner = script_of(tmp_path / "tool one" / "bin" / "inner", "#!/bin/sh")
    outer = script_of(tmp_path / "tools" / "outer", "#!/usr/bin/env inner")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "agent").symlink_to(outer)
    (home / "shown" / "hidden").mkdir(parents=True)
    (home / "shown" / "key").touch()
    (home / "also").symlink_to(home / "shown")
    env = {"PATH": f"{tmp_path}/links:{inner.parent}:{os.environ['PATH']}", "HOME": str(home)}
    command = Command(argv=(f"{tmp_path}/links/agent",), cwd=str(tmp_path / "ws"), env=env)
    enclosure = Enclosure(
        read=("~/shown", "~/also", "~/no such"),
        own=("~/.own/below",),
        hide=("~/shown/key", "~/shown/hidden", "~/shown/absent"),
    )
    found = surroundings(command)
    view = view_of(enclosure, found)
    here = list(arguments(found, view, find_paths(view), has_network=True))
    shutil.rmtree(home / ".own")

    logins = Logins(tmp_path, sh=str(tmp_path / "sh"))
    host = ShellTransport("h", logins.connections, isolation=Isolation.AUTO)
    there = await RemoteBubblewrapTransport(host, enclosure).wrapped(command)

    assert found.installations == tuple(
        str(tmp_path / name) for name in ("links", "tools", "tool one")
    )
    assert " ".join(here) in " ".join(there.argv)
    assert here.count(str(home / "also" / "key")) == 1
    assert (home / ".own/below").stat().st_mode & 0o777 == 0o700
    await logins.quiet()


async def test_what_is_shown_by_two_names_is_hidden_under_both(tmp_path: Path) -> None:
    """A link to a directory shows what is hidden in it, too."""
    found = Surroundings(workspace="/w", home="/h", real_home="/h", is_root=False)
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "key").write_text("secret")
    (tmp_path / "link").symlink_to(shown)
    enclosure = Enclosure(read=(str(tmp_path / "link"),), hide=(str(shown / "key"),))
    view = view_of(enclosure, found)
    words = list(arguments(found, view, find_paths(view), has_network=True))

    at = words.index(str(tmp_path / "link" / "key"))
    assert words[at - 2 : at] == ["--ro-bind", "/dev/null"]


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("/h/bin/agent", "/h/bin"),
        ("/h/tool/bin/agent", "/h/tool"),
        ("/h/.local/bin/agent", "/h/.local/bin"),
        ("/h/lib/node_modules/agent/cli.js", "/h/lib/node_modules"),
        ("/h/node/lib/node_modules/agent/cli.js", "/h/node"),
        ("/srv/bin/agent", "/srv/bin"),
        ("/srv/agent", "/srv/agent"),
        ("/h/agent", "/h/agent"),
        ("/data/agent", "/data"),
        ("/bin/agent", None),
    ],
)
def test_an_installation_is_not_the_home_around_it(program: str, shown: str | None) -> None:
    """Nor all other workspaces: what lies beside a ``bin`` belongs to it only where it is its
    own."""
    found = Surroundings(
        workspace="/srv/ws", home="/h", real_home="/r", is_root=False, started=(program,)
    )

    assert found.installations == (() if shown is None else (shown,))


async def test_files_are_as_they_are_on_this_machine(logins: Logins, tmp_path: Path) -> None:
    """The workspace can be written, the home is empty, and the login's TMPDIR is not there."""
    (tmp_path / "secret").write_text("canary")
    place = tmp_path / "ws"
    place.mkdir()
    script = f"cat {tmp_path}/secret 2>&1; echo ${{TMPDIR-none}}; ls -A ~; touch made; pwd"

    said, exit_ = await said_by(walled(logins), sh(script, place))

    assert said.splitlines()[-3:] == ["none", "ws", str(place)]
    assert "canary" not in said
    assert exit_ == Exit(status=0)
    assert (place / "made").exists()
    await logins.quiet()


async def test_a_program_that_cannot_be_started_is_told(logins: Logins, tmp_path: Path) -> None:
    """Before bubblewrap runs, with the name of what is missing."""
    orphan = script_of(tmp_path / "orphan", "#!/no/such/interpreter")
    for program, told in (
        ("no-such-program", "could not find the program 'no-such-program'"),
        (str(orphan), "its interpreter /no/such/interpreter does not exist"),
    ):
        command = Command(argv=(program,), cwd=str(tmp_path), env={})
        with pytest.raises(ProgramNotFound, match=told):
            async with walled(logins).process(command):
                raise AssertionError("it was started")
    await logins.quiet()


async def test_a_directory_that_is_not_there_is_told(logins: Logins, tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="the directory has to exist"):
        async with walled(logins).process(sh("true", tmp_path / "absent")):
            raise AssertionError("it was started")


async def test_a_host_without_bubblewrap_is_told(tmp_path: Path) -> None:
    """Nothing starts outside of it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for directory in ("/bin", "/usr/bin"):
        for name in os.listdir(directory):
            if name != "bwrap" and not (programs / name).exists():
                (programs / name).symlink_to(f"{directory}/{name}")
    logins = Logins(tmp_path, PATH=str(programs))

    with pytest.raises(TransportError, match=r"'bwrap'.*install bubblewrap"):
        await walled(logins).check()


async def test_without_a_namespace_there_is_none(logins: Logins, tmp_path: Path) -> None:
    """Its programs could not be ended past it."""
    with pytest.raises(TransportError, match="needs a PID namespace"):
        await walled(logins, Isolation.NONE).check()


async def test_a_wall_that_works_is_tried_once(logins: Logins) -> None:
    wall = walled(logins, has_network=False)

    await wall.check()
    tried = len(logins.commands)
    await wall.check()

    assert len(logins.commands) == tried
    await logins.quiet()


@pytest.mark.parametrize("name", WAYS)
async def test_it_starts_in_a_namespace_of_every_kind(
    logins: Logins, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where bubblewrap itself has made it."""
    monkeypatch.setattr(questions, "WAYS", {name: WAYS[name]})
    wall = walled(logins)
    found = await wall.outside.isolation()  # type: ignore[attr-defined]
    if not found[0]:
        pytest.skip(found[1])

    said, exit_ = await said_by(wall, sh("echo inside; kill -TERM $$", tmp_path))

    assert (said, exit_) == ("inside\n", Exit(signal=15))
    await logins.quiet()


@pytest.mark.skipif(sys.platform != "linux", reason="a network of its own")
async def test_it_reaches_no_network(logins: Logins, tmp_path: Path) -> None:
    said, _ = await said_by(
        walled(logins, has_network=False), sh("tail -n +3 /proc/net/dev | cut -d: -f1", tmp_path)
    )

    assert said.split() == ["lo"]


async def test_the_program_gets_sigterm_and_what_surrounds_it_does_not(
    logins: Logins, tmp_path: Path
) -> None:
    """By the end of its process, and by a sweep while it is under way: it tidies up."""
    script = "trap 'sleep 0.2; echo tidied; exit 5' TERM; echo ready; while :; do sleep 0.02; done"
    wall = walled(logins)

    async def swept() -> None:
        await wall.sweep([own_run_id(f"run-{tmp_path.name}")], grace=30.0)

    said, exits = [], []
    for by_sweep in (False, True):
        async with wall.process(sh(script, tmp_path)) as process:
            output = process.output()
            assert await anext(output) == (1, b"ready\n")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(swept if by_sweep else process.end)
                said.append(b"".join([chunk async for number, chunk in output if number == 1]))
            exits.append(await process.wait())

    assert said == [b"tidied\n"] * 2
    assert exits == [Exit(status=5, by_us=True), Exit(status=5)]
    await logins.quiet()


async def test_who_lives_in_a_workspace_is_found_inside(logins: Logins, tmp_path: Path) -> None:
    """Though a program there has mounts of its own, from which no way leads to ours."""
    wall = walled(logins)
    async with wall.process(sh("echo ready; exec sleep 1000", tmp_path)) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        pid = await program_of(process)

        assert pid in await wall.occupied(str(tmp_path))
    await logins.quiet()


async def test_a_wrapper_starts_programs_on_a_host(logins: Logins, tmp_path: Path) -> None:
    """It is a program of the host, looked for on the PATH of its login."""
    script_of(tmp_path / "wall", '#!/bin/sh\necho "$1"\nshift\nexec "$@"')
    logins.env = {**logins.env, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    host = ShellTransport("h", logins.connections, isolation=Isolation.AUTO)
    wall = WrapperTransport(host, ("wall", "--option"))

    await wall.check()
    async with wall.process(sh("echo inside; exit 3", tmp_path)) as process:
        said = b"".join([chunk async for _, chunk in process.output()])
        exit_ = await process.wait()
    with pytest.raises(ProgramNotFound):
        await WrapperTransport(host, ("no-such-wall",)).check()

    assert (said, exit_) == (b"--option\ninside\n", Exit(status=3))
    await logins.quiet()
