"""Transcripts of a real daemon: followed, killed, taken up again, and without a secret."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, Json, Place, Ran
from tests.telemetry.transcripts.rig import every_byte

GOSSIP = Path(__file__).parent / "programs" / "gossip.py"

NEEDLE = "5f1c0de"
"""Part of each secret, and of nothing else."""

SECRETS: dict[str, Any] = {
    "TRACKER_TOKEN": f"tracker-token-{NEEDLE}",
    "SORTIE_SERVER_AUTH_TOKEN": f"server-token-{NEEDLE}",
    "KIRO_API_KEY": f"kiro-key-{NEEDLE}",
    "OTHER_API_KEY": f"other-key-{NEEDLE}",
}
WHOLE = [f"whole {secret}\n" for secret in SECRETS.values()]
SPLIT = [
    part for secret in SECRETS.values() for part in (f"split {secret[:-4]}", f"{secret[-4:]}\n")
]
SAID = ["whole ***"] * len(SECRETS) + ["split ***"] * len(SECRETS)


def set_up(place: Place) -> None:
    """Have one issue, whose agent says all secrets and waits for the file ``go``."""
    place.write_workflow(
        tracker={"api_key": "$TRACKER_TOKEN"},
        agent={"command": [sys.executable, str(GOSSIP)], "max_turns": 1},
    )
    texts = [text[::-1] for text in (*WHOLE, *SPLIT)]
    (place.root / "gossip.json").write_text(json.dumps(texts))
    place.add_issue("A")


async def until_said(daemon: Daemon, run_id: str) -> list[Json]:
    """Return the lines of a live run's transcript, once the agent has said all that it says."""
    path = f"/api/v1/runs/{run_id}/transcript"
    with trio.fail_after(PATIENCE):
        while True:
            lines = (await daemon.get(path)).json()["lines"]
            if all(texts(lines, kind) == SAID for kind in ("output", "stderr")):
                return list(lines)
            await trio.sleep(0.1)


def texts(lines: list[Json], kind: str) -> list[str]:
    return [line["text"] for line in lines if line["kind"] == kind]


async def logs(place: Place, *arguments: str) -> tuple[Ran, list[Json]]:
    ran = await place.sortie("logs", "A", "--format", "json", *arguments, **SECRETS)
    return ran, [json.loads(line) for line in ran.out.splitlines()]


async def test_a_killed_daemon_loses_the_last_seconds_at_most(place: Place, start: Start) -> None:
    """What was said before a ``kill -9`` is there without any daemon; the next one says how the run
    ended, cuts off what was torn, and keeps a transcript of the run that follows.

    Nothing that stands on disk, packed or not, holds a secret.
    """
    set_up(place)

    async with start(**SECRETS) as daemon:
        first = (await daemon.line("run.started", issue="A"))["run"]
        said = await until_said(daemon, first)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    killed, left = await logs(place)
    file = place.root / ".sortie.db.transcripts" / f"{first}.jsonl.gz"
    with file.open("ab") as torn:
        torn.write(file.read_bytes()[:50])
    (place.root / "go").touch()
    async with start(**SECRETS) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        pages = (await daemon.get(f"/api/v1/runs/{first}/transcript")).json()
    _, of_first = await logs(place, "--run", first)
    newest, of_second = await logs(place)

    assert [line["line"] for line in left] == [line["line"] for line in said]
    assert "the end is missing" in killed.err
    assert of_first[:-1] == left
    assert of_first[-1]["text"].startswith("run interrupted")
    assert (pages["ended"], pages["next"]) == (True, None)
    assert len(pages["lines"]) == len(of_first)
    assert newest.err == ""
    assert texts(of_second, "output") == [*SAID, "that was all"]
    assert of_second[-1]["text"].startswith("run succeeded")
    assert NEEDLE.encode() not in every_byte(place.root)


async def test_a_live_run_is_followed_to_its_end(
    place: Place, start: Start, nursery: trio.Nursery
) -> None:
    """``--follow`` shows each line once, what comes while it looks too, and ends with the run."""
    set_up(place)
    followed: list[Json] = []

    async def follow() -> None:
        ran, lines = await logs(place, "--follow")
        assert (ran.code, ran.err) == (0, "")
        followed.extend(lines)
        done.set()

    done = trio.Event()
    async with start(**SECRETS) as daemon:
        run_id = (await daemon.line("run.started", issue="A"))["run"]
        nursery.start_soon(follow)
        await until_said(daemon, run_id)
        (place.root / "go").touch()
        with trio.fail_after(PATIENCE):
            await done.wait()
        text = (await daemon.get(f"/api/v1/runs/{run_id}/transcript?format=text")).text

    assert [line["line"] for line in followed] == [*range(1, len(followed) + 1)]
    assert texts(followed, "output") == [*SAID, "that was all"]
    assert followed[-1]["text"].startswith("run succeeded")
    assert len(text.splitlines()) == len(followed)
