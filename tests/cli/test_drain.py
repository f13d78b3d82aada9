"""``sortie drain``: what is asked of the daemon, what is said, and how long it is waited for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sortie.cli import drain
from tests.cli.conftest import Cli
from tests.cli.fake_daemon import FakeDaemon

DRAINED: dict[str, Any] = {
    "daemon": "d",
    "status": "drained",
    "leads": [],
    "running": 0,
    "alone": [],
}
DRAINING = DRAINED | {"status": "draining", "leads": ["docs"], "running": 2}
LEADING = DRAINED | {"status": "leading", "leads": ["docs"]}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (DRAINED, "the daemon is drained: it leads no workflow\n"),
        (DRAINING, "the daemon hands docs over once all runs have ended: 2 runs under way\n"),
        (
            DRAINING | {"alone": ["docs"]},
            "the daemon hands docs over once all runs have ended: 2 runs under way; no other daemon"
            " stands by for docs, which has no leader from then on\n",
        ),
    ],
)
def test_it_says_how_far_it_is(
    cli: Cli, daemon: FakeDaemon, found: dict[str, Any], told: str
) -> None:
    """And programs get what the daemon answered."""
    daemon.answers["POST /api/v1/drain"] = (200, found)

    text, data = cli("drain"), cli("drain", "--format", "json")

    assert (text.code, text.out, text.err) == (0, told, "")
    assert json.loads(data.out) == found
    assert [(one.method, one.path) for one in daemon.asked] == [("POST", "/api/v1/drain")] * 2


def test_a_drain_is_cancelled(cli: Cli, daemon: FakeDaemon) -> None:
    """The daemon may lead again."""
    daemon.answers["POST /api/v1/drain/cancel"] = (200, LEADING)

    ran = cli("drain", "--cancel")

    assert (ran.code, ran.out) == (0, "the daemon is not drained: it leads docs\n")


def test_without_leases_it_says_what_to_do(cli: Cli, daemon: FakeDaemon) -> None:
    """It fails with the daemon's sentence."""
    error = {"code": "conflict", "message": "store.url is not set"}
    daemon.answers["POST /api/v1/drain"] = (409, {"error": error})

    ran = cli("drain")

    assert (ran.code, ran.out, ran.err) == (1, "", "sortie: store.url is not set\n")


def test_it_waits_for_the_last_run(
    cli: Cli, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process begins anew meanwhile, with another token, or is not there."""
    answers = iter([(401, {}), (200, DRAINING), (200, DRAINED)])

    def look(_seconds: float) -> None:
        daemon.answers["GET /api/v1/drain/status"] = next(answers)

    monkeypatch.setattr(drain, "_sleep", look)
    daemon.answers["POST /api/v1/drain"] = (200, DRAINING)

    ran = cli("drain", "--wait", "60")

    assert (ran.code, ran.out) == (0, "the daemon is drained: it leads no workflow\n")
    assert next(answers, None) is None


def test_it_does_not_wait_for_ever(
    cli: Cli, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What holds it up is said."""
    now = iter([0.0, 1.0, 60.1])
    monkeypatch.setattr(drain, "_sleep", lambda _: None)
    monkeypatch.setattr(drain, "_now", lambda: next(now))
    daemon.answers["POST /api/v1/drain"] = (200, DRAINING)
    daemon.answers["GET /api/v1/drain/status"] = (200, DRAINING)

    ran = cli("drain", "--wait", "60")

    assert ran.code == 1
    assert ran.err == (
        "sortie: not drained within 60 s: the daemon hands docs over once all runs have ended:"
        " 2 runs under way\n"
    )


def test_a_cancelled_drain_is_not_waited_for(cli: Cli, daemon: FakeDaemon) -> None:
    """The two options exclude each other."""
    assert cli("drain", "--cancel", "--wait", "5").code == 2
    assert daemon.asked == []
