"""A stranger's first hour: the page's own commands, one after another, to a pushed branch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, code_blocks, page
from tests.live.claude import HERE, quiet_environ
from tests.live.model_answers import Answer, tool
from tests.live.model_server import model_server

PROGRAMS = Path(sys.executable).parent
COMMANDS = [
    line
    for language, content in code_blocks(page("first-hour.md"))
    if language == "sh"
    for line in content.splitlines()
]
INSTALL, PATHS, _KEY = [
    line.removeprefix("$ ")
    for language, content in code_blocks(page("first-hour.md"))
    if language == "console"
    for line in content.splitlines()
]
INIT = "sortie init --agent claude-code"
WORK = "echo Hello > hello.txt; git add -A; git commit -qm 'Say hello'; echo done > .sortie/status"
KIRO = f"""\
#!/bin/sh
sortie-kiro-sim "$@" || exit
case " $* " in *" chat "*) {WORK};; esac
"""
"""A Kiro that does what an agent should: it commits, and says that it is done."""


def typed(commands: list[str], home: Path, more: Mapping[str, str]) -> str:
    """Type commands into a shell, each of which must succeed, and return what it shows."""
    ran = _typed(commands, home, more)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _typed(
    commands: list[str], home: Path, more: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": f"{home / 'bin'}:{PROGRAMS}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "SORTIE_POLLING_INTERVAL_MS": "300",
        "SORTIE_SERVER_PORT": "0",
        **more,
    }
    script = "set -ex\n" + "\n".join(commands)
    return subprocess.run(
        ["/bin/sh", "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=600
    )


def program(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give the home of somebody whom git knows."""
    (tmp_path / "bin").mkdir()
    lines = "[user]\nname = Somebody\nemail = somebody@example.com\n"
    (tmp_path / ".gitconfig").write_text(lines)
    return tmp_path


def assert_pushed(home: Path, shown: str) -> None:
    """Fail unless the agent's commit is on its branch in the bare repository, beside the first."""
    bare = ["git", "-C", str(home / "project.git")]
    tree = subprocess.check_output([*bare, "ls-tree", "--name-only", "sortie/TASK-1"], text=True)
    branches = subprocess.check_output([*bare, "branch", "--format=%(refname:short)"], text=True)
    assert "hello.txt" in tree.split()
    assert len(branches.split()) == 2
    assert "Say hello" in shown
    assert "succeeded" in shown
    assert "state: Human Review" in (home / "backlog/issues/TASK-1.md").read_text()


def test_the_readme_leads_to_the_page() -> None:
    """It is named where a reader wants to begin, and tells an agent that is on the page."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "(docs/first-hour.md)" in readme.split("## Your own backlog")[1]
    assert COMMANDS.count(INIT) == 1


def test_the_commands_lead_to_a_pushed_branch(home: Path) -> None:
    """With a simulated Kiro for the agent that the page names; and what follows is true as well:
    a finished issue's workspace goes, since all of its work is pushed."""
    program(home / "bin/committing-kiro", KIRO)
    environ = {"SORTIE_AGENT_COMMAND": "committing-kiro", "KIRO_API_KEY": "simulated"}

    shown = typed([line.replace(INIT, "sortie init") for line in COMMANDS], home, environ)

    assert_pushed(home, shown)
    (workspace,) = (home / ".local/state/sortie/workspaces").glob("*/TASK-1")
    assert (workspace / "hello.txt").exists()
    done = ["cd ~/backlog", "sed -i 's/^state: .*/state: Done/' issues/TASK-1.md"]
    typed([*done, "sortie run --exit-when-idle"], home, environ)
    assert not workspace.exists()


@pytest.mark.full
def test_work_that_was_not_pushed_outlives_the_issue(home: Path) -> None:
    """What an agent writes after its work was pushed is kept, and is a branch again at will."""
    program(home / "bin/committing-kiro", KIRO)
    environ = {"SORTIE_AGENT_COMMAND": "committing-kiro", "KIRO_API_KEY": "simulated"}
    typed([line.replace(INIT, "sortie init") for line in COMMANDS], home, environ)
    (workspace,) = (home / ".local/state/sortie/workspaces").glob("*/TASK-1")
    (workspace / "late.txt").write_text("late")

    done = [
        "cd ~/backlog",
        "sed -i 's/^state: .*/state: Done/' issues/TASK-1.md",
        "sortie run --exit-when-idle",
        "sortie rescue list",
        "sortie rescue restore TASK-1 --into ~/project",
        "git -C ~/project branch --list 'rescued/*' --format='%(refname:short) %(subject)'",
    ]
    shown = typed(done, home, environ)

    assert not workspace.exists()
    assert "rescued/TASK-1-" in shown
    assert "Work that was not committed" in shown


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_the_commands_lead_to_a_pushed_branch_of_claude_code(home: Path) -> None:
    """As they stand, with the newest release of the real agent, whose model is scripted."""
    installed = _typed([INSTALL], home, {**os.environ, "HOME": str(home)})
    if installed.returncode != 0:
        pytest.skip(f"{INSTALL}: {installed.stderr.strip().splitlines()[-1]}")
    with model_server() as server:
        script = server.script(HERE, tool("Bash", command=WORK), Answer(text="It says hello."))
        shown = typed([PATHS, *COMMANDS], home, quiet_environ(server))

    assert_pushed(home, shown)
    assert len(script.requests) == 2
