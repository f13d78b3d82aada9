"""The outcome table, row by row."""

from __future__ import annotations

import signal

import pytest

from sortie.kiro.outcome import turn_result
from sortie.kiro.trailer import Trailer
from sortie.kiro.transcript import Evidence
from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.transports import Exit

RAN = Evidence(printed=5, trailer=Trailer(credits=0.07))
BAD_KEY = Evidence(authentication_failed=True)
NON_ZERO = "kiro exited with a non-zero status: "
REFUSED = (
    "2 (it did not accept its arguments; does this version of Kiro know every kiro.* setting?)"
)


@pytest.mark.parametrize("evidence", [RAN, Evidence(trailer=Trailer(credits=0.07))])
def test_exit_0_with_a_trailer_completes(evidence: Evidence) -> None:
    """The trailer is the proof, with or without an answer, and gives the credits."""
    result = turn_result(Exit(status=0), evidence)

    assert result == TurnResult(outcome=TurnOutcome.COMPLETED, credits=0.07)


@pytest.mark.parametrize(
    ("end", "evidence", "kind", "message"),
    [
        (Exit(status=0), BAD_KEY, "response_error", "kiro authentication failed"),
        (Exit(status=0), Evidence(), "turn_failed", "kiro exited without a credits trailer"),
        (
            Exit(status=0),
            Evidence(printed=1, authentication_failed=True),
            "turn_failed",
            "kiro exited without a credits trailer",
        ),
        (
            Exit(status=127),
            RAN,
            "agent_not_found",
            "kiro was not found (exit 127); check agent.command",
        ),
        (Exit(status=1), RAN, "port_exit", NON_ZERO + "1 (an error; its warnings say more)"),
        (Exit(status=2), Evidence(), "port_exit", NON_ZERO + REFUSED),
        (
            Exit(status=3),
            Evidence(),
            "port_exit",
            NON_ZERO + "3 (a required MCP server did not start)",
        ),
        (
            Exit(status=4),
            Evidence(),
            "port_exit",
            NON_ZERO + "4 (the agent named by kiro.agent does not exist)",
        ),
        (Exit(status=77), BAD_KEY, "port_exit", NON_ZERO + "77"),
        (Exit(status=139), Evidence(), "port_exit", NON_ZERO + "139"),
        (
            Exit(status=255),
            Evidence(),
            "port_exit",
            NON_ZERO + "255 (where it runs over SSH, the connection failed)",
        ),
        (Exit(signal=signal.SIGSEGV), RAN, "port_exit", "kiro was ended by SIGSEGV"),
        (Exit(signal=signal.SIGINT), RAN, "port_exit", "kiro was ended by SIGINT"),
        (Exit(signal=1000), RAN, "port_exit", "kiro was ended by signal 1000"),
        (Exit(), RAN, "port_exit", "kiro's exit status was lost"),
        (
            Exit(status=0),
            Evidence(trailer=Trailer(credits=1.0), line_too_long=True),
            "port_exit",
            "kiro wrote a line of more than 10 MiB; the turn was ended",
        ),
        (
            None,
            Evidence(line_too_long=True),
            "port_exit",
            "kiro wrote a line of more than 10 MiB; the turn was ended",
        ),
    ],
)
def test_failures(end: Exit | None, evidence: Evidence, kind: str, message: str) -> None:
    """Every other end is a failure of the documented kind."""
    result = turn_result(end, evidence)

    assert (result.outcome, result.error_kind) == (TurnOutcome.FAILED, ErrorKind(kind))
    assert result.message == message


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (Exit(signal=signal.SIGTERM), "kiro was ended from outside by SIGTERM"),
        (Exit(signal=signal.SIGKILL), "kiro was ended from outside by SIGKILL"),
        (Exit(status=143), "kiro was ended from outside by SIGTERM"),
        (Exit(status=137), "kiro was ended from outside by SIGKILL"),
        (Exit(status=0, by_us=True), "kiro was stopped"),
        (Exit(signal=signal.SIGSEGV, by_us=True), "kiro was stopped"),
        (None, "kiro was stopped"),
    ],
)
def test_cancellations(end: Exit | None, message: str) -> None:
    """A turn that was ended, by Sortie or from outside, is cancelled, even with a trailer."""
    result = turn_result(end, RAN)

    assert result == TurnResult(
        outcome=TurnOutcome.CANCELLED,
        error_kind=ErrorKind.TURN_CANCELLED,
        message=message,
        credits=0.07,
    )


def test_a_failure_carries_credits_and_warnings() -> None:
    """What was spent and what stderr said is not lost with the turn."""
    evidence = Evidence(trailer=Trailer(credits=1.5), warnings=("one", "two"))

    result = turn_result(Exit(status=1), evidence)

    assert (result.credits, result.warnings) == (1.5, ("one", "two"))


def test_a_success_carries_no_warnings() -> None:
    """The MCP warning of every invocation is not repeated where all went well."""
    evidence = Evidence(trailer=Trailer(credits=None), warnings=("Failed to retrieve MCP",))

    assert turn_result(Exit(status=0), evidence) == TurnResult(outcome=TurnOutcome.COMPLETED)
