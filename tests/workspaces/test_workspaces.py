"""The life of a workspace, and what an agent or an attacker may leave in its place."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
import trio

from sortie.model import NotInRootError, OccupiedError, RunId, TransportError, WorkspaceError
from sortie.transports import Command, Files
from sortie.transports.local import LocalTransport
from sortie.transports.local.files import LocalFiles
from sortie.workspaces import Workspace, Workspaces
from tests.transports.former import ESCAPE, killed_at_last, left_by
from tests.transports.leftovers import is_alive


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state" / "workspaces"


@pytest.fixture
def workspaces(root: Path, transport: LocalTransport) -> Workspaces:
    return Workspaces(str(root), transport)


async def ready(workspaces: Workspaces, identifier: str = "ABC-1") -> Path:
    """Make a workspace in which an agent can begin, and return its path."""
    workspace = await workspaces.prepare(identifier)
    await workspaces.complete(workspace)
    await workspaces.hide(workspace.path)
    return Path(workspace.path)


async def test_a_workspace_is_made_once_and_reused(workspaces: Workspaces, root: Path) -> None:
    """The second run of an issue finds what the first one left."""
    first = await workspaces.prepare("ABC-1")
    await workspaces.complete(first)
    Path(first.path, "work").touch()

    second = await workspaces.prepare("ABC-1")

    path = os.path.join(os.path.realpath(root), "ABC-1")
    assert first == Workspace(path=path, key="ABC-1", created=True, host="local")
    assert second == Workspace(path=path, key="ABC-1", created=False, host="local")
    assert os.listdir(path) == ["work"]
    await workspaces.verify(path)


async def test_an_incomplete_workspace_is_made_anew(workspaces: Workspaces, root: Path) -> None:
    """What a crash left half made is not reused, and is told as new."""
    first = await workspaces.prepare("ABC-1")
    Path(first.path, "half").touch()

    second = await workspaces.prepare("ABC-1")
    await workspaces.complete(second)
    third = await workspaces.prepare("ABC-1")

    assert [w.created for w in (first, second, third)] == [True, True, False]
    assert not Path(first.path, "half").exists()


async def test_a_workspace_that_was_there_before_is_complete(
    workspaces: Workspaces, root: Path
) -> None:
    """A directory that somebody else made is reused and never taken for incomplete."""
    Path(root, "ABC-1").mkdir(parents=True)
    Path(root, "ABC-1", "precious").touch()

    workspace = await workspaces.prepare("ABC-1")
    again = await workspaces.prepare("ABC-1")

    assert (workspace.created, again.created) == (False, False)
    assert Path(root, "ABC-1", "precious").exists()


async def test_a_workspace_is_removed(workspaces: Workspaces, root: Path) -> None:
    """It goes with all it holds; removing it again finds nothing; a new one is new."""
    path = await ready(workspaces)
    Path(path, "deep", "er").mkdir(parents=True)
    await ready(workspaces, "ABC-2")

    removed = await workspaces.remove("ABC-1")
    again = await workspaces.remove("ABC-1")

    assert (removed, again) == (True, False)
    assert [p.name for p in root.iterdir() if not p.name.startswith("@")] == ["ABC-2"]
    assert (await workspaces.prepare("ABC-1")).created


async def test_a_workspace_that_is_removed_in_part_is_never_taken(
    workspaces: Workspaces, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash in the middle of its removal."""
    path = await ready(workspaces)
    Path(path, "left").touch()

    async def in_part(*_: object) -> bool:
        raise TransportError("the daemon was killed")

    with monkeypatch.context() as patched, pytest.raises(WorkspaceError):
        patched.setattr(LocalFiles, "remove_directory", in_part)
        await workspaces.remove("ABC-1")
    was_complete = await workspaces.is_complete("ABC-1")
    again = await workspaces.prepare("ABC-1")
    await workspaces.complete(again)

    assert (was_complete, again.created, await workspaces.is_complete("ABC-1")) == (
        False,
        True,
        True,
    )
    assert not Path(path, "left").exists()


