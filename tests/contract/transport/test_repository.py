"""A repository, its workspaces and its remote, on this machine and on a host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from sortie.model import GitError
from sortie.model.git_urls import parse_git_url
from sortie.transports import Transport
from sortie.workspaces import repository_script
from sortie.workspaces.git_values import GitAccess, Leftovers, Moved, RepositoryOptions, Standing
from sortie.workspaces.repository import Repository
from sortie.workspaces.rescues import Rescues
from tests.workspaces.remotes import ENV, commit, git, make_remote

NOBODY = GitAccess()

HOOKS = """
pre-commit commit-msg post-commit pre-push post-checkout reference-transaction post-index-change
post-rewrite post-merge pre-auto-gc proc-receive update
"""

PROGRAMS = """
core.sshCommand core.gitProxy core.askPass core.pager core.editor core.alternateRefsCommand
gpg.program gpg.ssh.program sequence.editor credential.helper uploadpack.packObjectsHook
trailer.x.command alias.fetch alias.commit-tree alias.upload-pack remote.origin.uploadpack
remote.origin.receivepack interactive.diffFilter web.browser man.viewer
"""


LINE_ENDS = "\x0b\x0c\x1c\x85\u2028"
"""What ends a line for Python, and not for git."""


class Rig:
    """A remote, and a repository of it."""

    def __init__(
        self, transport: Transport, place: Path, options: RepositoryOptions | None = None
    ) -> None:
        self.options = options or RepositoryOptions()
        self.bare = make_remote(place / "forge")
        self.seed = place / "forge/seed"
        self.root = place / "root"
        self.root.mkdir()
        self.transport = transport
        self.repository = self.again()

    def again(self) -> Repository:
        """Return the repository as the next daemon has it."""
        url = parse_git_url(str(self.bare))
        return Repository(self.transport, str(self.root), url, self.options)

    async def work(self, key: str = "T-1", branch: str = "sortie/T-1") -> tuple[str, Standing]:
        """Return a workspace with the branch checked out."""
        path = self.root / key
        new = not path.exists()
        path.mkdir(exist_ok=True)
        self.repository.forget_fetch()
        await self.repository.fetch(NOBODY, ENV)
        standing = await self.repository.check_out(
            str(path), key, "run-1", branch, NOBODY, ENV, new=new
        )
        return str(path), standing

    async def leftovers(self, path: str, *, may: bool = True) -> Leftovers:
        """Commit what is left."""
        key = os.path.basename(path)
        return await self.repository.commit_leftovers(
            path, key, "Left\n\nSortie-Run: 1", ENV, may=may
        )


@pytest.fixture
def rig(transport: Transport, place: str) -> Rig:
    """Give a remote and a repository of it."""
    return Rig(transport, Path(place))


async def test_a_branch_goes_from_the_base_to_the_remote(rig: Rig) -> None:
    """Cloned, changed, committed and pushed; and what was left in no commit with it."""
    path, standing = await rig.work()
    base = git(rig.bare, "rev-parse", "main")
    assert standing == Standing(head=base)
    assert git(path, "symbolic-ref", "HEAD") == "refs/heads/sortie/T-1"
    assert git(path, "config", "remote.origin.url") == str(rig.bare)

    done = commit(path, "src/b.py", "b = 2\n")
    Path(path, "left.txt").write_text("left\n")
    Path(path, ".sortie").mkdir()
    Path(path, ".sortie/status").write_text("done")
    left = await rig.leftovers(path)
    changes = await rig.repository.changes(left.head, ENV)

    assert left.paths == ("left.txt",)
    assert git(path, "rev-parse", "HEAD^") == done
    assert git(path, "rev-parse", "HEAD") == left.head
    assert git(path, "status", "--porcelain", "--", ".", ":(exclude).sortie") == ""
    assert (changes.commits, changes.behind) == (2, 0)
    assert [(f.path, f.added, f.removed) for f in changes.files] == [
        ("left.txt", 1, 0),
        ("src/b.py", 1, 0),
    ]
    assert "+left" in await rig.repository.diff(left.head, ENV, 10_000)
    assert await rig.repository.push(left.head, "sortie/T-1", None, NOBODY, ENV) is None
    assert await rig.repository.push(left.head, "sortie/T-1", None, NOBODY, ENV) is None
    assert git(rig.bare, "rev-parse", "sortie/T-1") == left.head
    assert git(rig.bare, "rev-parse", "main") == base


async def test_the_next_run_goes_on_and_knows_what_is_new(rig: Rig) -> None:
    """The base has moved, and a person has pushed to the branch."""
    path, _ = await rig.work()
    mine = commit(path, "b", "2\n")
    await rig.leftovers(path)
    await rig.repository.push(mine, "sortie/T-1", None, NOBODY, ENV)
    commit(rig.seed, "c", "3\n")
    git(rig.seed, "push", "-q", "origin", "HEAD:main")
    git(rig.seed, "fetch", "-q")
    git(rig.seed, "checkout", "-q", "sortie/T-1")
    theirs = commit(rig.seed, "d", "4\n")
    git(rig.seed, "push", "-q", "origin", "sortie/T-1")

    _, standing = await rig.work()

    assert standing == Standing(head=theirs, tip=theirs, behind=1)
    assert Path(path, "d").read_text() == "4\n"
    assert git(path, "rev-parse", "origin/main") == git(rig.bare, "rev-parse", "main")


async def test_what_others_pushed_is_not_written_over(rig: Rig) -> None:
    """Neither by commits beside theirs nor by a branch of the same name; what the agent itself has
    rewritten is."""
    path, _ = await rig.work()
    first = commit(path, "b", "2\n")
    await rig.leftovers(path)
    await rig.repository.push(first, "sortie/T-1", None, NOBODY, ENV)
    git(path, "commit", "-q", "--amend", "-m", "Better")
    left = await rig.leftovers(path)

    assert await rig.repository.push(left.head, "sortie/T-1", first, NOBODY, ENV) is None
    assert git(rig.bare, "rev-parse", "sortie/T-1") == left.head
    git(rig.seed, "fetch", "-q")
    git(rig.seed, "checkout", "-q", "-B", "mine", "origin/sortie/T-1")
    theirs = commit(rig.seed, "d", "4\n")
    git(rig.seed, "push", "-q", "origin", "HEAD:sortie/T-1")
    commit(path, "e", "5\n")
    more = await rig.leftovers(path)
    said = await rig.repository.push(more.head, "sortie/T-1", left.head, NOBODY, ENV)
    assert said == Moved(theirs)
    assert git(rig.bare, "rev-parse", "sortie/T-1") == theirs


TRAPS: dict[str, Callable[[Path, str], None]] = {}


def trap(make: Callable[[Path, str], None]) -> Callable[[Path, str], None]:
    """Note what an agent does to its workspace; it is given a command that must not run."""
    TRAPS[make.__name__] = make
    return make


@trap
def hooks(path: Path, command: str) -> None:
    """Every hook that git knows."""
    folder = path / ".git/hooks"
    folder.mkdir(exist_ok=True)
    for name in HOOKS.split():
        (folder / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / name).chmod(0o755)


@trap
def hooks_elsewhere(path: Path, command: str) -> None:
    """A directory of hooks that the configuration names."""
    hooks(path, command)
    git(path, "config", "core.hooksPath", ".git/hooks")


@trap
def monitor(path: Path, command: str) -> None:
    """A monitor of the file system."""
    git(path, "config", "core.fsmonitor", f"{command} #")
    git(path, "config", "core.untrackedCache", "true")


@trap
def filters(path: Path, command: str) -> None:
    """Filters and drivers for all files."""
    (path / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    for key in ("clean", "smudge", "process"):
        git(path, "config", f"filter.evil.{key}", f"{command}; cat")
    git(path, "config", "filter.evil.required", "true")
    git(path, "config", "diff.evil.textconv", command)
    git(path, "config", "diff.evil.command", command)
    git(path, "config", "merge.evil.driver", command)
    git(path, "config", "diff.external", command)


@trap
def programs(path: Path, command: str) -> None:
    """Every program that a configuration can name."""
    for key in PROGRAMS.split():
        git(
            path,
            "config",
            key,
            f"!{command}-{key}" if key.startswith("alias") else f"{command}-{key};",
        )
    git(path, "config", "commit.gpgSign", "true")
    git(path, "config", "gc.auto", "1")


@trap
def other_remotes(path: Path, command: str) -> None:
    """Remotes by the name of what is fetched from, and addresses that become commands."""
    mirror = next((path.parent / "@repositories").glob("*.git"))
    for name in (str(mirror), "origin"):
        git(path, "config", f"remote.{name}.uploadpack", f"{command};")
        git(path, "config", f"remote.{name}.vcs", "ext")
    git(path, "config", f"url.ext::sh -c '{command}' .insteadOf", "/")
    git(path, "config", "protocol.allow", "always")
    git(path, "config", "protocol.ext.allow", "always")


@trap
def included(path: Path, command: str) -> None:
    """Configuration in another file, and attributes beside the tree."""
    (path / "more.cfg").write_text(f'[core]\n\tfsmonitor = "{command} #"\n')
    git(path, "config", "include.path", str(path / "more.cfg"))
    (path / ".git/info").mkdir(exist_ok=True)
    (path / ".git/info/attributes").write_text("* filter=evil\n")
    git(path, "config", "filter.evil.clean", f"{command}; cat")


@trap
def elsewhere(path: Path, command: str) -> None:
    """A remote that is somewhere else, and a work tree too."""
    del command
    git(path, "config", "remote.origin.url", "https://evil.example/x.git")
    git(path, "config", "remote.origin.pushurl", "https://evil.example/x.git")
    git(path, "config", "core.worktree", "/etc")


@trap
def locks(path: Path, command: str) -> None:
    """Locks that nobody will take away."""
    del command
    (path / ".git/index.lock").write_text("")
    (path / ".git/HEAD.lock").write_text("")


@trap
def submodule(path: Path, command: str) -> None:
    """A repository in the workspace with hooks of its own, and one that looks like a submodule."""
    inner = path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    commit(inner, "x", "x\n")
    hooks(inner, command)
    git(inner, "config", "core.fsmonitor", f"{command} #")
    (path / ".gitmodules").write_text(
        f'[submodule "inner"]\n\tpath = inner\n\turl = ext::{command}\n\tupdate = !{command}\n'
    )


@trap
def links(path: Path, command: str) -> None:
    """Links out of the tree, one of them in place of the index."""
    del command
    (path / "out").symlink_to("/etc/passwd")
    (path / "dir").symlink_to("/etc")
    victim = path.parent / "victim"
    victim.write_text("mine\n")
    (path / ".git/index").unlink()
    (path / ".git/index").symlink_to(victim)


@pytest.mark.parametrize("name", sorted(TRAPS))
async def test_nothing_that_a_workspace_names_is_run(rig: Rig, name: str) -> None:
    """And the work is delivered all the same, now and by the next run."""
    path, _ = await rig.work()
    mark = rig.root / "sprung"
    mine = commit(path, "b", "2\n")
    TRAPS[name](Path(path), f"touch {mark}")
    Path(path, "left.txt").write_text("left\n")

    left = await rig.leftovers(path)
    await rig.repository.changes(left.head, ENV)
    await rig.repository.diff(left.head, ENV, 1000)
    lacking = await rig.repository.clean_clone("T-1", left.head, NOBODY, ENV)
    pushed = await rig.repository.push(left.head, "sortie/T-1", None, NOBODY, ENV)
    rig.repository = rig.again()
    Path(path, "more.txt").write_text("more\n")
    _, standing = await rig.work()
    kept = await Rescues(rig.repository).rescue(path, "T-1", ENV)

    assert not list(rig.root.glob("sprung*"))
    assert "left.txt" in left.paths
    assert not [found for found in left.paths if found.startswith("inner/")]
    assert git(rig.bare, "rev-parse", "sortie/T-1^") == mine
    assert lacking is None
    clean = rig.repository.clean_path("T-1")
    assert Path(clean, "left.txt").read_text() == "left\n"
    assert pushed is None
    assert standing.behind == 0
    assert kept[:1] == ("refs/sortie/rescue/T-1/run-1",)
    assert (rig.root / "victim").read_text() == "mine\n" if name == "links" else True
    tree = git(rig.bare, "ls-tree", "-r", "sortie/T-1")
    assert "160000" not in tree
    if name == "links":
        assert "120000" in tree


async def test_a_workspace_without_its_repository_loses_nothing(rig: Rig) -> None:
    """Its files are committed on what was known last, and the next run has a repository again."""
    path, _ = await rig.work()
    await rig.leftovers(path)
    shutil.rmtree(Path(path, ".git"))
    Path(path, "left.txt").write_text("left\n")

    left = await rig.leftovers(path)
    await rig.work()

    assert left.broken
    assert left.paths == ("left.txt",)
    assert git(path, "rev-parse", "HEAD") == left.head
    assert git(path, "status", "--porcelain") == ""


async def test_what_is_too_large_is_not_committed(rig: Rig) -> None:
    """It is named instead."""
    path, _ = await rig.work()
    with Path(path, "huge").open("wb") as file:
        file.truncate(2 * 1024**3)

    left = await rig.leftovers(path)

    assert left.large == ("huge",)
    assert left.head == git(path, "rev-parse", "HEAD")


async def test_however_much_was_left_its_commit_is_known(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the names of the files the first are told: an agent may have left a whole environment."""
    monkeypatch.setattr(repository_script, "_ANSWER_LIMIT", 1000)
    path, _ = await rig.work()
    for number in range(100):
        Path(path, f"{number:03d}-{'x' * 50}").write_text("1\n")

    left = await rig.leftovers(path)

    assert git(rig.repository.mirror, "rev-parse", "refs/sortie/work/T-1") == left.head
    assert 10 < len(left.paths) < 20


