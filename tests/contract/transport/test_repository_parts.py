"""Files of git LFS and submodules, with the real programs, on this machine and on a host."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sortie.model import GitError
from sortie.transports import Transport
from sortie.workspaces.git_values import RepositoryOptions
from sortie.workspaces.rescues import Rescues
from tests.contract.transport.test_repository import NOBODY, Rig
from tests.workspaces.remotes import ENV, add_submodule, commit, git, requires_git_lfs, use_lfs

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n"


@pytest.fixture
def lfs(transport: Transport, place: str) -> Rig:
    """Give a repository with LFS, whose server is a directory."""
    rig = Rig(transport, Path(place), RepositoryOptions(lfs=True))
    use_lfs(rig.bare)
    return rig


@pytest.fixture
def modules(transport: Transport, place: str) -> Rig:
    """Give a repository that has its submodules checked out."""
    return Rig(transport, Path(place), RepositoryOptions(submodules=True))


def oid_of(text: str) -> str:
    """Return the name that LFS has for a content."""
    return hashlib.sha256(text.encode()).hexdigest()


def stored(repository: Path) -> set[str]:
    """Return the files of LFS that a directory has."""
    return {path.name for path in (repository / "lfs/objects").rglob("*") if path.is_file()}


async def pushed(rig: Rig, path: str) -> str:
    """Deliver what is in a workspace; return the commit."""
    left = await rig.leftovers(path)
    branch = git(path, "symbolic-ref", "--short", "HEAD")
    assert await rig.repository.push(left.head, branch, None, NOBODY, ENV) is None
    return left.head


@requires_git_lfs
async def test_files_of_lfs_go_to_the_workspace_and_back(lfs: Rig) -> None:
    """What the agent has committed and what it has left; a clean clone has both, and the
    repository pointers only."""
    path, _ = await lfs.work()
    assert Path(path, "a.bin").read_text() == "first\n"
    commit(path, "a.bin", "second\n")
    Path(path, "b.bin").write_text("third\n")

    head = await pushed(lfs, path)
    lacking = await lfs.repository.clean_clone("T-1", head, NOBODY, ENV)

    clean = Path(lfs.repository.clean_path("T-1"))
    assert lacking is None
    assert [Path(clean, name).read_text() for name in ("a.bin", "b.bin")] == ["second\n", "third\n"]
    assert git(path, "status", "--porcelain") == ""
    for name, text in (("a.bin", "second\n"), ("b.bin", "third\n")):
        pointer = POINTER.format(oid=oid_of(text), size=len(text)).strip()
        assert git(lfs.bare, "show", f"{head}:{name}") == pointer
    assert {oid_of("second\n"), oid_of("third\n")} <= stored(lfs.bare)


@requires_git_lfs
async def test_workspaces_share_files_of_lfs(lfs: Rig) -> None:
    """The mirror has them, so that the second workspace needs no server for them."""
    await lfs.work()
    lfs.bare.joinpath("lfs").rename(lfs.bare / "away")

    path, _ = await lfs.work("T-2", "sortie/T-2")

    assert Path(path, "a.bin").read_text() == "first\n"
    assert stored(Path(path, ".git")) == set()
    assert oid_of("first\n") in stored(Path(lfs.repository.mirror))


@requires_git_lfs
async def test_an_agent_merges_files_of_lfs_without_the_server(lfs: Rig) -> None:
    """What is new at the base and at its branch was brought by Sortie."""
    path, _ = await lfs.work()
    commit(path, "mine.bin", "mine\n")
    await pushed(lfs, path)
    git(lfs.seed, "fetch", "-q")
    git(lfs.seed, "checkout", "-q", "-B", "theirs", "origin/sortie/T-1")
    commit(lfs.seed, "theirs.bin", "theirs\n")
    git(lfs.seed, "push", "-q", "origin", "HEAD:sortie/T-1")

    _, standing = await lfs.work()
    lfs.bare.joinpath("lfs").rename(lfs.bare / "away")
    git(path, "merge", "-q", "origin/sortie/T-1")

    assert standing.unmerged == 1
    assert Path(path, "theirs.bin").read_text() == "theirs\n"


@requires_git_lfs
async def test_files_of_lfs_may_be_large(lfs: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their pointers are small; any other file is named to the agent."""
    monkeypatch.setattr("sortie.workspaces.repository.LARGEST_FILE", 1000)
    path, _ = await lfs.work()
    Path(path, 'a "b" ü.bin').write_bytes(bytes(2000))
    Path(path, "plain").write_bytes(bytes(2000))
    refused = await lfs.leftovers(path)
    Path(path, "plain").unlink()
    left = await lfs.leftovers(path)

    assert refused.large == ("plain",)
    assert left.large == ()
    assert len(left.paths) == 1


@requires_git_lfs
async def test_what_somebody_pushed_without_its_files_gets_them(lfs: Rig) -> None:
    """As git does without the hook of LFS."""
    path, _ = await lfs.work()
    commit(path, "a.bin", "second\n")
    git(path, "push", "-q", "--no-verify", str(lfs.bare), "HEAD:sortie/T-1")
    assert oid_of("second\n") not in stored(lfs.bare)

    await pushed(lfs, path)

    assert oid_of("second\n") in stored(lfs.bare)


