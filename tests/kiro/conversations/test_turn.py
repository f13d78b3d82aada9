"""What a turn has added to a conversation, also where its history has shrunk."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sortie.kiro.conversations import (
    Conversation,
    KiroUsage,
    ModelAnswer,
    Record,
    UserPrompt,
)
from sortie.kiro.conversations.records import ConversationSummary
from sortie.kiro.conversations.turn import Addition, Position, added_since

A, B, C = (
    KiroUsage(credits=0.1),
    KiroUsage(credits=0.2),
    KiroUsage(credits=0.3),
)


def conversation(
    *texts: str, identity: str = "c-1", usages: Sequence[KiroUsage] = ()
) -> Conversation:
    """A conversation of one record an entry; a prompt ends with a question mark."""
    records: list[Record] = [
        UserPrompt(text=text) if text.endswith("?") else ModelAnswer(text=text) for text in texts
    ]
    return Conversation(
        summary=ConversationSummary(engine="v1", id=identity, directory="/w", place="/db"),
        records=tuple(records),
        entry_of=tuple(range(len(records))),
        entries=len(records),
        usages=tuple(usages),
    )


BEFORE = conversation("a?", "b", "c?", "d", usages=[A, B])


def texts(addition: Addition) -> list[str]:
    return [getattr(record, "text", "") for record in addition.records]


@pytest.mark.parametrize(
    ("now", "added"),
    [
        (conversation("a?", "b", "c?", "d", "e?", "f", "g"), ["e?", "f", "g"]),
        (conversation("a?", "b", "c?", "d"), ["c?", "d"]),  # an entry of the limit's: it slides
        (conversation("b", "c?", "d", "e?"), ["e?"]),
        (conversation("summary", "e?", "f"), ["e?", "f"]),
        (conversation("summary", "x?", "y", "z", "e?", "f"), ["e?", "f"]),
        (conversation("only words"), ["only words"]),
        (conversation(), []),
        (conversation("x?", "y", "e?", "f", identity="c-2"), ["e?", "f"]),
    ],
)
def test_a_turn_is_what_has_come_since(now: Conversation, added: list[str]) -> None:
    """In a history that is no longer the same it is what comes from the last prompt on."""
    assert texts(added_since(now, Position.after(BEFORE))) == added


def test_without_a_position_it_is_the_last_turn() -> None:
    """Nothing of an earlier turn is taken for one of this."""
    assert texts(added_since(BEFORE, None)) == ["c?", "d"]


@pytest.mark.parametrize(
    ("usages", "more"),
    [([A, B, C], (C,)), ([A, B], ()), ([C], (C,)), ([], ()), ([B, C], (C,)), ([C, C], (C, C))],
)
def test_what_was_used_is_what_was_told_since(
    usages: Sequence[KiroUsage], more: tuple[KiroUsage, ...]
) -> None:
    """A list that was begun anew counts as a whole; one whose turn nobody knows does not."""
    now = conversation("a?", "b", "c?", "d", "e?", "f", usages=usages)

    assert added_since(now, Position.after(BEFORE)).usages == more
    assert added_since(now, None).usages == ()


def test_all_of_a_new_conversation_counts() -> None:
    """A turn may have been metered in parts."""
    new = conversation("a?", "b", identity="c-2", usages=[A, B])

    assert added_since(new, Position.after(BEFORE)).usages == (A, B)
