"""Steps come to the same wherever they are performed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from sortie.model import TransportError
from sortie.transports import Files
from sortie.transports import file_steps as steps
from sortie.transports.file_steps import Steps, perform
from sortie.transports.local.files import LocalFiles
from tests.transports.fake_files import FakeFiles


def memory(root: Path) -> Files:
    """Files that are asked step by step."""
    return FakeFiles([str(root)])


def machine(root: Path) -> Files:
    """Files that a thread reaches, in one go."""
    return LocalFiles()


@pytest.fixture(params=[memory, machine])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    make: Callable[[Path], Files] = request.param
    return make(tmp_path)


async def test_each_step_is_sent_what_it_came_to(files: Files, tmp_path: Path) -> None:
    """A directory is made, written in, looked at and read, and a file is removed."""
    root = str(tmp_path)

    def work() -> Steps[list[object]]:
        path, created = yield from steps.make_directory(root, "a")
        yield from steps.write_file(path, "b/c", b"text")
        before = yield from steps.read_file(path, "b/c", 3)
        yield from steps.remove_file(path, "b/c")
        after = yield from steps.read_file(path, "b/c", 3)
        inside = yield from steps.contained(root, path)
        return [created, before, after, inside]

    assert await perform(files, work()) == [True, b"tex", None, True]


async def test_what_a_step_raises_is_raised_where_it_was_asked_for(
    files: Files, tmp_path: Path
) -> None:
    """So the steps can do something about it, or end with it."""
    root = str(tmp_path)

    def work(*, patient: bool) -> Steps[str]:
        yield from steps.make_directory(root, "a")
        try:
            yield from steps.read_file(root, "a", 1)
        except TransportError:
            if not patient:
                raise
        yield from steps.write_file(root, "b", b"")
        return "went on"

    with pytest.raises(TransportError, match="no regular file"):
        await perform(files, work(patient=False))
    began_anew = await files.read_file(root, "b", 1)
    answer = await perform(files, work(patient=True))

    assert began_anew is None
    assert answer == "went on"
    assert await files.read_file(root, "b", 1) == b""


async def test_a_thread_is_needed_once_for_all_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are."""
    started, start = [], trio.lowlevel.start_thread_soon

    def counting(*args: object) -> None:
        started.append(args)
        start(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(trio.lowlevel, "start_thread_soon", counting)

    def work() -> Steps[None]:
        for name in ("a", "b", "c"):
            yield from steps.make_directory(str(tmp_path), name)

    await perform(LocalFiles(), work())

    assert len(started) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c"}
