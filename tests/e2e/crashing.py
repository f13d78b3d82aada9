"""A daemon that is killed again and again while it works, at moments drawn from a seed.

``python -m tests.e2e.crashing --seeds 10`` plays that many games, one after another, each with a
seed of its own, and keeps the directory of one that fails. A seed fixes the issues and the plan
of the kills; what a kill hits depends on the machine.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import trio

from tests.e2e.crash_plans import SLOTS, Kill, Plan, draw
from tests.e2e.crash_verdicts import Life, Played, found, verdicts
from tests.e2e.daemon import Daemon, run_command
from tests.e2e.place import PATIENCE, Place
from tests.e2e.ways_of_ending import BY_EVERYBODY, SEARCHING, WITHOUT_CGROUPS
from tests.e2e.witnessing import let_witness
from tests.ports import free_port

BACKOFF = 1.0
GRACE = 0.3
HOOK = 0.1
"""Seconds that a retry waits, that a process has from SIGTERM to SIGKILL, that a hook takes."""

LONGEST_WAIT = 2.0
LONGEST_WAIT_FOR_AGENTS = 15.0
"""Seconds after which what a kill was to follow is no longer waited for: a line of the log, and
agents, whose start takes long on a busy machine, and without which there is nothing to find."""

LAST_LIFE = 60.0
"""Seconds in which what the killed daemons left must be finished."""

MOST_TOLD = 30
"""How many of the things that are wrong are told; where much is, the first say it."""


@dataclass(slots=True)
class Game:
    """One plan being played in a place; ``before`` stands before each daemon's command."""

    place: Place
    plan: Plan
    before: tuple[str, ...] = ()
    lives: list[Life] = field(default_factory=list)
    last_code: int | None = None
    left: list[str] = field(default_factory=list)

    async def play(self, nursery: trio.Nursery) -> Played:
        """Kill as planned, then let one daemon finish; return what there is to be judged."""
        self._prepare()
        began = trio.current_time()
        for number, kill in enumerate(self.plan.kills):
            self._add_issues(number)
            await self._killed_life(nursery, number, kill)
        killed = trio.current_time()
        self._add_issues(len(self.plan.kills))
        await self._last_life(nursery)
        return Played(
            place=self.place,
            ends={task.name: task.end for task in self.plan.tasks},
            backoff=BACKOFF,
            lives=tuple(self.lives),
            seconds=(killed - began, trio.current_time() - killed),
            last_code=self.last_code,
            left=tuple(self.left),
            rows=await self.place.history(),
        )

    def _prepare(self) -> None:
        agent = {
            "max_retry_backoff_ms": round(BACKOFF * 1000),
            "stop_grace_ms": round(GRACE * 1000),
        }
        let_witness(self.place, agent, slots=SLOTS, seconds=HOOK)
        (self.place.root / "lives").mkdir()
        (self.place.root / "locks").mkdir()

    def _add_issues(self, life: int) -> None:
        for task in self.plan.tasks:
            if task.arrives == life:
                directives = task.directives
                if task.end == "Done":
                    path = self.place.issues / f"{task.name}.md"
                    directives += f' set_state="{path} Done"'
                self.place.add_issue(task.name, directives)

    def _daemon(self, nursery: trio.Nursery, *options: str) -> Daemon:
        port = free_port()
        return Daemon(self.place, nursery, self.before + run_command(*options, port=port), port)

    async def _killed_life(self, nursery: trio.Nursery, number: int, kill: Kill) -> None:
        spawned = time.time()
        async with self._daemon(nursery) as daemon:
            await self._moment(daemon, kill)
            assert daemon.process.returncode is None, f"life {number} ended before it was killed"
            daemon.signal(signal.SIGKILL)
            code = await daemon.exit_code()
            self._keep(daemon, number, spawned)
            assert code == -signal.SIGKILL

    async def _moment(self, daemon: Daemon, kill: Kill) -> None:
        """Wait for what the plan says; what is expected of a game depends on no sleep."""
        agents = len(self.place.agents())
        if kill.sign == "locked":
            with trio.fail_after(PATIENCE):
                while not self._has_the_root(daemon):
                    await trio.sleep(0.01)
        elif kill.sign != "spawned":
            await daemon.line("daemon.started")
            for_agents = kill.sign == "agent"
            with trio.move_on_after(LONGEST_WAIT_FOR_AGENTS if for_agents else LONGEST_WAIT):
                if not for_agents:
                    await daemon.line(kill.sign, nth=kill.nth)
                while for_agents and len(self.place.agents()) < agents + kill.nth:
                    await trio.sleep(0.02)
        await trio.sleep(kill.after)

    def _has_the_root(self, daemon: Daemon) -> bool:
        try:
            note = json.loads((self.place.workspaces / "@daemon.lock").read_text())
        except (FileNotFoundError, ValueError):
            return False  # nobody had it yet, or the note is being written
        return bool(note["pid"] == daemon.process.pid)

    async def _last_life(self, nursery: trio.Nursery) -> None:
        spawned = time.time()
        async with self._daemon(nursery, "--exit-when-idle") as daemon:
            with trio.move_on_after(LAST_LIFE):
                self.last_code = await daemon.exit_code(within=2 * LAST_LIFE)
            self._keep(daemon, len(self.plan.kills), spawned)
            if self.last_code is None:
                daemon.signal(signal.SIGKILL)
                await daemon.exit_code()
            self.left = self.place.kill_processes()

    def _keep(self, daemon: Daemon, number: int, spawned: float) -> None:
        root = self._has_the_root(daemon)
        life = Life(number=number, spawned=spawned, log=daemon.log, had_the_root=root)
        self.lives.append(life)
        lines = [f"{json.dumps(line)}\n" for line in life.log]
        (self.place.root / "lives" / f"{number:02}.jsonl").write_text("".join(lines))


