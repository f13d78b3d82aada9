"""Secrets on their way to a remote host."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from tests.e2e.conftest import Start
from tests.e2e.place import SORTIE, Place
from tests.e2e.remote import Fleet
from tests.e2e.test_secrets import KEEPER, telltales
from tests.transports.ssh.sshd import requires_sshd

pytestmark = requires_sshd

NEEDLE = uuid4().hex
"""Part of each secret, and of nothing else on this machine, other runs of this test included."""

SECRETS = {
    "KIRO_API_KEY": f"kiro-key-{NEEDLE}",
    "TRACKER_TOKEN": f"tracker-token-{NEEDLE}",
    "SORTIE_SERVER_AUTH_TOKEN": f"server-token-{NEEDLE}",
    "SORTIE_REMOTE": f"https://me:tracker-token-{NEEDLE}@example.com/",
}

TOOLCHAIN = {"gcc", "cc", "collect2", "ld", "objdump"}
"""Where asyncssh is imported, ctypes asks these, as children of the daemon, for two libraries."""


def is_of_the_daemon(line: str) -> bool:
    """Tell whether this is the daemon, before it has become another program, or a toolchain."""
    return f"{SORTIE} run" in line or os.path.basename(line.split(" ")[0]) in TOOLCHAIN


class Lookout:
    """Reads all command lines and environments, without a pause, in a thread of its own.

    Both sides of the connection are on this machine, so these are those of both.
    """

    def __init__(self) -> None:
        self.arguments: set[str] = set()
        self.holders: dict[int, str] = {}
        self._over = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while the block lasts."""
        self._thread.start()
        self._first.wait()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            for process in Path("/proc").iterdir():
                if process.name.isdigit():
                    with suppress(OSError):
                        self._look(process)
            self._first.set()

    def _look(self, process: Path) -> None:
        before = _arguments(process)
        self.arguments.add(before)
        holds = NEEDLE.encode() in (process / "environ").read_bytes()
        # Where they differ, it became another program meanwhile.
        if holds and before and before == _arguments(process):
            self.holders[int(process.name)] = before


def _arguments(process: Path) -> str:
    return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")


async def test_secrets_travel_unseen(place: Place, start: Start, fleet: Fleet) -> None:
    """Only the agent on the host gets its key; it is on no command line, in no file and in no
    environment but the daemon's and the agent's, and nothing that is told or shown holds it."""
    place.loaded = None  # whose command lines are looked at
    (host,) = fleet.add("one")
    hooks = ("after_create", "before_run", "after_run")
    fleet.write_workflow(
        tracker={"api_key": "$TRACKER_TOKEN"},
        agent={"command": [sys.executable, str(KEEPER)], "max_turns": 1},
        hooks={name: f"env > ../../{name}.txt; env" for name in hooks},
        worker={"ssh_pass_env": ["KEEPER_SECONDS", "SORTIE_REMOTE", *SECRETS]},
    )
    place.add_issue("A")
    lookout = Lookout()

    with lookout.watching():
        async with start("--log-level", "debug", KEEPER_SECONDS="1", **SECRETS) as daemon:
            await daemon.line("issue.moved", issue="A", lifecycle="handoff")
            page, state = await daemon.get("/metrics"), await daemon.get("/api/v1/state")
    given = json.loads((host.home / "workspaces" / "A" / "given.json").read_text())
    history = json.dumps(await place.history())
    holders = [
        line
        for pid, line in lookout.holders.items()
        if pid != daemon.process.pid and not is_of_the_daemon(line)
    ]

    assert any(str(KEEPER) in line and "chat" in line for line in lookout.arguments)
    assert [line for line in lookout.arguments if NEEDLE in line] == []
    # Beside the program there may be what waits for it outside of its PID namespace.
    assert 1 <= len(holders) <= 2
    assert all(str(KEEPER) in line for line in holders), holders
    assert "I wrote down what I was given, but for" in json.dumps(daemon.log)
    for text in (json.dumps(daemon.log), page.text, state.text, history):
        assert NEEDLE not in text
    assert telltales(place.root, NEEDLE) == []
    assert given["environ"].keys() & SECRETS.keys() == set()
    assert given["environ"]["SORTIE_SSH_HOST"] == "one"
    assert given["environ"]["GIT_CEILING_DIRECTORIES"] == str(host.home / "workspaces")
    for name in hooks:
        assert "KIRO_API_KEY" not in (host.home / f"{name}.txt").read_text()
        assert "SORTIE_SSH_HOST=one" in (host.home / f"{name}.txt").read_text()


async def test_inline_delivery_shows_what_it_says(place: Place, start: Start, fleet: Fleet) -> None:
    """Asked for, the key stands in the remote command line and the command is a piece of shell.

    Nothing else that is told or shown holds it all the same.
    """
    (host,) = fleet.add("one")
    fleet.write_workflow(
        agent={"command": f"nice {shlex.join([sys.executable, str(KEEPER)])}", "max_turns": 1},
        worker={"ssh_pass_env": ["KEEPER_SECONDS"], "ssh_secret_delivery": "inline"},
    )
    place.add_issue("A", title='it\'s $(touch pwned) `id` "quoted"')
    lookout = Lookout()

    with lookout.watching():
        async with start("--log-level", "debug", KEEPER_SECONDS="1", **SECRETS) as daemon:
            await daemon.line("issue.moved", issue="A", lifecycle="handoff")
            state = await daemon.get("/api/v1/state")
    workspace = host.home / "workspaces" / "A"
    given = json.loads((workspace / "given.json").read_text())

    assert any(SECRETS["KIRO_API_KEY"] in line for line in lookout.arguments)
    assert "$(touch pwned) `id`" in given["prompt"]
    assert sorted(os.listdir(workspace)) == [".sortie", "given.json"]
    for text in (json.dumps(daemon.log), state.text, json.dumps(await place.history())):
        assert NEEDLE not in text
    assert telltales(place.root, NEEDLE) == []
