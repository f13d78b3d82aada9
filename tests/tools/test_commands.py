"""Calls by commands of a shell, over real programs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from sortie.model.tools import ToolName
from sortie.telemetry import facts
from sortie.tools.arguments import Ask, SetStatus, WorkStatus
from sortie.tools.commands import guide
from sortie.transports.local import become_subreaper
from tests.tools.rig import LIMIT, TOKEN, ToolRig


@pytest.fixture
def rig(tmp_path: Path) -> ToolRig:
    become_subreaper()
    return ToolRig(tmp_path / "work space")


class Called(NamedTuple):
    """What came of a command."""

    status: int
    said: str
    errors: str


async def call(rig: ToolRig, *arguments: str, stdin: bytes | None = None) -> Called:
    """Run the script as an agent does; without ``stdin`` that never ends."""
    theirs, ours = os.pipe()
    try:
        with trio.fail_after(LIMIT):
            done = await trio.run_process(
                ["/bin/sh", str(rig.folder / "call.sh"), *arguments],
                stdin=theirs if stdin is None else stdin,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
    finally:
        os.close(theirs)
        os.close(ours)
    return Called(done.returncode, done.stdout.decode(), done.stderr.decode())


async def test_a_command_calls_a_tool(rig: ToolRig) -> None:
    """Its answer is printed, and the call is told as any other."""
    async with rig.channel():
        issue = await call(rig, "issue")
        noted = await call(rig, "note", '{"text": "don\\u0027t;\\n$(x) `y`"}')
        asked = await call(rig, "ask", "-", stdin=b'{\n"question": "Which?",\n"minutes": 5}\n')
        status = await call(rig, "set_status", '{"status": "done"}')

    assert (issue.status, json.loads(issue.said), issue.errors) == (0, {"identifier": "A-1"}, "")
    assert (noted.status, asked.status, status.status) == (0, 0, 0)
    assert rig.tools.said == [
        "don't;\n$(x) `y`",
        Ask(question="Which?", minutes=5),
        SetStatus(WorkStatus.DONE),
    ]
    called = [(fact.tool, fact.result) for fact in rig.of(facts.ToolCalled)]
    assert called == [("issue", "ok"), ("note", "ok"), ("ask", "ok"), ("set_status", "ok")]
    assert rig.of(facts.ToolClientLost) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense",), "There is no such tool here; there are: issue, note."),
        (("note",), "missing required field `text`"),
        (("note", "text"), "The arguments cannot be used: JSON is malformed"),
        (("note", '["x"]'), "Expected `object`, got `array`"),
        (("note", '{"text": "x", "issue": "B"}'), "unknown field `issue`"),
        (("note\nnote", '{"text": "x"}'), "JSON is malformed"),
    ],
)
async def test_a_command_that_is_refused_fails(
    rig: ToolRig, arguments: tuple[str, ...], said: str
) -> None:
    """The reason is printed, and nothing is done."""
    rig = ToolRig(rig.workspace, [ToolName.ISSUE, ToolName.NOTE])
    async with rig.channel():
        refused = await call(rig, *arguments)

    assert (refused.status, refused.errors) == (1, "")
    assert said in refused.said
    assert rig.tools.said == []
    assert [fact.result for fact in rig.of(facts.ToolCalled)] == ["refused"]


async def test_a_command_without_a_name_tells_of_the_tools(rig: ToolRig) -> None:
    """With the schemas of their arguments; that is no call."""
    rig = ToolRig(rig.workspace, [ToolName.ISSUE, ToolName.NOTE])
    async with rig.channel():
        listed = await call(rig)

    tools = {tool["name"]: tool["arguments"] for tool in json.loads(listed.said)}
    assert (listed.status, list(tools)) == (0, ["issue", "note"])
    assert tools["note"]["properties"]["text"]["maxLength"] == 500
    assert rig.of(facts.ToolCalled) == []


async def test_a_command_with_another_token_is_sent_away(rig: ToolRig) -> None:
    """It fails, and calls nothing."""
    async with rig.channel():
        (rig.folder / "token").write_text(f"{TOKEN[::-1]}\n")
        forged = await call(rig, "note", '{"text": "x"}')
        reasons = await rig.until_lost()

    assert (forged.status, forged.said) == (1, "")
    assert reasons == ["it did not say the token of the run"]
    assert rig.tools.said == []


async def test_arguments_without_an_end_send_a_command_away(rig: ToolRig) -> None:
    """Also where each line is short."""
    async with rig.channel():
        long = await call(rig, "note", "-", stdin=(b" " * 100_000 + b"\n") * 11)
        reasons = await rig.until_lost()

    assert (long.status, long.said) == (1, "")
    assert reasons == ["it sent a line of more than 1048576 bytes"]


async def test_a_command_shows_no_token(rig: ToolRig) -> None:
    """Neither as an argument nor as a variable of a program, while it waits for its answer."""
    rig.tools.hold = trio.Event()
    async with rig.channel(), trio.open_nursery() as nursery:
        nursery.start_soon(call, rig, "issue")
        with trio.fail_after(LIMIT):
            while not rig.tools.open:
                await trio.sleep(0.01)
        shown = b""
        for process in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                try:
                    shown += (process / name).read_bytes()
                except OSError:
                    continue
        rig.tools.hold.set()

    assert b"call.sh" in shown
    assert TOKEN.encode() not in shown


def test_the_guide_names_each_tool_and_its_arguments() -> None:
    """Those that may be left out are named, and a path with blanks is quoted."""
    told = guide("/a b/call.sh", [ToolName.ISSUE, ToolName.SET_STATUS, ToolName.ASK])

    assert "\n  /bin/sh '/a b/call.sh' NAME '{" in told
    assert "\n- issue: Read the issue" in told
    assert '"status": "blocked" or "done" or' in told
    assert '"minutes": NUMBER} (options, default, minutes may be left out): Ask' in told
    assert "note" not in told
