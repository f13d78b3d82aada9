"""The examples of the pages run, and their types hold."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.docs.pages import code_blocks, page
from tests.kiro.client.rig import BACKENDS, Rig, run

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "kiro-client"
EXAMPLES = {
    "quick_start": ["I have read **What is 2 + 2?**.", "(0.05 credits, 0.0 s)"],
    "multi_turn": [
        "> What files are in this project?",
        "> Which of them should I read first?",
        "I have read **Which of them should I read first?**.",
    ],
    "tool_usage": ["uses fs_write: {'command': 'append'", "done", "modified: SORTIE_DEMO.md"],
    "session_management": ["I have read **Which word was it?**.", "there is no session "],
    "mcp_servers": ["I have read **List the files in /tmp**."],
}


@pytest.fixture(autouse=True)
def simulated(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have examples find the simulator as a user's kiro-cli, logged in, and ``npx`` beside it."""
    npx = rig.program.with_name("npx")
    npx.write_text("#!/bin/sh\n")
    npx.chmod(0o755)
    for name, value in rig.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KIRO_API_KEY")
    monkeypatch.setenv("KIRO_SIM_LOGIN", "1")
    monkeypatch.chdir(rig.workspace)


def main_of(name: str) -> Callable[[], Awaitable[None]]:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[[], Awaitable[None]] = module.main
    return main


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(
    rig: Rig, backend: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each prints what it promises, under both event loops."""
    run(backend, main_of(name))

    printed = capsys.readouterr().out
    assert [text for text in EXAMPLES[name] if text not in printed] == []
    assert rig.agent_files() == []


def test_every_example_is_tried() -> None:
    """No file of the folder is left out."""
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXAMPLES)


def test_the_start_has_five_lines_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands first on the page is as short as it says."""
    language, code = code_blocks(page("kiro-client.md"))[0]

    assert (language, len(code.splitlines())) == ("python", 5)
    exec(code, {})
    assert "ResultMessage(credits=0.05" in capsys.readouterr().out


def test_an_example_is_a_script(rig: Rig) -> None:
    """It runs from a command line as well."""
    done = subprocess.run(
        [sys.executable, FOLDER / "quick_start.py"], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "credits" in done.stdout


def test_servers_under_a_key_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example says why, and that a login is needed."""
    monkeypatch.delenv("KIRO_SIM_LOGIN")
    monkeypatch.setenv("KIRO_API_KEY", "sk-1")

    run("asyncio", main_of("mcp_servers"))

    assert capsys.readouterr().out.startswith("mcp_servers: kiro-cli has turned MCP off")


CHECKED = '''
"""What a type checker has to know of the client."""
from collections.abc import AsyncIterator
from typing import assert_type

from sortie.kiro import (
    KiroAgentOptions, KiroSDKClient, Message, SessionInfo, TextBlock, ToolUseBlock, UserMessage,
    AssistantMessage, ResultMessage, ToolResultMessage, query, query_sync,
)


async def use(client: KiroSDKClient) -> None:
    assert_type(query(prompt="x", options=KiroAgentOptions(cwd="/")), AsyncIterator[Message])
    assert_type(client.receive_response(), AsyncIterator[Message])
    assert_type(await client.list_sessions(), list[SessionInfo])
    for message in query_sync(prompt="x"):
        for block in message.content:
            print(block.type)
        match message:
            case AssistantMessage(content=content):
                assert_type(content, list[TextBlock | ToolUseBlock])
            case ResultMessage(credits=spent):
                assert_type(spent, float | None)
            case UserMessage() | ToolResultMessage():
                pass
'''
WRONG = """
from sortie.kiro import KiroAgentOptions, nothing

KiroAgentOptions(model=1)
"""


@pytest.fixture
def checked(tmp_path: Path) -> tuple[str, str]:
    """Return a file whose types hold and one with two mistakes."""
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(CHECKED)
    wrong.write_text(WRONG)
    return str(right), str(wrong)


def test_mypy_knows_the_types(checked: tuple[str, str], tmp_path: Path) -> None:
    """The examples and the way they are used hold under ``--strict``; mistakes are found."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed; the linters' environment has it")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir"]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}

    def check(*paths: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*mypy, str(tmp_path / "cache"), "--follow-imports=silent", *paths],
            capture_output=True,
            text=True,
            env=environment,
            timeout=110,
            check=False,
        )

    right, wrong = checked
    held = check(right, *map(str, sorted(FOLDER.glob("*.py"))))
    failed = check(wrong)

    assert (held.returncode, held.stderr) == (0, ""), held.stdout
    assert 'Module "sortie.kiro" has no attribute "nothing"' in failed.stdout
    assert 'Argument "model" to "KiroAgentOptions" has incompatible type "int"' in failed.stdout


def test_pyright_knows_the_types(checked: tuple[str, str], tmp_path: Path) -> None:
    """In strict mode the same holds, and the same mistakes are found."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed; the linters' environment has it")
    if shutil.which("node") is None:
        pytest.skip("pyright needs node, and there is none; it is not downloaded here")
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    for path in FOLDER.glob("*.py"):
        shutil.copy(path, tmp_path)

    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT": "1",
            "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
        },
        timeout=110,
        check=False,
    )

    said = [
        (Path(e["file"]).name, e["message"]) for e in json.loads(done.stdout)["generalDiagnostics"]
    ]
    assert [each for each in said if each[0] != "wrong.py"] == []
    told = "\n".join(message for _, message in said)
    assert '"nothing" is unknown import symbol' in told
    assert '"Literal[1]" is not assignable to "str"' in told
