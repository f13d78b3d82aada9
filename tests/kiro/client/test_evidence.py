"""What the store tells of a turn, as messages."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sortie.kiro import (
    AssistantMessage,
    ErrorBlock,
    ResultMessage,
    TextBlock,
    ToolResultMessage,
    ToolUseBlock,
    UserMessage,
)
from sortie.kiro.client.evidence import Bookmark, messages_of
from sortie.kiro.client.sessions import KeptConversations, session_info
from sortie.kiro.client.waits import Wait
from sortie.kiro.conversations import (
    Conversation,
    ConversationSummary,
    HistoryCompacted,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
)
from tests.kiro.client.rig import Rig


def test_records_are_messages() -> None:
    """Uses stand in the message of their answer; what failed or was stopped has an error."""
    records: list[Record] = [
        ModelAnswer(text="I look", model="m-1"),
        ToolUse(id="1", name="fs_read", input={"path": "a"}),
        ToolUse(id="2", name="fs_write", input={"path": "b"}),
        ToolResult(tool_use_id="1", text="content", succeeded=True),
        ToolResult(tool_use_id="2", text="no", succeeded=False),
        HistoryCompacted(),
        ModelAnswer(text=""),
        ToolUse(id="3", name="shell", input={}),
        ToolUsesCancelled(tool_use_ids=("3",), prompt="stop that"),
        ModelAnswer(text="Fine"),
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


def test_an_old_answer_to_the_same_prompt_is_not_taken_for_a_new_one(rig: Rig) -> None:
    """Where this turn was not kept, the conversation before it tells nothing of it."""
    first = rig.ask("sync", "again")[-1]
    second = rig.ask("sync", "again", KIRO_SIM_STORE="none")[-1]

    assert isinstance(first, ResultMessage)
    assert isinstance(second, ResultMessage)
    assert first.session_id is not None
    assert second.session_id is None


@pytest.mark.parametrize(
    ("updated", "entries", "changed"), [(1, 2, False), (1, 3, True), (2, 2, True)]
)
def test_a_change_shows_by_the_time_or_the_length(
    updated: int, entries: int, changed: bool
) -> None:
    """Two turns in one second differ by their length, where a store counts in seconds."""
    before = summary_at(1)

    mark = Bookmark([before], 2)

    after = Conversation(summary=summary_at(updated), entries=entries)
    assert mark.has_changed(after) is changed
    assert mark.may_have_changed(after.summary)


def test_a_locked_database_is_read_when_it_is_free(rig: Rig) -> None:
    """The event loop is not blocked meanwhile: there is a pause between two looks."""
    rig.ask("sync", "one")
    kept = KeptConversations(str(rig.workspace), rig.env)
    with closing(sqlite3.connect(rig.database)) as writer:
        writer.execute("BEGIN EXCLUSIVE")

        waits = kept.summaries()
        first, second = next(waits), next(waits)

        writer.rollback()
    with pytest.raises(StopIteration) as end:
        next(waits)
    assert first == second == Wait(0.02)
    assert len(end.value.value) == 1


def summary_at(updated: int) -> ConversationSummary:
    return ConversationSummary(engine="v2", id="x", directory="/", place="p", updated=updated)


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
