"""Output that is malformed, hostile or too much."""

from __future__ import annotations

from sortie.model import ErrorKind, TurnOutcome
from sortie.testing.agent.check import check
from sortie.testing.agent.subject import Subject, ending_text
from sortie.testing.checks import require


@check("output.megabyte", "a valid line of a mebibyte is read")
async def megabyte(subject: Subject) -> None:
    """Agents write such lines where a tool has shown a file."""
    await _require_completed(subject, "megabyte")


@check("output.too-long", "a line of more than 10 MiB is not kept, and the turn is over")
async def too_long(subject: Subject) -> None:
    """It may have been the question that the agent waits with."""
    result, _ = await subject.only_turn("too-long")

    failed = (result.outcome, result.error_kind) == (TurnOutcome.FAILED, ErrorKind.PORT_EXIT)
    require(failed, ending_text(result))


@check("output.noise", "an agent is not held up by output that is not read")
async def noise(subject: Subject) -> None:
    """A pipe that is not read would stop it."""
    await _require_completed(subject, "noise")


@check("output.junk", "what is no message of the protocol breaks no turn")
async def junk(subject: Subject) -> None:
    """An agent's wrapper may print as well."""
    await _require_completed(subject, "junk")


@check("output.unknown", "messages, updates and unknown fields break no turn")
async def unknown(subject: Subject) -> None:
    """The next version will have them."""
    await _require_completed(subject, "unknown")


@check("output.repeated-ids", "ids that are used a second time break no turn")
async def repeated_ids(subject: Subject) -> None:
    """No tool ends that had not begun."""
    await _require_completed(subject, "repeated-ids")


@check("output.unasked", "answers to requests that were not made break no turn")
async def unasked(subject: Subject) -> None:
    """A late answer comes after the request was given up."""
    await _require_completed(subject, "unasked")


@check("output.secret", "a credential that the agent prints is in no event and no result")
async def secret(subject: Subject) -> None:
    """Neither in an event nor in a message or warning of the result."""
    value = subject.scenario("secret").secret
    require(value, "the scenario names no secret")

    result, record = await subject.only_turn("secret")

    require(value not in repr((result, record.events)), "the secret is in an event or the result")
    require(record.batches > 1, "the program printed nothing")


async def _require_completed(subject: Subject, name: str) -> None:
    result, _ = await subject.only_turn(name)
    require(result.outcome is TurnOutcome.COMPLETED, ending_text(result))
