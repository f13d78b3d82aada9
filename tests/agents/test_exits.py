"""The exits that mean the same for every agent, row by row."""

from __future__ import annotations

import signal

import pytest

from sortie.agents.exits import Failure, exit_failure
from sortie.model import ErrorKind
from sortie.transports import Exit


@pytest.mark.parametrize(
    ("end", "kind", "message"),
    [
        (
            Exit(status=127),
            "agent_not_found",
            "bot was not found (exit 127); check agent.command",
        ),
        (Exit(signal=signal.SIGSEGV), "port_exit", "bot was ended by SIGSEGV"),
        (Exit(signal=signal.SIGINT), "port_exit", "bot was ended by SIGINT"),
        (Exit(signal=1000), "port_exit", "bot was ended by signal 1000"),
        (Exit(), "port_exit", "bot's exit status was lost"),
        (Exit(signal=signal.SIGTERM), "turn_cancelled", "bot was ended from outside by SIGTERM"),
        (Exit(signal=signal.SIGKILL), "turn_cancelled", "bot was ended from outside by SIGKILL"),
        (Exit(status=143), "turn_cancelled", "bot was ended from outside by SIGTERM"),
        (Exit(status=137), "turn_cancelled", "bot was ended from outside by SIGKILL"),
        (Exit(status=0, by_us=True), "turn_cancelled", "bot was stopped"),
        (Exit(signal=signal.SIGSEGV, by_us=True), "turn_cancelled", "bot was stopped"),
        (None, "turn_cancelled", "bot was stopped"),
    ],
)
def test_an_exit_that_is_a_failure(end: Exit | None, kind: str, message: str) -> None:
    """Missing programs, signals, and what Sortie has ended itself."""
    assert exit_failure("bot", end) == Failure(ErrorKind(kind), message)
