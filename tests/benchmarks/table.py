"""All rows, in the order in which they are shown."""

from __future__ import annotations

from tests.benchmarks import (
    idle,
    inner,
    output,
    poll,
    refresh,
    remote_turn,
    runs,
    sessions,
    startup,
    transports,
    turn,
)
from tests.benchmarks.row import Row

ROWS = (
    Row(
        name="version",
        what="sortie --version: wall time",
        unit="ms",
        bar=60,
        baseline="python -I -c pass",
        measure=startup.commands,
    ),
    Row(
        name="validate",
        what="sortie validate: wall time",
        unit="ms",
        bar=180,
        baseline="python -I -c pass",
        measure=startup.commands,
    ),
    Row(
        name="first-poll",
        what="sortie run to its first poll done",
        unit="ms",
        bar=350,
        baseline="python -I -c pass",
        measure=startup.first_poll,
    ),
    Row(
        name="idle",
        what="no issues, a poll every 5 s: CPU an hour",
        unit="s",
        bar=2,
        baseline="trio, listing a directory every 5 s",
        measure=idle.idle,
    ),
    Row(
        name="poll.markdown.unchanged",
        what="poll of 10,000 blocked issues in Markdown, nothing changed: CPU",
        unit="ms",
        bar=40,
        baseline="scandir and stat",
        measure=poll.polls,
    ),
    Row(
        name="poll.markdown.one-changed",
        what="the same, one file changed: CPU",
        unit="ms",
        baseline="scandir and stat",
        measure=poll.polls,
    ),
    Row(
        name="poll.json.unchanged",
        what="poll of 10,000 blocked issues in a JSON list, nothing changed: CPU",
        unit="ms",
        bar=40,
        baseline="read and json.loads",
        measure=poll.polls,
    ),
    Row(
        name="poll.json.one-changed",
        what="the same, one issue changed: CPU",
        unit="ms",
        baseline="read and json.loads",
        measure=poll.polls,
    ),
    Row(
        name="turn.cpu",
        what="a turn in a running session: CPU",
        unit="ms",
        bar=5,
        baseline="posix_spawn and waitpid",
        measure=turn.turns,
    ),
    Row(
        name="turn.gap",
        what="from the end of an agent to the next one's beginning",
        unit="ms",
        bar=5,
        baseline="posix_spawn and waitpid",
        measure=turn.turns,
    ),
    Row(
        name="runs.8.cpu",
        what="an issue of one turn, 500 of them in 8 slots: CPU each",
        unit="ms",
        bar=10,
        baseline="posix_spawn and waitpid",
        measure=runs.eight_slots,
    ),
    Row(
        name="runs.8.rate",
        what="the same: turns a second with agents of 200 ms",
        unit="/s",
        bar=35,
        more_is_better=True,
        baseline="posix_spawn and waitpid",
        measure=runs.eight_slots,
    ),
    Row(
        name="runs.64.cpu",
        what="the same in 64 slots: CPU each",
        unit="ms",
        bar=10,
        baseline="posix_spawn and waitpid",
        measure=runs.sixty_four_slots,
    ),
    Row(
        name="runs.64.rate",
        what="the same in 64 slots: turns a second",
        unit="/s",
        bar=150,
        more_is_better=True,
        baseline="posix_spawn and waitpid",
        measure=runs.sixty_four_slots,
    ),
    Row(
        name="runs.in-progress",
        what="the same in 8 slots, with an in_progress_state: CPU each",
        unit="ms",
        baseline="the same without it",
        measure=runs.in_progress,
    ),
    Row(
        name="runs.files",
        what="CPU of a run beside 450 other issue files, over that without them",
        unit="times",
        bar=1.2,
        baseline="the same without them",
        measure=runs.files,
    ),
    Row(
        name="refresh",
        what="refresh asked to agent started",
        unit="ms",
        bar=12,
        baseline="posix_spawn",
        measure=refresh.refresh,
    ),
    Row(
        name="silent.share",
        what="200 silent sessions: share of a core",
        unit="%",
        bar=0.5,
        baseline="trio, reading as many pipes",
        measure=sessions.silent,
    ),
    Row(
        name="silent.memory",
        what="the same: resident memory a session",
        unit="KiB",
        bar=50,
        baseline="trio, reading as many pipes",
        measure=sessions.silent,
    ),
    Row(
        name="talking.200",
        what="200 agents with 10 lines a second each: share of a core",
        unit="%",
        bar=12,
        baseline="trio, reading as many pipes",
        measure=sessions.talking,
    ),
    Row(
        name="talking.1000.share",
        what="1,000 agents with a line a second each: share of a core",
        unit="%",
        bar=15,
        baseline="trio, reading as many pipes",
        measure=sessions.thousand,
    ),
    Row(
        name="talking.1000.peak",
        what="the same: peak memory",
        unit="MB",
        bar=120,
        baseline="trio, reading as many pipes",
        measure=sessions.thousand,
    ),
    Row(
        name="talking.1000.starts",
        what="the same: starts a second",
        unit="/s",
        bar=600,
        more_is_better=True,
        baseline="trio, reading as many pipes",
        measure=sessions.thousand,
    ),
    Row(
        name="remote.cpu",
        what="a remote turn over a kept connection: CPU of the daemon's side",
        unit="ms",
        bar=4,
        baseline="ssh over a master",
        measure=remote_turn.remote_turns,
    ),
    Row(
        name="remote.gap",
        what="from the end of a remote agent to the next one's beginning",
        unit="ms",
        bar=25,
        baseline="ssh over a master",
        measure=remote_turn.remote_turns,
    ),
    Row(
        name="output",
        what="an agent's output through to events: CPU a GB",
        unit="s",
        bar=15,
        baseline="cat into cat",
        measure=output.output,
    ),
    *(
        Row(
            name=f"growth.sessions.{count}.{what}",
            what=f"{text}, of {count:,} with a line a second each",
            unit=unit,
            baseline="trio, reading as many pipes",
            measure=sessions.growth,
        )
        for count in (10, 100, 1000)
        for what, text, unit in (
            ("cpu", "CPU a second and session", "µs"),
            ("memory", "resident memory a session", "KiB"),
        )
    ),
    *(
        Row(
            name=f"growth.candidates.{count}",
            what=f"poll of {count:,} blocked issues in a JSON list, nothing changed: CPU",
            unit="ms",
            baseline="read and json.loads",
            measure=poll.growth,
        )
        for count in (100, 10_000, 100_000)
    ),
    Row(
        name="transport.remote",
        what="a program of a run on a host, from start to certain end, without a daemon: CPU",
        unit="ms",
        baseline="the bare command over the same connection",
        measure=transports.transports,
    ),
    *(
        Row(
            name=f"transport.remote.{count}",
            what=f"the same, {count} at once: CPU each",
            unit="ms",
            baseline="the bare command over the same connection",
            measure=transports.transports,
        )
        for count in (10, 100)
    ),
    Row(
        name="transport.local",
        what="a program of a run on this machine, the same way: CPU with the program",
        unit="ms",
        baseline="trio.run_process",
        measure=transports.transports,
    ),
    Row(
        name="scheduler.poll",
        what="a poll of 5,000 candidates in the scheduler, all slots taken: CPU",
        unit="ms",
        baseline="sorting them",
        measure=inner.scheduler,
    ),
    Row(
        name="store.commit",
        what="a commit of one record, synchronized to disk",
        unit="ms",
        baseline="a page written and synchronized",
        measure=inner.store,
    ),
)


def rows_named(names: list[str]) -> list[Row]:
    """Return the rows of these names, or of the groups before a dot; no names are all rows.

    Raises KeyError for a name that is neither.
    """
    chosen = []
    for name in names:
        found = [row for row in ROWS if f"{row.name}.".startswith(f"{name}.")]
        if not found:
            raise KeyError(name)
        chosen += found
    return [row for row in ROWS if row in chosen] if names else list(ROWS)
