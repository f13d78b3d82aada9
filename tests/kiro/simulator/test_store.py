"""Where the simulator keeps conversations."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sortie.kiro.conversations import ConversationStores, KiroPlaces
from sortie.kiro.conversations.records import prompts
from tests.kiro.simulator.conftest import Simulator


def rows(simulator: Simulator) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(simulator.database)) as connection:
        return connection.execute(
            "SELECT key, conversation_id, value, created_at, updated_at"
            " FROM conversations_v2 ORDER BY rowid"
        ).fetchall()


def test_a_v1_row(simulator: Simulator) -> None:
    """The row has the physical directory as key, times in milliseconds, and Kiro's document."""
    simulator.chat("Add a file\nsim: credits=0.25", "--model", "m-1")

    ((key, identity, value, created, updated),) = rows(simulator)
    document = json.loads(value)
    first, second = document["history"]
    (use,) = first["assistant"]["ToolUse"]["tool_uses"]
    (result,) = second["user"]["content"]["ToolUseResults"]["tool_use_results"]
    assert key == os.getcwd()
    assert document["conversation_id"] == identity
    assert created == updated > 1_600_000_000_000
    assert first["user"]["content"] == {"Prompt": {"prompt": "Add a file\nsim: credits=0.25"}}
    assert (use["name"], use["args"]["path"]) == ("fs_write", "SORTIE_DEMO.md")
    assert (result["tool_use_id"], result["status"]) == (use["id"], "Success")
    assert "**Add a file**" in second["assistant"]["Response"]["content"]
    assert second["request_metadata"]["model_id"] == "m-1"
    assert document["model_info"] == {"model_id": "m-1"}
    assert document["user_turn_metadata"]["usage_info"] == [{"value": 0.25, "unit": "credit"}]


def test_resume_goes_on_with_the_newest_conversation(simulator: Simulator) -> None:
    """Without --resume a turn begins a conversation; with it the newest one of here grows."""
    for prompt, options in (("one", ()), ("two", ()), ("three", ("--resume",))):
        simulator.chat(f"{prompt}\nsim: note=0", *options)

    histories = [
        [
            entry["user"]["content"]["Prompt"]["prompt"][:5]
            for entry in json.loads(row[2])["history"]
        ]
        for row in rows(simulator)
    ]
    assert histories == [["one\ns"], ["two\ns", "three"]]


@pytest.mark.parametrize("engine", ["v1", "v2"])
def test_resume_is_about_one_directory(
    simulator: Simulator, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was said elsewhere is not gone on with, though it is newer."""
    simulator.environment["KIRO_SIM_STORE"] = engine
    for folder, prompt in (("work", "one"), ("other", "two"), ("work", "three")):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        simulator.chat(prompt, "--resume")

    stores = ConversationStores(KiroPlaces.of(simulator.environment))
    found = {s.directory: prompts(stores.load(s).records) for s in stores.summaries()}
    assert found == {
        str(tmp_path / "work"): ("one", "three"),
        str(tmp_path / "other"): ("two",),
    }


@pytest.mark.parametrize("engine", ["v1", "v2"])
def test_a_named_conversation_goes_on(simulator: Simulator, engine: str) -> None:
    """The older of two, in the store that has it; the turn can tell what was asked in it."""
    for prompt in ("one", "two"):
        simulator.chat(f"{prompt}\nsim: store={engine}")
    stores = ConversationStores(KiroPlaces.of(simulator.environment))
    older = next(s for s in stores.summaries() if prompts(stores.load(s).records)[0][:3] == "one")

    ran = simulator.chat("three\nsim: recall=1", "--resume-id", older.id)

    assert ran.stdout.endswith(f"I remember:\none\nsim: store={engine}")
    grown = stores.find(older.id)
    assert grown is not None
    assert len(prompts(stores.load(grown).records)) == 2
    assert len(stores.summaries()) == 2


def test_a_real_store_is_left_alone(simulator: Simulator) -> None:
    """A database with Kiro's other tables gets no row; the turn says so and succeeds."""
    simulator.database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(simulator.database)) as connection:
        connection.execute("CREATE TABLE migrations (id INTEGER)")

    ran = simulator.chat("Hello")

    assert ran.status == 0
    assert "belongs to a real Kiro (it has migrations)" in ran.stderr
    assert "Credits" in ran.stderr
    with closing(sqlite3.connect(simulator.database)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("migrations",)]


def test_a_v2_session(simulator: Simulator) -> None:
    """The session's summary and messages lie in two files, and --resume adds to them."""
    simulator.environment["KIRO_SIM_STORE"] = "v2"
    for prompt, options in (("one", ()), ("two", ("--resume",)), ("three", ())):
        simulator.chat(prompt, *options)

    folder = Path(simulator.environment["HOME"]) / ".kiro" / "sessions" / "cli"
    sessions = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    by_title = {session["title"]: session for session in sessions}
    messages = (folder / f"{by_title['one']['session_id']}.jsonl").read_text().splitlines()
    assert set(by_title) == {"one", "three"}
    assert by_title["one"]["cwd"] == os.getcwd()
    turns = by_title["one"]["session_state"]["conversation_metadata"]["user_turn_metadatas"]
    assert [turn["metering_usage"] for turn in turns] == [
        [{"value": 0.05, "unit": "credit"}],
        [{"value": 0.05, "unit": "credit"}],
    ]
    assert [json.loads(line)["kind"] for line in messages] == [
        "Prompt",
        "AssistantMessage",
        "ToolResults",
        "AssistantMessage",
    ] * 2


def test_a_session_of_a_real_kiro_is_not_resumed(simulator: Simulator) -> None:
    """A session without the simulator's mark stays as it is, and the turn begins its own."""
    simulator.environment["KIRO_SIM_STORE"] = "v2"
    simulator.chat("one")
    folder = Path(simulator.environment["HOME"]) / ".kiro" / "sessions"
    (path,) = folder.glob("cli/*.json")
    real = {k: v for k, v in json.loads(path.read_text()).items() if k != "made_by"}
    path.write_text(json.dumps(real))

    simulator.chat("two", "--resume")

    assert json.loads(path.read_text()) == real
    assert len(list(folder.rglob("*.jsonl"))) == 2