async def test_a_commit_that_the_workspace_did_not_get_to_know_is_used_again(rig: Rig) -> None:
    """As after a crash between the two."""
    path, _ = await rig.work()
    before = git(path, "rev-parse", "HEAD")
    Path(path, "left.txt").write_text("left\n")
    first = await rig.leftovers(path)
    git(path, "reset", "-q", "--soft", before)

    again = await rig.leftovers(path)

    assert again.head == first.head


async def test_work_that_is_nowhere_else_is_rescued(rig: Rig) -> None:
    """Commits, another branch, a stash and files; what is pushed is not."""
    path, _ = await rig.work()
    pushed = commit(path, "b", "2\n")
    await rig.leftovers(path)
    await rig.repository.push(pushed, "sortie/T-1", None, NOBODY, ENV)
    await rig.work("T-2", "sortie/T-2")
    none = await Rescues(rig.repository).rescue(path, "T-1", ENV)
    await rig.work()
    git(path, "checkout", "-q", "-b", "other")
    other = commit(path, "c", "3\n")
    git(path, "checkout", "-q", "sortie/T-1")
    Path(path, "b").write_text("stashed\n")
    git(path, "stash")
    Path(path, "left").write_text("left\n")

    kept = await Rescues(rig.repository).rescue(path, "T-1", ENV)
    listed = await Rescues(rig.repository).listed(ENV)

    assert none == ()
    assert set(kept) == {
        "refs/sortie/rescue/T-1/run-1",
        "refs/sortie/rescue/T-1/run-1.other",
        "refs/sortie/rescue/T-1/run-1.stash",
    }
    assert {found.run for found in listed} == {"run-1", "run-1.other", "run-1.stash"}
    assert other in {found.commit for found in listed}
    assert await Rescues(rig.repository).forget(0, ENV) == ()
    assert len(await Rescues(rig.repository).forget(2**40, ENV)) == 3


