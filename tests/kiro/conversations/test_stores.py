"""Finding, reading and deleting conversations, in each of Kiro's stores."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.kiro.conversations import (
    Conversation,
    ConversationError,
    ConversationStores,
    HistoryCleared,
    HistoryCompacted,
    KiroPlaces,
    KiroUsage,
    ModelAnswer,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    UserPrompt,
)
from sortie.kiro.conversations.files import milliseconds
from sortie.kiro.conversations.history_v1 import read_document
from sortie.kiro.conversations.records import (
    ConversationSummary,
    credits_of,
    final_answer,
    modified_files,
    prompts,
)
from tests.kiro.conversations.written import (
    document,
    entry,
    results,
    said,
    uses,
    write_v1,
    write_v2,
    write_v3,
)

EDIT = {"command": "create", "path": "src/a.py", "file_text": "x"}
HISTORY = (
    entry({"Prompt": {"prompt": "do it"}}, uses(("t-1", "fs_write", EDIT), text="I write")),
    entry(results(("t-1", {"Text": "done"}, "Success")), said("all done", "m-2"), 3_000, 4_000),
)
SUMMARY = ConversationSummary(engine="v1", id="c-1", directory="/w", place="/db")


@pytest.fixture
def places(tmp_path: Path) -> KiroPlaces:
    return KiroPlaces(
        database=str(tmp_path / "data" / "kiro-cli" / "data.sqlite3"),
        sessions=str(tmp_path / "kiro" / "sessions"),
    )


@pytest.fixture
def here(tmp_path: Path) -> str:
    return str(tmp_path)


def read_all(stores: ConversationStores) -> list[Conversation]:
    return [stores.load(summary) for summary in stores.summaries()]


def test_without_any_store_there_is_nothing(places: KiroPlaces, here: str) -> None:
    """A machine on which Kiro never ran is no error, and nothing is made there."""
    stores = ConversationStores(places)

    assert (stores.summaries(), stores.newest(here), stores.find("c-1")) == ([], None, None)
    assert os.listdir(here) == []


def test_a_row_of_v1_is_read_whole(places: KiroPlaces, here: str) -> None:
    """Prompts, answers, tools, results, times, model, context and credits."""
    write_v1(Path(places.database), (here, document(*HISTORY, spent=(0.25, 0.5)), 5_000))
    stores = ConversationStores(places)

    (summary,) = stores.summaries(here)
    found = stores.load(summary)

    assert (summary.engine, summary.id, summary.created, summary.updated) == ("v1", "c-1", 1, 5_000)
    model, share = "claude-sonnet-4.5", 12.5
    assert found.records == (
        UserPrompt(text="do it", at=1_000),
        ModelAnswer(text="I write", message_id="m-0", model=model, context_share=share, at=2_000),
        ToolUse(id="t-1", name="fs_write", input=EDIT, at=2_000),
        ToolResult(tool_use_id="t-1", text="done", succeeded=True, at=3_000),
        ModelAnswer(text="all done", message_id="m-2", model=model, context_share=share, at=4_000),
    )
    assert (found.entries, found.since(1), found.since(99)) == (2, found.records[3:], ())
    assert credits_of(found.usages) == 0.75
    assert modified_files(found.records) == ("src/a.py",)
    assert (prompts(found.records), final_answer(found.records)) == (("do it",), "all done")


def test_what_the_user_stopped_changed_nothing() -> None:
    """What was said in place of a tool is a prompt; the tool has written no file, nor one that
    failed, nor one that only reads."""
    cancelled = {"prompt": "no, stop", "tool_use_results": [{"tool_use_id": "t-1", "content": []}]}
    history = (
        entry({"Prompt": {"prompt": "a"}}, uses(("t-1", "write", {"path": "one"}))),
        entry(
            {"CancelledToolUses": cancelled},
            uses(
                ("t-2", "fs_write", {"path": "two", "command": "append"}),
                ("t-3", "fs_write", {"path": "three", "command": "view"}),
                ("t-4", "execute_bash", {"path": "four"}),
                ("t-5", "fs_edit", {"path": "five"}),
                ("t-6", "write", {"path": "two"}),
            ),
        ),
        entry(
            results(("t-2", {"Json": {"ok": 1}}, "Success"), ("t-5", {"Text": "no"}, "Error")),
            said("b"),
        ),
    )

    found = read_document(document(*history), SUMMARY)

    assert ToolUsesCancelled(tool_use_ids=("t-1",), prompt="no, stop", at=1_000) in found.records
    assert ToolResult(tool_use_id="t-2", text='{"ok": 1}', succeeded=True, at=1_000) in (
        found.records
    )
    assert prompts(found.records) == ("a", "no, stop")
    assert modified_files(found.records) == ("two",)


def test_the_older_table_of_v1_tells_times_by_its_answers(places: KiroPlaces, here: str) -> None:
    """It has neither ids nor times of its own."""
    write_v1(Path(places.database), (here, document(*HISTORY, identity="old"), 0), older=True)
    stores = ConversationStores(places)

    newest = stores.newest(here)

    assert newest is not None
    assert (newest.id, newest.updated) == ("old", 4_000)
    assert stores.load(newest).entries == 2


def test_a_session_of_v2_is_read_whole(places: KiroPlaces, here: str) -> None:
    """From its two files; zero tokens mean that they were not counted."""
    write_v2(
        Path(places.sessions),
        here,
        "2026-11-01T10:00:05.250Z",
        ("Prompt", [{"kind": "text", "data": "do it"}]),
        (
            "AssistantMessage",
            [
                {"kind": "text", "data": "so"},
                {"kind": "toolUse", "data": {"toolUseId": "t", "name": "write", "input": EDIT}},
            ],
        ),
        (
            "ToolResults",
            [
                {
                    "kind": "toolResult",
                    "data": {
                        "toolUseId": "t",
                        "content": [{"kind": "text", "data": "ok"}],
                        "status": "success",
                    },
                }
            ],
        ),
        ("Clear", []),
        ("Compaction", []),
        ("SomethingNew", [{"kind": "text", "data": "?"}]),
        ("AssistantMessage", [{"kind": "text", "data": "done"}]),
    )
    stores = ConversationStores(places)

    (summary,) = stores.summaries(here)
    found = stores.load(summary)

    assert (summary.engine, summary.id, summary.title) == ("v2", "s-2", "a title")
    assert summary.updated - (summary.created or 0) == 5_250
    at = 1_793_000_000_000
    assert found.records == (
        UserPrompt(text="do it", at=at),
        ModelAnswer(text="so", message_id="m-1", model="auto", at=at + 1000),
        ToolUse(id="t", name="write", input=EDIT, at=at + 1000),
        ToolResult(tool_use_id="t", text="ok", succeeded=True, at=at + 2000),
        HistoryCleared(),
        HistoryCompacted(),
        ModelAnswer(text="done", message_id="m-6", model="auto", at=at + 6000),
    )
    assert found.usages == (KiroUsage(credits=0.25, output_tokens=7, model="auto"),)


def test_a_session_of_v3_is_read_whole(places: KiroPlaces, here: str) -> None:
    """From its folder; a payload of an unknown type is passed over."""
    write_v3(
        Path(places.sessions),
        here,
        "2026-11-01T09:00:09Z",
        {"type": "user", "content": "do it"},
        {"type": "tool_call", "toolUseId": "t", "name": "write", "input": EDIT},
        {"type": "tool_result", "toolUseId": "t", "content": [{"text": "ok"}], "success": True},
        {"type": "thinking", "content": "hm"},
        {"type": "assistant", "content": [{"type": "text", "text": "done"}]},
        {"type": "usage_summary", "meteringUsage": [{"value": 0.5, "unit": "credit"}]},
    )
    stores = ConversationStores(places)

    (summary,) = stores.summaries(here)
    found = stores.load(summary)

    assert (summary.engine, summary.id) == ("v3", "s-3")
    assert (prompts(found.records), final_answer(found.records)) == (("do it",), "done")
    assert modified_files(found.records) == ("src/a.py",)
    assert found.usages == (KiroUsage(credits=0.5, model="claude-haiku"),)


@pytest.mark.parametrize("newest", ["v1", "v2", "v3"])
def test_the_newest_is_the_newest_of_all_stores(places: KiroPlaces, here: str, newest: str) -> None:
    """Their times have three forms; what another directory has counts for nothing."""
    second = {"v1": 0, "v2": 0, "v3": 0, newest: 30}
    base = milliseconds("2026-11-01T10:00:00Z") or 0
    write_v1(
        Path(places.database),
        (here, document(*HISTORY), base + 1000 * second["v1"]),
        ("/elsewhere", document(identity="other"), base + 99_000),
    )
    write_v2(Path(places.sessions), here, f"2026-11-01T10:00:{second['v2']:02}Z")
    write_v3(Path(places.sessions), here, base / 1000 + second["v3"])
    stores = ConversationStores(places)

    found = stores.newest(here)

    assert found is not None
    assert found.engine == newest
    assert len(stores.summaries(here)) == 3
    assert next(s.id for s in stores.summaries()) == "other"


def test_a_directory_is_known_by_its_real_path(places: KiroPlaces, tmp_path: Path) -> None:
    """Kiro writes what the kernel calls its working directory."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_v1(Path(places.database), (str(tmp_path / "real"), document(*HISTORY), 1))

    assert ConversationStores(places).newest(str(tmp_path / "link")) is not None


