"""Leaders that are struck again and again while their runs deliver work, and those that follow.

``python -m tests.e2e.failover_games --place ssh --failovers 10 --seed 7`` plays a game: real
daemons on machines of their own (network namespaces), a real PostgreSQL, a tracker and a forge.
Blows and moments are drawn from the seed; the directory of a game that fails is kept.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import psutil
import trio

from tests.e2e.failover_game import BLOWS, FailoverGame
from tests.e2e.failover_places import PLACES
from tests.e2e.failover_verdicts import Strike, verdicts
from tests.e2e.failover_world import world
from tests.e2e.place import Place
from tests.store.postgres_server import PostgresServer, postgres_running


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Where runs of a game live, how many leaders are struck, and by which blows."""

    place: str
    failovers: int
    blows: Sequence[str] = BLOWS


async def play(
    place: Place,
    server: PostgresServer,
    asked: Asked,
    seed: int,
    tell: Callable[[Strike], object] = lambda _strike: None,
) -> list[str]:
    """Play a game; return what is wrong. ``tell`` is called for each leader that was struck."""
    with ExitStack() as stack:
        made = stack.enter_context(world(place.root / "forge"))
        async with PLACES[asked.place](place) as runs, trio.open_nursery() as nursery:
            game = FailoverGame(
                place=place,
                server=server,
                schema=server.schema(),
                world=made,
                runs=runs,
                nursery=nursery,
                stack=stack,
                chance=random.Random(seed),
                blows=[one for one in asked.blows if one != "full" or runs.is_here],
                tell=tell,
            )
            wrong = ["it was not played to its end"]
            try:
                wrong = list(verdicts(await game.play(asked.failovers)))
            finally:
                for one in game.joined:
                    one.end()
                nursery.cancel_scope.cancel()
                if wrong:
                    game.write_log()
    return wrong


def main() -> int:
    """Play; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.failover_games", description=__doc__)
    parser.add_argument("--place", choices=PLACES, required=True)
    parser.add_argument("--failovers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", type=int, default=1, help="with a seed each, from --seed on")
    parser.add_argument("--blow", action="append", choices=BLOWS, help="only these")
    told = parser.parse_args()
    asked = Asked(place=told.place, failovers=told.failovers, blows=told.blow or BLOWS)
    failed = False
    with postgres_running(fsync="on") as server:
        for seed in range(told.seed, told.seed + told.games):
            failed |= _play_one(server, asked, seed)
    return int(failed)


def _play_one(server: PostgresServer, asked: Asked, seed: int) -> bool:
    """Play a game in a directory that is kept if something is wrong; return whether it is."""

    def show(strike: Strike) -> None:
        about = f"{asked.place}, {strike.blow}, {strike.seconds:.1f} s"
        load = f"load {psutil.getloadavg()[0]:.0f}"
        sys.stdout.write(f"{about}, {load}, {strike.moment}\n")
        sys.stdout.flush()

    root = Path(mkdtemp(prefix=f"sortie-failover-{asked.place}-{seed}-"))
    wrong = trio.run(play, Place(root), server, asked, seed, show)
    sys.stdout.write(f"{'FAILED' if wrong else 'ok'}: {asked.place}, seed {seed}\n")
    sys.stdout.writelines(f"  {text}\n" for text in wrong)
    sys.stdout.flush()
    if wrong:
        sys.stdout.write(f"  see {root}\n")
    else:
        shutil.rmtree(root)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
