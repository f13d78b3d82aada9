"""What a turn of Kiro's is told to have done, by its own conversations, here and on a host."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from sortie.agents.kiro import sources, traced_session
from sortie.agents.kiro.host_source import HostSource
from sortie.agents.kiro.sources import LocalSource
from sortie.kiro.conversations.latest import Sight
from sortie.model import TurnOutcome
from sortie.model.turns import AgentEvent, ToolEnded, ToolStarted, TurnTraced, TurnUntraced, Usage
from sortie.transports.local import LocalTransport
from tests.agents.kiro.simulated import Heard, Rig, is_alive
from tests.kiro.conversations.written import (
    document,
    entry,
    results,
    said,
    uses,
    write_v1,
    write_v3,
)

LIMIT = 60.0
ENGINES = ("v1", "v2")
TOOLS = ("sh", "head", "grep", "tr", "wc", "ls", "uname", "sed", "cat")


PRINTS = "echo Authenticated with API key\nprintf ' \\342\\226\\270 Credits: 1\\n' >&2\n"
"""What a script prints that stands in for a turn which completes."""


class Elsewhere(LocalTransport):
    """This machine, taken for a host; what a real sshd makes of it is tried with whole daemons."""

    @property
    def host(self) -> str:
        return "elsewhere"


@pytest.fixture(params=[LocalTransport, Elsewhere])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    return Rig(tmp_path, request.param())


@pytest.fixture
def there(tmp_path: Path) -> Rig:
    return Rig(tmp_path, Elsewhere())


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "kiro-cli" / "data.sqlite3"


def traces(events: Sequence[AgentEvent]) -> list[TurnTraced | TurnUntraced]:
    return [event for event in events if isinstance(event, TurnTraced | TurnUntraced)]


def tools(events: Sequence[AgentEvent]) -> list[tuple[str, str | None, tuple[str, ...]]]:
    return [(e.name, e.kind, e.locations) for e in events if isinstance(e, ToolStarted)]


def reason(heard: Heard) -> str:
    """Return why a turn is not told."""
    (trace,) = traces(heard.events)
    assert isinstance(trace, TurnUntraced)
    return trace.reason


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_turn_tells_its_tools_its_model_and_its_answer(rig: Rig, engine: str) -> None:
    """Whichever engine has kept them, after the launch and before the result."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn(f"Go\nsim: store={engine} write=src/a.py say=PONG")

    assert result.outcome is TurnOutcome.COMPLETED
    assert tools(heard.events) == [
        ("fs_write", "edit", ("SORTIE_DEMO.md",)),
        ("fs_write", "edit", ("src/a.py",)),
    ]
    assert traces(heard.events) == [TurnTraced(model="auto", answer="PONG")]
    assert not [e for e in heard.events if isinstance(e, ToolEnded) and e.failed]
    assert [(u.credits, u.context_share) for u in heard.events if isinstance(u, Usage)] == [
        (0.05, None),
        (None, 0.01),
    ]


@pytest.mark.parametrize("engine", ENGINES)
async def test_each_turn_tells_what_it_has_added(rig: Rig, engine: str) -> None:
    """Neither what the conversation held before, nor what another one of the directory does."""
    heard = [Heard() for _ in range(3)]
    with trio.fail_after(LIMIT):
        await rig.turn(f"Before\nsim: store={engine} write=before.py")
        async with rig.session() as session:
            for name, each in zip("abc", heard, strict=True):
                await session.run_turn(f"{name}\nsim: store={engine} note=0 write={name}.py", each)

    assert [tools(each.events) for each in heard] == [
        [("fs_write", "edit", (f"{name}.py",))] for name in "abc"
    ]


async def test_a_turn_that_kept_nothing_tells_nothing_old(rig: Rig) -> None:
    """A turn that failed before it wrote anything has not done what the last run did."""
    with trio.fail_after(LIMIT):
        await rig.turn("Go")
        result, heard = await rig.turn("Go\nsim: exit=1")

    assert result.outcome is TurnOutcome.FAILED
    assert tools(heard.events) == []
    assert reason(heard) == "Kiro has kept nothing of this turn"