async def test_branches_whose_names_look_alike_are_each_rescued(rig: Rig) -> None:
    """None takes the place of another: "fix/a", "fix_a" and names in other scripts."""
    path, _ = await rig.work()
    made = set()
    for name in ("fix/a", "fix_a", "stash", "\u044f", "\u044e"):
        git(path, "checkout", "-q", "-B", name, "origin/main")
        made.add(commit(path, "b", f"{name}\n"))
    git(path, "checkout", "-q", "sortie/T-1")
    Path(path, "README").write_text("stashed\n")
    git(path, "stash")
    made.add(git(path, "rev-parse", "stash"))

    kept = await Rescues(rig.repository).rescue(path, "T-1", ENV)

    assert {found.commit for found in await Rescues(rig.repository).listed(ENV)} == made
    assert len(set(kept)) == len(made)


@pytest.mark.parametrize(
    ("killed", "ask"),
    [
        ("rev-list --objects --no-object-names", "objects"),
        ("diff-tree -r --numstat", "changes"),
        ("refs/sortie/found", "rescue"),
        ("rev-list --max-count=1", "rescue"),
    ],
)
async def test_a_git_that_is_killed_is_never_an_empty_answer(
    rig: Rig, killed: str, ask: str
) -> None:
    """Else a secret would be pushed, work would count as none, or be removed unkept."""
    if rig.transport.host != "local":
        pytest.skip("the script is the same")
    path, _ = await rig.work()
    commit(path, "b", "1\n")
    head = (await rig.leftovers(path)).head
    tools = rig.root / "tools"
    tools.mkdir()
    real = shutil.which("git")
    (tools / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *\'{killed}\'*) kill -9 $$ ;; esac\nexec {real} "$@"\n'
    )
    (tools / "git").chmod(0o755)
    env = {**ENV, "PATH": f"{tools}:{ENV['PATH']}"}

    with pytest.raises(GitError):
        if ask == "objects":
            await rig.repository.each_object(head, env, lambda *_: None)
        elif ask == "changes":
            await rig.repository.changes(head, env)
        else:
            await Rescues(rig.repository).rescue(path, "T-1", env)


