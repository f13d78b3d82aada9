"""What the store tells of a turn, as messages."""

from __future__ import annotations

from sortie.kiro import (
    AssistantMessage,
    ErrorBlock,
    TextBlock,
    ToolResultMessage,
    ToolUseBlock,
    UserMessage,
)
from sortie.kiro.client.evidence import messages_of
from sortie.kiro.client.kept import session_info
from sortie.kiro.conversations import (
    Answer,
    ConversationSummary,
    HistoryCompacted,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
)
from tests.kiro.client.rig import Rig


def test_records_are_messages() -> None:
    """Uses stand in the message of their answer; what failed or was stopped has an error."""
    records: list[Record] = [
        Answer(text="I look", model="m-1"),
        ToolUse(id="1", name="fs_read", input={"path": "a"}),
        ToolUse(id="2", name="fs_write", input={"path": "b"}),
        ToolResult(tool_use_id="1", text="content", succeeded=True),
        ToolResult(tool_use_id="2", text="no", succeeded=False),
        HistoryCompacted(),
        Answer(text=""),
        ToolUse(id="3", name="shell", input={}),
        ToolUsesCancelled(tool_use_ids=("3",), prompt="stop that"),
        Answer(text="Fine"),
    ]

    assert list(messages_of(records)) == [
        AssistantMessage(
            content=[
                TextBlock(text="I look"),
                ToolUseBlock(id="1", name="fs_read", input={"path": "a"}),
                ToolUseBlock(id="2", name="fs_write", input={"path": "b"}),
            ],
            model="m-1",
        ),
        ToolResultMessage(tool_use_id="1", content=[TextBlock(text="content")]),
        ToolResultMessage(tool_use_id="2", content=[ErrorBlock(text="no")]),
        AssistantMessage(content=[ToolUseBlock(id="3", name="shell", input={})]),
        ToolResultMessage(tool_use_id="3", content=[ErrorBlock(text="cancelled")]),
        UserMessage(content=[TextBlock(text="stop that")]),
        AssistantMessage(content=[TextBlock(text="Fine")]),
    ]


def test_times_that_no_calendar_has_are_not_told() -> None:
    """A store may hold any number."""
    summary = ConversationSummary(
        engine="v1", id="x", directory="/", place="p", created=2**60, updated=0
    )

    info = session_info(summary, None)

    assert (info.created_at, info.last_active, info.message_count) == ("", "", 0)


def test_a_turn_of_somebody_else_is_not_taken_for_ours(rig: Rig) -> None:
    """Of two conversations that changed meanwhile, the one with our prompt counts."""
    other = rig.program.with_name("other")
    other.write_text(rig.program.read_text())
    other.chmod(0o755)
    rig.script(
        "#!/bin/sh\n"
        f"'{other}' chat --no-interactive --trust-tools= first >/dev/null 2>&1\n"
        f"'{other}' \"$@\"\n"
        "status=$?\n"
        f"'{other}' chat --no-interactive --trust-tools= last >/dev/null 2>&1\n"
        "exit $status\n"
    )

    messages = rig.ask("sync", "ours")

    answers = [m.text for m in messages if isinstance(m, AssistantMessage) and m.text]
    assert [answer.splitlines()[0] for answer in answers] == ["I have read **ours**."]
