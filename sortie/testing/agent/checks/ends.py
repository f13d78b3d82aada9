"""The agent's process ends in mid-turn, by itself or by a signal from outside."""

from __future__ import annotations

from collections.abc import Mapping

import trio
from msgspec import Struct

from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.testing.agent.check import check
from sortie.testing.agent.subject import Subject, ending_text
from sortie.testing.agent.turn_record import TurnRecord
from sortie.testing.checks import require

EXITS: Mapping[str, ErrorKind] = {
    "exit-1": ErrorKind.PORT_EXIT,
    "exit-127": ErrorKind.AGENT_NOT_FOUND,
    "exit-137": ErrorKind.TURN_CANCELLED,
    "exit-143": ErrorKind.TURN_CANCELLED,
}
"""What an exit in mid-turn means, whichever agent it is."""

SIGNALS: Mapping[str, ErrorKind] = {
    "TERM": ErrorKind.TURN_CANCELLED,
    "KILL": ErrorKind.TURN_CANCELLED,
    "SEGV": ErrorKind.PORT_EXIT,
}
"""What a death by a signal from outside means."""


class _Exit(Struct, frozen=True):
    scenario: str
    kind: ErrorKind

    async def __call__(self, subject: Subject) -> None:
        result, _ = await subject.only_turn(self.scenario)
        _require_kind(result, self.kind)


class _Signal(Struct, frozen=True):
    name: str
    kind: ErrorKind

    async def __call__(self, subject: Subject) -> None:
        scenario, record = subject.scenario("hang", "tool"), TurnRecord()
        results: list[TurnResult] = []

        async def turn() -> None:
            result, _ = await subject.turn(session, scenario.prompt, record)
            results.append(result)

        async with subject.session(scenario) as session:
            with subject.within(2 * subject.stop_bound, "the end of the turn"):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(turn)
                    await record.until(record.launched, "it was launched")
                    await subject.signal(record.pid, self.name)
        _require_kind(results[0], *self._kinds(subject))

    def _kinds(self, subject: Subject) -> tuple[ErrorKind, ...]:
        """Return the kinds that the end may have: a real program may heed SIGTERM, and exit."""
        heeds = self.name == "TERM" and not subject.has_stand_in
        return (self.kind, ErrorKind.PORT_EXIT) if heeds else (self.kind,)


def _require_kind(result: TurnResult, *kinds: ErrorKind) -> None:
    cancelled = result.error_kind is ErrorKind.TURN_CANCELLED
    outcome = TurnOutcome.CANCELLED if cancelled else TurnOutcome.FAILED
    require(result.outcome is outcome and result.error_kind in kinds, ending_text(result))


for _name, _kind in EXITS.items():
    promise = f"{_name.replace('-', ' ')} in mid-turn is {_kind}"
    check(f"end.{_name}", promise)(_Exit(_name, _kind))
for _name, _kind in SIGNALS.items():
    promise = f"death by SIG{_name} from outside is {_kind}, and its tools are ended"
    check(f"end.signal-{_name}", promise)(_Signal(_name, _kind))


@check("end.unterminated", "the last output is reported though its line has no end")
async def unterminated(subject: Subject) -> None:
    """The program dies in the middle of the line."""
    _, record = await subject.only_turn("unterminated")

    says = subject.scenario("unterminated").says
    require(says in " ".join(record.messages[-1:]), f"the last message is {record.messages[-1:]}")