async def test_rescued_work_is_listed_once_whatever_its_message_holds(rig: Rig) -> None:
    """An agent that writes what is a line end elsewhere makes up no other work."""
    path, _ = await rig.work()
    Path(path, "b").write_text("1\n")
    git(path, "add", "b")
    forged = "c0ffee 1 refs/sortie/rescue/T-2/run-2 Yours"
    git(path, "commit", "-q", "-m", "Mine" + "".join(f"{end}{forged}" for end in LINE_ENDS))
    await Rescues(rig.repository).rescue(path, "T-1", ENV)

    (found,) = await Rescues(rig.repository).listed(ENV)

    assert (found.issue, found.run) == ("T-1", "run-1")
    assert found.subject.startswith("Mine\ufffdc0ffee")


async def test_objects_are_seen_whole(rig: Rig) -> None:
    """All that a commit adds, and nothing that the remote has."""
    path, _ = await rig.work()
    commit(path, "b", "needle" * 100_000)
    left = await rig.leftovers(path)
    seen: dict[str, int] = {}

    def take(object_id: str, piece: bytes) -> None:
        seen[object_id] = seen.get(object_id, 0) + piece.count(b"needle")

    await rig.repository.each_object(left.head, ENV, take)
    blob = max(seen, key=lambda found: seen[found])

    assert seen[blob] >= 100_000
    assert await rig.repository.path_of(left.head, blob, ENV) == "b"
    assert git(rig.seed, "rev-parse", "HEAD:README") not in seen


