"""A disk without space fails what is to be written, and harms nothing that is.

The disk is a tmpfs of 1 MiB in a mount namespace of its own, gone with the process that fills it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import trio

from tests.store.first_schema import first_schema
from tests.store.processes import python

MOUNT = 'mount -t tmpfs -o size=1m sortie-test "$0" && exec "$@"'

DISK = """
import json, os, shutil, sqlite3, sys, trio
from pathlib import Path
from sortie.model import StoreError
from sortie.scheduler.records import RecordPause
from sortie.store.readonly import read_history
from sortie.store.sqlite import open_store
from tests.store.records import *
from tests.store.test_schema_versions import dump

disk = Path(sys.argv[1])
place, ballast = disk / "sortie.db", disk / "ballast"

def fill(room=0):
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - room))

def tell(*values):
    print(json.dumps(values), flush=True)
"""

COMMITTING = (
    DISK
    + """
BIG = an_issue("B-2", description="x" * 30_000)

async def main():
    async with open_store(str(place)) as store:
        await store.commit([begin("r1"), turn("r1", 1)], T0)
        fill()
        for _ in range(2):
            try:
                await store.commit([RecordPause(paused=True), end("r1"), begin("r2", BIG)], T0)
            except StoreError as error:
                tell("commit", str(error))
        try:
            for _ in range(20):
                await store.check()
        except StoreError as error:
            tell("commit", str(error))
        recovered = await store.recover()
        tell("full", recovered.paused, [run.run_id for run in recovered.unfinished])
        tell("read", [row.run_id for row in read_history(str(place))])
        ballast.unlink()
        await store.check()
        await store.commit([RecordPause(paused=True), end("r1"), begin("r2", BIG)], T0)
        recovered = await store.recover()
        tell("room", recovered.paused, [run.issue == BIG for run in recovered.unfinished])
        tell("read", [row.run_id for row in read_history(str(place))])
        crashed = disk / "crashed.db"
        for suffix in ("", "-wal"):
            shutil.copy(f"{place}{suffix}", f"{crashed}{suffix}")
    for path in (crashed, place):
        async with open_store(str(path)) as store:
            tell("again", [row.run_id for row in await store.history()])
        connection = sqlite3.connect(path)
        tell("check", *connection.execute("PRAGMA integrity_check").fetchone())
        connection.close()

trio.run(main)
"""
)

MIGRATING = (
    DISK
    + """
from tests.store.first_schema import MIGRATED

async def main():
    shutil.copy(sys.argv[2], place)
    before = dump(place)
    for room in range(0, 1 << 20, 4096):
        fill(room)
        try:
            async with open_store(str(place)) as store:
                same = await store.recover() == MIGRATED
        except StoreError as error:
            ballast.unlink()
            tell(str(error), dump(place)[0], dump(place) == before)
        else:
            tell("opened", same)
            return

trio.run(main)
"""
)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Where the small disk is mounted."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.fixture
def small_disk(disk: Path) -> tuple[str, ...]:
    """A command that mounts the small disk and runs its arguments where it is seen."""
    command = ("unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT, str(disk))
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no small disk can be mounted: {getattr(error, 'stderr', error)}")
    return command


async def told(process: trio.Process) -> list[list[object]]:
    """All that a process tells, which must end well."""
    assert process.stdout is not None
    text = b"".join([part async for part in process.stdout])
    assert await process.wait() == 0
    return [json.loads(line) for line in text.splitlines()]


async def test_a_commit_without_space_is_undone_and_can_be_made_later(
    small_disk: tuple[str, ...], disk: Path
) -> None:
    """A commit or check on a full disk is an error that says so and leaves no trace; readers go on;
    with space again the same connection commits, and what a crash would then leave is whole."""
    with trio.fail_after(60):
        async with python(COMMITTING, str(disk), within=small_disk) as process:
            lines = await told(process)

    full = f"cannot write to the database {disk / 'sortie.db'}: the disk is full; free some space"
    failed, after = lines[:3], lines[3:]
    assert [(word, str(said).startswith(full)) for word, said in failed] == [("commit", True)] * 3
    assert after == [
        ["full", False, ["r1"]],
        ["read", ["r1"]],
        ["room", True, [True]],
        ["read", ["r2", "r1"]],
        ["again", ["r2", "r1"]],
        ["check", "ok"],
        ["again", ["r2", "r1"]],
        ["check", "ok"],
    ]


async def test_a_migration_without_space_is_undone_and_can_be_made_later(
    small_disk: tuple[str, ...], disk: Path, tmp_path: Path
) -> None:
    """However little space there is, an old database stays as it was or is migrated by whole steps,
    and opens once there is enough."""
    first_schema(tmp_path / "old.db")
    with trio.fail_after(60):
        async with python(
            MIGRATING, str(disk), str(tmp_path / "old.db"), within=small_disk
        ) as process:
            *failed, opened = await told(process)

    start = f"cannot open the database {disk / 'sortie.db'}: "
    assert all(str(said).startswith(start) for said, *_ in failed)
    assert any("the disk is full" in str(said) and version == 1 for said, version, _ in failed)
    assert all(same is (version == 1) for _, version, same in failed)
    assert opened == ["opened", True]
