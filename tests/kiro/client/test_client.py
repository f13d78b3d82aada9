"""Conversations of several turns, and the sessions that Kiro keeps of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from sortie.kiro import (
    AssistantMessage,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    KiroSDKClient,
    Message,
    OptionError,
    ProcessError,
    ResultMessage,
    SessionNotFoundError,
)
from tests.kiro.client.rig import BACKENDS, Rig, run

T = TypeVar("T")

ENGINES = ("v1", "v2")


async def ask(client: KiroSDKClient, prompt: str) -> list[Message]:
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def with_client(rig: Rig, act: Callable[[KiroSDKClient], Awaitable[T]], **more: Any) -> T:
    async def main() -> T:
        async with KiroSDKClient(rig.options(**more)) as client:
            return await act(client)

    return run("trio", main)


def session_of(messages: list[Message]) -> str:
    end = messages[-1]
    assert isinstance(end, ResultMessage)
    assert end.session_id is not None
    return end.session_id


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_turns_are_of_one_conversation(rig: Rig, backend: str, engine: str) -> None:
    """The second prompt goes on with the conversation of the first one, and only with that."""

    async def main() -> tuple[list[str], str | None, list[int]]:
        async with KiroSDKClient(rig.options(KIRO_SIM_STORE=engine)) as client:
            ids = [session_of(await ask(client, prompt)) for prompt in ("one", "two")]
            sessions = await client.list_sessions()
            return ids, client.session_id, [session.message_count for session in sessions]

    (first, second), known, counts = run(backend, main)

    assert first == second == known
    assert counts == [4]


def test_a_conversation_that_is_not_the_newest_is_named(rig: Rig) -> None:
    """Where another program has begun one in the same directory, Kiro is told which is meant."""

    async def act(client: KiroSDKClient) -> tuple[str, str]:
        first = session_of(await ask(client, "one"))
        rig.ask("sync", "somebody else's")
        return first, session_of(await ask(client, "two"))

    first, second = with_client(rig, act)

    assert first == second
    assert len(rig.events("start")) == 3


def test_a_version_that_ignores_which_is_meant_is_found_out(rig: Rig) -> None:
    """Some versions go on with the newest whatever they are told; that is no success."""
    simulator = rig.program.with_name("simulator")
    simulator.write_text(rig.program.read_text())
    simulator.chmod(0o755)
    rig.script(
        "#!/bin/bash\nargs=()\n"
        'while (($#)); do if [ "$1" = --resume-id ]; then args+=(--resume); shift 2;'
        ' else args+=("$1"); shift; fi; done\n'
        f'exec {simulator} "${{args[@]}}"\n'
    )

    async def act(client: KiroSDKClient) -> None:
        await ask(client, "one")
        rig.ask("sync", "somebody else's")
        await ask(client, "two")

    with pytest.raises(SessionNotFoundError, match="ignores --resume-id"):
        with_client(rig, act)


def test_a_conversation_that_was_not_gone_on_with_is_missed(rig: Rig) -> None:
    """Where Kiro begins another one instead, the turn has failed."""
    simulator = rig.program.with_name("simulator")
    simulator.write_text(rig.program.read_text())
    simulator.chmod(0o755)
    rig.script(
        '#!/bin/bash\nargs=()\nfor each; do [ "$each" = --resume ] || args+=("$each"); done\n'
        f'exec {simulator} "${{args[@]}}"\n'
    )

    async def act(client: KiroSDKClient) -> None:
        await ask(client, "one")
        await ask(client, "two")

    with pytest.raises(SessionNotFoundError, match="did not go on with session"):
        with_client(rig, act)


def test_without_a_store_the_newest_conversation_is_resumed(rig: Rig) -> None:
    """The documented way works where nothing can be read."""

    async def act(client: KiroSDKClient) -> list[Message]:
        await ask(client, "one")
        return await ask(client, "two")

    messages = with_client(rig, act, KIRO_SIM_STORE="none")

    end = messages[-1]
    assert isinstance(end, ResultMessage)
    assert end.session_id is None
    assert [bool(event["resume"]) for event in rig.events("start")] == [False, True]


def test_a_conversation_goes_on_though_its_store_breaks(rig: Rig) -> None:
    """A store that is garbage between two turns is no reason to give up."""

    async def act(client: KiroSDKClient) -> list[Message]:
        await ask(client, "one")
        rig.database.write_bytes(b"garbage" * 1000)
        return await ask(client, "two")

    messages = with_client(rig, act)

    assert isinstance(messages[0], AssistantMessage)
    assert rig.events("start")[1]["resume"]


def test_a_turn_that_failed_begins_no_conversation(rig: Rig) -> None:
    """Only what has succeeded is gone on with."""

    async def act(client: KiroSDKClient) -> None:
        with pytest.raises(ProcessError):
            await ask(client, "sim: exit=1")
        await ask(client, "two")
        await ask(client, "three")

    with_client(rig, act)

    assert [bool(event["resume"]) for event in rig.events("start")] == [False, False, True]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_is_gone_on_with_by_its_id(rig: Rig, engine: str) -> None:
    """Of two, the older one too; in the options or later."""
    older = session_of(rig.ask("sync", "one", KIRO_SIM_STORE=engine))
    newer = session_of(rig.ask("sync", "two", KIRO_SIM_STORE=engine))

    async def act(client: KiroSDKClient) -> tuple[str, str]:
        first = session_of(await ask(client, "three"))
        await client.resume_session(newer)
        return first, session_of(await ask(client, "four"))

    told = with_client(rig, act, resume_session=older, KIRO_SIM_STORE=engine)
    alone = rig.ask("asyncio", "five", resume_session=older, KIRO_SIM_STORE=engine)

    assert told == (older, newer)
    assert session_of(alone) == older


@pytest.mark.parametrize("engine", ENGINES)
def test_sessions_are_listed_and_deleted(rig: Rig, engine: str) -> None:
    """They come newest first, with their times; a deleted one is gone, and cannot be resumed."""

    async def act(client: KiroSDKClient) -> None:
        first = session_of(await ask(client, "one"))
        await client.delete_session(first)
        second = session_of(await ask(client, "two"))

        (listed,) = await client.list_sessions()

        assert first != second == listed.id
        assert listed.created_at.endswith("+00:00")
        assert listed.created_at <= listed.last_active
        with pytest.raises(SessionNotFoundError, match=f"there is no session {first}"):
            await client.resume_session(first)
        with pytest.raises(SessionNotFoundError, match=f"there is no session {first}"):
            await client.delete_session(first)

    with_client(rig, act, KIRO_SIM_STORE=engine)


def test_a_session_of_another_directory_says_so(rig: Rig, tmp_path: Path) -> None:
    """Kiro resumes by directory; the message tells which one it is."""
    session = session_of(rig.ask("sync", "one"))
    other = tmp_path / "other"
    other.mkdir()

    async def act(client: KiroSDKClient) -> None:
        assert await client.list_sessions() == []
        await client.resume_session(session)

    with pytest.raises(SessionNotFoundError, match=f"is of {rig.workspace}.*set cwd"):
        with_client(rig, act, cwd=other)


def damage(rig: Rig, engine: str) -> None:
    if engine == "v1":
        with sqlite3.connect(rig.database) as database:
            database.execute("UPDATE conversations_v2 SET value = '{\"history'")
        database.close()
        return
    (path,) = (rig.home / ".kiro" / "sessions").rglob("*.jsonl")
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_damaged_session_is_listed_and_not_resumed(rig: Rig, engine: str) -> None:
    """It counts no messages; what its file begins with is in the error."""
    session = session_of(rig.ask("sync", "one", KIRO_SIM_STORE=engine))
    damage(rig, engine)

    async def act(client: KiroSDKClient) -> None:
        assert [(s.id, s.message_count) for s in await client.list_sessions()] == [(session, 0)]
        with pytest.raises(CLIJSONDecodeError, match=f"session {session} is damaged") as caught:
            await client.resume_session(session)
        assert (caught.value.raw_output == "") == (engine == "v1")

    with_client(rig, act)


def test_a_store_that_cannot_be_read_is_no_empty_one(rig: Rig) -> None:
    """Asked for the sessions, the client says that it cannot tell."""
    rig.database.parent.mkdir(parents=True)
    rig.database.write_bytes(b"garbage" * 1000)

    async def act(client: KiroSDKClient) -> None:
        for asked in (
            client.list_sessions(),
            client.resume_session("x"),
            client.delete_session("x"),
        ):
            with pytest.raises(CLIConnectionError, match="cannot be"):
                await asked

    with_client(rig, act)


def test_calls_in_the_wrong_order_are_refused(rig: Rig) -> None:
    """Each says what is to be called first."""
    closed = KiroSDKClient(rig.options())

    async def act(client: KiroSDKClient) -> None:
        with pytest.raises(CLIConnectionError, match="no prompt was sent"):
            client.receive_response()
        await client.query("one")
        with pytest.raises(CLIConnectionError, match="has not been received"):
            await client.query("two")
        with pytest.raises(CLIConnectionError, match="use `async with"):
            await closed.query("x")
        with pytest.raises(CLIConnectionError, match="use `async with"):
            await closed.list_sessions()
        assert len([message async for message in client.receive_response()]) == 4

    with_client(rig, act)


def test_wrong_options_are_refused_on_entering(rig: Rig) -> None:
    """Nothing is started, and a session that does not exist is told at once."""

    async def act(client: KiroSDKClient) -> None:
        raise AssertionError("entered")

    with pytest.raises(OptionError, match="temperature: kiro-cli has no such setting"):
        with_client(rig, act, temperature=0.5)
    with pytest.raises(OptionError, match="is no directory"):
        with_client(rig, act, cwd=rig.workspace / "nope")
    with pytest.raises(SessionNotFoundError):
        with_client(rig, act, resume_session="nope")

    assert rig.events("start") == []


def test_a_turn_that_ended_in_time_may_be_received_late(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has other things to do meanwhile gets the messages all the same."""

    async def act(client: KiroSDKClient) -> list[Message]:
        await client.query("one")
        while rig.alive() or not rig.events("stop"):
            await anyio.sleep(0.01)
        turn = client._turn
        assert turn is not None
        monkeypatch.setattr(turn._process, "_deadline", 0.0)
        return [message async for message in client.receive_response()]

    assert isinstance(with_client(rig, act, timeout=60.0)[-1], ResultMessage)


def test_a_launch_that_failed_can_be_tried_again(rig: Rig) -> None:
    """The client is as it was before."""

    async def act(client: KiroSDKClient) -> list[Message]:
        hidden = rig.program.rename(rig.program.with_name("hidden"))
        with pytest.raises(CLINotFoundError):
            await client.query("one")
        hidden.rename(rig.program)
        return await ask(client, "two")

    assert isinstance(with_client(rig, act, cli_path=rig.program)[-1], ResultMessage)
    assert rig.agent_files() == []


def test_two_clients_in_one_directory_keep_their_conversations(rig: Rig) -> None:
    """Turns that alternate stay apart."""

    async def main() -> list[str]:
        async with KiroSDKClient(rig.options()) as one, KiroSDKClient(rig.options()) as two:
            return [session_of(await ask(c, "go on")) for c in (one, two, one, two)]

    ids = run("asyncio", main)

    assert ids[:2] == ids[2:]
    assert ids[0] != ids[1]
