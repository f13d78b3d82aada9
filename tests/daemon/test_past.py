"""How an issue stood: the past answers as the present did."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from trio.testing import MockClock

from sortie.daemon.issue_views import explanation_view
from sortie.daemon.past import explain_past
from sortie.daemon.wall_time import times_of_day
from sortie.model import Failed
from sortie.model.errors import ErrorKind
from sortie.scheduler import Explanation
from sortie.telemetry.event_log.reader import EventLogError
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.cli.conftest import here as here
from tests.scheduler.driver import EPOCH, issue
from tests.telemetry.event_log.conftest import at_once as at_once
from tests.telemetry.event_log.rig import Rig

BROKE = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")


def time(seconds: float) -> datetime:
    return datetime.fromtimestamp(EPOCH + seconds, UTC)


async def test_the_past_explains_as_the_present_did(at_once: MockClock, tmp_path: Path) -> None:
    """Of a candidate, a run and a wait: all that was told then, but descriptions."""
    rig, told = Rig(tmp_path), {}
    async with rig.running():
        starts = rig.start(*(issue(f"a{n}") for n in range(12)))
        for at in (7.0, 40.0, 90.0, 160.0):
            await rig.sleep(at - rig.now)
            for name in ("A0", "A11"):
                found = rig.scheduler.explain_issue(name, rig.now)
                assert isinstance(found, Explanation)
                with times_of_day(EPOCH):
                    told[at, name] = explanation_view(found, None, (), None)
            await rig.sleep(1)
            if at == 90.0:
                rig.end(starts[0].run_id, BROKE)

    past = {key: explain_past(str(tmp_path / ".sortie.db"), key[1], time(key[0])) for key in told}
    assert {key: one.view for key, one in past.items()} == told
    assert all(one.warning is None for one in past.values())
    assert {one.view.standing for one in past.values()} >= {"candidate", "starting", "waiting"}


async def test_an_unknown_issue_is_told_as_of_then(at_once: MockClock, tmp_path: Path) -> None:
    """The sentence has the time in it."""
    rig = Rig(tmp_path)
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(40)

    with pytest.raises(EventLogError, match="at 2026-06-01T00:00:20Z: B neither runs"):
        explain_past(str(tmp_path / ".sortie.db"), "B", time(20))


async def test_another_decision_is_told(
    at_once: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where this version decides otherwise, the answer says that it may not be how it was."""
    rig = Rig(tmp_path)
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(40)
    monkeypatch.setattr("sortie.scheduler.identifiers.RunIds.__call__", lambda _ids: "other")

    past = explain_past(str(tmp_path / ".sortie.db"), "A", time(20))

    assert past.warning is not None
    assert past.warning.startswith("what was decided at 2026-06-01T00:00:00Z is decided otherwise")


async def test_the_command_shows_it(at_once: MockClock, cli: Cli, here: Path) -> None:
    """Text and JSON, without a daemon and without a tracker; a bad time is a usage error."""
    (here / "WORKFLOW.md").write_text("---\ntracker: {kind: file}\n---\nhello\n")
    rig = Rig(here)
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(40)

    text = cli("explain", "A", "--at", "2026-06-01T00:00:20")
    document = json.loads(cli("explain", "A", "--at", "2026-06-01T00:00:20Z", "-f", "json").out)
    none = cli("explain", "A", "--at", "2026-06-02T00:00")
    bad = cli("explain", "A", "--at", "soon")

    assert text.code == 0
    assert text.out.startswith("at 2026-06-01 00:00:20Z, as of 2026-06-01 00:00:00Z\nA (Todo): ")
    assert (document["standing"], document["exact"]) == ("starting", True)
    assert none.code == 1
    assert "nothing is recorded for 2026-06-02T00:00:00Z; the event log covers" in none.err
    assert bad.code == 2