async def test_nothing_is_removed_under_a_live_process(
    workspaces: Workspaces, transport: LocalTransport
) -> None:
    """A process that lives in a workspace keeps it, and is named."""
    path = await ready(workspaces)
    Path(path, "sub").mkdir()
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": str(uuid.uuid4())}
    command = Command(argv=("sleep", "1000"), cwd=str(path / "sub"), env=env)

    async with transport.process(command) as process:
        with pytest.raises(WorkspaceError, match=str(process.identity.pid)):
            await workspaces.remove("ABC-1")
        kept = Path(path, "sub").is_dir()

    assert kept
    assert await workspaces.remove("ABC-1")


async def test_no_workspace_is_used_again_while_a_stranger_lives_in_it(
    workspaces: Workspaces,
) -> None:
    """A person's shell keeps a run out until it has left; a new workspace has nobody in it."""
    path = await ready(workspaces)

    with subprocess.Popen(["sleep", "1000"], cwd=path) as shell:
        with pytest.raises(OccupiedError, match=rf"\b{shell.pid} \(sleep, user ") as caught:
            await workspaces.prepare("ABC-1")
        other = await workspaces.prepare("ABC-2")
        shell.kill()
    again = await workspaces.prepare("ABC-1")

    assert caught.value.ended == 0
    assert (other.created, again.created, again.reaped) == (True, False, 0)


@pytest.mark.parametrize("completed", [True, False])
async def test_what_runs_left_in_a_workspace_is_ended_before_it_is_used(
    workspaces: Workspaces, completed: bool
) -> None:
    """Also where the workspace is to be made anew, as its first run came to no end."""
    path = Path((await workspaces.prepare("ABC-1")).path)
    if completed:
        await workspaces.complete(await workspaces.prepare("ABC-1"))
    left = await left_by(RunId(str(uuid.uuid4())), *ESCAPE, "fork", "cleared", cwd=str(path))

    with killed_at_last(left) as pids:
        workspace = await workspaces.prepare("ABC-1", grace=0.2)
        alive = [is_alive(pid) for pid in pids]

    assert alive == [False] * len(pids)
    assert workspace.reaped >= len(pids)
    assert workspace.created is not completed


async def test_an_issue_can_be_called_as_the_markers(workspaces: Workspaces, root: Path) -> None:
    """No identifier's workspace stands where the notes about workspaces are kept."""
    paths = {await ready(workspaces, name) for name in ("@incomplete", ".sortie", "incomplete")}

    assert len(paths) == 3
    assert Path(os.path.realpath(root), "@incomplete") not in paths


@pytest.mark.parametrize("target", ["/etc", "../../outside", "OTHER-1", "nowhere"])
async def test_a_link_in_place_of_a_workspace_is_refused(
    workspaces: Workspaces, root: Path, tmp_path: Path, target: str
) -> None:
    """A link out of the root, or to another issue's workspace, is not used and not emptied."""
    other = await ready(workspaces, "OTHER-1")
    Path(other, "precious").touch()
    Path(tmp_path, "outside").mkdir()
    Path(root, "ABC-1").symlink_to(target)

    with pytest.raises(WorkspaceError):
        await workspaces.prepare("ABC-1")
    with pytest.raises(WorkspaceError):
        await workspaces.verify(str(root / "ABC-1"))
    with pytest.raises(WorkspaceError):
        await workspaces.remove("ABC-1")

    assert Path(other, "precious").exists()
    assert Path(root, "ABC-1").is_symlink()
    Path(root, "ABC-1").unlink()
    Path(root, "ABC-1").mkdir()
    assert not (await workspaces.prepare("ABC-1")).created


