"""What of a workspace is nowhere else, as its host's own git tells."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sortie.transports import Transport
from sortie.workspaces import unsaved_work
from tests.contract.transport.test_hiding import git

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
UNKNOWN = "it is not known whether all work is pushed: "


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Give a clone on a branch of its own, of which everything is pushed."""
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    git(tmp_path, "clone", "-q", "origin.git", "clone")
    clone = tmp_path / "clone"
    git(clone, "switch", "-qc", "main")
    (clone / "file").write_text("a\n")
    commit(clone)
    git(clone, "push", "-q", "origin", "HEAD")
    git(clone, "switch", "-qc", "work")
    return clone


def commit(directory: Path) -> None:
    """Commit all there is."""
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "more", "--allow-empty")


def nothing(_clone: Path) -> None:
    pass


def a_status_of_the_agents(clone: Path) -> None:
    (clone / ".sortie").mkdir()
    (clone / ".sortie/status").touch()


def an_ignored_file(clone: Path) -> None:
    (clone / ".git/info/exclude").write_text("*.o\n")
    (clone / "x.o").touch()


def a_pushed_branch(clone: Path) -> None:
    commit(clone)
    git(clone, "push", "-q", "origin", "HEAD:refs/heads/elsewhere")


def a_change(clone: Path) -> None:
    (clone / "file").write_text("b\n")


def new_files(clone: Path) -> None:
    (clone / "new").touch()
    (clone / "more").touch()


def a_commit(clone: Path) -> None:
    commit(clone)


def a_commit_on_another_branch(clone: Path) -> None:
    commit(clone)
    git(clone, "switch", "-q", "main")


def a_commit_on_no_branch(clone: Path) -> None:
    git(clone, "switch", "-q", "--detach")
    commit(clone)


def a_stash(clone: Path) -> None:
    a_change(clone)
    git(clone, "stash", "-q")


def both(clone: Path) -> None:
    commit(clone)
    commit(clone)
    a_change(clone)


def no_remote(clone: Path) -> None:
    git(clone, "remote", "remove", "origin")


def a_clone_within(clone: Path) -> None:
    git(clone, "clone", "-q", "../origin.git", "sub")


def no_commit_yet(clone: Path) -> None:
    git(clone, "switch", "-q", "--orphan", "fresh")
    git(clone, "branch", "-qD", "work", "main")


STATES: list[tuple[Callable[[Path], None], str | None]] = [
    (nothing, None),
    (a_status_of_the_agents, None),
    (an_ignored_file, None),
    (a_pushed_branch, None),
    (no_commit_yet, None),
    (a_change, "1 uncommitted change (on branch work)"),
    (new_files, "2 uncommitted changes (on branch work)"),
    (a_commit, "1 unpushed commit (on branch work)"),
    (a_commit_on_another_branch, "1 unpushed commit (on branch main)"),
    (a_commit_on_no_branch, "1 unpushed commit"),
    (a_stash, "2 unpushed commits (on branch work)"),
    (both, "1 uncommitted change and 2 unpushed commits (on branch work)"),
    (no_remote, "1 unpushed commit (on branch work)"),
    (a_clone_within, "1 uncommitted change (on branch work)"),
]


@pytest.mark.parametrize(("does", "found"), STATES, ids=[does.__name__ for does, _ in STATES])
async def test_work_that_is_nowhere_else_is_found(
    transport: Transport, clone: Path, does: Callable[[Path], None], found: str | None
) -> None:
    """That are uncommitted changes and unpushed commits, wherever they are; nothing else is."""
    does(clone)

    assert await unsaved_work(transport, str(clone), ENV) == found


async def test_a_directory_without_a_repository_has_none(
    transport: Transport, tmp_path: Path
) -> None:
    """Whatever else is in it; a repository around it is another one."""
    git(tmp_path, "init", "-q")
    workspace = tmp_path / "workspace"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src/file").touch()

    assert await unsaved_work(transport, str(workspace), ENV) is None


