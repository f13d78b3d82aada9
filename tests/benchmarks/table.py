"""All rows, in the order in which they are shown."""

from __future__ import annotations

from tests.benchmarks import idle, output, poll, startup, turn
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
        name="output",
        what="an agent's output through to events: CPU a GB",
        unit="s",
        bar=15,
        baseline="cat into cat",
        measure=output.output,
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