async def test_a_turn_that_is_prompted_twice_is_told_whole(rig: Rig, database: Path) -> None:
    """As where a tool was stopped and another order given in its place: what counts is where the
    conversation ended before the turn."""
    here, prompt = str(rig.workspace), {"Prompt": {"prompt": "go"}}
    turns = [entry(prompt, uses((f"t-{n}", "fs_write", {"path": f"{n}.py"}))) for n in range(3)]
    done = [entry(results((f"t-{n}", {"Text": ""}, "Success")), said("done")) for n in range(3)]
    history = [each for pair in zip(turns, done, strict=True) for each in pair]
    for number, length in ((1, 2), (2, 6)):
        place = database.with_name(f"{number}.sqlite3")
        write_v1(place, (here, document(*history[:length]), number))
    count = rig.log.with_name("turns")
    rig.script(
        f"#!/bin/sh\n[ $1 = chat ] && echo >>{count} &&"
        f" cp {database.parent}/$(wc -l <{count} | tr -d ' ').sqlite3 {database}\n{PRINTS}"
    )
    heard = [Heard(), Heard()]
    with trio.fail_after(LIMIT):
        async with rig.session() as session:
            for each in heard:
                await session.run_turn("Go", each)

    assert [traces(each.events) for each in heard] == [
        [TurnTraced(model="claude-sonnet-4.5", answer="done")]
    ] * 2
    assert [[places for _, _, (places,) in tools(each.events)] for each in heard] == [
        ["0.py"],
        ["1.py", "2.py"],
    ]


async def test_a_session_of_v3_is_told(rig: Rig, tmp_path: Path) -> None:
    """The newest engine keeps a folder for each session, and of it two files are read."""
    home = Path(rig.environment["HOME"])
    write_v3(
        tmp_path / "made",
        str(rig.workspace),
        "2026-11-01T09:00:09Z",
        {"type": "user", "content": "Go"},
        {"type": "tool_call", "toolUseId": "t", "name": "write", "input": {"path": "a.py"}},
        {"type": "tool_result", "toolUseId": "t", "content": "ok", "success": True},
        {"type": "assistant", "content": "PONG"},
    )
    copy = f"mkdir -p {home}/.kiro && cp -r {tmp_path}/made {home}/.kiro/sessions"
    rig.script(f"#!/bin/sh\ncase $1 in chat) {copy};; esac\n{PRINTS}")
    with trio.fail_after(LIMIT):
        _, heard = await rig.turn("Go")

    assert tools(heard.events) == [("write", "edit", ("a.py",))]
    assert traces(heard.events) == [TurnTraced(model="claude-haiku", answer="PONG")]


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_agents_own_environment_says_where(rig: Rig, engine: str, tmp_path: Path) -> None:
    """Kiro's places are where the agent's variables put them, also below the workspace."""
    del rig.environment["XDG_DATA_HOME"]
    rig.environment["KIRO_HOME"] = "own"
    with trio.fail_after(LIMIT):
        _, heard = await rig.turn(f"Go\nsim: store={engine} say=PONG")

    assert traces(heard.events) == [TurnTraced(model="auto", answer="PONG")]
    own = rig.workspace / "own" / "sessions"
    place = tmp_path / ".local" / "share" / "kiro-cli" if engine == "v1" else own
    assert place.is_dir()


async def test_no_secret_is_told(rig: Rig) -> None:
    """Not in a path, and not in the answer."""
    with trio.fail_after(LIMIT):
        _, heard = await rig.turn("Go\nsim: note=0 write=sk-very-secret.txt say=sk-very-secret!")

    assert tools(heard.events) == [("fs_write", "edit", ("***.txt",))]
    assert traces(heard.events) == [TurnTraced(model="auto", answer="***!")]


