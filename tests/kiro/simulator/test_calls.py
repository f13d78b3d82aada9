"""Calls of Sortie's tools by the simulator, as the prompt tells of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sortie.tools.commands import guide
from tests.kiro.simulator.conftest import Simulator

SCRIPT = """echo "called $*"; [ "$1" != no ]"""


@pytest.fixture
def told(simulator: Simulator) -> str:
    """Have a script of the tools, and return what a prompt says of it."""
    path = Path(".sortie/tools/call.sh").absolute()
    path.parent.mkdir(parents=True)
    path.write_text(SCRIPT)
    return "\n" + guide(str(path), [])


def calls(told: str, *more: str) -> str:
    return "\n".join(["Go", 'sim: call=\'note {"text": "a b"}\'', "sim: call=no", *more, told])


@pytest.mark.parametrize("trust", ["--trust-all-tools", "--trust-tools=read,shell"])
def test_a_trusted_call_is_made(simulator: Simulator, told: str, trust: str) -> None:
    """What it says stands in the answer and in the conversation; one that fails ends no turn."""
    ran = simulator.chat(calls(told, "sim: store=v2"), trust)
    (kept,) = Path(simulator.environment["HOME"]).rglob("*.jsonl")

    assert ran.status == 0
    assert 'note: called note {"text": "a b"}\nno: called no' in ran.stdout
    results = [json.loads(line)["data"]["content"][0] for line in kept.open()]
    statuses = [one["data"]["status"] for one in results if one["kind"] == "toolResult"]
    assert statuses == ["success", "success", "error"]


@pytest.mark.parametrize(("how", "status"), [("exit", 1), ("deny", 0)])
def test_a_call_that_is_not_trusted_is_not_made(
    simulator: Simulator, told: str, how: str, status: int
) -> None:
    """One version ends the turn then, another goes on without."""
    ran = simulator.chat(calls(told, f"sim: untrusted={how}"), "--trust-tools=read,write")

    assert ran.status == status
    assert "called" not in ran.stdout
    assert "Tool approval required" in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("said", "is_made"),
    [
        ({"allowedTools": ["execute_bash"]}, True),
        ({"toolsSettings": {"shell": {"allowedCommands": [r"/bin/sh \S+call\.sh .*"]}}}, True),
        ({"toolsSettings": {"shell": {"allowedCommands": ["git .*"]}}}, False),
        ({"mcpServers": {}}, False),
    ],
)
def test_a_custom_agent_may_trust_a_call(
    simulator: Simulator, told: str, said: object, is_made: bool
) -> None:
    """By its tools or by a pattern of commands."""
    Path(".kiro/agents").mkdir(parents=True)
    Path(".kiro/agents/ops.json").write_text(json.dumps(said))

    ran = simulator.chat(calls(told), "--agent", "ops", "--trust-tools=")

    assert (ran.status == 0, "called note" in ran.stdout) == (is_made, is_made)


@pytest.mark.parametrize(
    "forged",
    [
        "/bin/sh {other} NAME",
        "/bin/sh '{script}' {other} 'x' NAME",
        "/bin/sh '{script}' ; sh {other} 'x' NAME",
        "/bin/sh {script};{other} NAME",
        """/bin/sh "{script} NAME""",
    ],
)
def test_only_the_script_of_the_directory_is_run(
    simulator: Simulator, told: str, tmp_path: Path, forged: str
) -> None:
    """A prompt cannot name another command, since a stranger may have written it."""
    other = tmp_path / "other.sh"
    other.write_text(SCRIPT)
    script = Path(".sortie/tools/call.sh").absolute()

    prompt = calls(f"{forged.format(other=other, script=script)} ")
    ran = simulator.chat(prompt, "--trust-all-tools")

    assert (ran.status, "called" in ran.stdout) == (1, False)
    assert "no prompt tells of tools in this directory" in ran.stderr


def test_a_conversation_remembers_its_tools(simulator: Simulator, told: str) -> None:
    """A turn that resumes it is not told again."""
    simulator.chat(f"Go\n{told}", "--trust-all-tools")

    ran = simulator.chat("sim: call=note", "--trust-all-tools", "--resume")

    assert (ran.status, "note: called note" in ran.stdout) == (0, True)
