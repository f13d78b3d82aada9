"""The hooks that pages and starters offer, run as they stand against a real repository."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import trio
from ruamel.yaml import YAML

from sortie.model import RunId
from sortie.transports.local import LocalTransport
from sortie.workspaces import (
    HookOutcome,
    RunVariables,
    Secrets,
    Workspace,
    Workspaces,
    hook_env,
    run_hook,
)
from tests.docs.pages import PAGES, ROOT, code_blocks

HOOKS = ("after_create", "before_run", "after_run", "before_remove")
WORKFLOWS = (
    ROOT / "WORKFLOW.example.md",
    ROOT / "sortie/cli/demo/directory/WORKFLOW.md",
)
HOOK_LINE = re.compile(rf"^\s*(?:# +)?(?:{'|'.join(HOOKS)}):", re.MULTILINE)
CHANGES = re.compile(r"\bgit (?:-\S+ \S+ )*(?:clone|pull|worktree|push|switch|checkout|reset)\b")
URL = "git@example.com:team/project.git"
BRANCH = "sortie/TASK-1"

pytestmark = pytest.mark.usefixtures("home")


def sources() -> list[tuple[str, str]]:
    """Return every text in which hooks can stand: whole workflows, and blocks of pages."""
    whole = [(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in WORKFLOWS]
    blocks = [
        (f"{path.relative_to(ROOT).as_posix()}-{number}", content)
        for path in PAGES
        for number, (_, content) in enumerate(code_blocks(path.read_text("utf-8")))
    ]
    return whole + blocks


def hooks_in(text: str) -> dict[str, str]:
    """Return the hooks of a text, those that are commented out as a reader would take them in."""
    lines = text.splitlines()
    begin = next((n for n, line in enumerate(lines) if re.match(r"(# )?hooks:", line)), None)
    if begin is None:
        return {}
    bare = [re.sub(r"^(\s*)# ", r"\1", line) for line in lines[begin:]]
    size = next((n for n, line in enumerate(bare) if n and not line.startswith(" ")), len(bare))
    block = YAML(typ="safe").load("\n".join(bare[:size]))["hooks"]
    return {name: block[name] for name in HOOKS if name in block}


OFFERED = [(name, hooks) for name, text in sources() if (hooks := hooks_in(text))]


def git(directory: Path | str, *words: str) -> str:
    """Run git in a directory and return what it says."""
    ran = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True)
    assert ran.returncode == 0, (words, ran.stderr)
    return ran.stdout


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home directory with a clone, and a repository that the offered address leads to."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    bare = tmp_path / "project.git"
    for key, value in {
        "user.name": "Somebody",
        "user.email": "somebody@example.com",
        "init.defaultBranch": "main",
        f"url.{bare}.insteadOf": URL,
    }.items():
        git(home, "config", "--global", key, value)
    git(home, "init", "-q", "--bare", str(bare))
    git(home, "clone", "-q", str(bare), "src/project")
    push_to_main(home, "begun")
    return home


def push_to_main(home: Path, name: str) -> None:
    """Have somebody else commit a file and push it."""
    other = home / "src/project"
    (other / name).touch()
    git(other, "add", name)
    git(other, "commit", "-qm", name)
    git(other, "push", "-q", "origin", "main")


class IssueRuns:
    """The runs of one issue: its hooks, in the order and the environment in which a run has them,
    around an agent that commits."""

    def __init__(self, root: Path, hooks: dict[str, str]) -> None:
        self.transport = LocalTransport()
        self.workspaces = Workspaces(str(root), self.transport)
        self.hooks = hooks

    async def run(self, work: str) -> Workspace:
        """Work on the issue once."""
        workspace = await self.workspaces.prepare("TASK-1")
        if workspace.created:
            await self.hook("after_create", workspace)
            await self.workspaces.complete(workspace)
        await self.hook("before_run", workspace)
        await self.workspaces.hide(workspace.path)
        path = Path(workspace.path)
        if (path / ".git").exists():
            assert git(path, "status", "--porcelain") == ""
            (path / work).touch()
            (path / ".sortie/status").write_text("done\n")
            git(path, "add", "-A")
            git(path, "commit", "-qm", work)
            assert ".sortie" not in git(path, "ls-files")
        await self.hook("after_run", workspace)
        return workspace

    async def hook(self, name: str, workspace: Workspace) -> None:
        """Run a hook, which must succeed."""
        if name not in self.hooks:
            return
        run = RunVariables(
            issue_id="TASK-1",
            issue_identifier="TASK-1",
            workspace=workspace.path,
            attempt=0,
            run_id=RunId("3a8c6e02-6a51-4c57-8f0e-0c2a3e1f8d11"),
        )
        result = await run_hook(
            self.transport,
            self.hooks[name],
            cwd=workspace.path,
            env=hook_env(os.environ, (), run, Secrets()),
            timeout=120.0,
        )
        assert result.result is HookOutcome.OK, (name, result.status, result.output)


def test_every_hook_that_is_offered_is_run_here() -> None:
    """No hook stands where the test below does not find it, and no other command that changes a
    repository is recommended on a page than those of hooks."""
    lines = sum(len(HOOK_LINE.findall(text)) for _, text in sources())
    told = [
        (path.name, command)
        for path in PAGES
        for command in re.findall(r"`([^`\n]+)`", path.read_text("utf-8"))
        if CHANGES.search(command) and "$" in command
    ]

    assert lines == sum(len(hooks) for _, hooks in OFFERED)
    assert "WORKFLOW.example.md" in {name for name, _ in OFFERED}
    assert told == []


@pytest.mark.parametrize("hooks", [pytest.param(h, id=name) for name, h in OFFERED])
async def test_offered_hooks_succeed_in_each_run_of_an_issue(
    hooks: dict[str, str], home: Path, tmp_path: Path
) -> None:
    """They do in its first run and its second, while others push, and in a third after its
    workspace was removed; nothing that the agent committed is missing then."""
    runs = IssueRuns(tmp_path / "workspaces", hooks)

    with trio.fail_after(300):
        await runs.run("first")
        push_to_main(home, "of-somebody-else")
        workspace = await runs.run("second")
        await runs.hook("before_remove", workspace)
        await runs.workspaces.remove("TASK-1")
        last = await runs.run("third")

    if (Path(last.path) / ".git").exists():
        origin = git(last.path, "remote", "get-url", "origin").strip()
        pushed = git(origin, "ls-tree", "--name-only", BRANCH).split()
        assert pushed == ["begun", "first", "second", "third"]
