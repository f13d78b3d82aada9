"""A game with leaders that are struck while their runs deliver work, and those that follow."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import trio

from tests.e2e.contenders import Contender, told
from tests.e2e.daemon import Daemon, run_command
from tests.e2e.failover_places import RunsPlace
from tests.e2e.failover_verdicts import Leadership, Played, Strike
from tests.e2e.failover_world import HANDOFF, Change, World
from tests.e2e.machines import machine
from tests.e2e.place import Place
from tests.e2e.witnessing import WITNESS, let_witness, witnessed
from tests.ports import free_port
from tests.skewed_clock import MISSING as NO_CLOCK
from tests.skewed_clock import SkewedClock
from tests.store.postgres_server import PostgresServer, mount_disk

BLOWS = ("killed", "stopped", "cut", "paused", "full")
"""What a leader suffers: SIGKILL, SIGSTOP, its cable is pulled, SIGSTOP of its watchdog as well,
so that it wakes when another one leads, and a full disk of its workspaces."""

SLOTS, DISK = 3, 64
"""Runs at a time, and megabytes of each daemon's disk of workspaces."""

LIMIT = 300.0
"""Seconds in which all is done, and for which a leader is waited for, at a load of 20."""

_MENDED_AFTER = (11.0, 13.5, 15.0, 17.0, 25.0)
"""Seconds after which a cable is plugged in again: some before the lease is over."""

_SLEEP = 1.0
"""Hours that have passed for a leader that was paused, by all of its machine's clocks."""

_AWAKE = 3.0
"""Seconds for which it is awake before its watchdog is."""

_DELIVERS = 'printf "done-by-agent %s\\n" "$SORTIE_ISSUE_IDENTIFIER" >out.txt'
_HIDES = """
touch .made
hidden=$(git rev-parse --git-path info/exclude)
mkdir -p "${hidden%/*}"
printf '.made\\nwork\\n' >>"$hidden"
"""
"""What hides the files of witnesses from git."""


