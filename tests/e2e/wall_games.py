"""Agents behind a wall while its parts are struck one after another, and the daemon as well.

``python -m tests.e2e.wall_games --wall pods`` plays all blows of a wall; ``--blow NAME`` one of
them, as often as it is named. The directory of a game that fails is kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import trio

from tests.e2e.crash_verdicts import Life, Played, processes, run_ids, troubles
from tests.e2e.daemon import Daemon, run_command
from tests.e2e.place import Place
from tests.e2e.pod_walls import pods
from tests.e2e.remote_walls import MINUTES, host
from tests.e2e.traces import cgroups, mounts, processes_about, temporary_files
from tests.e2e.walls import Struck, Wall, bubblewrap, container
from tests.e2e.witnessing import let_witness, witnessed
from tests.ports import free_port
from tests.transports.containers import IMAGE

WALLS: Mapping[str, Callable[[Place], AbstractAsyncContextManager[Wall]]] = {
    "bubblewrap": bubblewrap,
    "container": container,
    "host": host,
    "sandboxed host": partial(host, sandbox={"kind": "bubblewrap", "network": ["127.0.0.1:9"]}),
    "contained host": partial(
        host,
        sandbox={"kind": "container", "image": IMAGE, "engine": "podman", "network": "none"},
    ),
    "patient host": partial(host, reattach=MINUTES + 100.0),
    "pods": pods,
    "sandboxes": partial(pods, sandboxes=True),
}

SLOTS = 2
GRACE = 0.3
BACKOFF = 0.5
HOOK = 0.0
"""Seconds, as in games of crashes."""

WORK = ("silence=0.5", "delay=0.5 child=double_fork", "silence=0.5 ignore_sigterm=1")
"""What the agent that was struck does then, where it lives on."""

HOUR = 3600.0

LIMIT = 160.0
"""Seconds in which an issue is done whatever was struck: a lease, a back-off, and a load of 20."""


@dataclass(slots=True)
class WallGame:
    """Blows that are played in a place, each at an agent that works until it was struck."""

    place: Place
    wall: Wall
    blows: Sequence[str]
    struck: int = 0
    daemons: list[Daemon] = field(default_factory=list)
    works: dict[str, list[str]] = field(default_factory=dict)

    @property
    def _temporary(self) -> Path:
        """The daemons' TMPDIR."""
        return self.place.root / "t"

    async def play(self, nursery: trio.Nursery) -> Played:
        """Strike, and let the last daemon finish; return what there is to be judged."""
        self._prepare()
        began = time.time()
        is_over = False
        while not is_over:
            async with self._daemon(nursery) as daemon:
                await daemon.line("daemon.started")
                is_over = await self._life(daemon)
        async with self._daemon(nursery, "--exit-when-idle") as daemon:
            await daemon.exit_code(within=LIMIT)
        self._keep_logs()
        left = [*self.place.kill_processes(), *await self.wall.left(), *self._traces(began)]
        return Played(
            place=self.place,
            ends=dict.fromkeys(map(self._issue, range(len(self.blows))), "Done"),
            backoff=BACKOFF,
            lives=tuple(
                Life(number=n, spawned=began, log=daemon.log, had_the_root=True)
                for n, daemon in enumerate(self.daemons)
            ),
            seconds=(time.time() - began, 0.0),
            last_code=self.daemons[-1].process.returncode,
            left=left,
            rows=await self.place.history(),
        )

    def _prepare(self) -> None:
        (self.place.root / "locks").mkdir(exist_ok=True)
        self._temporary.mkdir()
        agent = {
            "max_retry_backoff_ms": round(BACKOFF * 1000),
            "stop_grace_ms": round(GRACE * 1000),
        }
        let_witness(self.place, agent, slots=SLOTS, seconds=HOOK, **self.wall.blocks)

    def _keep_logs(self) -> None:
        (self.place.root / "lives").mkdir()
        for number, daemon in enumerate(self.daemons):
            lines = [f"{json.dumps(line)}\n" for line in daemon.log]
            (self.place.root / "lives" / f"{number:02}.jsonl").write_text("".join(lines))

    def _daemon(self, nursery: trio.Nursery, *options: str) -> Daemon:
        port = free_port()
        daemon = Daemon(self.place, nursery, run_command(*options, port=port), port)
        daemon.environ = {**self.wall.environ, "TMPDIR": str(self._temporary)}
        self.daemons.append(daemon)
        return daemon

    def _traces(self, since: float) -> Iterator[str]:
        pids = [daemon.process.pid for daemon in self.daemons]
        yield from temporary_files(self._temporary)
        yield from cgroups(pids, since)
        yield from mounts(self.place.root)
        yield from processes_about(self.place.root)

    def _issue(self, number: int) -> str:
        return f"W-{number}"

    async def _life(self, daemon: Daemon) -> bool:
        """Strike until the daemon is killed, or all is done; return whether it is."""
        while self.struck < len(self.blows):
            number, name = self.struck, self.blows[self.struck]
            self.struck += 1
            await self._strike(daemon, number, name)
            if daemon.process.returncode is not None:
                return False
        for number in range(len(self.blows)):
            await self._until_in("Human Review", number)
        for number in range(len(self.blows)):
            self.works[self._issue(number)] = self._work(self._issue(number))
            self.place.add_issue(self._issue(number), state="Done")
        return True

    async def _strike(self, daemon: Daemon, number: int, name: str) -> None:
        """Have an agent work, strike, and wait for its issue unless the daemon is gone."""
        issue = self._issue(number)
        waits = self.place.root / "locks" / f"wait-{issue}"
        waits.touch()
        self.place.add_issue(issue, WORK[number % len(WORK)])
        with trio.fail_after(LIMIT):
            while not (turns := self._turns(issue)):
                await trio.sleep(0.02)
        blows = {**self.wall.blows, **self.wall.long_blows}
        await blows[name](Struck(daemon=daemon, issue=issue, run_id=turns[0]))
        waits.unlink(missing_ok=True)
        if daemon.process.returncode is None:
            await self._until_in("Human Review", number)

    async def _until_in(self, state: str, number: int) -> None:
        with trio.move_on_after(LIMIT):
            while self.place.state_of(self._issue(number)) != state:
                await trio.sleep(0.05)
            return
        issue, blow = self._issue(number), self.blows[number]
        raise AssertionError(f"{issue} ({blow}) is {self.place.state_of(issue)} for {LIMIT} s")

    def _turns(self, issue: str) -> list[str]:
        return [line["run_id"] for line in witnessed(self.place, "turn") if line["issue"] == issue]

    def _work(self, issue: str) -> list[str]:
        """Return the runs whose work is in the workspace of an issue."""
        (row,) = {
            line["workspace"]
            for daemon in self.daemons
            for line in ({"workspace": each["path"]} for each in daemon.lines("workspace.ready"))
            if line["workspace"].endswith(f"/{issue}")
        }
        return (Path(row) / "work").read_text().split()

    def wrong(self, played: Played) -> Iterator[str]:
        """Yield everything that must not be."""
        yield from processes(played)
        yield from troubles(played)
        yield from run_ids(played)
        yield from self._long_waits()
        for number, blow in enumerate(self.blows):
            issue = self._issue(number)
            for text in self._wrong_with(issue, blow, played):
                yield f"{issue} ({blow}): {text}"

    def _long_waits(self) -> Iterator[str]:
        """No time that a daemon tells is wrong by the hours by which a clock is off."""
        for line in (line for daemon in self.daemons for line in daemon.log):
            for name in ("seconds", "delay"):
                if not 0 <= line.get(name, 0) < HOUR:
                    yield f"{line['event']} tells of {line[name]} s"

    def _wrong_with(self, issue: str, blow: str, played: Played) -> Iterator[str]:
        rows = played.runs_of(issue)
        short = [(row["attempt"], row["status"], row["error"]) for row in rows]
        if [row["status"] for row in rows].count("succeeded") != 1:
            yield f"not exactly one run is done in {short}"
        for row in rows:
            if "another daemon" in (row["error"] or ""):
                yield f"run {row['run_id']} did not wait for a lease: {row['error']}"
            by_crash = row["status"] == "interrupted" and blow.startswith("daemon")
            if row["status"] != "succeeded" and not row["error"] and not by_crash:
                yield f"nothing says why run {row['run_id']} is {row['status']}"
        if missing := set(self._turns(issue)) - set(self.works[issue]):
            yield f"work is not there of runs {sorted(missing)}"


