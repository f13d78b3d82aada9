"""A workspace root on a host belongs to one daemon."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from sortie.model import HostError, HostTrouble
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import new_nonce
from sortie.transports.ssh.asyncio_thread import AsyncioThread, open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.root_locks import RootLocks
from tests.transports.ssh.sshd import Sshd, requires_sshd, until

pytestmark = [
    requires_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at"),
]


@pytest.fixture
async def one(sshd: Sshd, thread: AsyncioThread) -> AsyncIterator[ConnectionPool]:
    """Give the connections of one daemon."""
    made = ConnectionPool(sshd.host, sshd.settings, thread)
    yield made
    await made.aclose()


@pytest.fixture
async def other(sshd: Sshd) -> AsyncIterator[ConnectionPool]:
    """Give those of another daemon, with a thread of its own."""
    async with open_asyncio_thread() as thread:
        made = ConnectionPool(sshd.host, sshd.settings, thread)
        yield made
        await made.aclose()


def locks(sshd: Sshd, connections: ConnectionPool, holder: str, **bounds: float) -> RootLocks:
    return RootLocks(connections, holder, new_nonce, Bounds(**bounds))


async def hold_once_free(locks: RootLocks, root: str) -> None:
    """Hold a root as soon as the session that held it has ended on the host."""
    with trio.fail_after(60):
        while True:
            try:
                return await locks.hold(root)
            except HostError:
                await trio.sleep(0.05)


@pytest.fixture(params=["flock", "no flock"])
def root(request: pytest.FixtureRequest, sshd: Sshd, tmp_path: Path) -> str:
    """Give a root that is not there yet, on a host with and without flock(1)."""
    if request.param == "no flock":
        tools = tmp_path / "bin"
        tools.mkdir()
        for directory in ("/usr/bin", "/bin"):
            for tool in os.listdir(directory):
                if tool != "flock" and not (tools / tool).exists():
                    (tools / tool).symlink_to(f"{directory}/{tool}")
        (sshd.home / ".bashrc").write_text(f"PATH={tools}\n")
    elif shutil.which("flock") is None:
        pytest.skip("there is no flock")
    return str(tmp_path / "work" / "root")


async def test_a_second_daemon_is_refused_and_told_of_the_first(
    sshd: Sshd, one: ConnectionPool, other: ConnectionPool, root: str
) -> None:
    """Until the first is gone; another root is free, and who holds one may ask again."""
    first, second = locks(sshd, one, "pid 1 on alpha"), locks(sshd, other, "pid 2 on beta")
    await first.hold(root)
    await first.hold(root)
    with pytest.raises(HostError, match=r"pid 1 on alpha.*workspace\.root") as caught:
        await second.hold(root)
    await second.hold(f"{root}2")

    await one.aclose()
    await hold_once_free(second, root)

    assert caught.value.trouble is HostTrouble.OCCUPIED


@pytest.mark.parametrize(
    ("held", "wanted", "where"), [(".", "deep/er", "inside"), ("a/b", ".", "around")]
)
async def test_a_root_inside_another_daemons_is_refused(
    sshd: Sshd,
    one: ConnectionPool,
    other: ConnectionPool,
    root: str,
    held: str,
    wanted: str,
    where: str,
) -> None:
    """In whatever order they come, and by name; not one of the same daemon, nor a free one."""
    first, second = locks(sshd, one, "pid 1 on alpha"), locks(sshd, other, "pid 2 on beta")
    held, wanted = os.path.normpath(f"{root}/{held}"), os.path.normpath(f"{root}/{wanted}")
    await first.hold(held)
    with pytest.raises(HostError, match=rf"lies {where} {held}, .*pid 1 on alpha") as caught:
        await second.hold(wanted)

    await first.hold(wanted)
    first.release()
    await hold_once_free(second, f"{root}/free")

    assert caught.value.trouble is HostTrouble.OCCUPIED


async def test_a_directory_below_a_root_is_held_with_it(
    sshd: Sshd, one: ConnectionPool, root: str, tmp_path: Path
) -> None:
    """It has no lock of its own, also where the root's was lost, which is taken again, and by the
    real path of the root."""
    made, link = locks(sshd, one, "pid 1 on alpha"), tmp_path / "link"
    (tmp_path / "work").mkdir()
    link.symlink_to(tmp_path / "work")
    await made.hold(f"{link}/root")
    await made.hold(f"{root}/@verify")
    made.release()
    with trio.fail_after(20):
        while not made.holds_any:  # the former session may still have it
            with suppress(HostError):
                await made.hold(f"{root}/@verify")
            await trio.sleep(0.05)

    assert not (Path(root) / "@verify").exists()


async def test_a_lock_whose_file_was_removed_is_held(
    sshd: Sshd, one: ConnectionPool, other: ConnectionPool, root: str
) -> None:
    """Whoever works in the root can remove the file; the root itself is locked."""
    if not (sshd.home / ".bashrc").exists():
        await locks(sshd, one, "pid 1 on alpha").hold(root)
        (Path(root) / "@daemon.lock").unlink()

        with pytest.raises(HostError, match=r"another daemon .* works in"):
            await locks(sshd, other, "pid 2 on beta").hold(root)


async def test_a_root_by_another_name_is_no_other_daemons(
    sshd: Sshd, one: ConnectionPool, root: str
) -> None:
    """What a daemon holds is its own through a link above it too, and under another host's name."""
    first = locks(sshd, one, "pid 1 on alpha")
    again = RootLocks(one, "pid 1 on alpha", new_nonce, Bounds(), first.has_session)
    await first.hold(root)
    link = Path(root).parent.with_name("link")
    link.symlink_to(Path(root).parent)

    await first.hold(f"{link}/root")
    await again.hold(f"{link}/root")

    await until(lambda: one.sessions == 1)
    with pytest.raises(HostError, match="another daemon"):
        await locks(sshd, one, "pid 1 on beta").hold(f"{link}/root")