async def test_a_workspace_that_was_swapped_is_not_trusted(
    workspaces: Workspaces, root: Path, tmp_path: Path
) -> None:
    """Between two launches a workspace may have become a link, or be gone."""
    path = await ready(workspaces)
    path.rename(tmp_path / "moved")

    with pytest.raises(WorkspaceError):
        await workspaces.verify(str(path))
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(WorkspaceError):
        await workspaces.verify(str(path))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"blocked\n", "blocked"),
        (b"\n  needs-human-review \r\nbecause\n", "needs-human-review \r\nbecause"),
        (b"blocked " + b"x " * 2043 + b"a-secret", "blocked " + "x " * 2042 + "x"),
        (b"", ""),
        (b" \n\t\n", ""),
        (b"\xff\xfe", "��"),
        (b"x" * (10 << 20), "x" * 4096),
    ],
)
async def test_a_status_is_read_once(workspaces: Workspaces, content: bytes, word: str) -> None:
    """The file's first 4 KiB are told once, without half a word; then the file is gone."""
    path = await ready(workspaces)
    status = path / ".sortie" / "status"
    status.write_bytes(content)

    first = await workspaces.read_status(str(path))
    second = await workspaces.read_status(str(path))

    assert (first, second) == (word, None)
    assert not status.exists()


async def test_an_old_status_is_cleared(workspaces: Workspaces) -> None:
    """What an earlier run left is not taken for this run's word."""
    path = await ready(workspaces)
    await workspaces.clear_status(str(path))
    Path(path, ".sortie", "status").write_text("blocked")

    await workspaces.clear_status(str(path))

    assert await workspaces.read_status(str(path)) is None


@pytest.mark.parametrize("kind", ["fifo", "link", "dangling"])
async def test_a_status_that_is_no_regular_file_is_refused(
    workspaces: Workspaces, tmp_path: Path, kind: str
) -> None:
    """A FIFO does not hang us, a link shows us nothing; both are removed and told once."""
    path = await ready(workspaces)
    status = path / ".sortie" / "status"
    secret = tmp_path / "secret"
    secret.write_text("blocked")
    match kind:
        case "fifo":
            os.mkfifo(status)
        case "link":
            status.symlink_to(secret)
        case _:
            status.symlink_to("nowhere")

    with trio.fail_after(60), pytest.raises(WorkspaceError) as caught:
        await workspaces.read_status(str(path))

    assert "blocked" not in str(caught.value)
    assert await workspaces.read_status(str(path)) is None
    assert secret.exists()


async def test_a_directory_in_place_of_the_status_is_refused(workspaces: Workspaces) -> None:
    """A directory is told, and stays, as it is not ours to remove."""
    path = await ready(workspaces)
    Path(path, ".sortie", "status").mkdir()

    with pytest.raises(WorkspaceError):
        await workspaces.read_status(str(path))
    with pytest.raises(WorkspaceError):
        await workspaces.clear_status(str(path))


async def test_a_link_in_place_of_the_sortie_directory_is_refused(
    workspaces: Workspaces, tmp_path: Path
) -> None:
    """Nothing is read, written or deleted through it."""
    path = await ready(workspaces)
    outside = tmp_path / "outside"
    outside.mkdir()
    Path(outside, "status").write_text("blocked")
    Path(path, ".sortie", ".gitignore").unlink()
    Path(path, ".sortie").rmdir()
    Path(path, ".sortie").symlink_to(outside)

    with pytest.raises(WorkspaceError):
        await workspaces.hide(str(path))
    with pytest.raises(WorkspaceError):
        await workspaces.read_status(str(path))
    with pytest.raises(WorkspaceError):
        await workspaces.clear_status(str(path))

    assert [p.name for p in outside.iterdir()] == ["status"]


@pytest.mark.parametrize("kind", ["gone", "changed", "fifo", "link"])
async def test_the_ignore_file_is_kept(workspaces: Workspaces, tmp_path: Path, kind: str) -> None:
    """Each run finds it as it has to be; a link is replaced and not written through."""
    path = await ready(workspaces)
    ignore = path / ".sortie" / ".gitignore"
    outside = tmp_path / "outside"
    outside.write_text("precious")
    ignore.unlink()
    match kind:
        case "changed":
            ignore.write_text("*\n!status\n")
        case "fifo":
            os.mkfifo(ignore)
        case "link":
            ignore.symlink_to(outside)

    await workspaces.hide(str(path))

    assert not ignore.is_symlink()
    assert ignore.read_text() == "*\n"
    assert outside.read_text() == "precious"


T = TypeVar("T")