_UNREADABLE_TRAILER = """
from sortie.kiro.simulator.console import Console
Console.trailer = lambda self, *_: self.complain(" ▸ Credits: many")
main()
"""


async def test_credits_that_the_last_line_does_not_tell_are_those_on_record(rig: Rig) -> None:
    """They count once."""
    rig.script(rig.command.read_text().replace("main()", _UNREADABLE_TRAILER))
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("Go\nsim: credits=0.5")

    assert result.outcome is TurnOutcome.COMPLETED
    used = [event for event in heard.events if isinstance(event, Usage)]
    assert [event.credits for event in used] == [0.5]


# What goes wrong


async def test_without_a_store_nothing_is_told(rig: Rig) -> None:
    """A machine on which Kiro keeps nothing is no trouble."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("Go\nsim: store=none")

    assert result.outcome is TurnOutcome.COMPLETED
    assert reason(heard) == "Kiro has kept nothing of this turn"


def _garbage(database: Path) -> None:
    database.write_bytes(b"no database at all" * 100)


def _odd_columns(database: Path) -> None:
    with closing(sqlite3.connect(database)) as made:
        made.execute("CREATE TABLE conversations_v2 (key TEXT, other TEXT)")
        made.commit()


@pytest.mark.parametrize("spoil", [_garbage, _odd_columns, Path.mkdir])
async def test_a_database_that_is_none_costs_evidence_alone(
    rig: Rig, database: Path, spoil: object
) -> None:
    """The turn's outcome stands, and another engine's store is read all the same."""
    assert callable(spoil)
    database.parent.mkdir(parents=True)
    spoil(database)
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("Go\nsim: store=none")
        again, other = await rig.turn("Go\nsim: store=v2 say=PONG")

    assert (result.outcome, again.outcome) == (TurnOutcome.COMPLETED, TurnOutcome.COMPLETED)
    assert "a credential" not in reason(heard)
    assert traces(other.events) == [TurnTraced(model="auto", answer="PONG")]


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Hold a database as a writer does that does not end."""
    with closing(sqlite3.connect(database, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        yield


async def test_a_database_that_is_locked_is_given_up(rig: Rig, database: Path) -> None:
    """Another Kiro may write for long."""
    write_v1(database, (str(rig.workspace), document(entry({"Prompt": {"prompt": "x"}}, {})), 1))
    with trio.fail_after(LIMIT), locked(database):
        result, heard = await rig.turn("Go\nsim: store=none")

    assert result.outcome is TurnOutcome.COMPLETED
    assert "database is locked" in reason(heard)


@pytest.mark.parametrize("engine", ["v1", "v2"])
async def test_a_conversation_that_is_too_large_is_not_read(
    rig: Rig, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is looked at before."""
    monkeypatch.setattr(sources, "CONVERSATION_LIMIT", 4000)
    monkeypatch.setattr("sortie.agents.kiro.host_source.CONVERSATION_LIMIT", 4000)
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn(f"{'x' * 5000}\nsim: store={engine}")

    assert result.outcome is TurnOutcome.COMPLETED
    assert "more than 4000 bytes" in reason(heard)


@pytest.mark.full
async def test_fifty_mebibytes_are_not_read(rig: Rig, database: Path) -> None:
    """Nor do they keep the next turn waiting."""
    large = document(entry({"Prompt": {"prompt": "x" * 50 * 1024 * 1024}}, said("y")))
    rig.script(f"#!/bin/sh\ncase $1 in chat) cp {database}.new {database};; esac\n" + PRINTS)
    write_v1(database, (str(rig.workspace), large, 1))
    database.rename(f"{database}.new")
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("Go")

    assert result.outcome is TurnOutcome.COMPLETED
    assert "more than 16777216 bytes" in reason(heard)


async def test_what_was_there_is_looked_at_while_a_turn_is_prepared(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known when the first turn begins, and nobody looks a second time."""
    looks, heard = [], Heard()
    looked, kind = trio.Event(), HostSource if isinstance(rig.transport, Elsewhere) else LocalSource
    look = kind.look

    async def counted(self: LocalSource | HostSource) -> Sight:
        looks.append(await look(self))  # type: ignore[arg-type]
        looked.set()
        return looks[-1]

    monkeypatch.setattr(kind, "look", counted)
    with trio.fail_after(LIMIT):
        async with rig.session() as session:
            await looked.wait()
            await session.run_turn("Go\nsim: store=v2 say=PONG", heard)

    assert traces(heard.events) == [TurnTraced(model="auto", answer="PONG")]
    assert len(looks) == 1


async def test_a_session_is_left_though_a_look_hangs(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for what no turn needs any more."""
    looking = trio.Event()

    async def hang(_: object) -> Sight:
        looking.set()
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(traced_session, "BOUND", float("inf"))
    for kind in (LocalSource, HostSource):
        monkeypatch.setattr(kind, "look", hang)
    with trio.fail_after(LIMIT):
        async with rig.session():
            await looking.wait()


async def test_files_that_are_none_are_passed_over(rig: Rig) -> None:
    """Neither a FIFO nor a broken file hides the session that is there."""
    sessions = Path(rig.environment["HOME"]) / ".kiro" / "sessions"
    (sessions / "cli").mkdir(parents=True)
    (sessions / "0" / "sess_1").mkdir(parents=True)
    os.mkfifo(sessions / "cli" / "fifo.json")
    os.mkfifo(sessions / "0" / "sess_1" / "session.json")
    (sessions / "cli" / "broken.json").write_text('{"cwd": "' + str(rig.workspace))
    (sessions / "cli" / "named.json").write_text(json.dumps({"title": str(rig.workspace)}))
    with trio.fail_after(LIMIT):
        _, heard = await rig.turn("Go\nsim: store=v2 say=PONG")

    assert traces(heard.events) == [TurnTraced(model="auto", answer="PONG")]


async def test_a_fault_of_the_reading_itself_says_where(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody expected is told with its place; the turn stands."""

    async def read(self: object, before: Sight) -> object:
        raise KeyError("unforeseen")

    monkeypatch.setattr(LocalSource, "read", read)
    monkeypatch.setattr(HostSource, "read", read)
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("Go")

    assert result.outcome is TurnOutcome.COMPLETED
    said = reason(heard)
    assert said.startswith("KeyError('unforeseen') in read (test_traced_turns.py:")


class Hanging:
    """A source whose readings do not end."""

    async def look(self) -> Sight:
        return Sight()

    async def read(self, before: Sight) -> object:
        await trio.sleep_forever()


async def test_a_reading_that_hangs_is_bounded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A success that was seen stands, also where the turn's time runs out meanwhile."""
    for kind in (LocalSource, HostSource):
        monkeypatch.setattr(kind, "look", Hanging.look)
        monkeypatch.setattr(kind, "read", Hanging.read)
    monkeypatch.setattr(traced_session, "BOUND", 0.2)
    heard = Heard()
    with trio.fail_after(LIMIT):
        async with rig.session() as session:
            with trio.CancelScope() as scope:

                def hear(events: Sequence[AgentEvent]) -> None:
                    heard(events)
                    if heard.used:
                        scope.cancel()

                result = await session.run_turn("Go", hear)

    assert scope.cancel_called
    assert result.outcome is TurnOutcome.COMPLETED
    assert reason(heard) == "it was not read within 0.2 s"


async def test_a_turn_that_is_stopped_is_told_as_far_as_it_went(rig: Rig) -> None:
    """The cancellation goes on once that is done."""
    heard = Heard()
    with trio.fail_after(LIMIT):
        async with rig.session() as session:
            with trio.CancelScope() as scope:

                def stop(events: Sequence[AgentEvent]) -> None:
                    heard(events)
                    if heard.launched.is_set():
                        scope.cancel()

                await session.run_turn("Go\nsim: hang=1", stop)

    assert scope.cancelled_caught
    assert reason(heard) == "Kiro has kept nothing of this turn"


# What a host has


def programs(there: Rig, *names: str) -> None:
    """Give the host these programs and no others."""
    folder = Path(there.environment["HOME"]) / "bin"
    folder.mkdir()
    for name in (*TOOLS, *names):
        found = sys.executable if name == "python3" else shutil.which(name)
        if found is None:
            pytest.skip(f"there is no {name} here")
        (folder / name).symlink_to(found)
    there.environment["PATH"] = str(folder)


@pytest.mark.parametrize("names", [("sqlite3",), ("python3",)])
async def test_one_of_two_programs_is_enough_for_v1(there: Rig, names: tuple[str, ...]) -> None:
    """Either reads the database."""
    programs(there, *names)
    with trio.fail_after(LIMIT):
        _, heard = await there.turn("Go\nsim: say=PÖNG")

    assert traces(heard.events) == [TurnTraced(model="auto", answer="PÖNG")]


@pytest.mark.parametrize("engine", ENGINES)
async def test_without_both_v1_is_not_read(there: Rig, engine: str) -> None:
    """It is told why; the files of newer engines need neither."""
    programs(there)
    with trio.fail_after(LIMIT):
        _, heard = await there.turn(f"Go\nsim: store={engine} say=PONG")

    if engine == "v1":
        assert "neither sqlite3 nor python3 is installed" in reason(heard)
    else:
        assert traces(heard.events) == [TurnTraced(model="auto", answer="PONG")]


async def test_a_slow_host_is_given_up_and_left_clean(
    there: Rig, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn goes on without, and what hangs is ended at once, not with the session."""
    programs(there)
    slow = Path(there.environment["PATH"]) / "sqlite3"
    slow.write_text(f"#!/bin/sh\necho $$ >>{there.log}.pids\nexec /bin/sleep 1000\n")
    slow.chmod(0o755)
    write_v1(database)
    monkeypatch.setattr(traced_session, "BOUND", 4.0)
    heard = Heard()
    with trio.fail_after(LIMIT):
        async with there.session() as session:
            result = await session.run_turn("Go\nsim: store=none", heard)
            for pid in Path(f"{there.log}.pids").read_text().split():
                while is_alive(int(pid)):
                    await trio.sleep(0.01)

    assert result.outcome is TurnOutcome.COMPLETED
    assert reason(heard).startswith("what was there before the turn was not read in time")


async def test_nothing_of_the_run_is_handed_to_what_reads(there: Rig, database: Path) -> None:
    """Only the agent needs the key; where Kiro keeps its conversations is said."""
    programs(there)
    reader = Path(there.environment["PATH"]) / "sqlite3"
    reader.write_text(f"#!/bin/sh\n/usr/bin/env >>{there.log}.env\n")
    reader.chmod(0o755)
    write_v1(database)
    with trio.fail_after(LIMIT):
        await there.turn("Go\nsim: store=none")

    given = Path(f"{there.log}.env").read_text()
    assert f"XDG_DATA_HOME={there.environment['XDG_DATA_HOME']}" in given
    assert "KIRO_API_KEY" not in given
    assert "SORTIE_RUN_ID" not in given


async def test_a_directory_may_have_any_name(rig: Rig) -> None:
    """Neither the shell nor SQL nor a pattern takes a part of it for something else."""
    rig.workspace = rig.workspace / "it's $(x) [a]*.? \"ünï\\n"
    rig.workspace.mkdir()
    with trio.fail_after(LIMIT):
        heard = [(await rig.turn(f"Go\nsim: store={each} say=PONG"))[1] for each in ENGINES]

    assert [traces(each.events) for each in heard] == [
        [TurnTraced(model="auto", answer="PONG")] for _ in ENGINES
    ]
