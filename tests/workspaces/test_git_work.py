"""What is told of git trees in workspaces: real ones, and such as were made to do harm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from sortie.model import TransportError
from sortie.transports.local import LocalTransport
from sortie.workspaces import GitWork, git_head, unsaved_work, work_since
from sortie.workspaces import git_work as module
from tests.transports.fake import FakeTransport

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
WHO = {
    f"GIT_{who}_{what}": f"{what.lower()}@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Give a tree with a commit on a branch, and git in it."""

    def run(*words: str) -> str:
        return subprocess.run(
            ["git", *words],
            cwd=tmp_path / "tree",
            env={**ENV, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    (tmp_path / "tree").mkdir()
    run("init", "-q", "-b", "main")
    (tmp_path / "tree" / "old").write_text("1\n")
    run("add", ".")
    run("commit", "-qm", "Begin")
    return run


async def look(transport: LocalTransport, place: Path, base: str | None) -> GitWork:
    with trio.fail_after(60):
        return await work_since(transport, str(place), ENV, base)


async def test_the_work_of_a_run_is_told(
    transport: LocalTransport, tmp_path: Path, git: Git
) -> None:
    """Branch, head, commits since the base, their subjects, and the files changed since then."""
    tree = tmp_path / "tree"
    base = await git_head(transport, str(tree), ENV)
    git("checkout", "-qb", "task-1")
    for name in ("a b", "old"):
        (tree / name).write_text("2\n")
        git("add", ".")
        git("commit", "-qm", f"Write {name}")
    (tree / "old").write_text("3\n")
    (tree / "new").mkdir()
    (tree / "new" / "x").write_text("")
    (tree / ".sortie").mkdir()
    (tree / ".sortie" / "status").write_text("")

    work = await look(transport, tree, base.head)

    head = git("rev-parse", "HEAD")
    assert base == GitWork(head=git("rev-parse", "main"))
    assert work == GitWork(
        head=head,
        branch="task-1",
        commits=2,
        subjects=(f"{head[:7]} Write old", f"{git('rev-parse', 'HEAD~1')[:7]} Write a b"),
        files=3,
        uncommitted=2,
    )


async def test_a_tree_that_the_agent_made_is_told_whole(
    transport: LocalTransport, tmp_path: Path, git: Git
) -> None:
    """Where there was no commit before, all are the run's; a tree may lie right below."""
    git("checkout", "-q", "--detach")

    work = await look(transport, tmp_path, None)

    assert (work.branch, work.commits, work.files, work.uncommitted) == (None, 1, 1, 0)


async def test_a_tree_without_a_commit(transport: LocalTransport, tmp_path: Path, git: Git) -> None:
    """It has files alone, and its branch."""
    git("update-ref", "-d", "HEAD")

    work = await look(transport, tmp_path / "tree", None)

    assert work == GitWork(branch="main", commits=0, files=1, uncommitted=1)


@pytest.mark.parametrize("makes", [(), ("one/.git", "two/.git")])
async def test_without_a_tree_nothing_is_told(
    transport: LocalTransport, tmp_path: Path, makes: tuple[str, ...]
) -> None:
    """Nor where several lie below, of which none is the issue's."""
    for name in makes:
        (tmp_path / name).mkdir(parents=True)

    assert await look(transport, tmp_path, None) == GitWork()
    assert await git_head(transport, str(tmp_path), ENV) == GitWork()


async def test_nothing_that_a_tree_names_is_run(
    transport: LocalTransport, tmp_path: Path, git: Git
) -> None:
    """Hooks, monitors, filters, pagers, programs for differences and signatures, and the tree that
    the environment or the configuration names are the agent's to write, and not to be run."""
    tree, mark = tmp_path / "tree", tmp_path / "ran"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    evil.chmod(0o755)
    hooks = tree / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        (hooks / name).write_text(evil.read_text())
        (hooks / name).chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "filter.x.clean",
        "filter.x.process",
        "filter.x.smudge",
        "diff.external",
        "diff.x.textconv",
        "diff.x.command",
        "gpg.program",
        "alias.status",
        "pager.status",
    ):
        git("config", key, str(evil))
    git("config", "log.showSignature", "true")
    git("config", "filter.x.required", "true")
    git("config", "core.worktree", "/")
    (tree / ".gitattributes").write_text("* filter=x diff=x\n")
    (tree / "old").write_text("2\n")
    env = {**ENV, "GIT_EXTERNAL_DIFF": str(evil), "GIT_PAGER": str(evil), "GIT_DIR": "/"}
    env["GIT_INDEX_FILE"] = str(tmp_path / "none")

    work = await work_since(transport, str(tree), env, None)

    unsaved = await unsaved_work(transport, str(tree), env)

    assert (work.error, work.commits, work.uncommitted) == (None, 1, 2)
    assert unsaved == "2 uncommitted changes and 1 unpushed commit (on branch main)"
    assert not mark.exists()


async def test_what_is_missing_in_a_tree_is_not_fetched(
    transport: LocalTransport, tmp_path: Path, git: Git
) -> None:
    """A partial clone fetches what it lacks, by a program that its configuration may name."""
    tree, mark = tmp_path / "tree", tmp_path / "ran"
    base = git("rev-parse", "HEAD")
    blob = git("rev-parse", "HEAD:old")
    (tree / "old").write_text("2\n")
    git("commit", "-qam", "Write old")
    (tree / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git("config", "core.repositoryformatversion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.promisor", "true")
    git("config", "remote.origin.url", f"ext::touch {mark}")
    git("config", "protocol.ext.allow", "always")

    await look(transport, tree, base)
    await unsaved_work(transport, str(tree), ENV)

    assert not mark.exists()
    with suppress(subprocess.CalledProcessError):
        git("diff", base)
    assert mark.exists()


async def test_a_filter_that_cannot_be_set_to_nothing_is_not_run(
    transport: LocalTransport, tmp_path: Path, git: Git
) -> None:
    """Nothing is asked that looks at files where a filter's name cannot be told to git."""
    tree, mark = tmp_path / "tree", tmp_path / "ran"
    git("config", "filter.a=b.clean", f"touch {mark}; cat")
    (tree / ".gitattributes").write_text("* filter=a=b\n")
    (tree / "old").write_text("2\n")

    work = await look(transport, tree, None)
    unsaved = await unsaved_work(transport, str(tree), ENV)

    assert work.error == "a filter of its configuration has a '=' in its name"
    assert "a filter of its configuration has a '=' in its name" in (unsaved or "")
    assert not mark.exists()


def _missing(tree: Path) -> Mapping[str, str]:
    return {"PATH": str(tree)}


def _broken(tree: Path) -> Mapping[str, str]:
    (tree / ".git" / "HEAD").write_text("nonsense")
    return ENV


@pytest.mark.parametrize(
    ("spoil", "says"), [(_missing, "ended with|no git to ask"), (_broken, "not a git repository")]
)
async def test_a_git_that_fails_costs_a_sentence(
    transport: LocalTransport,
    tmp_path: Path,
    git: Git,
    spoil: Callable[[Path], Mapping[str, str]],
    says: str,
) -> None:
    """Where git is missing or refuses, what it says is all that is told."""
    env = spoil(tmp_path / "tree")

    for base in (None, "0" * 40):
        work = await work_since(transport, str(tmp_path / "tree"), env, base)

        assert work == GitWork(error=work.error)
        assert work.error is not None
        assert any(word in work.error for word in says.split("|"))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"head 1\n", "the answer of git is cut off"),
        (b"head 1\nfailed git status: no\x1b[2J\nend\n", "git status: no\ufffd[2J"),
    ],
)
async def test_an_answer_is_read_whole_or_not_at_all(answer: bytes, error: str) -> None:
    """Half an answer tells nothing, and nothing in one steers a terminal."""
    transport = FakeTransport({})
    transport.answer = answer

    assert await work_since(transport, "/w", ENV, None) == GitWork(error=error)


async def test_a_host_or_a_git_that_does_not_answer(autojump_clock: trio.abc.Clock) -> None:
    """It costs WORK_DONE_LIMIT seconds at most, and is told."""
    transport = FakeTransport({})
    transport.pauses["run_script"] = 1000.0
    late = await work_since(transport, "/w", ENV, None)
    transport.pauses.clear()
    transport.faults["run_script"] = TransportError("no link\n" + "x" * 1000)
    lost = await work_since(transport, "/w", ENV, None)

    assert trio.current_time() <= module.WORK_DONE_LIMIT + 1
    assert late == GitWork(error="git has not answered within 10 s")
    assert lost.error is not None
    assert len(lost.error) <= 200