async def play(
    place: Place, nursery: trio.Nursery, wall: str, blows: Sequence[str] = ()
) -> tuple[list[str], str]:
    """Play these blows at a wall, or all; return what is wrong, and a line that says what came."""
    async with WALLS[wall](place) as made:
        game = WallGame(place, made, tuple(blows) or tuple(made.blows))
        played = await game.play(nursery)
        wrong = list(game.wrong(played))
    statuses = Counter(row["status"] for row in played.rows)
    return wrong, f"{wall}: {len(game.blows)} blows in {played.seconds[0]:.0f} s, {dict(statuses)}"


async def _one(root: Path, wall: str, blows: Sequence[str]) -> tuple[list[str], str]:
    async with trio.open_nursery() as nursery:
        place = Place(root)
        result = await play(place, nursery, wall, blows)
        for row in await place.history():
            shown = {key: row[key] for key in ("issue", "attempt", "status", "error")}
            sys.stdout.write(f"  {json.dumps(shown)}\n")
        return result


def main() -> int:
    """Play; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.wall_games", description=__doc__)
    parser.add_argument("--wall", choices=WALLS, required=True)
    parser.add_argument("--blow", action="append", default=[])
    parser.add_argument("--keep", action="store_true", help="keep the directory in any case")
    asked = parser.parse_args()
    root = Path(mkdtemp(prefix=f"sortie-wall-{'-'.join(asked.wall.split())}-"))
    wrong, line = trio.run(_one, root, asked.wall, asked.blow)
    sys.stdout.write(f"{'FAILED' if wrong else 'ok'}: {line}\n")
    sys.stdout.writelines(f"  {text}\n" for text in wrong)
    if wrong or asked.keep:
        sys.stdout.write(f"  see {root}\n")
    else:
        shutil.rmtree(root)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
