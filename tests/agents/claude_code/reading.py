"""Read a recorded stream as a turn's output would be, a second for each line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sortie.agents.claude_code.reader import ClaudeReader
from sortie.agents.claude_code.tokens import TokenLedger
from sortie.agents.output import AgentOutput
from sortie.lines import RawLineSplitter
from sortie.model.turns import AgentEvent

STREAMS = Path(__file__).with_name("streams")
ID = "11111111-2222-4333-8444-555555555555"


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Reading:
    """What a reader made of some lines, of which each took a second."""

    session_id: str = ID
    resume: bool = False
    ledger: TokenLedger = field(default_factory=TokenLedger)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.reader = ClaudeReader(self.session_id, self.ledger, self.clock, resume=self.resume)
        self.events: list[AgentEvent] = []
        self._output = AgentOutput(self.reader, (), RawLineSplitter())

    def lines(self, *lines: str) -> Reading:
        """Take lines of stdout."""
        for line in lines:
            self.events += self._output.take(1, f"{line}\n".encode())
            self.clock.now += 1
        return self

    def stderr(self, text: str) -> Reading:
        """Take lines of stderr."""
        self.events += self._output.take(2, text.encode())
        return self

    def close(self) -> Reading:
        """Take the end of the output."""
        self.events += self._output.close()
        return self


def recorded(name: str, **values: str | bool) -> Reading:
    """Read a recorded stream to its end, as the turn of the session it is of."""
    text = (STREAMS / f"{name}.jsonl").read_text(encoding="utf-8")
    return Reading(**values).lines(*text.rstrip("\n").split("\n")).close()  # type: ignore[arg-type]
