"""A run that meets a shortage on this machine fails by it, whatever it was doing."""

from __future__ import annotations

import errno

import pytest
from trio.testing import MockClock

from sortie.model import ErrorKind, Failed, TransportError
from sortie.telemetry import facts
from sortie.workflow import composing
from sortie.workflow.prompts import Prompt, PromptContext
from tests.transports.fake import Does
from tests.worker.rig import Rig


def short() -> TransportError:
    """Return what a transport raises where it may open no more files."""
    error = TransportError("could not look at a: the limit of open files is reached")
    error.__cause__ = OSError(errno.EMFILE, "Too many open files")
    return error


@pytest.mark.parametrize(
    "method", ["make_directory", "contained", "read_file", "process", "write_file", "remove_file"]
)
async def test_a_shortage_is_not_the_issues_fault(clock: MockClock, method: str) -> None:
    """Whatever of this machine fails by it: the run is neither held nor blamed."""
    rig = Rig(hooks={"before_run": Does()})
    rig.transport.faults[method] = short()

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.PORT_EXIT, message=str(short()), shortage=True)


async def test_a_prompt_for_which_there_is_no_thread_is_not_said_to_be_wrong(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template has no part in it, and no traceback is told."""

    async def render(_prompt: Prompt, _context: PromptContext, **_: object) -> str:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(composing, "render", render)
    rig = Rig()

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert (report.end.kind, report.end.shortage) == (ErrorKind.PORT_EXIT, True)
    assert "processes and threads" in report.end.message
    assert not [fact for fact in rig.facts if isinstance(fact, facts.AdapterCrashed)]


@pytest.mark.parametrize("error", [MemoryError(), ExceptionGroup("tasks", [MemoryError()])])
async def test_memory_that_runs_out_is_named(clock: MockClock, error: Exception) -> None:
    """A MemoryError ends the run as a shortage of memory, also one that a nursery wrapped."""
    rig = Rig()

    async def fail(_: object) -> None:
        raise error

    rig.on_commit = fail

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.shortage
    assert "memory" in report.end.message
