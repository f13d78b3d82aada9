"""The channel over real programs: what is carried, and what hostile clients cannot do."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio

from sortie.model.tools import COMMENT_LIMIT, ToolName
from sortie.telemetry import facts
from sortie.tools import channel, connection
from sortie.tools.channel import CLIENTS_LIMIT, FOLDER
from sortie.tools.client_lines import LINE_LIMIT
from sortie.transports.local import become_subreaper
from tests.tools.rig import LIMIT, TOKEN, ToolClient, ToolRig


@pytest.fixture
def rig(tmp_path: Path) -> ToolRig:
    become_subreaper()
    return ToolRig(tmp_path / "workspace")


async def test_an_agent_finds_its_tools_and_calls_them(rig: ToolRig) -> None:
    """Those that the run has, each with a schema; a call is answered and told."""
    rig = ToolRig(rig.workspace, [ToolName.ISSUE, ToolName.COMMENT])
    async with rig.channel() as had:
        assert had is not None
        assert had.server.argv == ("/bin/sh", f"{rig.workspace}/{FOLDER}/connect.sh")
        async with ToolClient.started(rig.folder) as client:
            listed = await client.ask("tools/list", {})
            issue = await client.call("issue")
            refused = await client.call("note", text="not here")

    assert [tool["name"] for tool in listed["tools"]] == ["issue", "comment"]
    assert all(tool["inputSchema"]["type"] == "object" for tool in listed["tools"])
    assert (json.loads(issue[0]), issue[1]) == ({"identifier": "A-1"}, False)
    assert refused == ("There is no such tool here; there are: issue, comment.", True)
    called = [(fact.tool, fact.result) for fact in rig.of(facts.ToolCalled)]
    assert called == [("issue", "ok"), ("unknown", "refused")]
    assert rig.of(facts.ToolsLost) == rig.of(facts.ToolClientLost) == []


async def test_long_lines_come_whole_from_several_clients(rig: ToolRig) -> None:
    """A comment of the greatest length in each, written by escapes, and an answer as long."""
    rig.tools.answer = {"description": "d" * 150_000}
    said = {name: name * COMMENT_LIMIT for name in "äö"}

    async def talk(name: str) -> None:
        async with ToolClient.started(rig.folder) as client:
            for _ in range(3):
                assert (await client.call("comment", text=said[name]))[1] is False
                assert len((await client.call("issue"))[0]) > 150_000

    async with rig.channel(), trio.open_nursery() as nursery:
        for name in said:
            nursery.start_soon(talk, name)

    assert sorted(map(str, rig.tools.said)) == sorted([*said.values()] * 3)


async def test_a_client_without_the_token_is_sent_away(rig: ToolRig) -> None:
    """Also with that of a run which is over; the next one, which has it, is served."""
    async with rig.channel():
        (rig.folder / "token").write_text(f"{TOKEN[::-1]}\n")
        async with ToolClient.started(rig.folder, greet=False) as client:
            await client.request("tools/call", {"name": "note", "arguments": {"text": "x"}})
            assert await client.process.wait() == 0
        reasons = await rig.until_lost()
        (rig.folder / "token").write_text(f"{TOKEN}\n")
        async with ToolClient.started(rig.folder) as client:
            assert (await client.call("note", text="mine"))[1] is False

    assert reasons == ["it did not say the token of the run"]
    assert rig.tools.said == ["mine"]


async def test_nothing_is_left_of_a_run_that_is_over(rig: ToolRig) -> None:
    """Its token lies nowhere any more, a client that is still there ends, and its lines with the
    former token open nothing in the next run."""
    async with trio.open_nursery() as nursery:
        async with rig.channel():
            client_ended = trio.Event()

            async def stay() -> None:
                async with ToolClient.started(rig.folder) as client:
                    started.set()
                    await client.process.wait()
                    client_ended.set()

            started = trio.Event()
            nursery.start_soon(stay)
            await started.wait()
        with trio.fail_after(LIMIT):
            await client_ended.wait()
    assert not rig.folder.exists()

    async with rig.channel(token="f" * 64):
        (rig.folder / "token").write_text(f"{TOKEN}\n")
        async with ToolClient.started(rig.folder, greet=False) as client:
            await client.process.wait()
        assert await rig.until_lost() == ["it did not say the token of the run"]


async def test_an_endless_line_ends_its_client_alone(rig: ToolRig) -> None:
    """Sortie keeps no more than one line of it."""
    async with rig.channel(), ToolClient.started(rig.folder) as other:
        async with ToolClient.started(rig.folder) as client:
            with pytest.raises(trio.BrokenResourceError):
                while True:
                    await client.send(b"x" * 65536)
        reasons = await rig.until_lost()
        assert (await other.call("note", text="still here"))[1] is False

    assert reasons == [f"it sent a line of more than {LINE_LIMIT} bytes"]


async def test_garbage_is_answered_with_errors(rig: ToolRig) -> None:
    """And what comes behind it is served."""
    garbage = [b"\xff\xfe\x00", b"[]", b"{}", b'{"jsonrpc":"2.0","id":{},"method":1}', b"[" * 5000]
    async with rig.channel(), ToolClient.started(rig.folder) as client:
        for line in garbage:
            await client.send(line + b"\n")
        number = await client.request("tools/call", {"name": "note", "arguments": {"text": "x"}})
        while (answer := await client.line()).get("id") != number:
            assert "error" in answer

    assert answer["result"]["isError"] is False


async def test_a_flood_waits_in_the_client(rig: ToolRig) -> None:
    """What is open at once is bounded, and every request is answered in the end."""
    rig.tools.hold = trio.Event()
    async with rig.channel(), ToolClient.started(rig.folder) as client:
        wanted = {await client.request("tools/call", {"name": "issue"}) for _ in range(100)}
        with trio.fail_after(LIMIT):
            while rig.tools.open < 16:
                await trio.sleep(0.01)
        rig.tools.hold.set()
        answered = {(await client.line())["id"] for _ in range(100)}

    assert answered == wanted
    assert rig.tools.most_open == 16


async def test_a_client_that_takes_no_answer_is_sent_away(
    rig: ToolRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one is served meanwhile."""
    monkeypatch.setattr(connection, "SEND_PATIENCE", 2.0)
    rig.tools.answer = {"description": "d" * 150_000}
    async with (
        rig.channel(),
        ToolClient.started(rig.folder) as other,
        ToolClient.started(rig.folder) as client,
    ):
        for _ in range(10):
            await client.request("tools/call", {"name": "issue", "arguments": {}})
        assert (await other.call("note", text="meanwhile"))[1] is False
        reasons = await rig.until_lost()
        while await client.process.stdout.receive_some():  # type: ignore[union-attr]
            pass

    assert reasons == ["it took no answer for 2 seconds"]