@pytest.mark.parametrize("engine", ["v1", "v1 older", "v2", "v3"])
def test_what_is_deleted_is_gone_and_the_rest_stays(
    places: KiroPlaces, here: str, engine: str
) -> None:
    """Once more is no error."""
    write_v1(Path(places.database), ("/elsewhere", document(identity="stays"), 7))
    match engine:
        case "v2":
            write_v2(Path(places.sessions), here, "2026-11-01T10:00:00Z")
        case "v3":
            write_v3(Path(places.sessions), here, "2026-11-01T10:00:00Z")
        case _:
            write_v1(Path(places.database), (here, document(), 1), older="older" in engine)
    stores = ConversationStores(places)
    (doomed,) = stores.summaries(here)

    stores.delete(doomed)
    stores.delete(doomed)

    assert [summary.id for summary in stores.summaries()] == ["stays"]
    with pytest.raises(ConversationError, match=r"conversation c-1|cannot be read"):
        stores.load(doomed)


def test_a_store_that_cannot_be_read_hides_no_other(places: KiroPlaces, here: str) -> None:
    """It is told of; so is one that somebody has locked."""
    Path(places.database).parent.mkdir(parents=True)
    Path(places.database).write_bytes(b"SQLite format 3\0 and then rubbish" * 100)
    write_v2(Path(places.sessions), here, "2026-11-01T10:00:00Z")
    told: list[str] = []

    found = ConversationStores(places, on_trouble=lambda exc: told.append(str(exc))).summaries(here)

    assert [summary.engine for summary in found] == ["v2"]
    assert len(told) == 1
    assert places.database in told[0]


