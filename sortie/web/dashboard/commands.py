"""What the buttons do: for each command what is asked before, and what is said after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from sortie.web.controls import CommandAnswer, Controls

Perform = Callable[[Controls, str], Awaitable[CommandAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command; ``perform`` takes the issue, or "" where there is none."""

    name: str
    label: str
    question: str
    done: str
    perform: Perform


COMMANDS: Mapping[str, Command] = {
    command.name: command
    for command in (
        Command(
            name="pause",
            label="Pause",
            question="Start no run any more, retries included? Runs under way go on.",
            done="Dispatch is paused.",
            perform=lambda controls, _: controls.pause(),
        ),
        Command(
            name="resume",
            label="Resume",
            question="Start runs again?",
            done="Runs are started again.",
            perform=lambda controls, _: controls.resume(),
        ),
        Command(
            name="refresh",
            label="Poll now",
            question="Have the tracker polled now?",
            done="The tracker is being polled.",
            perform=lambda controls, _: controls.refresh(),
        ),
    )
}
"""Commands for the daemon as a whole."""

ISSUE_COMMANDS: Mapping[str, Command] = {
    command.name: command
    for command in (
        Command(
            name="stop",
            label="Stop",
            question="End the run or wait of this issue and hold it?",
            done="The issue is being stopped, and held.",
            perform=lambda controls, issue: controls.stop(issue),
        ),
        Command(
            name="retry",
            label="Retry",
            question="Make this issue due now, with attempt 0?",
            done="The issue is due now.",
            perform=lambda controls, issue: controls.retry(issue),
        ),
    )
}
"""Commands for one issue."""


def done_words(name: str | None) -> str:
    """Return what is said of a command that was obeyed; "" for any other name."""
    command = {**COMMANDS, **ISSUE_COMMANDS}.get(name or "")
    return "" if command is None else command.done