async def test_a_push_from_the_workspace_works_where_it_may(rig: Rig) -> None:
    """As the settings say now, whatever they said when the workspace was made."""
    path, _ = await rig.work()
    address = git(path, "remote", "get-url", "--push", "origin")
    assert address == "Sortie pushes this branch when you are done"
    for may, told in ((True, str(rig.bare)), (False, address)):
        rig.options = RepositoryOptions(agent_pushes=may)
        rig.repository = rig.again()
        await rig.work()
        assert git(path, "remote", "get-url", "--push", "origin") == told
    assert git(path, "remote", "get-url", "origin") == str(rig.bare)


async def test_two_runs_do_not_fetch_twice(rig: Rig) -> None:
    """However many want it at once."""
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(rig.repository.fetch, NOBODY, ENV)
    commit(rig.seed, "late", "1\n")
    git(rig.seed, "push", "-q", "origin", "HEAD:main")
    await rig.repository.fetch(NOBODY, ENV)

    mirror = Path(rig.repository.mirror)
    assert git(mirror, "rev-parse", "main") != git(rig.bare, "rev-parse", "main")


async def test_git_that_does_not_end_is_given_up(rig: Rig) -> None:
    """Also where its output is only looked at."""
    path, _ = await rig.work()
    head = commit(path, "b", "1\n")
    await rig.leftovers(path)
    arguments = ("objects", rig.repository.mirror, head, "main", "0")

    with pytest.raises(GitError, match=r"could not read the commits: it took more than 0 s"):
        await rig.repository.git.read(
            "read the commits", arguments, ENV, lambda _chunk: None, limit=0.0
        )


async def test_a_remote_that_is_not_there_is_told(rig: Rig) -> None:
    """With what git says."""
    url = parse_git_url(f"{rig.bare}-not")
    absent = Repository(rig.transport, str(rig.root), url, RepositoryOptions())
    with pytest.raises(GitError, match=r"could not fetch .*-not: .*does not"):
        await absent.fetch(NOBODY, ENV)
    wrong = Repository(
        rig.transport, str(rig.root), parse_git_url(str(rig.bare)), RepositoryOptions(base="nope")
    )
    with pytest.raises(GitError, match=r"the remote has no branch nope"):
        await wrong.fetch(NOBODY, ENV)
