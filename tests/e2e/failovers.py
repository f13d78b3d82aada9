"""Two daemons of one workflow, and what may befall the one that leads it.

Their agents are witnesses: each locks its issue, so that a second agent of an issue is noted,
whichever daemon has started it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import trio

from tests.e2e.daemon import Daemon, run_command
from tests.e2e.place import Json, Place
from tests.e2e.witnessing import let_witness, witnessed
from tests.ports import free_port
from tests.store.postgres_proxy import PostgresProxy
from tests.store.postgres_server import PostgresServer, mount_disk

BLOWS = ("killed", "stopped", "cut off", "refused", "full")
"""What a leader suffers: SIGKILL, SIGSTOP, a network to the server that is silent, or refuses, and
a full disk of its workspaces."""

DISK = 16
"""Megabytes of each daemon's disk of workspaces."""

TAKEOVER_LIMIT = 20.0
"""Seconds from a blow to the next leader on a machine that has little else to do."""

SLOTS = 3


@dataclass
class Candidate:
    """A daemon with a directory of its own, and its way to the server."""

    place: Place
    daemon: Daemon
    proxy: PostgresProxy

    @property
    def pid(self) -> int:
        """The process of the daemon."""
        return self.daemon.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the daemon has ended."""
        return not psutil.pid_exists(self.pid) or self.daemon.is_silent

    @property
    def stands_by(self) -> bool:
        """Whether the daemon has said that it waits, since it lost a lease last."""
        told = [line["event"] for line in self.daemon.log if line["event"].startswith("lease.")]
        return told[-1:] == ["lease.waiting"]

    @property
    def filler(self) -> Path:
        """What fills the disk of the workspaces."""
        return self.place.workspaces / ".filler"

    def fill_disk(self) -> None:
        """Leave no room on the disk of the workspaces."""
        with self.filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 65536)


@dataclass
class Pair:
    """Two candidates that lead one workflow by turns. ``took`` are the seconds that takeovers took,
    and ``seen`` the tokens of leaders."""

    place: Place
    server: PostgresServer
    schema: str
    nursery: trio.Nursery
    candidates: list[Candidate] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    mounts: list[Path] = field(default_factory=list)
    blows: list[str] = field(default_factory=list)
    hung: list[int] = field(default_factory=list)
    joined: list[Candidate] = field(default_factory=list)

    async def join(self, name: str) -> Candidate:
        """Start a further daemon, with its own directory."""
        root = self.place.root / name
        proxy = PostgresProxy(self.server.port)
        await self.nursery.start(proxy.run)
        root.mkdir(exist_ok=True)
        place = self._placed(root)
        place.workspaces.mkdir()
        mount_disk(str(place.workspaces), DISK)
        self.mounts.append(place.workspaces)
        port = free_port()
        daemon = Daemon(place, self.nursery, run_command(port=port), port)
        url = self.server.url.replace(f":{self.server.port}/", f":{proxy.port}/")
        # One that comes later has next to no weight: the workflow is not handed over to it.
        weight = 1000 / 100 ** (len(self.mounts) - 1)
        daemon.environ = {"SORTIE_STORE_URL": url, "SORTIE_WEIGHT": f"{weight:.12f}"}
        await daemon.__aenter__()
        made = Candidate(place, daemon, proxy)
        self.candidates.append(made)
        self.joined.append(made)
        return made

    def _placed(self, root: Path) -> Place:
        place = Place(root)
        place.loaded = self.place.loaded
        place.workflow.write_text(self.place.workflow.read_text())
        return place

    def leader(self) -> tuple[int, int] | None:
        """Return the pid and the token of the daemon that leads, None where none does."""
        rows = self.server.ask(
            "SELECT name, token FROM sortie_shared.leases"
            " WHERE workflow = %s AND daemon IS NOT NULL AND expires > now()",
            self.schema,
        )
        return (int(str(rows[0][0]).rpartition(":")[2]), int(str(rows[0][1]))) if rows else None

    async def led(self, but: int = 0, within: float = 60.0) -> Candidate:
        """Wait until a daemon leads that is not ``but``, a pid."""
        with trio.fail_after(within):
            while (found := self.leader()) is None or found[0] == but:
                await trio.sleep(0.1)
        self.tokens.append(found[1])
        return next(each for each in self.candidates if each.pid == found[0])

    async def worked_on(self, agents: int) -> None:
        """Wait until so many agents have begun."""
        with trio.fail_after(60.0):
            while len(self.agents()) < agents:
                await trio.sleep(0.1)

    def agents(self) -> list[Json]:
        """Return what each agent has noted as it began."""
        begun = witnessed(self.place, "start")
        return [line for line in begun if line["program"] == "agent"]

    async def strike(self, blow: str) -> Candidate:
        """Strike the leader, and wait for the next one, which is returned."""
        former = await self.led()
        self.blows.append(f"{former.pid} {blow}")
        at = time.monotonic()
        match blow:
            case "killed":
                former.daemon.signal(signal.SIGKILL)
            case "stopped":
                former.daemon.signal(signal.SIGSTOP)
            case "cut off":
                former.proxy.is_silent = True
            case "refused":
                former.proxy.refuse()
            case _:
                former.fill_disk()
        following = await self.led(but=former.pid)
        self.took.append(time.monotonic() - at)
        await self._let_wake(former, blow)
        return following

    async def _let_wake(self, former: Candidate, blow: str) -> None:
        """Let what was stopped or cut off go on; then it must be gone, or stand by."""
        if blow == "stopped":
            with suppress(ProcessLookupError):
                os.kill(former.pid, signal.SIGCONT)
        former.proxy.heal()
        former.proxy.is_silent = False
        former.filler.unlink(missing_ok=True)
        with trio.fail_after(60.0):
            while not former.has_ended and not former.stands_by:
                await trio.sleep(0.1)
        if former.has_ended:  # by its watchdog, or since it could not open the database
            code = await former.daemon.exit_code()
            assert code == -signal.SIGKILL or "cannot open the database" in former.daemon.strays[-1]
            self.candidates.remove(former)
        else:
            assert blow not in ("killed", "stopped")

    def tell(self) -> None:
        """Show the blows, and what the daemons have said, those that are gone included."""
        sys.stderr.write(f"blows: {self.blows}, seconds: {self.took}\n")
        for each in self.joined:
            sys.stderr.write(f"process {each.pid} of {each.place.root}\n")
            sys.stderr.writelines(f"{json.dumps(line)}\n" for line in each.daemon.log)
            sys.stderr.writelines(f"{line}\n" for line in each.daemon.strays)

    def troubles(self) -> Sequence[object]:
        """Return what witnesses saw that must never be."""
        return witnessed(self.place, "trouble")

    def leaderships(self) -> list[tuple[object, ...]]:
        """Return the tokens, daemons and ends of all that have led the workflow, in their order."""
        return self.server.ask(
            "SELECT token, name, ended_by FROM sortie_shared.leaderships WHERE workflow = %s"
            " ORDER BY token",
            self.schema,
        )


@asynccontextmanager
async def a_pair(
    place: Place, server: PostgresServer, **blocks: Mapping[str, object] | str
) -> AsyncIterator[Pair]:
    """Give a workflow with three issues, whose agents wait, and two daemons that would lead it.

    ``blocks`` are further settings of the workflow.
    """
    schema = server.schema()
    let_witness(
        place,
        {"stop_grace_ms": 500, "max_retry_backoff_ms": 1000},
        slots=SLOTS,
        seconds=0,
        file={"path": str(place.issues)},
        polling={"interval_ms": 500},
        store={"url": "$SORTIE_STORE_URL", "schema": schema, "weight": "$SORTIE_WEIGHT"},
        **blocks,
    )
    (place.root / "locks").mkdir(exist_ok=True)
    for number in range(SLOTS):
        place.add_issue(f"I-{number}", "delay=600")
    async with trio.open_nursery() as nursery:
        pair = Pair(place, server, schema, nursery)
        try:
            first = await pair.join("one")
            await first.daemon.line("lease.acquired")
            await pair.join("two")
            yield pair
        except BaseException:
            pair.tell()
            raise
        finally:
            for each in pair.candidates:
                each.proxy.heal()
                each.proxy.is_silent = False
            with trio.CancelScope(shield=True):
                for each in pair.candidates:
                    with suppress(ProcessLookupError):
                        each.daemon.signal(signal.SIGTERM)
                for each in pair.candidates:
                    try:
                        await each.daemon.exit_code()
                    except trio.TooSlowError:
                        each.daemon.kill()
                        pair.hung.append(each.pid)
                for path in pair.mounts:
                    subprocess.run(["umount", "--lazy", str(path)], check=True)
            nursery.cancel_scope.cancel()


def watchdogs() -> list[str]:
    """Return the processes of watchdogs that are there."""
    shown = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return [line for line in shown.splitlines() if "lease_watchdog" in line]
