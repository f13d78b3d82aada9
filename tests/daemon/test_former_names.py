"""What a daemon of an earlier version has left, named by the path of its database."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

import pytest
import trio

from sortie.daemon.database_life import ended_by_mark
from sortie.model import RunId
from sortie.transports.local import mark_of_database
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
