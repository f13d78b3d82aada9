"""Listing, resuming and deleting kept conversations."""

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
from sortie.kiro.simulator.sessions import as_text
from tests.kiro.simulator.conftest import Simulator

ENGINES = ("v1", "v2", "v3")


def listed(simulator: Simulator) -> list[dict[str, Any]]:
    """Return the sessions of the current directory, those of headless turns as well."""
    simulator.environment["KIRO_SIM_LIST_HEADLESS"] = "1"
    ran = simulator("chat", "--list-sessions", "--format", "json")
    (group,) = json.loads(ran.stdout)
    assert (ran.status, group["cwd"]) == (0, os.getcwd())
    sessions: list[dict[str, Any]] = group["sessions"]
    return sessions


def said(simulator: Simulator) -> dict[str, tuple[str, ...]]:
    """Return what was said in each conversation, by its id."""
    stores = ConversationStores(KiroPlaces.of(simulator.environment))
    return {s.id: prompts(stores.load(s).records) for s in stores.summaries()}


def test_conversations_of_headless_turns_are_not_listed(simulator: Simulator) -> None:
    """As in Kiro, unless a newer version of it is asked for."""
    for engine in ENGINES:
        simulator.chat(f"Hello\nsim: store={engine} note=0")

    plain = simulator("chat", "--list-sessions")
    data = simulator("chat", "--list-sessions", "-f", "json")

    assert "No saved chat sessions" in plain.stdout
    assert json.loads(data.stdout) == [{"cwd": os.getcwd(), "sessions": []}]
    found = {s["source"]: (s["title"][:5], s["messageCount"]) for s in listed(simulator)}
    assert found == dict.fromkeys(ENGINES, ("Hello", 2))


def test_a_list_is_of_one_directory_and_the_newest_comes_first(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For people with ids, titles, counts and sources; some versions write it to stderr."""
    simulator.environment["KIRO_SIM_SILENCE"] = "0.002"  # so that no two end in one millisecond
    for prompt in ("one", "two"):
        simulator.chat(prompt)
    monkeypatch.chdir(tmp_path)
    simulator.chat("elsewhere")
    monkeypatch.chdir(tmp_path / "work")
    simulator.environment |= {"KIRO_SIM_LIST_STDERR": "1", "KIRO_SIM_LIST_HEADLESS": "1"}

    ran = simulator("chat", "--list-sessions")
    sessions = [json.loads(simulator("chat", "--list-sessions", "-f=json").stderr)[0]["sessions"]]

    ids = [session["sessionId"] for session in sessions[0]]
    assert [session["title"] for session in sessions[0]] == ["two", "one"]
    assert ran.stdout == ""
    assert ran.stderr.splitlines() == [
        f"Chat sessions for {os.getcwd()}:",
        "",
        f"Chat SessionId: {ids[0]}",
        "  just now | two | 3 msgs | v1",
        "",
        f"Chat SessionId: {ids[1]}",
        "  just now | one | 3 msgs | v1",
        "",
    ]


def test_a_list_says_how_long_ago() -> None:
    """In the largest unit that is not zero."""
    row = {"sessionId": "i", "title": "t", "messageCount": 2, "source": "v2"}
    shown = [
        as_text("/d", [{**row, "updatedAt": "2026-11-01T10:00:00.250Z"}], 1_793_527_200 + seconds)
        for seconds in (59, 60, 7300, 3 * 86_400)
    ]

    ago = [text.splitlines()[3].split(" | ")[0].strip() for text in shown]
    assert ago == ["just now", "1 minute ago", "2 hours ago", "3 days ago"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_conversation_is_resumed_by_its_id(simulator: Simulator, engine: str) -> None:
    """Not the newest one, and in its own store whichever engine is chosen now."""
    for prompt in ("one", "two"):
        simulator.chat(f"{prompt}\nsim: store={engine} note=0")
    first = next(i for i, prompts in said(simulator).items() if prompts[0][:3] == "one")

    ran = simulator.chat("three\nsim: note=0 recall=1", "--resume-id", first)

    assert ran.status == 0
    assert "I remember:\none\nsim: store=" in ran.stdout
    assert [text[:5] for text in said(simulator)[first]] == ["one\ns", "three"]
    assert len(said(simulator)) == 2


def test_an_id_may_be_ignored(simulator: Simulator) -> None:
    """As some versions do; an unknown one is refused by the others before the turn."""
    simulator.chat("one")
    (first,) = said(simulator)
    simulator.environment["KIRO_SIM_IGNORE_RESUME_ID"] = "1"

    ignored = simulator.chat("two", "--resume-id", first)
    del simulator.environment["KIRO_SIM_IGNORE_RESUME_ID"]
    unknown = simulator.chat("three", "--resume-id", "0f0e0d0c-0b0a-4908-8706-050403020100")

    assert ignored.status == 0
    assert sorted(said(simulator).values()) == [("one",), ("two",)]
    assert (unknown.status, unknown.stdout) == (1, "")
    assert "no session with the id 0f0e0d0c" in unknown.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_a_conversation_is_deleted(simulator: Simulator, engine: str) -> None:
    """That one and no other; a second time it is not there."""
    for prompt in ("one", "two"):
        simulator.chat(f"{prompt}\nsim: store={engine}")
    second = next(i for i, prompts in said(simulator).items() if prompts[0][:3] == "two")
    source = () if engine == "v3" else ("--session-source", engine)

    ran = simulator("chat", "--delete-session", second, *source)
    again = simulator("chat", "--delete-session", second)

    assert (ran.status, ran.stdout) == (0, f"Deleted chat session {second}\n")
    assert [prompts[0][:3] for prompts in said(simulator).values()] == ["one"]
    assert (again.status, again.stdout) == (1, "")
    assert f"no session with the id {second} was found" in again.stderr


def test_another_source_has_no_such_conversation(simulator: Simulator) -> None:
    """Nothing is deleted then."""
    simulator.chat("one")
    (first,) = said(simulator)

    ran = simulator("chat", f"--delete-session={first}", "--session-source=v2")

    assert ran.status == 1
    assert f"no session with the id {first} was found in the store of v2" in ran.stderr
    assert list(said(simulator)) == [first]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_real_kiro_keeps_is_not_touched(simulator: Simulator, engine: str) -> None:
    """It is listed, and neither resumed nor deleted."""
    simulator.chat(f"one\nsim: store={engine}")
    (first,) = said(simulator)
    forget_who_made_it(simulator)

    ends = [
        simulator("chat", "--delete-session", first),
        simulator.chat("two", "--resume-id", first),
    ]

    del simulator.environment["KIRO_SIM_LIST_HEADLESS"]
    group = json.loads(simulator("chat", "--list-sessions", "-f", "json").stdout)[0]
    assert [end.status for end in ends] == [1, 1]
    assert all("belongs to a real Kiro" in end.stderr for end in ends)
    assert [session["sessionId"] for session in group["sessions"]] == [first]


def forget_who_made_it(simulator: Simulator) -> None:
    """Take the simulator's mark off everything that is kept."""
    simulator.environment["KIRO_SIM_LIST_HEADLESS"] = "0"
    for path in Path(simulator.environment["HOME"]).rglob("*.json"):
        document = json.loads(path.read_text())
        document.pop("made_by", None)
        path.write_text(json.dumps(document))
    if simulator.database.exists():
        with closing(sqlite3.connect(simulator.database)) as database:
            database.execute("UPDATE conversations_v2 SET value = json_remove(value, '$.made_by')")
            database.commit()
