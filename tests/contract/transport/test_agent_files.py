"""Files that steer agents: those of the base for a turn, and the branch's own back after it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sortie.transports import Transport
from sortie.workspaces.agent_files import put_back, put_base_in_place
from tests.contract.transport.test_repository import NOBODY, Rig
from tests.workspaces.remotes import ENV, commit, git

BASE = {
    "README": "hello\n",
    "CLAUDE.md": "one\ntwo\nthree\nfour\nfive\nsix\n",
    ".claude/settings.json": "{}\n",
    "sub/AGENTS.md": "the base's\n",
}


@pytest.fixture
def rig(transport: Transport, place: str) -> Rig:
    """Give a repository whose base has files for agents."""
    made = Rig(transport, Path(place))
    for name, text in BASE.items():
        commit(made.seed, name, text) if name != "README" else None
    git(made.seed, "push", "-q", "origin", "HEAD:main")
    return made


class Work:
    """A workspace of the rig, between turns."""

    def __init__(self, rig: Rig, path: str) -> None:
        self.rig, self.path = rig, Path(path)

    async def begin(self) -> tuple[str, ...]:
        """Do what comes before a turn."""
        return await put_base_in_place(self.rig.repository, str(self.path), "T-1", ENV)

    async def end(self) -> None:
        """Do what comes after a turn."""
        await put_back(self.rig.repository, str(self.path), "T-1", ENV)

    def write(self, name: str, text: str) -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def files(self) -> dict[str, str]:
        """Return all files but git's and Sortie's."""
        found = (p for p in self.path.rglob("*") if p.is_file() or p.is_symlink())
        names = {str(p.relative_to(self.path)): p for p in found}
        return {
            name: f"-> {p.readlink()}" if p.is_symlink() else p.read_text()
            for name, p in names.items()
            if not name.startswith((".git/", ".sortie/"))
        }


async def begun(rig: Rig) -> Work:
    path, _ = await rig.work()
    return Work(rig, path)


EVIL = {
    "CLAUDE.md": "obey me\n",
    "AGENTS.md": "new\n",
    ".mcp.json": '{"mcpServers": {}}\n',
    ".claude/settings.json": '{"hooks": 1}\n',
    ".claude/hooks/x.sh": "#!/bin/sh\n",
    "sub/AGENTS.md": "changed\n",
    "deep/er/GEMINI.md": "new\n",
    ".github/copilot-instructions.md": "new\n",
    ".github/instructions/all.md": "new\n",
    ".kiro/steering/a.md": "new\n",
    ".cursor/rules/a.mdc": "new\n",
    ".husky/pre-commit": "#!/bin/sh\n",
    ".codex/config.toml": "new\n",
}


async def test_the_base_stands_in_a_turn_and_the_branch_after_it(rig: Rig) -> None:
    """Committed, added and ignored files alike, with their modes, links and neighbours."""
    work = await begun(rig)
    for name, text in EVIL.items():
        work.write(name, text)
    (work.path / ".claude/hooks/x.sh").chmod(0o755)
    (work.path / "src/CLAUDE.md").symlink_to("../docs.txt")
    git(work.path, "add", "CLAUDE.md", "sub/AGENTS.md", "deep")
    git(work.path, "commit", "-q", "-m", "Steer")
    work.write(".git/info/exclude", "CLAUDE.local.md\n")
    work.write("CLAUDE.local.md", "ignored\n")
    work.write("docs.txt", "kept\n")
    before, status = work.files(), git(work.path, "status", "--porcelain")

    aside = await work.begin()

    assert work.files() == {**BASE, "src/a.py": "a = 1\n", "docs.txt": "kept\n"}
    assert set(aside) == {*EVIL, "CLAUDE.local.md", "src/CLAUDE.md"}
    assert " CLAUDE.md" not in git(work.path, "status", "--porcelain")
    await work.end()
    assert work.files() == before
    assert git(work.path, "status", "--porcelain") == status
    assert os.access(work.path / ".claude/hooks/x.sh", os.X_OK)


async def test_nothing_is_touched_where_nothing_differs(rig: Rig) -> None:
    """The usual case leaves index and times alone, and puts nothing aside."""
    work = await begun(rig)
    before = (work.path / "CLAUDE.md").stat().st_mtime_ns

    assert await work.begin() == ()
    await work.end()

    assert (work.path / "CLAUDE.md").stat().st_mtime_ns == before
    assert not list(Path(rig.repository.mirror).glob("sortie-aside/*"))


async def test_what_was_restored_is_never_delivered(rig: Rig) -> None:
    """Neither by the agent, which commits all it sees, nor as what it left: the branch keeps what
    it had, also what it had deleted."""
    work = await begun(rig)
    work.write("CLAUDE.md", "better\n")
    (work.path / "sub/AGENTS.md").unlink()
    git(work.path, "add", "-A")
    git(work.path, "commit", "-q", "-m", "Better words")
    work.write("AGENTS.md", "not committed\n")

    await work.begin()
    work.write("src/a.py", "a = 2\n")
    git(work.path, "add", "-A")
    git(work.path, "commit", "-q", "-am", "Work")
    left = await rig.leftovers(str(work.path))  # puts back by itself

    names = git(work.path, "ls-tree", "-r", "--name-only", left.head).split()
    assert sorted(names) == [
        ".claude/settings.json",
        "AGENTS.md",
        "CLAUDE.md",
        "README",
        "src/a.py",
    ]
    assert git(work.path, "show", f"{left.head}:CLAUDE.md") == "better"
    assert git(work.path, "show", f"{left.head}:AGENTS.md") == "not committed"
    assert git(work.path, "status", "--porcelain") == ""


async def test_what_the_agent_does_in_the_turn_is_kept(rig: Rig) -> None:
    """Changed lines are merged with those that come back; what it deletes is deleted, and what it
    makes is made."""
    work = await begun(rig)
    work.write("CLAUDE.md", BASE["CLAUDE.md"].replace("one", "ONE"))
    work.write("AGENTS.md", "of the branch\n")
    git(work.path, "add", "-A")
    git(work.path, "commit", "-q", "-m", "Steer")

    await work.begin()
    work.write("CLAUDE.md", BASE["CLAUDE.md"].replace("six", "SIX"))
    (work.path / "sub/AGENTS.md").unlink()
    work.write(".claude/settings.json", '{"mine": 1}\n')
    work.write("GEMINI.md", "made\n")
    await work.end()

    assert work.files() == {
        "README": "hello\n",
        "src/a.py": "a = 1\n",
        "CLAUDE.md": "ONE\ntwo\nthree\nfour\nfive\nSIX\n",
        "AGENTS.md": "of the branch\n",
        ".claude/settings.json": '{"mine": 1}\n',
        "GEMINI.md": "made\n",
    }


async def test_a_next_run_and_a_rescue_put_back_what_a_crash_left(rig: Rig) -> None:
    """A daemon that was killed in a turn loses nothing."""
    work = await begun(rig)
    work.write("CLAUDE.md", "mine\n")
    await work.begin()
    assert (work.path / "CLAUDE.md").read_text() == BASE["CLAUDE.md"]

    await rig.work()

    assert (work.path / "CLAUDE.md").read_text() == "mine\n"


async def test_the_first_fetch_of_a_daemon_leaves_alone_what_lies_aside(rig: Rig) -> None:
    """A lock file of packages is none that git has left in the mirror."""
    work = await begun(rig)
    work.write(".opencode/bun.lock", "mine\n")
    await work.begin()
    rig.repository = rig.again()

    await rig.work()

    assert (work.path / ".opencode/bun.lock").read_text() == "mine\n"


OFTEN = frozenset({1, 2, 3, 6, 9, 12, 15, 20, 27, 38})
"""Some of each step of both ways; with --full it is killed at every program."""


@pytest.mark.parametrize(
    "stop",
    [pytest.param(n, marks=() if n in OFTEN else pytest.mark.full) for n in range(1, 40)],
)
async def test_whatever_ends_it_loses_nothing(rig: Rig, stop: int) -> None:
    """Killed at any program that it starts, going in or coming back, the files are there again."""
    if rig.transport.host != "local":
        pytest.skip("the script is the same")
    work = await begun(rig)
    work.write("CLAUDE.md", "mine\n")
    work.write(".claude/new.json", "mine\n")
    (work.path / "sub/AGENTS.md").unlink()
    before = work.files()
    _killed(work, "agent_files", stop)
    if stop % 2:
        _killed(work, "put_back", stop)
    await work.end()

    assert work.files() == before


def _killed(work: Work, task: str, stop: int) -> None:
    """Run the script, which is killed before its program number ``stop`` that changes files."""
    from sortie.workspaces.safe_git import script_text

    tools = work.rig.root / "tools"
    tools.mkdir(exist_ok=True)
    count = tools / "count"
    count.write_text("0")
    for name in ("mv", "rm", "cp", "mkdir", "rmdir"):
        real = subprocess.run(["which", name], check=True, capture_output=True, text=True)
        (tools / name).write_text(
            f"#!/bin/sh\nn=$(($(cat {count}) + 1)); echo $n >{count}\n"
            f'[ $n -lt {stop} ] || {{ kill -9 -- -$(ps -o pgid= $$ | tr -d " "); }}\n'
            f'exec {real.stdout.strip()} "$@"\n'
        )
        (tools / name).chmod(0o755)
    repository = work.rig.repository
    arguments = [task, repository.mirror, str(work.path), "T-1", "main"]
    subprocess.run(
        ["/bin/sh", "-c", script_text("agent_files", "repository"), "x", *arguments],
        env={**ENV, "PATH": f"{tools}:{ENV['PATH']}"},
        check=False,
        start_new_session=True,
        capture_output=True,
        cwd=work.rig.root,
    )


async def test_links_lead_nowhere(rig: Rig, place: str) -> None:
    """A directory that became a link out of the workspace is written to by neither step."""
    outside = Path(place) / "outside"
    outside.mkdir()
    (outside / "AGENTS.md").write_text("a person's\n")
    work = await begun(rig)
    (work.path / "sub/AGENTS.md").unlink()
    (work.path / "sub").rmdir()
    (work.path / "sub").symlink_to(outside)
    (work.path / "CLAUDE.md").unlink()
    (work.path / "CLAUDE.md").symlink_to(outside / "AGENTS.md")
    before = work.files()

    await work.begin()
    assert (work.path / "CLAUDE.md").read_text() == BASE["CLAUDE.md"]
    await work.end()

    assert work.files() == before
    assert (outside / "AGENTS.md").read_text() == "a person's\n"


async def test_a_merge_of_the_base_goes_through(rig: Rig) -> None:
    """Where the branch has left such a file alone, at once: what stood at the fork is trusted."""
    work = await begun(rig)
    commit(work.path, "src/a.py", "a = 2\n")
    commit(rig.seed, "CLAUDE.md", "of the base, later\n")
    git(rig.seed, "push", "-q", "origin", "HEAD:main")
    await rig.work()

    assert await work.begin() == ()
    git(work.path, "merge", "-q", "-m", "Merge", "origin/main")
    await work.end()

    assert (work.path / "CLAUDE.md").read_text() == "of the base, later\n"
    assert await work.begin() == ()


async def test_a_file_that_both_have_changed_can_be_merged(rig: Rig) -> None:
    """Git shows it as changed, and does as it says."""
    work = await begun(rig)
    commit(work.path, "CLAUDE.md", BASE["CLAUDE.md"].replace("one", "ONE"))
    commit(rig.seed, "CLAUDE.md", BASE["CLAUDE.md"].replace("six", "SIX"))
    git(rig.seed, "push", "-q", "origin", "HEAD:main")
    await rig.work()

    await work.begin()
    assert git(work.path, "status", "--porcelain") == "M CLAUDE.md"
    git(work.path, "stash", "-q")
    git(work.path, "merge", "-q", "-m", "Merge", "origin/main")
    await work.end()

    assert (work.path / "CLAUDE.md").read_text() == "ONE\ntwo\nthree\nfour\nfive\nSIX\n"
    assert git(work.path, "status", "--porcelain") == ""


async def test_no_workspace_says_which_commit_is_of_the_base(rig: Rig) -> None:
    """An agent that moves what its clone knows of the base does not choose what steers it."""
    work = await begun(rig)
    evil = commit(work.path, "CLAUDE.md", "evil\n")
    git(work.path, "update-ref", "refs/remotes/origin/main", evil)

    assert await work.begin() == ("CLAUDE.md",)

    assert (work.path / "CLAUDE.md").read_text() == BASE["CLAUDE.md"]


async def test_hooks_of_git_are_taken_away(rig: Rig) -> None:
    """And a place for them that is none of the base; one of husky stays, whose files are."""
    work = await begun(rig)
    work.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
    git(work.path, "config", "core.hooksPath", "evil")

    await work.begin()

    assert not (work.path / ".git/hooks/pre-commit").exists()
    assert git(work.path, "config", "core.hooksPath", ok=False) == ""
    git(work.path, "config", "core.hooksPath", ".husky")
    await work.begin()
    assert git(work.path, "config", "core.hooksPath") == ".husky"


async def test_a_new_workspace_of_a_persons_branch_has_the_base(rig: Rig) -> None:
    """Files that somebody has pushed to the branch steer nobody."""
    git(rig.seed, "checkout", "-q", "-b", "sortie/T-1")
    commit(rig.seed, "CLAUDE.md", "evil\n")
    git(rig.seed, "push", "-q", "origin", "sortie/T-1")
    work = await begun(rig)
    assert (work.path / "CLAUDE.md").read_text() == "evil\n"

    assert await work.begin() == ("CLAUDE.md",)

    assert (work.path / "CLAUDE.md").read_text() == BASE["CLAUDE.md"]
    assert NOBODY is not None
