"""What must be true after daemons were killed while they worked, whenever that was."""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.e2e.place import Json, Place
from tests.e2e.witnessing import witnessed

Rows = Sequence[Json]

MOVED_ALREADY = "was moved from In Progress to Human Review meanwhile"
"""What a daemon says that hands off what a killed one had handed off without recording it."""

FAILURES = ("failed", "timed_out", "stalled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One daemon of a game: its number, when it was spawned (Unix time), what it logged, and
    whether it got the workspace root."""

    number: int
    spawned: float
    log: list[Json]
    had_the_root: bool

    def lines(self, event: str) -> list[Json]:
        """Return its lines of an event."""
        return [line for line in self.log if line["event"] == event]

    @property
    def start(self) -> float:
        """Return the seconds that it took to start; 0 if it was killed earlier."""
        lines = self.lines("daemon.started")
        return _unix(lines[0]["time"]) - self.spawned if lines else 0.0

    @property
    def hit(self) -> str:
        """Say in a word where it was killed."""
        if not self.lines("daemon.started"):
            return "recovering" if self.had_the_root else "starting"
        if self._under_way("turn.started", "turn.completed"):
            return "a turn"
        return "a run" if self._under_way("run.started", "run.finished") else "between runs"

    def _under_way(self, began: str, ended: str) -> set[str]:
        over = {line["run"] for line in self.lines(ended)}
        return {line["run"] for line in self.lines(began)} - over


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a game left.

    ``ends``: how each issue was to end; ``last_code``: the last daemon's exit code, None where it
    was not idle in time; ``left``: processes; ``rows``: the history.
    """

    place: Place
    ends: Mapping[str, str]
    backoff: float
    lives: Sequence[Life]
    seconds: tuple[float, float]
    last_code: int | None
    left: Sequence[str]
    rows: Rows

    def runs_of(self, issue: str) -> Rows:
        """Return the history of an issue, oldest first."""
        return [row for row in self.rows if row["issue"] == issue]


def verdicts(played: Played) -> Iterator[str]:
    """Yield everything that must not be."""
    if not found(played) and not isolated(played):
        yield "no daemon found a process of an earlier one: this game shows nothing"
    yield from _last_daemon(played)
    yield from processes(played)
    yield from troubles(played)
    yield from run_ids(played)
    yield from _told(played)
    began: dict[str, float] = {}
    for line in witnessed(played.place, "start"):
        began.setdefault(line["run_id"], line["time"])
    for issue, end in played.ends.items():
        for text in (
            *_attempts(played.runs_of(issue), began, played.backoff),
            *_last_run(played.runs_of(issue), end),
            *_end(issue, end, played),
        ):
            yield f"{issue}: {text}"


def isolated(played: Played) -> bool:
    """Tell whether the kernel ended all processes of killed daemons, so that none were found."""
    lines = [line for life in played.lives for line in life.lines("host.isolation")]
    return any("PID namespace of its own" in line["detail"] for line in lines)


def found(played: Played) -> int:
    """Return how many processes of killed daemons the next ones ended."""
    lines = [line for life in played.lives for line in life.lines("orphans.reaped")]
    return sum(line["count"] for line in lines)


def _last_daemon(played: Played) -> Iterator[str]:
    """The daemon that is not killed finishes everything; its exit code tells of holds."""
    if played.last_code is None:
        yield "the last daemon was not idle in time"
    elif played.last_code != (3 if "held" in played.ends.values() else 0):
        yield f"the last daemon ended with {played.last_code}"


def processes(played: Played) -> Iterator[str]:
    """No process of any run is left: neither by its cookie nor by the locks it would hold."""
    for process in played.left:
        yield f"a process was left: {process}"
    for path in sorted((played.place.root / "locks").iterdir()):
        with path.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f"somebody still holds {path.name}"


def troubles(played: Played) -> Iterator[str]:
    """No hook and no agent saw what must never be."""
    for line in witnessed(played.place, "trouble"):
        yield f"{line['program']} of run {line['run_id']} of {line['issue']}: {line['what']}"


def run_ids(played: Played) -> Iterator[str]:
    """Each run that hooks and agents saw is on record once, with its issue and attempt."""
    counts = Counter(row["run_id"] for row in played.rows)
    yield from (f"run {run} is on record {n} times" for run, n in counts.items() if n > 1)
    known = {row["run_id"]: row for row in played.rows}
    turns = Counter(line["run_id"] for line in witnessed(played.place, "turn"))
    for line in witnessed(played.place, "start"):
        if line["program"] == "before_remove":
            continue  # it belongs to no run
        row = known.get(line["run_id"])
        if row is None:
            yield f"run {line['run_id']} of {line['issue']} is not on record"
        elif (row["issue"], row["attempt"]) != (line["issue"], line["attempt"]):
            yield f"run {line['run_id']} is on record as {row}, but was told {line}"
    for run, row in known.items():
        if turns[run] > row["turns"] or row["turns"] > 1:
            yield f"run {run} is on record with {row['turns']} turns, but took {turns[run]}"
        if row["status"] == "running" or row["finished_at"] is None:
            yield f"run {run} of {row['issue']} is on record as under way"


def _told(played: Played) -> Iterator[str]:
    """History agrees with what the daemons logged, and failures with what the agents say."""
    known = {row["run_id"]: row["status"] for row in played.rows}
    for life in played.lives:
        for line in life.lines("run.finished"):
            if known.get(line["run"]) != line["status"]:
                yield f"life {life.number} logged {line}, but on record is {known.get(line['run'])}"
        for line in life.lines("run.interrupted"):
            if known.get(line["run"]) != "interrupted":
                yield f"life {life.number} logged {line}, but on record is {known.get(line['run'])}"
        for event in ("adapter.crashed", "issue.move_failed", "workspace.removal_failed"):
            for line in life.lines(event):
                if not line.get("error", "").endswith(MOVED_ALREADY):
                    yield f"life {life.number} logged {line}"
    exits = {line["run_id"]: line["status"] for line in played.place.agents("stop")}
    for row in played.rows:
        said = exits.get(row["run_id"])
        expected = {"succeeded": (0,), "failed": (1,)}.get(row["status"])
        if expected is not None and said not in expected:
            yield f"run {row['run_id']} is on record as {row['status']}, but its agent said {said}"


def _attempts(rows: Rows, began: Mapping[str, float], backoff: float) -> Iterator[str]:
    """Attempts count failures in a row; of interruptions every second in a row is one.

    After a failure the next run waits.
    """
    failures = interruptions = 0
    due = 0.0
    for row in rows:
        if row["attempt"] != failures:
            short = [(r["attempt"], r["status"]) for r in rows]
            yield f"attempt {row['attempt']} instead of {failures} in {short}"
            return
        if began.get(row["run_id"], due) < due:
            yield f"run {row['run_id']} began {due - began[row['run_id']]:.3f} s too early"
        interrupted = row["status"] == "interrupted"
        if row["status"] in FAILURES or (interrupted and interruptions):
            failures, interruptions = failures + 1, 0
            due = _unix(row["finished_at"]) + backoff
        elif interrupted:
            interruptions = 1


def _last_run(rows: Rows, end: str) -> Iterator[str]:
    """An issue whose run was recorded as done is not run again, held ones included."""
    short = [(row["attempt"], row["status"]) for row in rows]
    if not any(row["turns"] for row in rows):
        yield f"no turn was begun in {short}"
    over = [n for n, row in enumerate(rows) if row["status"] in ("succeeded", "cancelled")]
    # An issue that its agent has set to Done needs no further run, though this one was cut short.
    if over != [len(rows) - 1] and not (end == "Done" and not over):
        yield f"not exactly the last run is done in {short}"
    if end != "Done" and "cancelled" in [row["status"] for row in rows]:
        yield f"a run was stopped in {short}"


def _end(issue: str, end: str, played: Played) -> Iterator[str]:
    """The issue is in its last state, its hold outlived the kills, its workspace is kept or not."""
    state = played.place.state_of(issue)
    if state != ("In Progress" if end == "held" else end):
        yield f"it is {state} instead of {end}"
    left = [line for line in played.lives[-1].lines("issue.left") if line["issue"] == issue]
    reasons = [line["reason"].split(": ")[:2] for line in left]
    if reasons != ([["held", "agent_blocked"]] if end == "held" else []):
        yield f"the last daemon left it so: {reasons}"
    holds = [line for life in played.lives for line in life.lines("issue.held")]
    if sum(line["issue"] == issue for line in holds) > (end == "held"):
        yield "it was held more than once"
    if (played.place.workspaces / issue).exists() == (end == "Done"):
        yield "its workspace was " + ("left" if end == "Done" else "removed")


def _unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