async def test_repositories_right_below_count(
    transport: Transport, clone: Path, tmp_path: Path
) -> None:
    """Where the workspace itself is none, and only those that are removed with it."""
    commit(clone)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(clone)
    linked = await unsaved_work(transport, str(workspace), ENV)
    git(workspace, "clone", "-q", str(clone), "a b")
    pushed = await unsaved_work(transport, str(workspace), ENV)
    commit(workspace / "a b")

    assert (linked, pushed) == (None, None)
    found = await unsaved_work(transport, str(workspace), ENV)
    assert found == "1 unpushed commit (on branch work)"


async def test_of_a_work_tree_only_what_goes_with_it_counts(
    transport: Transport, clone: Path, tmp_path: Path
) -> None:
    """A commit on a branch stays in the repository elsewhere; one on none, and a change, do not."""
    tree = tmp_path / "tree"
    git(clone, "worktree", "add", "-q", "-b", "other", str(tree))
    commit(tree)
    on_branch = await unsaved_work(transport, str(tree), ENV)
    git(tree, "switch", "-q", "--detach")
    commit(tree)
    (tree / "new").touch()
    on_none = await unsaved_work(transport, str(tree), ENV)

    assert on_branch is None
    assert on_none == "1 uncommitted change and 1 unpushed commit"


async def test_no_program_of_the_configuration_is_run(
    transport: Transport, clone: Path, tmp_path: Path
) -> None:
    """Neither hook, monitor, filter, transport nor pager, nor a configuration that is included;
    no other directory is looked at, and the index is left as it is."""
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    included = tmp_path / "included"
    for key in ("filter.a.clean", "filter.a b.process", "filter.C.d.smudge", "core.pager"):
        git(clone, "config", "-f", str(included), key, str(trap))
    hooks = clone / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (hooks / name).symlink_to(trap)
    git(clone, "add", "hooks")
    git(clone, "commit", "-qm", "hooks")
    git(clone, "push", "-q", "origin", "HEAD")
    for key, value in {
        "include.path": str(included),
        "core.fsmonitor": str(trap),
        "core.hooksPath": "hooks",
        "core.sshCommand": str(trap),
        "core.worktree": "/usr",
        "core.alternateRefsCommand": str(trap),
        "diff.external": str(trap),
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(trap),
        "filter.a.required": "true",
    }.items():
        git(clone, "config", key, value)
    (clone / ".git/info/attributes").write_text("* filter=a\n")
    os.utime(clone / "file", (1, 1))
    index = (clone / ".git/index").read_bytes()

    found = await unsaved_work(transport, str(clone), ENV | {"GIT_DIR": "/nonexistent"})

    assert found is None
    assert not (tmp_path / "sprung").exists()
    assert (clone / ".git/index").read_bytes() == index


def a_broken_configuration(clone: Path) -> None:
    (clone / ".git/config").write_text("[core\n")


def a_filter_with_an_odd_name(clone: Path) -> None:
    git(clone, "config", "filter.a=b.clean", "cat")


def a_lost_object(clone: Path) -> None:
    for path in (clone / ".git/objects").glob("??/*"):
        path.unlink()


def a_lost_repository(clone: Path) -> None:
    (clone / ".git").rename(clone.parent / "moved")
    (clone / ".git").write_text("gitdir: /nonexistent\n")


def a_dangling_link(clone: Path) -> None:
    (clone / ".git").rename(clone.parent / "moved")
    (clone / ".git").symlink_to("/nonexistent")


@pytest.mark.parametrize(
    "does",
    [
        a_broken_configuration,
        a_filter_with_an_odd_name,
        a_lost_object,
        a_lost_repository,
        a_dangling_link,
    ],
)
async def test_where_git_fails_it_is_not_known(
    transport: Transport, clone: Path, does: Callable[[Path], None]
) -> None:
    """The words say that, and what git says."""
    does(clone)

    found = await unsaved_work(transport, str(clone), ENV)

    assert found is not None
    assert found.startswith(UNKNOWN)
    assert len(found) > len(UNKNOWN) + 10


async def test_without_git_it_is_not_known(
    transport: Transport, clone: Path, tmp_path: Path
) -> None:
    """A directory without a repository has nothing to ask for, though."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "env", "sed", "tr"):
        (programs / name).symlink_to(f"/bin/{name}")
    env = {"PATH": str(programs)}

    assert await unsaved_work(transport, str(clone), env) == f"{UNKNOWN}there is no git to ask"
    assert await unsaved_work(transport, str(programs), env) is None