@dataclass
class FailoverGame:
    """One game: ``chance`` decides what befalls leaders, and ``runs`` is where runs live."""

    place: Place
    server: PostgresServer
    schema: str
    world: World
    runs: RunsPlace
    nursery: trio.Nursery
    stack: ExitStack
    chance: random.Random
    blows: Sequence[str]
    living: list[Contender] = field(default_factory=list)
    joined: list[Contender] = field(default_factory=list)
    strikes: list[Strike] = field(default_factory=list)
    tell: Callable[[Strike], object] = lambda _strike: None
    wrong: list[str] = field(default_factory=list)
    struck: int = 0

    async def play(self, failovers: int) -> Played:
        """Strike so many leaders, and let the last one finish."""
        self._prepare()
        for _ in range(2):
            await self._join()
        order: list[str] = []
        for _ in range(failovers):
            order = order or self.chance.sample(self.blows, len(self.blows))
            self._add_issues()
            await self._strike(order.pop())
            while len(self.living) < 2:
                await self._join()
        self._add_issues()
        await self._strike("paused", sleeps=True)
        await self._finish()
        return Played(
            place=self.place,
            world=self.world,
            strikes=self.strikes,
            leaderships=self._leaderships(),
            shown=(await told(self.place, self._environ, "--leaders"))["leaderships"],
            rows=await told(self.place, self._environ),
            addresses={one.pid: one.machine.address for one in self.joined},
            left=[*self.wrong, *self.place.kill_processes(), *await self.runs.left()],
        )

    @property
    def _environ(self) -> dict[str, str]:
        return {**self.world.environ, "SORTIE_STORE_URL": self.server.url, "SORTIE_WEIGHT": "1"}

    def _prepare(self) -> None:
        (self.place.root / "locks").mkdir(exist_ok=True)
        let_witness(
            self.place,
            {"stop_grace_ms": 500, "max_retry_backoff_ms": 1000},
            slots=SLOTS,
            seconds=0,
            polling={"interval_ms": 1000},
            store={"url": "$SORTIE_STORE_URL", "schema": self.schema, "weight": "$SORTIE_WEIGHT"},
            **self.world.blocks,
            **self.runs.blocks,
            hooks=self._hooks(),
        )

    def _hooks(self) -> dict[str, object]:
        program = f"{sys.executable} {WITNESS} {self.place.root} {SLOTS}"
        return {
            "after_create": _HIDES,
            "before_run": f"{_DELIVERS}; exec {program} before_run 0",
            "after_run": f"exec {program} after_run 0",
            "before_remove": f"exec {program} before_remove 0",
        }

    async def _join(self) -> None:
        """Start a further daemon on a machine of its own."""
        number = len(self.joined)
        on = self.stack.enter_context(machine())
        root = self.place.root / f"machine-{number}"
        root.mkdir()
        place = Place(root)
        place.workflow.write_text(self.place.workflow.read_text())
        place.workspaces.mkdir()
        mount_disk(str(place.workspaces), DISK)
        self.stack.callback(os.system, f"umount --lazy {place.workspaces}")
        port = free_port()
        daemon = Daemon(place, self.nursery, (*on.words, *run_command(port=port)), port)
        # One that comes later has next to no weight: the workflow is not handed over to it.
        clock = SkewedClock(root / "clock", all_clocks=True)
        daemon.environ = {
            **self._environ,
            **clock.environ,
            "KIRO_SIM_LOG": str(self.place.agents_log),
            "SORTIE_WEIGHT": f"{max(1000 / 100**number, 1e-12):.12f}",
        }
        await daemon.__aenter__()
        made = Contender(place=place, daemon=daemon, machine=on, clock=clock)
        self.living.append(made)
        self.joined.append(made)
        with trio.fail_after(LIMIT):
            while not made.told("lease."):
                assert not made.has_ended, daemon.strays
                await trio.sleep(0.1)

    def _add_issues(self) -> None:
        """Have some more issues than are worked on at once."""
        numbers = self.world.numbers
        open_ones = [one for one in numbers if self.world.state_of(one) != HANDOFF]
        for _ in range(SLOTS + 2 - len(open_ones)):
            number = len(self.world.numbers) + 1
            self.world.add(number, f"delay={self.chance.choice((0, 1, 3, 8, 25))}")

    def _leaderships(self) -> list[Leadership]:
        rows = self.server.ask(
            "SELECT token, name, extract(epoch FROM since), extract(epoch FROM until), ended_by"
            " FROM sortie_shared.leaderships WHERE workflow = %s ORDER BY token",
            self.schema,
        )
        return [Leadership.of(*row) for row in rows]

    async def _led(self, after: int = 0) -> tuple[Contender, int]:
        """Wait for a leader with a token greater than ``after``."""
        with trio.fail_after(LIMIT):
            while True:
                rows = self.server.ask(
                    "SELECT name, token FROM sortie_shared.leases"
                    " WHERE workflow = %s AND daemon IS NOT NULL AND expires > now()",
                    self.schema,
                )
                if rows and int(str(rows[0][1])) > after:
                    pid = int(str(rows[0][0]).rpartition(":")[2])
                    return next(one for one in self.joined if one.pid == pid), int(str(rows[0][1]))
                ended = [one.pid for one in self.living if one.has_ended and one.pid != self.struck]
                assert not ended, f"nothing befell these processes, which have ended: {ended}"
                await trio.sleep(0.25)

    async def _strike(self, blow: str, *, sleeps: bool = False) -> None:
        """Strike the leader, wait for the next one, and let the former one go on if it can; one
        that ``sleeps`` does so when all issues are handed off."""
        began = len(witnessed(self.place, "start"))
        with trio.fail_after(LIMIT):
            while len(witnessed(self.place, "start")) == began and self._has_work():
                await trio.sleep(0.1)
        former, token = await self._led()
        self.struck = former.pid
        lines = len(former.daemon.log)
        moment = await self._moment(former, blow)
        at = time.monotonic()
        mended = self.chance.choice(_MENDED_AFTER)
        async with trio.open_nursery() as nursery:
            if blow == "cut":
                nursery.start_soon(former.mend_in, mended)
            _, following = await self._led(after=token)
            took = time.monotonic() - at
        struck = Strike(blow=blow, moment=moment, token=token, next=following, seconds=took)
        self.strikes.append(struck)
        self.tell(struck)
        if sleeps:
            await self._all_done()
        elif blow != "cut":
            await trio.sleep(self.chance.uniform(0.0, 5.0))
        before = await self._seen(former)
        if blow == "paused" and not NO_CLOCK:
            former.clock.set(_SLEEP)
        former.go_on()
        if blow == "paused":
            await trio.sleep(_AWAKE)
        former.wake_watchdog()
        with trio.fail_after(LIMIT):
            while not former.has_ended and not former.told("lease.", since=lines):
                await trio.sleep(0.1)
        if sleeps and (after := await self._seen(former)) != before:
            self.wrong.append(f"a leader that woke changed something: {before} is now {after}")
        if blow == "paused":  # its clocks are those of no watchdog that it would start now
            former.daemon.signal(signal.SIGTERM)
        if former.has_ended or blow == "paused":
            await former.daemon.exit_code(within=LIMIT)
            self.living.remove(former)
        elif blow in ("killed", "stopped"):
            self.wrong.append(f"process {former.pid} lives that was {blow}")

    async def _seen(self, former: Contender) -> object:
        """Return all that a leader that wakes could change, once nothing is to be done any more."""
        return (
            self.server.ask(
                "SELECT id, expires, draining FROM sortie_shared.daemons WHERE name LIKE %s",
                f"%:{former.pid}",
            ),
            len(self.world.changes),
            [self.world.comments_on(number) for number in self.world.numbers],
            [self.world.updates_of(number) for number in self.world.numbers],
            len(self.world.forged.service.requests),
            len(witnessed(self.place, "start")),
            [(one.token, one.until) for one in self._leaderships()],
            await self.runs.seen(),
        )

    def _has_work(self) -> bool:
        return any(self.world.state_of(one) != HANDOFF for one in self.world.numbers)

    async def _moment(self, former: Contender, blow: str) -> str:
        """Strike at some moment, or at a request that changes something; return which."""
        strike = former.blows[blow]
        if blow == "full" or self.chance.random() < 0.5:
            await trio.sleep(self.chance.uniform(0.0, 4.0))
            strike()
            return "any"
        wanted = self.chance.random() < 0.5
        struck: list[str] = []

        def trap(change: Change, performed: bool) -> None:
            if not struck and performed == wanted and change.client == former.machine.address:
                struck.append(f"{'after' if performed else 'before'} {change.where} {change.asked}")
                strike()

        self.world.on_change = trap
        with trio.move_on_after(10.0):
            while not struck:
                await trio.sleep(0.05)
        self.world.on_change = lambda _change, _performed: None
        if not struck:
            strike()
        return struck[0] if struck else "any"

    async def _all_done(self) -> None:
        """Wait until all issues are handed off, and what follows from that is done."""
        with trio.move_on_after(LIMIT):
            while self._has_work():
                await trio.sleep(0.2)
        await trio.sleep(3.0)

    async def _finish(self) -> None:
        """Let all issues be handed off, and end the daemons."""
        await self._all_done()
        for one in self.living:
            with suppress(ProcessLookupError):
                one.daemon.signal(signal.SIGTERM)
        for one in self.living:
            code = await one.daemon.exit_code(within=LIMIT)
            if code != 0:
                self.wrong.append(f"process {one.pid} ended with {code}: {one.daemon.strays[-3:]}")

    def write_log(self) -> None:
        """Write down what daemons said, what befell them, and what was changed."""
        with (self.place.root / "log.txt").open("w") as file:
            for one in self.joined:
                one.tell(file)
            file.writelines(f"{one}\n" for one in (*self.strikes, *self.world.changes))