def test_a_database_that_is_being_written_is_waited_for_and_told(
    places: KiroPlaces, here: str
) -> None:
    """A lock that stays is an error in a second, and breaks nothing."""
    write_v1(Path(places.database), (here, document(*HISTORY), 1))
    told: list[str] = []
    stores = ConversationStores(places, on_trouble=lambda exc: told.append(str(exc)))
    writer = sqlite3.connect(places.database, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")

    during = stores.summaries(here)
    writer.execute("COMMIT")
    writer.close()

    assert (during, len(told), "locked" in told[0]) == ([], 1, True)
    assert len(stores.summaries(here)) == 1


def test_the_database_is_not_written_by_reading(places: KiroPlaces, here: str) -> None:
    """Also where all that may be done with it is to read; credentials are in no query."""
    write_v1(Path(places.database), (here, document(*HISTORY), 1))
    before = Path(places.database).read_bytes()
    asked: list[str] = []
    connect = sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_trace_callback(asked.append)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", traced)
        read_all(ConversationStores(places))

    assert Path(places.database).read_bytes() == before
    assert asked
    assert not any("auth_kv" in query or "state" in query for query in asked)


def test_what_is_too_large_is_not_read(places: KiroPlaces, here: str) -> None:
    """Neither a row nor a file; a summary costs nothing and is there."""
    large = document(entry({"Prompt": {"prompt": "x" * 5000}}, said("y")))
    write_v1(Path(places.database), (here, large, 1))
    write_v2(
        Path(places.sessions),
        here,
        "2026-11-01T10:00:00Z",
        ("Prompt", [{"kind": "text", "data": "x" * 5000}]),
    )
    stores = ConversationStores(places, limit=4000)

    for summary in stores.summaries(here):
        with pytest.raises(ConversationError):
            stores.load(summary)
    assert len(stores.summaries(here)) == 2


def test_places_follow_the_environment() -> None:
    """A relative XDG_DATA_HOME means nothing."""
    home = {"HOME": "/h"}

    def places(macos: bool = False, **more: str) -> tuple[str, str]:
        found = KiroPlaces.of(home | more, macos=macos)
        return found.database, found.sessions

    linux = "/h/.local/share/kiro-cli/data.sqlite3"
    assert places() == (linux, "/h/.kiro/sessions")
    assert places(XDG_DATA_HOME="rel")[0] == linux
    assert places(XDG_DATA_HOME="/x", KIRO_HOME="/k") == (
        "/x/kiro-cli/data.sqlite3",
        "/k/sessions",
    )
    assert places(macos=True)[0] == "/h/Library/Application Support/kiro-cli/data.sqlite3"


def test_times_of_every_form_are_milliseconds() -> None:
    """What is no time is none."""
    moment = 1_793_000_000_250
    assert milliseconds(moment) == moment
    assert milliseconds(moment / 1000) == moment
    assert milliseconds(moment * 1_000_000) == moment
    assert milliseconds("2026-10-26T07:33:20.250Z") == moment
    assert milliseconds("2026-10-26T09:33:20.250+02:00") == moment
    nothing: object
    for nothing in (None, True, "soon", [], -1, float("nan"), float("inf"), 10**30):
        assert milliseconds(nothing) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def mutated(value: Any, draw: st.DrawFn) -> Any:
    """Return a value of which a part is replaced or missing."""
    if draw(st.integers(0, 9)) == 0:
        return draw(JSON)
    if isinstance(value, dict):
        return {
            key: mutated(inner, draw) for key, inner in value.items() if draw(st.integers(0, 9)) > 0
        }
    if isinstance(value, list):
        return [mutated(inner, draw) for inner in value]
    return value


@st.composite
def mutated_documents(draw: st.DrawFn) -> Any:
    return mutated(document(*HISTORY, spent=(0.5,)), draw)


@given(mutated_documents())
def test_no_document_breaks_the_reader(found: Any) -> None:
    """Whatever a version of Kiro may write, what is not understood is left out."""
    read = read_document(found if isinstance(found, dict) else {}, SUMMARY)

    assert len(read.records) == len(read.entry_of)
    modified_files(read.records)
    credits_of(read.usages)


@st.composite
def mutated_sessions(draw: st.DrawFn) -> tuple[Any, bytes]:
    session = mutated({"session_id": "s", "cwd": "/w", "updated_at": "2026-11-01T10:00:00Z"}, draw)
    data = {"message_id": "m", "content": [{"kind": "toolUse", "data": {"toolUseId": "t"}}]}
    lines = [
        json.dumps(mutated({"kind": kind, "data": data, "payload": {"type": kind}}, draw)).encode()
        for kind in ("Prompt", "AssistantMessage", "ToolResults", "user", "tool_result")
    ]
    return session, b"\n".join([*lines, draw(st.binary(max_size=30))])


@given(mutated_sessions())
def test_no_session_file_breaks_the_readers(
    tmp_path_factory: pytest.TempPathFactory, written: tuple[Any, bytes]
) -> None:
    """Also cut off in the middle, as while it is written."""
    session, lines = written
    sessions = tmp_path_factory.mktemp("sessions")
    for folder, name, messages in (
        (sessions / "cli", "s.json", "s.jsonl"),
        (sessions / "hash" / "sess_s", "session.json", "messages.jsonl"),
    ):
        folder.mkdir(parents=True)
        (folder / name).write_text(json.dumps(session))
        (folder / messages).write_bytes(lines)
    places = KiroPlaces(database=str(sessions / "none"), sessions=str(sessions))

    for found in read_all(ConversationStores(places)):
        assert len(found.records) == len(found.entry_of)