async def test_many_clients_are_there_at_once(rig: ToolRig) -> None:
    """As an agent and those that it starts have them; further ones wait until one has gone."""
    async with rig.channel(), AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(ToolClient.started(rig.folder))
            for _ in range(CLIENTS_LIMIT)
        ]
        for number, client in enumerate(clients):
            assert (await client.call("note", text=str(number)))[1] is False
        await clients[0].close()
        async with ToolClient.started(rig.folder) as late:
            assert (await late.call("note", text="late"))[1] is False

    assert rig.tools.said == [*map(str, range(CLIENTS_LIMIT)), "late"]
    assert rig.of(facts.ToolClientLost) == []


async def test_a_client_that_is_killed_is_followed_by_the_next(rig: ToolRig) -> None:
    """That it went is no trouble of the channel."""
    async with rig.channel():
        for _ in range(3):
            async with ToolClient.started(rig.folder) as client:
                await client.call("note", text="once")
                client.process.kill()
        async with ToolClient.started(rig.folder) as client:
            assert (await client.call("note", text="again"))[1] is False

    assert rig.of(facts.ToolsLost) == rig.of(facts.ToolClientLost) == []


async def test_what_git_clean_removes_is_there_again(rig: ToolRig) -> None:
    """With the next turn; a client that is connected has noticed nothing."""
    async with rig.channel() as had, ToolClient.started(rig.folder) as before:
        assert had is not None
        await rig.next_connection()
        shutil.rmtree(rig.folder.parent)
        assert (await before.call("note", text="before"))[1] is False
        await had.renew()
        assert (rig.folder.parent / ".gitignore").read_text() == "*\n"
        async with ToolClient.started(rig.folder) as after:
            assert (await after.call("note", text="after"))[1] is False

    assert rig.tools.said == ["before", "after"]


async def test_a_link_in_place_of_the_folder_leads_nowhere(rig: ToolRig, tmp_path: Path) -> None:
    """Nothing is written or removed where it points to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "token").write_text("of another")
    rig.folder.symlink_to(outside)

    async with rig.channel():
        pass

    assert [path.name for path in outside.iterdir()] == ["token"]
    assert (outside / "token").read_text() == "of another"


async def test_links_in_place_of_fifos_end_nothing(rig: ToolRig, tmp_path: Path) -> None:
    """An agent that replaces an end of the next connection has no tools until the next turn."""
    secret = tmp_path / "secret"
    secret.write_text("a secret\n")
    async with rig.channel() as had:
        assert had is not None
        end = await rig.next_connection()
        end.unlink()
        end.symlink_to(secret)
        (rig.folder / "token").unlink()
        await had.renew()
        async with ToolClient.started(rig.folder) as client:
            assert (await client.call("note", text="again"))[1] is False

    assert secret.read_text() == "a secret\n"


async def test_a_channel_that_cannot_be_had_is_told_once(rig: ToolRig) -> None:
    """The block is entered all the same: without tools a run goes on."""
    rig.folder.parent.rmdir()
    rig.folder.parent.write_text("no directory")

    async with rig.channel() as had:
        assert had is None

    assert len(rig.of(facts.ToolsLost)) == 1


async def test_where_no_fifo_can_be_made_the_tools_are_lost(
    rig: ToolRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is said in the words of the program, and agents wait for nothing then. The next turn
    tries it again."""
    monkeypatch.setattr(channel, "_PAUSE", 0.01)
    async with rig.channel(path="/nowhere") as had:
        assert had is not None
        with trio.fail_after(LIMIT):
            while not (lost := rig.of(facts.ToolsLost)) or rig.folder.exists():
                await trio.sleep(0.01)

        await had.renew()
        with trio.fail_after(LIMIT):
            while len(rig.of(facts.ToolsLost)) < 2:
                await trio.sleep(0.01)

    assert "not found" in lost[0].error


async def test_the_token_is_in_no_list_of_processes(rig: ToolRig) -> None:
    """Neither as an argument nor as a variable, and only its user may read its file."""
    async with rig.channel(), ToolClient.started(rig.folder):
        shown = b""
        for process in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                try:
                    shown += (process / name).read_bytes()
                except OSError:
                    continue
        mode = os.stat(rig.folder / "token").st_mode

    assert b"accept.sh" in shown
    assert TOKEN.encode() not in shown
    assert mode & 0o777 == 0o600
