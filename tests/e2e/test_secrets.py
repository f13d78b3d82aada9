"""Secrets stay where they belong."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import Place
from tests.telemetry.transcripts.rig import every_byte

KEEPER = Path(__file__).parent / "programs" / "keeper.py"

SECRETS = {
    "KIRO_API_KEY": "kiro-key-5f1c0de",
    "TRACKER_TOKEN": "tracker-token-5f1c0de",
    "SORTIE_SERVER_AUTH_TOKEN": "server-token-5f1c0de",
    "SORTIE_REMOTE": "https://me:tracker-token-5f1c0de@example.com/",
}
NEEDLE = "5f1c0de"
"""Part of each secret, and of nothing else."""


async def watch_command_lines(seen: set[str], until: trio.Event) -> None:
    """Note the command lines of all processes, again and again."""
    while not until.is_set():
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                seen.add(" ".join(process.cmdline()))
        await trio.sleep(0.02)


def telltales(root: Path, needle: str = NEEDLE) -> list[str]:
    """Return the files below a directory that hold a secret, or part of one, packed ones too."""
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if path.is_file() and needle.encode() in every_byte(path)
    ]


async def test_secrets_reach_the_agent_alone(
    place: Place, start: Start, nursery: trio.Nursery
) -> None:
    """Only the agent gets its key; logs, API, metrics, history, ``ps`` and files hold no secret.

    The agent prints its key, and neither it nor a hook can see those of tracker and server.
    """
    hooks = ("after_create", "before_run", "after_run", "before_remove")
    place.write_workflow(
        tracker={
            "api_key": "$TRACKER_TOKEN",
            "comments": {"on_dispatch": True, "on_completion": True, "on_failure": True},
        },
        agent={"command": [sys.executable, str(KEEPER)], "max_turns": 1},
        hooks={name: f"env > ../../{name}.txt; env" for name in hooks},
    )
    place.add_issue("A")
    place.loaded = None  # whose command lines are looked at
    seen: set[str] = set()
    done = trio.Event()
    slow = {"SORTIE_MARK": "mark", "KEEPER_SECONDS": "1.5"}

    async with start("--log-level", "debug", **slow, **SECRETS) as daemon:
        nursery.start_soon(watch_command_lines, seen, done)
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        page, state = await daemon.get("/metrics"), await daemon.get("/api/v1/state")
        done.set()
    given = json.loads((place.workspaces / "A" / "given.json").read_text())
    place.add_issue("A", state="Done")
    async with start(SORTIE_MARK="mark", **SECRETS) as cleaner:
        await cleaner.line("workspace.removed", issue="A")
    history = json.dumps(await place.history())

    assert NEEDLE not in json.dumps(daemon.log + cleaner.log)
    assert "I wrote down what I was given, but for" in json.dumps(daemon.log)
    for text in (page.text, state.text, history, *seen):
        assert NEEDLE not in text
    assert any(str(KEEPER) in line and "chat" in line for line in seen)
    assert telltales(place.root) == []
    assert given["environ"].keys() & SECRETS.keys() == set()
    assert given["environ"]["SORTIE_MARK"] == "mark"
    for name in hooks:
        variables = dict(
            line.split("=", 1)
            for line in (place.root / f"{name}.txt").read_text().splitlines()
            if "=" in line
        )
        assert variables.keys() & SECRETS.keys() == set()
        assert variables["SORTIE_MARK"] == "mark"
        assert "KIRO_SIM_LOG" not in variables


async def test_the_token_guards_what_does_not_come_from_here(place: Place, start: Start) -> None:
    """A foreign Host is refused, a proxy needs the given token, and the probes answer anyone."""
    token = SECRETS["SORTIE_SERVER_AUTH_TOKEN"]
    proxied = {"X-Forwarded-For": "192.0.2.1"}
    bearer = {"Authorization": f"Bearer {token}"}

    async with start(SORTIE_SERVER_AUTH_TOKEN=token) as daemon:
        answers = [
            (await daemon.get(path, headers)).status_code
            for path, headers in (
                ("/api/v1/state", {}),
                ("/api/v1/state", {"Host": "evil.example"}),
                ("/metrics", {"Host": "evil.example"} | bearer),
                ("/livez", {"Host": "evil.example"}),
                ("/api/v1/state", proxied),
                ("/api/v1/state", proxied | {"Authorization": "Bearer wrong"}),
                ("/api/v1/state", proxied | bearer),
            )
        ]

    assert answers == [200, 403, 403, 200, 401, 401, 200]