def reached(played: Played) -> str:
    """Say in one line what the kills hit, and what came of the runs."""
    hit = Counter(life.hit for life in played.lives[:-1])
    statuses = Counter(row["status"] for row in played.rows)
    killing, finishing = played.seconds
    return (
        f"{killing:.0f}+{finishing:.0f} s, {len(played.rows)} runs {dict(statuses)},"
        f" kills hit {dict(hit)}, {found(played)} processes were found by a next daemon,"
        f" the slowest start took {max(life.start for life in played.lives):.1f} s"
    )


async def crash(
    place: Place, nursery: trio.Nursery, plan: Plan, before: tuple[str, ...] = ()
) -> tuple[list[str], str]:
    """Play a plan; return what is wrong, and a line that says what was reached."""
    played = await Game(place, plan, before).play(nursery)
    return list(verdicts(played))[:MOST_TOLD], reached(played)


async def _one(root: Path, plan: Plan, before: tuple[str, ...]) -> tuple[list[str], str]:
    async with trio.open_nursery() as nursery:
        return await crash(Place(root), nursery, plan, before)


def _seeds(first: int | None, count: int) -> Iterator[int]:
    start = time.time_ns() // 1_000_000 % 1_000_000 if first is None else first
    return iter(range(start, start + count))


def main() -> int:
    """Play as many games as asked for; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.crashing", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many games (default: 1)")
    parser.add_argument("--seed", type=int, help="the first seed (default: from the clock)")
    parser.add_argument("--issues", type=int, default=30)
    parser.add_argument("--kills", type=int, default=50)
    ways = {
        "here": (),
        "cgroups": SEARCHING,
        "without-cgroups": WITHOUT_CGROUPS,
        "everybody": BY_EVERYBODY,
    }
    parser.add_argument("--way", choices=ways, default="here", help="how it tells who is left")
    asked = parser.parse_args()
    before: tuple[str, ...] = ways[asked.way]
    failed = False
    for seed in _seeds(asked.seed, asked.seeds):
        root = Path(mkdtemp(prefix=f"sortie-crash-{seed}-"))
        try:
            plan = draw(seed, issues=asked.issues, kills=asked.kills)
            wrong, line = trio.run(_one, root, plan, before)
        except BaseException:
            sys.stdout.write(f"seed {seed}: did not come to its end; see {root}\n")
            raise
        sys.stdout.write(f"seed {seed}: {'FAILED' if wrong else 'ok'}: {line}\n")
        sys.stdout.writelines(f"  {text}\n" for text in wrong)
        sys.stdout.flush()
        if wrong:
            failed = True
            sys.stdout.write(f"  see {root}\n")
        else:
            shutil.rmtree(root)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
