"""Hooks: real shells with a time limit."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.resources import shortage_behind
from sortie.transports import COOKIE
from sortie.transports.local import LocalTransport
from sortie.workspaces import HookOutcome, HookResult, run_hook
from sortie.workspaces.hooks import HOOK_OUTPUT_LIMIT
from tests.transports.fake import Does, FakeTransport
from tests.transports.leftovers import foreign_children, holders


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    """Give an environment, and check that nothing that got it is left."""
    run_id = str(uuid.uuid4())
    yield {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    assert holders(run_id) == []
    assert foreign_children() == []


@pytest.mark.parametrize(
    ("script", "result", "status", "output"),
    [
        ("echo hello; pwd", HookOutcome.OK, "exit 0", "hello\n{cwd}\n"),
        ("echo hello >&2", HookOutcome.OK, "exit 0", "hello\n"),
        ("exit 3", HookOutcome.FAILED, "exit 3", ""),
        ("kill -9 $$", HookOutcome.FAILED, "signal 9", ""),
        ("no-such-tool", HookOutcome.FAILED, "exit 127", "/bin/sh: 1: no-such-tool: not found\n"),
        ("if", HookOutcome.FAILED, "exit 2", None),
        ("cat", HookOutcome.OK, "exit 0", ""),
        ("printf 'a\\033[31m\\a\\r\\tb\\200'", HookOutcome.OK, "exit 0", "a\\x1b[31m\\x07\\r\tb�"),
    ],
)
async def test_a_hook_tells_how_it_ended(
    transport: LocalTransport,
    env: dict[str, str],
    tmp_path: Path,
    script: str,
    result: HookOutcome,
    status: str,
    output: str | None,
) -> None:
    """Status and harmless output come back; a failure is a result, not an exception."""
    done = await run_hook(transport, script, cwd=str(tmp_path), env=env, timeout=30)

    expected = done.output if output is None else output.replace("{cwd}", str(tmp_path))
    if "not found" not in expected:  # shells word this differently
        assert done == HookResult(
            result=result, seconds=done.seconds, status=status, output=expected
        )
    assert (done.result, done.status) == (result, status)
    assert 0 < done.seconds < 30


async def test_the_end_of_long_output_is_kept(
    transport: LocalTransport, env: dict[str, str], tmp_path: Path
) -> None:
    """Of much output the last bytes stay, and escaping them does not make them more."""
    script = "head -c 10000000 /dev/zero; echo; echo the error"

    done = await run_hook(transport, script, cwd=str(tmp_path), env=env, timeout=30)

    assert done.output.endswith("\\x00\nthe error\n")
    assert len(done.output.encode()) == HOOK_OUTPUT_LIMIT


async def test_a_timeout_ends_the_whole_tree(
    transport: LocalTransport, env: dict[str, str], tmp_path: Path
) -> None:
    """A hook over its time is ended with what it started, and what it said is kept."""
    script = "trap '' TERM; setsid sleep 1000 & echo begun; sleep 1000"

    done = await run_hook(transport, script, cwd=str(tmp_path), env=env, timeout=0.5, grace=0.2)

    assert done == HookResult(
        result=HookOutcome.TIMEOUT,
        seconds=done.seconds,
        status="ended after its limit of 0.5 s",
        output="begun\n",
    )
    assert 0.5 <= done.seconds < 60


async def test_what_a_hook_leaves_behind_is_ended(
    transport: LocalTransport, env: dict[str, str], tmp_path: Path
) -> None:
    """Processes in the background do not outlive a hook that succeeded, nor hold it up."""
    script = "setsid sleep 1000 & (setsid env -i sleep 1000 &) ; sleep 1000 & echo done"

    done = await run_hook(transport, script, cwd=str(tmp_path), env=env, timeout=30)

    assert (done.result, done.output) == (HookOutcome.OK, "done\n")


async def test_a_hook_that_cannot_start_has_failed(
    transport: LocalTransport, env: dict[str, str], tmp_path: Path
) -> None:
    """A missing directory or a script that is too long is a failure that says so."""
    missing = str(tmp_path / "missing")

    nowhere = await run_hook(transport, "true", cwd=missing, env=env, timeout=30)
    endless = await run_hook(transport, "#" * 200_000, cwd=str(tmp_path), env=env, timeout=30)

    for done, word in ((nowhere, missing), (endless, "too long")):
        assert replace(done, output="") == HookResult(
            result=HookOutcome.FAILED, seconds=done.seconds, status="not run", output=""
        )
        assert word in done.output


async def test_a_hook_whose_program_finds_no_memory_is_not_blamed(
    transport: LocalTransport, env: dict[str, str], tmp_path: Path
) -> None:
    """What the loader says for want of memory is a shortage, not the script's failure."""
    script = "ulimit -v 1000; exec /bin/ls"

    done = await run_hook(transport, script, cwd=str(tmp_path), env=env, timeout=30)

    assert (done.result, done.status) == (HookOutcome.FAILED, "exit 127")
    assert done.trouble is not None
    assert shortage_behind(done.trouble) is not None


@pytest.mark.parametrize(
    ("takes", "back_at", "result", "seconds"),
    [
        (25, 70, HookOutcome.OK, 25),
        (85, 70, HookOutcome.OK, 85),
        (math.inf, 70, HookOutcome.TIMEOUT, 90),
        (math.inf, 5, HookOutcome.TIMEOUT, 25),
    ],
)
async def test_without_a_link_a_hook_is_not_ended_for_its_time(
    autojump_clock: MockClock, takes: float, back_at: float, result: HookOutcome, seconds: float
) -> None:
    """It may have ended in time where it is not heard: with the new link its end is waited for."""
    host = FakeTransport({"hook": Does(seconds=takes)}, host="far", directories=["/w"])
    env = {COOKIE: "run-1"}
    ended = list[HookResult]()

    async def run() -> None:
        ended.append(await run_hook(host, "hook", cwd="/w", env=env, timeout=20.0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.sleep(1)
        host.lost_links.add("run-1", host)
        await trio.sleep(back_at - 1)
        host.lost_links.discard("run-1", host)

    ((done,),) = (ended,)
    assert (done.result, round(done.seconds)) == (result, seconds)
