"""What must be true after leaders were struck, whatever befell them."""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.e2e.failover_world import HANDOFF, WORKING, World, identifier
from tests.e2e.place import Json, Place
from tests.e2e.witnessing import witnessed
from tests.workspaces.remotes import git

ENDINGS = {"full": "unfit"}
"""How the history says that a leadership has ended, where it is not ``expired``."""

_SOONEST = 4.0
"""Seconds: no leadership ends sooner because of a blow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A blow: at which moment, the leader's token, the next one's, and after how many seconds."""

    blow: str
    moment: str
    token: int
    next: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Which process led with a token, from when until when (Unix time), and how that ended."""

    token: int
    pid: int
    since: float
    until: float
    ended_by: str | None

    @classmethod
    def of(
        cls, token: object, name: object, since: object, until: object, by: object
    ) -> Leadership:
        """Make one of a row."""
        return cls(
            token=int(str(token)),
            pid=int(str(name).rpartition(":")[2]),
            since=float(str(since)),
            until=float("inf") if until is None else float(str(until)),
            ended_by=None if by is None else str(by),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a game left: ``shown`` are the leaderships as the command shows them, ``rows`` the runs,
    ``addresses`` those of the machines by the pids of their daemons."""

    place: Place
    world: World
    strikes: Sequence[Strike]
    leaderships: Sequence[Leadership]
    shown: Sequence[Json]
    rows: Sequence[Json]
    addresses: Mapping[int, str]
    left: Sequence[str]


def verdicts(played: Played) -> Iterator[str]:
    """Yield everything that must not be."""
    yield from played.left
    yield from _witnessed(played)
    yield from _only_leaders_act(played)
    yield from _takeovers(played)
    yield from _records(played)
    for number in played.world.numbers:
        yield from (f"{identifier(number)}: {text}" for text in _issue(number, played.world))


def _witnessed(played: Played) -> Iterator[str]:
    """No agent saw another one of its issue, and no process is left."""
    for line in witnessed(played.place, "trouble"):
        yield f"{line['program']} of run {line['run_id']} of {line['issue']}: {line['what']}"
    for path in sorted((played.place.root / "locks").iterdir()):
        with path.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f"a process still holds {path.name}"


def _only_leaders_act(played: Played) -> Iterator[str]:
    """What changes something comes from the daemon that leads when it arrives."""
    pids = {address: pid for pid, address in played.addresses.items()}
    for change in played.world.changes:
        pid = pids.get(change.client)
        times = [(one.since, one.until) for one in played.leaderships if one.pid == pid]
        if not any(since <= change.at <= until for since, until in times):
            yield f"process {pid} did not lead at {change.at:.3f}, but {change}, led {times}"


def _takeovers(played: Played) -> Iterator[str]:
    """Each takeover is in the history, with its reason, and no two leaderships overlap."""
    by_token = {one.token: one for one in played.leaderships}
    shown = {row["token"]: row["ended_by"] for row in played.shown}
    if shown != {one.token: one.ended_by for one in played.leaderships}:
        yield f"the history shows {shown}, but there were {played.leaderships}"
    for strike in played.strikes:
        wanted = ENDINGS.get(strike.blow, "expired")
        if strike.seconds < _SOONEST:  # it had just handed the workflow over
            wanted = "moved"
        if by_token[strike.token].ended_by != wanted:
            yield f"the history says {by_token[strike.token].ended_by} of {strike}"
        if strike.next not in by_token:
            yield f"the history does not know who followed {strike}"
    for former, following in zip(played.leaderships, played.leaderships[1:], strict=False):
        if following.since < former.until:
            yield f"two led at once: {former}, {following}"


def _records(played: Played) -> Iterator[str]:
    """Each run that hooks and agents saw is on record once, and none is under way."""
    counts = Counter(row["run_id"] for row in played.rows)
    yield from (f"run {run} is on record {n} times" for run, n in counts.items() if n > 1)
    seen = witnessed(played.place, "start")
    for run in {line["run_id"] for line in seen if line["program"] != "before_remove"}:
        if run not in counts:
            yield f"run {run} is not on record"
    turns = Counter(line["run_id"] for line in witnessed(played.place, "turn"))
    yield from (f"run {run} had {n} agents" for run, n in turns.items() if n > 1)
    for row in played.rows:
        is_full = "No space left on device" in (row["error"] or "")
        if row["status"] not in ("succeeded", "interrupted") and not is_full:
            yield f"a run of {row['issue']} is {row['status']}: {row['error']}"
        if row["finished_at"] is None:
            yield f"run {row['run_id']} of {row['issue']} is on record as under way"


def _issue(number: int, world: World) -> Iterator[str]:
    """One branch, pull request, comment and handoff; nothing is done after the handoff."""
    if world.state_of(number) != HANDOFF:
        yield f"it is {world.state_of(number)}"
        return
    moves = [move.after for move in world.moves if move.number == number]
    if moves not in ([WORKING, HANDOFF], [HANDOFF]):  # a run goes on where the first move fails
        yield f"it was moved: {moves}"
    branch = world.branch(number)
    requests = [one for one in world.forged.service.requests if one.branch == branch]
    if len(requests) != 1:
        yield f"there are {len(requests)} pull requests"
    comments = world.comments_on(number)
    if len(comments) != 1:
        yield f"there are {len(comments)} comments: {comments}"
    pushed = world.updates_of(number)
    if len(pushed) != len(set(pushed)) or not pushed:
        yield f"its branch was pushed so: {pushed}"
        return
    if git(world.forged.bare, "show", f"{branch}:out.txt") != f"done-by-agent {identifier(number)}":
        yield "its work is not in its branch"
    if (pushed[-1], "sortie/verify") not in world.forged.service.statuses:
        yield "the status of its last commit is not told"
