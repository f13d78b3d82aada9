"""File systems are told apart by the text of /proc/self/mountinfo."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.model import StoreError
from sortie.store import filesystems
from sortie.store.filesystems import NETWORK, filesystem_type, refuse_network
from sortie.store.sqlite import open_store

MOUNTS = r"""
22 27 0:21 / /proc rw,nosuid shared:12 - proc proc rw
27 1 253:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 27 0:30 / /home rw shared:2 master:7 propagate_from:2 - nfs4 server:/home rw,vers=4.2
31 30 0:31 / /home/me/local rw - xfs /dev/vdb rw
32 27 0:32 / /mnt/my\040files\134x rw - cifs //server/share rw
33 27 0:33 / /srv/deep rw - nfs server:/old rw
34 27 0:34 / /srv rw - btrfs /dev/vdc rw
35 27 0:35 / /net rw - autofs systemd-1 rw
36 35 0:36 / /net rw - fuse.sshfs box: rw
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "ext4"),
        ("/etc/x.db", "ext4"),
        ("/proc/self", "proc"),
        ("/procedure/x.db", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/x.db", "nfs4"),
        ("/homes/x.db", "ext4"),
        ("/home/me/local/x.db", "xfs"),
        (r"/mnt/my files\x/x.db", "cifs"),
        ("/srv/deep/x.db", "btrfs"),  # the mount on /srv came later and hides the deeper one
        ("/net/x.db", "fuse.sshfs"),  # the later of two mounts on one place
    ],
)
def test_the_visible_mount_that_holds_a_path_decides(path: str, expected: str) -> None:
    """Whole names of directories count, escapes are undone, and hidden mounts are not taken."""
    assert filesystem_type(path, MOUNTS) == expected


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs", "ceph"])
async def test_no_database_is_made_on_a_network_file_system(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store is refused with path, kind and advice, and no file is left there."""
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(f"1 0 0:1 / / rw - {kind} server:/ rw\n")
    monkeypatch.setattr(filesystems, "MOUNTINFO", mountinfo)
    place = tmp_path / "sortie.db"

    with pytest.raises(StoreError, match=rf"{place} on a network file system \({kind}\).*db_path"):
        async with open_store(str(place)):
            pass

    assert kind in NETWORK
    assert not place.exists()


def test_a_link_to_a_network_file_system_is_seen_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is where the file really lies, not where its name does."""
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to("far")
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(
        f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path}/far rw - nfs server:/ rw\n"
    )
    monkeypatch.setattr(filesystems, "MOUNTINFO", mountinfo)

    with pytest.raises(StoreError, match="network file system"):
        refuse_network(str(tmp_path / "near" / "sortie.db"))


async def test_without_a_list_of_mounts_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that keeps no such list gets its database."""
    monkeypatch.setattr(filesystems, "MOUNTINFO", tmp_path / "missing")

    async with open_store(str(tmp_path / "sortie.db")) as store:
        await store.check()