class FailingFiles:
    """Files whose next directory is made, and then the answer is lost."""

    lost = True

    def __init__(self, files: LocalFiles) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    async def together(self, work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        return await work(self)

    async def make_directory(self, root: str, name: str) -> tuple[str, bool]:
        answer = await self._files.make_directory(root, name)
        if name == "ABC-1" and self.lost:
            self.lost = False
            raise TransportError("the connection was lost")
        return answer


async def test_a_lost_answer_leaves_the_workspace_incomplete(root: Path) -> None:
    """A directory that may have been made counts as incomplete, so it is made anew."""
    transport = LocalTransport()
    transport.files = cast(LocalFiles, FailingFiles(transport.files))
    workspaces = Workspaces(str(root), transport)

    with pytest.raises(WorkspaceError, match="lost"):
        await workspaces.prepare("ABC-1")
    second = await workspaces.prepare("ABC-1")

    assert second.created


async def test_a_workspace_that_lacks_nothing_has_no_marker(
    workspaces: Workspaces, root: Path
) -> None:
    """It is complete as soon as it is there, and taken as it is by whoever comes next."""
    first = await workspaces.prepare_complete("ABC-1")
    markers = list((root / "@incomplete").iterdir())
    Path(first.path, "work").touch()

    again = await workspaces.prepare("ABC-1")
    at_last = await workspaces.prepare_complete("ABC-1")

    assert first.created
    assert markers == []
    assert Path(first.path, ".sortie", ".gitignore").read_text() == "*\n"
    assert not again.created
    assert at_last == again
    assert Path(first.path, "work").exists()


async def test_a_workspace_left_incomplete_is_made_anew_also_where_it_would_lack_nothing(
    workspaces: Workspaces, root: Path
) -> None:
    """The settings may have lost their hook since."""
    first = await workspaces.prepare("ABC-1")
    Path(first.path, "half").touch()

    second = await workspaces.prepare_complete("ABC-1")

    assert second.created
    assert not Path(second.path, "half").exists()
    assert list((root / "@incomplete").iterdir()) == []


async def test_a_root_that_can_be_used_passes_the_check(root: Path, workspaces: Workspaces) -> None:
    """The check makes the root and leaves nothing but the directory of the markers in it."""
    await workspaces.check()
    await workspaces.check()

    assert [p.name for p in root.rglob("*")] == ["@incomplete"]
    root.rename(root.with_name("moved"))
    root.symlink_to("moved")
    with pytest.raises(WorkspaceError):
        await workspaces.check()


async def test_a_root_that_is_not_recognised_is_left_alone(tmp_path: Path) -> None:
    """Nothing is made in its place or taken for removed, and a workspace that is missing with it
    is no fault of its issue."""
    root = tmp_path / "root"

    def refuse() -> bool:
        raise WorkspaceError("the root is away")

    workspaces = Workspaces(str(root), LocalTransport(), refuse)

    for ask in (
        workspaces.check,
        lambda: workspaces.prepare("A-1"),
        lambda: workspaces.remove("A-1"),
        lambda: workspaces.verify(str(root / "A-1")),
    ):
        with pytest.raises(WorkspaceError, match="the root is away") as refused:
            await ask()
        assert not isinstance(refused.value, NotInRootError)

    assert not root.exists()


async def test_a_known_root_is_never_made(tmp_path: Path) -> None:
    """Also where it vanishes in the moment after it was looked at."""
    root = tmp_path / "root"

    def vanish() -> bool:
        return True

    workspaces = Workspaces(str(root), LocalTransport(), vanish)

    for ask in (workspaces.check, lambda: workspaces.prepare("A-1")):
        with pytest.raises(WorkspaceError):
            await ask()

    assert not root.exists()


async def test_an_incomplete_workspace_can_be_removed(workspaces: Workspaces, root: Path) -> None:
    """Removing it leaves no marker that could condemn a later directory."""
    await workspaces.prepare("ABC-1")

    await workspaces.remove("ABC-1")
    Path(root, "ABC-1").mkdir()

    assert not (await workspaces.prepare("ABC-1")).created
