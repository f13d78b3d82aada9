"""The newest conversation of one directory, found and read in bounds."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sortie.kiro.conversations import ConversationError, KiroPlaces, latest
from sortie.kiro.conversations.latest import LatestConversations, Sight
from tests.kiro.conversations.written import document, entry, said, write_v1, write_v2, write_v3

ENTRY = entry({"Prompt": {"prompt": "do it"}}, said("done"))
PROMPT = ("Prompt", [{"kind": "text", "data": "do it"}])
LATER = "2026-11-01T12:00:00Z"


@pytest.fixture
def places(tmp_path: Path) -> KiroPlaces:
    return KiroPlaces(
        database=str(tmp_path / "data" / "kiro-cli" / "data.sqlite3"),
        sessions=str(tmp_path / "kiro" / "sessions"),
    )


@pytest.fixture
def here(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def conversations(places: KiroPlaces, here: str) -> LatestConversations:
    return LatestConversations(places, here, 1_000_000)


def test_without_any_store_nothing_is_seen(conversations: LatestConversations) -> None:
    """That is no trouble, and nothing is made."""
    assert conversations.look() == Sight()


def test_the_newest_of_the_directory_is_seen_in_each_store(
    places: KiroPlaces, here: str, conversations: LatestConversations
) -> None:
    """Others, newer ones too, are not in the way."""
    database, sessions = Path(places.database), Path(places.sessions)
    write_v1(database, (here, document(ENTRY, identity="old"), 5), ("/other", document(), 9))
    write_v1(database, (here, document(ENTRY, ENTRY, identity="new"), 7))
    write_v2(sessions, here, LATER, PROMPT, identity="s-a")
    write_v2(sessions, "/other", LATER, PROMPT, identity="s-b")
    write_v3(sessions, here, LATER, {"type": "user", "content": "do it"})

    sight = conversations.look()

    assert list(sight.versions) == ["v1", "v2", "v3"]
    assert conversations.read("v1").summary.id == "new"
    assert conversations.read("v1").entries == 2
    assert conversations.read("v2").summary.id == "s-a"
    assert conversations.read("v3").summary.id == "s-3"


def test_the_older_table_is_seen_too(
    places: KiroPlaces, here: str, conversations: LatestConversations
) -> None:
    """It has one conversation of each directory."""
    write_v1(Path(places.database), (here, document(ENTRY, identity="older"), 0), older=True)

    assert list(conversations.look().versions) == ["v1-older"]
    assert conversations.read("v1-older").summary.id == "older"


def test_what_changes_is_told_apart(
    places: KiroPlaces, here: str, conversations: LatestConversations
) -> None:
    """A conversation that has grown is another version, whichever engine keeps it."""
    database, sessions = Path(places.database), Path(places.sessions)
    write_v1(database, (here, document(ENTRY), 5))
    write_v2(sessions, here, LATER, PROMPT)
    write_v3(sessions, here, LATER, {"type": "user", "content": "do it"})
    before = conversations.look()
    write_v3(sessions, here, LATER, *[{"type": "user", "content": "do it"}] * 2)
    third = conversations.look()
    write_v2(sessions, here, LATER, PROMPT, PROMPT)
    second = conversations.look()
    with closing(sqlite3.connect(database)) as kiro:
        kiro.execute("UPDATE conversations_v2 SET updated_at = 6")
        kiro.commit()
    first = conversations.look()

    assert before.changed_since(before) == []
    assert third.changed_since(before) == ["v3"]
    assert second.changed_since(third) == ["v2"]
    assert first.changed_since(second) == ["v1"]
    assert first.changed_since(Sight(troubles={"v1": "it was locked"})) == ["v2", "v3"]


def test_the_most_recent_sessions_alone_are_looked_into(
    places: KiroPlaces,
    here: str,
    conversations: LatestConversations,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many there are; one that has just been written is the newest."""
    monkeypatch.setattr(latest, "LOOKED_AT", 2)
    sessions = Path(places.sessions)
    for number, directory in enumerate([here, "/b", "/c"]):
        write_v2(sessions, directory, LATER, PROMPT, identity=f"s-{number}")
        os.utime(sessions / "cli" / f"s-{number}.json", (number, number))
    unseen = conversations.look()
    os.utime(sessions / "cli" / "s-0.json", (9, 9))

    assert unseen == Sight()
    assert list(conversations.look().versions) == ["v2"]


def test_what_is_too_large_is_not_read(places: KiroPlaces, here: str) -> None:
    """It is seen all the same, by its version."""
    write_v1(Path(places.database), (here, document(ENTRY, ENTRY), 5))
    write_v2(Path(places.sessions), here, LATER, *[PROMPT] * 10)
    small = LatestConversations(places, here, 600)
    sight = small.look()

    assert set(sight.versions) == {"v1", "v2"}
    for store in sight.versions:
        with pytest.raises(ConversationError, match="more than 600 bytes"):
            small.read(store)


def test_a_store_that_cannot_be_read_hides_no_other(
    places: KiroPlaces, here: str, conversations: LatestConversations
) -> None:
    """It is named, with the reason."""
    Path(places.database).parent.mkdir(parents=True)
    Path(places.database).write_bytes(b"no database" * 100)
    write_v2(Path(places.sessions), here, LATER, PROMPT)

    sight = conversations.look()

    assert list(sight.versions) == ["v2"]
    assert "not a database" in sight.troubles["v1"]
    assert "not a database" in sight.doubts_since(Sight())


def test_no_table_with_credentials_is_ever_named() -> None:
    """What is read of the database, here and on hosts, is the two tables of conversations."""
    root = Path(latest.__file__).parents[2]
    texts = [
        path.read_text()
        for path in (
            root / "kiro/conversations/latest.py",
            root / "agents/kiro/sh/conversations.sh",
        )
    ]

    named = {name for text in texts for name in re.findall(r"FROM (\w+)", text)}

    assert named == {"conversations", "conversations_v2"}
    assert not any(word in text for text in texts for word in ("auth_kv", "SELECT *"))
