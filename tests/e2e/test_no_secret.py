"""No secret in anything that a daemon has written or answered, whoever brought it in."""

from __future__ import annotations

import json
import signal
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, Place

TELL_ALL = Path(__file__).parent / "programs" / "tell_all.py"

SECRETS = {
    "KIRO_API_KEY": "kiroKey5eed0001",
    "TRACKER_TOKEN": "trackerToken5eed0002",
    "SORTIE_SERVER_AUTH_TOKEN": "serverToken5eed0003",
}
NEEDLES = tuple(value[-8:] for value in SECRETS.values())
"""The end of each secret, so that one that was cut at its beginning is found too."""

SEED = " ".join(SECRETS.values())
TOLD = "-".join("-".join(value) for value in SECRETS.values())
"""The secrets, as the agent can put them together and nobody recognizes them in its environment."""

COMMANDS = (
    ("status",),
    ("explain", "FAIL"),
    ("history", "--format", "json"),
    ("doctor", "--format", "json"),
    ("run", "--dry-run"),
    ("render", "A"),
    ("logs", "FAIL"),
)
ROUTES = (
    "/livez",
    "/readyz",
    "/metrics",
    "/api/v1/openapi.json",
    "/api/v1/state",
    "/api/v1/stats",
    "/api/v1/history",
    "/api/v1/issues/A",
    "/api/v1/issues/FAIL",
    "/api/v1/issues/FAIL/explain",
    "/",
    "/issues/A",
    "/issues/FAIL",
    "/issues/HANG",
)


def found_in(text: str | bytes) -> list[str]:
    """Return the needles that a text holds."""
    content = text.encode() if isinstance(text, str) else text
    return [needle for needle in NEEDLES if needle.encode() in content]


def content_of(path: Path) -> bytes:
    """Return what a file holds, unpacked where it is packed, also as a killed daemon leaves it."""
    content, unpacked = path.read_bytes(), b""
    while content.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(wbits=31)
        unpacked += member.decompress(content) + member.flush()
        content = member.unused_data
    return unpacked + content


def written(place: Place) -> Iterator[Path]:
    """Yield the files that the daemon has written, but for the one that is to hold its token."""
    for path in sorted(place.root.rglob("*")):
        given = (place.issues, place.workspaces, place.workflow)
        is_given = path.name.endswith(".daemon") or any(map(path.is_relative_to, given))
        if path.is_file() and not is_given:
            yield path


def leaks(place: Place) -> dict[str, list[str]]:
    """Return the files with a needle, and which."""
    return {
        str(path.relative_to(place.root)): found
        for path in written(place)
        if (found := found_in(content_of(path)))
    }


async def answers(daemon: Daemon) -> dict[str, str]:
    """Return all that the daemon answers over HTTP, by route."""
    history = (await daemon.get("/api/v1/history")).json()
    runs = history if isinstance(history, list) else history["runs"]
    about_runs = [f"/api/v1/runs/{run['run_id']}/transcript" for run in runs]
    found = {}
    for route in (*ROUTES, *about_runs):
        answer = await daemon.get(route)
        assert answer.status_code < 500, (route, answer.text)
        found[route] = f"{answer.headers}\n{answer.text}"
    return found


async def said(place: Place) -> dict[str, str]:
    """Return all that commands say."""
    found = {}

    async def run(*arguments: str) -> None:
        ran = await place.sortie(*arguments, within=PATIENCE, **SECRETS)
        found[" ".join(arguments)] = f"{ran.out}\n{ran.err}"

    async with trio.open_nursery() as nursery:
        for arguments in COMMANDS:
            nursery.start_soon(run, *arguments)
    return found


async def test_no_secret_stays_in_what_the_daemon_writes_and_answers(
    place: Place, start: Start
) -> None:
    """The keys of tracker, server and agent stand in issues and in what the agent says of itself:
    no file, page, answer, log line or command has them, also after a crash and a restart."""
    place.write_workflow(
        prompt="{{ issue.identifier }} {{ issue.title }}\n{{ issue.description }}\n"
        "{% for comment in issue.comments %}{{ comment.body }}{% endfor %}\n",
        tracker={
            "api_key": "$TRACKER_TOKEN",
            "comments": {"on_dispatch": True, "on_completion": True, "on_failure": True},
        },
        agent={"command": [sys.executable, str(TELL_ALL)], "max_turns": 1},
        hooks={
            "before_run": f"echo {TOLD} | tr -d -",
            "after_run": f"echo {TOLD} | tr -d -; exit 1",
        },
    )
    comment = {"author": SEED, "body": SEED, "created_at": "2026-01-01T00:00:00Z"}
    for name in ("A", "FAIL", "HANG"):
        place.add_issue(name, title=f"{name} {SEED}", comments=[comment], labels=["a"])
        path = place.issues / f"{name}.md"
        path.write_text(f"{path.read_text()}\n{SEED}\n")
    environ = SECRETS | {"TOLD": TOLD}

    async with start("--log-level", "debug", **environ) as first:
        await first.line("issue.moved", issue="A", lifecycle="handoff")
        await first.line("retry.scheduled", issue="FAIL")
        await first.line("agent.spoke", issue="HANG")
        pages = await answers(first)  # which writes what waits of transcripts
        told = await said(place)
        first.signal(signal.SIGKILL)
        await first.exit_code()
    crashed = leaks(place)
    place.add_issue("A", state="Done")
    async with start("--log-level", "debug", **environ) as second:
        await second.line("run.started", issue="HANG")
        await second.line("workspace.removed", issue="A")
        after = await answers(second)

    everything = {"log": json.dumps(first.log), "later log": json.dumps(second.log)}
    everything |= told | pages | {f"{route} after the crash": text for route, text in after.items()}
    found = {name: found for name, text in everything.items() if (found := found_in(text))}
    assert (found, crashed, leaks(place)) == ({}, {}, {})
    commented = (place.issues / "FAIL.md").read_text()
    # What people wrote stays, and what Sortie commented on the failure has added nothing to it.
    assert [commented.count(needle) for needle in NEEDLES] == [4, 4, 4]
    assert "I have said all" in everything["log"]
    packed = [content_of(path) for path in written(place) if path.name.endswith(".gz")]
    assert any(b"I have said all" in content for content in packed)
    assert "I have said all" in told["logs FAIL"]
    transcripts = [text for route, text in pages.items() if route.endswith("/transcript")]
    assert all("I have said all" in text for text in transcripts)
    assert len(transcripts) >= 3
    assert "***" in everything["log"]
