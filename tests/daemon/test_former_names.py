"""What a daemon of an earlier version has left, named by the path of its database."""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

import pytest
import trio

from sortie.daemon.database_life import ended_by_mark, open_database
from sortie.model import RunId
from sortie.transports import Command
from sortie.transports.local import LocalTransport, mark_of_database
from tests.transports.former import ESCAPE, killed_at_last, left_by, without_adoption
from tests.transports.leftovers import is_alive
from tests.worker.rig import settings_of


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is Linux's")
async def test_what_is_named_by_the_path_is_ended(tmp_path: Path) -> None:
    """Also where it has cleared its environment and left its parents: it carries the mark."""
    database = str(tmp_path / "a.db")
    settings = settings_of().model_copy(update={"db_path": database})
    mark = mark_of_database(os.path.realpath(database))
    run_id = RunId(str(uuid.uuid4()))

    with without_adoption():
        left = await left_by(run_id, *ESCAPE, "fork", "cleared", mark=mark)
    with killed_at_last(left) as pids:
        with trio.fail_after(60):
            done = await ended_by_mark(mark, settings, {"PATH": "/usr/bin:/bin"})
        alive = [pid for pid in pids if is_alive(pid)]

    assert done
    assert alive == []


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is Linux's")
async def test_what_a_process_of_several_left_is_ended_by_the_next_of_any(tmp_path: Path) -> None:
    """Its mark stands beside each database. While that process lives, which may have let one
    database go, nothing of it is touched."""
    database = str(tmp_path / "a.db")
    settings = settings_of().model_copy(update={"db_path": database})
    sought: list[int] = []

    async def end_former(mark: int) -> bool:
        sought.append(mark)
        return True

    async with open_database(settings, end_former) as opened:
        opened.note_process("several")
    async with open_database(settings, end_former):
        pass
    assert sought == []  # we live

    note = Path(f"{database}.lock")
    document = json.loads(note.read_text())
    document["remark"]["process"] = {"name": "several", "pid": os.getpid(), "started_at": 1.0}
    note.write_text(json.dumps(document))
    async with open_database(settings, end_former):
        pass
    assert sought == [mark_of_database("several")]


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is Linux's")
async def test_a_former_mark_is_searched_for_beside_our_own(tmp_path: Path) -> None:
    """The transport of a process at work ends what another mark names, and nothing of its own."""
    mark = mark_of_database("another process")
    run_id = RunId(str(uuid.uuid4()))
    local = LocalTransport("/usr/bin:/bin")

    with without_adoption():
        left = await left_by(run_id, *ESCAPE, "fork", "cleared", mark=mark)
    with killed_at_last(left) as pids:
        own = Command(argv=("/bin/sleep", "60"), cwd=str(tmp_path), env={}, grace=0.1)
        async with local.process(own) as process:
            with trio.fail_after(60):
                count = await local.sweep_former(mark, grace=0.1)
            assert is_alive(process.identity.pid)
        alive = [pid for pid in pids if is_alive(pid)]

    assert count >= 1
    assert alive == []