@requires_git_lfs
async def test_files_of_lfs_are_looked_into(lfs: Rig) -> None:
    """Before they are pushed; and the path is told."""
    path, _ = await lfs.work()
    Path(path, "key.bin").write_text("needle\n")
    left = await lfs.leftovers(path)
    seen: set[str] = set()

    def take(object_id: str, piece: bytes) -> None:
        if b"needle" in piece:
            seen.add(object_id)

    await lfs.repository.each_object(left.head, ENV, take)
    (found,) = seen

    assert await lfs.repository.path_of(left.head, found, ENV) == "key.bin"


@requires_git_lfs
async def test_a_pointer_to_nothing_is_the_agents(lfs: Rig) -> None:
    """A remote that is away is not."""
    path, _ = await lfs.work()
    Path(path, "a.bin").write_text(POINTER.format(oid="0" * 64, size=5))
    left = await lfs.leftovers(path)

    lacking = await lfs.repository.clean_clone("T-1", left.head, NOBODY, ENV)

    assert lacking is not None
    assert lacking.command == "git checkout"
    assert "a.bin" in lacking.said
    lfs.bare.rename(lfs.bare.with_name("away.git"))
    with pytest.raises(GitError, match="could not make a clean clone"):
        await lfs.repository.clean_clone("T-1", left.head, NOBODY, ENV)


@requires_git_lfs
async def test_rescued_files_of_lfs_are_kept(lfs: Rig) -> None:
    """Unchanged ones are no work, and the others can be had as an archive."""
    path, _ = await lfs.work()
    await lfs.leftovers(path)
    assert await Rescues(lfs.repository).rescue(path, "T-1", ENV) == ()
    Path(path, "b.bin").write_text("third\n")
    (ref,) = await Rescues(lfs.repository).rescue(path, "T-1", ENV)

    parts: list[bytes] = []
    await Rescues(lfs.repository).lfs_files(ref, ENV, parts.append)
    archive = b"".join(parts)

    assert oid_of("third\n").encode() in archive
    assert oid_of("first\n").encode() not in archive


async def test_a_submodule_is_checked_out_and_moved(modules: Rig) -> None:
    """To where the agent commits it; a clean clone has that commit."""
    old, new = add_submodule(modules.bare)
    path, _ = await modules.work()
    assert Path(path, "lib/version").read_text() == "1\n"
    git(Path(path, "lib"), "checkout", "-q", new)
    left = await modules.leftovers(path)
    assert git(modules.repository.mirror, "rev-parse", f"{left.head}:lib") == old
    git(path, "commit", "-q", "-a", "-m", "Move it")

    head = await pushed(modules, path)
    lacking = await modules.repository.clean_clone("T-1", head, NOBODY, ENV)

    assert lacking is None
    assert Path(modules.repository.clean_path("T-1"), "lib/version").read_text() == "2\n"
    assert git(modules.bare, "rev-parse", "sortie/T-1:lib") == new


async def test_a_commit_that_the_submodule_has_not_is_the_agents(modules: Rig) -> None:
    """It made one there and pushed it nowhere."""
    add_submodule(modules.bare)
    path, _ = await modules.work()
    commit(Path(path, "lib"), "version", "3\n")
    git(path, "commit", "-q", "-a", "-m", "Move it")
    left = await modules.leftovers(path)

    lacking = await modules.repository.clean_clone("T-1", left.head, NOBODY, ENV)

    assert lacking is not None
    assert lacking.command == "git submodule update --init --recursive"
    assert "did not contain" in lacking.said


HARMFUL = {
    "ext": ("ext", "url = ext::sh -c '{command}'"),
    "update": ("update", "url = {url}\n\tupdate = !{command}"),
    "option": ("option", "url = --upload-pack={command}"),
    "ssh": ("ssh", "url = ssh://-oProxyCommand={command}/x"),
    "name": ("../../hooks", "url = {url}"),
    "command": ("command", "url = {url}\n\tignore = none\n[core]\n\tfsmonitor = {command}"),
}


async def test_a_harmful_submodule_harms_nobody(modules: Rig) -> None:
    """Neither in a clean clone, nor in a workspace that begins with it; nothing is run."""
    _, new = add_submodule(modules.bare)
    mark = modules.root / "sprung"
    program = modules.root / "program"
    program.write_text(f"#!/bin/sh\necho $0 >>{mark}\n")
    program.chmod(0o755)
    refused = {}
    for name, (called, body) in HARMFUL.items():
        told = body.format(command=program, url=modules.bare.with_name("lib.git"))
        path, _ = await modules.work(name, f"sortie/{name}")
        git(path, "rm", "-q", "--cached", "lib")
        Path(path, ".gitmodules").write_text(f'[submodule "{called}"]\n\tpath = evil\n\t{told}\n')
        git(path, "update-index", "--add", "--cacheinfo", f"160000,{new},evil")
        git(path, "add", ".gitmodules")
        git(path, "commit", "-q", "-m", "Evil")
        left = await modules.leftovers(path)
        lacking = await modules.repository.clean_clone(name, left.head, NOBODY, ENV)
        refused[name] = lacking is not None
        await modules.repository.push(left.head, f"sortie/{name}", None, NOBODY, ENV)
        try:
            await modules.work(f"{name}-2", f"sortie/{name}")
        except GitError:
            assert refused[name]

    assert not mark.exists()
    assert refused == {name: name != "command" for name in HARMFUL}