async def test_a_name_in_the_lock_alone_holds_nothing(
    sshd: Sshd, one: ConnectionPool, root: str
) -> None:
    """A root that was given back is not ours until it is taken again, while its session still ends
    on the host, or another daemon that has it now has not yet written its name over ours."""
    await locks(sshd, one, "pid 1 on alpha").hold(root)

    with pytest.raises(HostError, match="has not ended yet") as caught:
        await locks(sshd, one, "pid 1 on alpha").hold(root)

    assert caught.value.trouble is HostTrouble.OCCUPIED


async def test_a_lost_lock_is_taken_again(sshd: Sshd, one: ConnectionPool, root: str) -> None:
    """Its link was lost; the next use of the root holds it anew."""
    first = locks(sshd, one, "pid 1 on alpha")
    await first.hold(root)
    sshd.kill_links()
    await until(lambda: one.links == 0)

    await hold_once_free(first, root)

    assert one.sessions == 1


async def test_a_lock_ends_with_its_lease(
    sshd: Sshd, one: ConnectionPool, other: ConnectionPool, root: str
) -> None:
    """A daemon that the host does not hear of, though its link stands, holds nothing for ever."""
    await locks(sshd, one, "pid 1 on alpha", beat=1000, lease=1.0).hold(root)
    second = locks(sshd, other, "pid 2 on beta")

    await hold_once_free(second, root)


async def test_a_beat_keeps_a_lock(
    sshd: Sshd, one: ConnectionPool, other: ConnectionPool, root: str
) -> None:
    """It outlives its lease while there are signs of life."""
    await locks(sshd, one, "pid 1 on alpha", beat=0.2, lease=2.0).hold(root)
    await trio.sleep(3.5)

    with pytest.raises(HostError, match="pid 1 on alpha"):
        await locks(sshd, other, "pid 2 on beta").hold(root)
