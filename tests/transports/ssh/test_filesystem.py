"""What places on a remote host keep beyond the port's contract."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from sortie.model import TransportError
from sortie.transports.remote.transport import ShellTransport
from tests.transports.ssh.pipes import Logins

NASTY = 'it\'s $(id) `x` "q" \\ *\n-n é ' + os.fsdecode(b"\xff")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[ShellTransport]:
    """Give a host whose home is ``tmp_path``; nothing of its logins may be left."""
    logins = Logins(tmp_path)
    yield ShellTransport("h", logins.connections)
    await logins.quiet()


async def test_a_tilde_is_the_hosts(host: ShellTransport, tmp_path: Path) -> None:
    """``~`` is the home of the login there, wherever a path is given."""
    path, created = await host.files.make_directory("~/work/root/", "KEY-1")
    await host.files.write_file("~/work/root/KEY-1", "a/file", b"x")

    assert (path, created) == (f"{tmp_path}/work/root/KEY-1", True)
    assert await host.files.contained("~/work/root", path)
    assert await host.files.contained("~", "~/work")
    assert await host.files.read_file("~/work/root/KEY-1", "a/file", 10) == b"x"
    assert list(await host.occupied("~")) == []
    assert await host.files.remove_directory("~/work/root", "KEY-1")


async def test_the_home_of_another_user_is_the_hosts_to_know(host: ShellTransport) -> None:
    """``~user`` is what the host has for that user; nobody's home is an error."""
    assert await host.files.contained("/", "~root") is os.access("/root", os.X_OK)
    with pytest.raises(TransportError, match="no such home"):
        await host.files.make_directory("~no-such-user-here/root", "KEY-1")
    with pytest.raises(TransportError, match="absolute"):
        await host.files.make_directory("~$(id)/root", "KEY-1")


async def test_names_and_contents_are_bytes(host: ShellTransport, tmp_path: Path) -> None:
    """No name and no content means anything to the host's shell."""
    content = bytes(range(256)) * 40

    path, _ = await host.files.make_directory(str(tmp_path / NASTY), NASTY)
    await host.files.write_file(path, f"{NASTY}/{NASTY}", content)

    assert path == str(tmp_path / NASTY / NASTY)
    assert await host.files.read_file(path, f"{NASTY}/{NASTY}", len(content) + 1) == content
    assert await host.files.contained(str(tmp_path / NASTY), path)
    await host.files.remove_file(path, f"{NASTY}/{NASTY}")
    assert await host.files.remove_directory(str(tmp_path / NASTY), NASTY)
    assert os.listdir(tmp_path / NASTY) == []


async def test_a_file_is_private_and_whole(host: ShellTransport, tmp_path: Path) -> None:
    """Files and their directories are ours alone, and nothing else is left beside them."""
    await host.files.write_file(str(tmp_path), "new/file", b"")

    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "file").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "new") == ["file"]


async def test_a_link_to_a_directory_is_replaced_and_not_entered(
    host: ShellTransport, tmp_path: Path
) -> None:
    """Writing over a link replaces the link, also where it leads to a directory."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "link").symlink_to("outside")

    await host.files.write_file(str(tmp_path), "link", b"mine")

    assert (tmp_path / "link").read_bytes() == b"mine"
    assert not (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "outside") == []


async def test_without_gnu_tools_the_same_is_done(tmp_path: Path) -> None:
    """A ``dd`` without flags and a ``mv`` without -T do."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, refused in (("dd", "iflag"), ("mv", "-fT")):
        real = shutil.which(name)
        script = f'#!/bin/sh\ncase "$*" in *{refused}*) exit 1;; esac\nexec {real} "$@"\n'
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    (tmp_path / "outside").mkdir()
    (tmp_path / "link").symlink_to("outside")
    logins = Logins(tmp_path, PATH=f"{tools}:{os.environ['PATH']}")
    host = ShellTransport("h", logins.connections)

    await host.files.write_file(str(tmp_path), "link", b"mine")
    await host.files.write_file(str(tmp_path), "link", b"again")

    assert await host.files.read_file(str(tmp_path), "link", 3) == b"aga"
    assert os.listdir(tmp_path / "outside") == []
    with pytest.raises(TransportError, match="is a directory"):
        await host.files.write_file(str(tmp_path), "outside", b"x")
    await logins.quiet()


async def test_a_root_of_somebody_else_is_refused(host: ShellTransport, tmp_path: Path) -> None:
    """A root that belongs to another user is neither used nor emptied."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    (tmp_path / "root" / "KEY-1").mkdir(parents=True)
    os.chown(tmp_path / "root", 12345, -1)

    with pytest.raises(TransportError, match="another user"):
        await host.files.make_directory(str(tmp_path / "root"), "KEY-2")
    with pytest.raises(TransportError, match="another user"):
        await host.files.remove_directory(str(tmp_path / "root"), "KEY-1")

    assert (tmp_path / "root" / "KEY-1").is_dir()


async def test_a_reason_is_given_with_the_host(host: ShellTransport, tmp_path: Path) -> None:
    """An error says what was attempted, where, and why not."""
    (tmp_path / "file").touch()

    with pytest.raises(TransportError, match=r"make the directory KEY-1 in .*host h: ") as caught:
        await host.files.make_directory(str(tmp_path / "file" / "root"), "KEY-1")

    assert "Not a directory" in str(caught.value) or "File exists" in str(caught.value)


async def test_who_stops_waiting_for_a_removal_stops_it(tmp_path: Path) -> None:
    """A cancelled removal is gone from the host when its scope is left."""
    rm = tmp_path / "rm"
    rm.write_text("#!/bin/sh\necho >begun\nexec sleep 1000\n")
    rm.chmod(0o755)
    (tmp_path / "root" / "KEY-1").mkdir(parents=True)
    logins = Logins(tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    host = ShellTransport("h", logins.connections)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.files.remove_directory, str(tmp_path / "root"), "KEY-1")
        while not (tmp_path / "root" / "begun").exists():
            await trio.sleep(0.005)
        nursery.cancel_scope.cancel()

    await logins.quiet()
    assert (tmp_path / "root" / "KEY-1").is_dir()
