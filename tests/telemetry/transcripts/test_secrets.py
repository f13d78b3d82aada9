"""No secret is written, wherever it comes from and however it comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.agents.claude_code.reader import ClaudeReader
from sortie.agents.claude_code.tokens import TokenLedger
from sortie.agents.kiro.agent import KiroReader
from sortie.agents.output import AgentOutput
from sortie.lines import RawLineSplitter
from sortie.model.turns import AgentEvent, ErrorsWritten, Notification
from sortie.telemetry import facts
from sortie.telemetry.transcripts import Kind
from sortie.telemetry.transcripts.writing import LONGEST_LINE, cleaner
from tests.telemetry.samples import RUN, RUN_FINISHED, TURN_FAILED
from tests.telemetry.transcripts.rig import Rig, every_byte

NEEDLE = "5f1c0de"
"""Part of each secret, and of nothing else."""

TRACKER, AGENT = f"tracker/token-{NEEDLE}", f"agent-key-{NEEDLE}"
PEM = f"-----BEGIN KEY-----\nMIIEpAIBAAKC{NEEDLE}AAAA\n-----END KEY-----\n"
SAID = f"a {TRACKER} b\n{AGENT}\ntracker%2Ftoken-{NEEDLE}\n{PEM}the end\n"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, secrets=frozenset({TRACKER, AGENT, PEM}))


def hear(rig: Rig, events: list[AgentEvent]) -> None:
    """Have the sink hear what the worker would tell of an agent's events."""
    for event in events:
        match event:
            case Notification(message=message, text=text):
                rig.say(message if text is None else text)
            case ErrorsWritten(text=text):
                rig.sink(facts.AgentWroteErrors(run_id=RUN, message="", text=text))
            case _:
                pass


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_no_byte_of_a_secret_is_written(at_once: MockClock, rig: Rig, size: int) -> None:
    """Whole, over two chunks, on stderr, about tools, in questions, hooks and errors: what stands
    on disk holds none, packed or not, and all that was said beside them."""
    output = AgentOutput(KiroReader(), [AGENT])
    async with rig.running():
        rig.begin()
        for source in (1, 2):
            data = SAID.encode()
            for at in range(0, len(data), size):
                hear(rig, output.take(source, data[at : at + size]))
        hear(rig, output.close())
        tool = f"curl {TRACKER}"
        rig.sink(facts.ToolCallStarted(run_id=RUN, tool=tool, kind=AGENT, locations=(TRACKER,)))
        rig.sink(
            facts.ToolCallEnded(
                run_id=RUN,
                tool=tool,
                kind=None,
                locations=(TRACKER,),
                seconds=1.0,
                failed=True,
                error=SAID,
            )
        )
        rig.sink(
            facts.ToolCallEnded(
                run_id=RUN,
                tool=tool,
                kind=None,
                locations=(),
                seconds=1.0,
                failed=False,
                about=TRACKER,
                output=SAID,
            )
        )
        rig.sink(facts.PermissionAnswered(run_id=RUN, question=TRACKER, answer=AGENT))
        rig.sink(
            facts.HookCompleted(
                hook="after_run",
                result="ok",
                seconds=1.0,
                issue_identifier="A",
                run_id=RUN,
                output=SAID,
            )
        )
        rig.sink(replace(TURN_FAILED, error=SAID))
        rig.sink(replace(RUN_FINISHED, error=SAID))

    written = every_byte(rig.root)
    assert NEEDLE.encode() not in written
    assert written.count(b"the end") == 7
    by_line = ["-----BEGIN KEY-----", "***", "-----END KEY-----"]
    key = ["***"] if size > len(SAID) else by_line
    for kind in (Kind.OUTPUT, Kind.STDERR):
        assert rig.texts(kind) == ["a *** b", "***", "***", *key, "the end"]


async def test_json_of_an_agent_hides_none(at_once: MockClock, rig: Rig) -> None:
    """Also where a secret is spelled as JSON has it inside of a line of JSON."""
    reader = ClaudeReader("s-1", TokenLedger(), lambda: 0.0, resume=False)
    output = AgentOutput(reader, [AGENT], RawLineSplitter())
    text = rf"it is {TRACKER} \u0061nd {AGENT}\nbye".replace("/", r"\/")
    line = (
        '{"type":"assistant","message":{"id":"m","model":"x","content":[{"type":"text","text":"'
        f'{text}"}}]}}}}\n'
    )
    async with rig.running():
        rig.begin()
        hear(rig, output.take(1, line.encode()))
        rig.end()

    assert NEEDLE.encode() not in every_byte(rig.root)
    assert rig.texts(Kind.OUTPUT) == ["it is *** and ***", "bye"]


async def test_a_secret_that_is_told_of_later_is_hidden(at_once: MockClock, rig: Rig) -> None:
    """In all that is written from then on."""
    async with rig.running():
        rig.begin()
        rig.writer.hide(rig.secrets | {"another-key"})
        rig.say(f"{TRACKER} and another-key")
        rig.end()

    assert rig.texts(Kind.OUTPUT) == ["*** and ***"]


def test_no_half_of_a_secret_stays_where_a_line_is_cut() -> None:
    """Secrets are taken out before, and a long line keeps its ends."""
    line = "x" * (LONGEST_LINE // 2 - 30) + TRACKER + "y" * LONGEST_LINE

    cut = cleaner([TRACKER])(f"first\n{line}\nlast").split("\n")

    assert NEEDLE not in cut[1]
    assert (cut[0], cut[2]) == ("first", "last")
    assert len(cut[1]) <= LONGEST_LINE


def test_what_steers_a_terminal_is_replaced() -> None:
    """Control characters, and what no file can hold; tabs stay."""
    assert (
        cleaner(["abc", ""])("abc\x1b[31m\tb\x00\ud800\x9bc")
        == "abc\ufffd[31m\tb\ufffd\ufffd\ufffdc"
    )
