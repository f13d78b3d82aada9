"""What Sortie keeps in a workspace is hidden from git, and nothing is written elsewhere for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sortie.transports import Transport
from sortie.workspaces import Workspaces


def git(directory: Path | str, *words: str) -> str:
    """Run git in a directory, without settings of the user's, and return what it says."""
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *words]
    return subprocess.run(
        command, cwd=directory, env=env, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def workspaces(transport: Transport, place: str) -> Workspaces:
    return Workspaces(f"{place}/root", transport)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a repository with a commit."""
    project = tmp_path / "project"
    git(tmp_path, "init", "-q", str(project))
    git(project, "commit", "-q", "--allow-empty", "-m", "begun")
    return project


async def test_a_new_workspace_is_empty(workspaces: Workspaces, project: Path) -> None:
    """A repository can be cloned into it."""
    workspace = await workspaces.prepare("ABC-1")

    assert os.listdir(workspace.path) == []
    git(workspace.path, "clone", "-q", str(project), ".")


async def test_git_does_not_see_what_is_hidden_in_a_clone(
    workspaces: Workspaces, project: Path
) -> None:
    """It sees none of it at first, and no status that is written after everything that git
    ignores was removed; hiding it again changes nothing."""
    path = Path((await workspaces.prepare("ABC-1")).path)
    git(path, "clone", "-q", str(project), ".")
    exclude = path / ".git/info/exclude"
    exclude.write_text("*.log")

    await workspaces.hide(str(path))
    first = git(path, "status", "--porcelain", "--ignored")
    await workspaces.hide(str(path))
    git(path, "clean", "-xfdq")
    (path / ".sortie").mkdir(exist_ok=True)
    (path / ".sortie/status").touch()
    git(path, "add", "-A")

    assert first == "!! .sortie/\n"
    assert exclude.read_text() == "*.log\n/.sortie/\n"
    assert git(path, "ls-files") == ""


async def test_a_repository_elsewhere_is_left_alone(workspaces: Workspaces, project: Path) -> None:
    """A work tree that was added to it is clean, and no file of the repository is changed."""
    path = (await workspaces.prepare("ABC-1")).path
    git(project, "worktree", "add", "-q", path)
    before = (project / ".git/info/exclude").read_bytes()

    await workspaces.hide(path)

    assert git(path, "status", "--porcelain", "--ignored") == "!! .sortie/\n"
    assert (project / ".git/info/exclude").read_bytes() == before


@pytest.mark.parametrize("link", [".git", ".git/info", ".git/info/exclude"])
async def test_no_link_leads_out_of_the_workspace(
    workspaces: Workspaces, project: Path, link: str
) -> None:
    """Nothing is written through a link that an agent has put into its repository."""
    path = Path((await workspaces.prepare("ABC-1")).path)
    git(path, "clone", "-q", str(project), ".")
    outside = path.parent.parent / "outside"
    (path / link).rename(outside)
    (path / link).symlink_to(outside)
    exclude = outside if outside.is_file() else next(outside.rglob("exclude"))
    before = exclude.read_bytes()

    await workspaces.hide(str(path))

    assert exclude.read_bytes() == before
    assert git(path, "status", "--porcelain") == ""
    assert (path / link).is_symlink()


async def test_a_repository_without_exclusions_gets_them(workspaces: Workspaces) -> None:
    """One that was made without git's templates has no ``info`` directory."""
    path = Path((await workspaces.prepare("ABC-1")).path)
    git(path, "init", "-q", "--template=")

    await workspaces.hide(str(path))

    assert (path / ".git/info/exclude").read_text() == "/.sortie/\n"


async def test_a_long_list_of_exclusions_is_left_as_it_is(workspaces: Workspaces) -> None:
    """It is not cut where it is read; the ignore file hides the directory alone."""
    path = Path((await workspaces.prepare("ABC-1")).path)
    git(path, "init", "-q")
    long = "x\n" * 40_000
    (path / ".git/info/exclude").write_text(long)

    await workspaces.hide(str(path))

    assert (path / ".git/info/exclude").read_text() == long
    assert git(path, "status", "--porcelain") == ""


async def test_nothing_but_the_directory_is_made_where_no_repository_is(
    workspaces: Workspaces,
) -> None:
    """A workspace without git gets no ``.git``."""
    path = (await workspaces.prepare("ABC-1")).path

    await workspaces.hide(path)

    assert os.listdir(path) == [".sortie"]
