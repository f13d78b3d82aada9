"""A process that is owned by something that is entered and left, such as an agent's session."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio

from sortie.transports import Command, Exit, Process, Transport
from tests.contract.transport.launching import Launch
from tests.transports.leftovers import is_alive

READY = "echo ready; exec sleep 1000"
SILENT = "exec sleep 1000"


@asynccontextmanager
async def session(transport: Transport, command: Command) -> AsyncIterator[Process]:
    """Own a process; entered when it has said something."""
    async with transport.process(command) as process:
        await anext(process.output())
        yield process


async def check_scopes() -> None:
    """See that this task is cancelled by nobody, and that it can open and leave scopes."""
    assert trio.current_effective_deadline() == math.inf
    with trio.move_on_after(0) as passed:
        await trio.sleep_forever()
    assert passed.cancelled_caught
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)


async def test_a_deadline_over_the_entering_can_be_lifted(
    transport: Transport, launch: Launch
) -> None:
    """The process lives on beyond it, and the scopes of the task are as before."""
    with trio.CancelScope(deadline=trio.current_time() + 30) as entering:
        async with session(transport, launch.sh(READY)) as process:
            entering.deadline = math.inf
            assert trio.current_effective_deadline() == math.inf
            entering.deadline = trio.current_time()  # over, and lifted before anybody looks
            entering.deadline = math.inf
            await trio.sleep(0.05)
            alive = is_alive(process.identity.pid)
        await check_scopes()

    assert not entering.cancelled_caught
    assert alive
    assert not is_alive(process.identity.pid)
    await check_scopes()


async def test_a_deadline_over_the_entering_ends_the_process(
    transport: Transport, launch: Launch, cookie: str
) -> None:
    """One that says nothing is gone when the deadline has passed; the ``cookie`` checks that."""
    entered = False

    with trio.CancelScope(deadline=trio.current_time() + 1) as entering:
        async with session(transport, launch.sh(SILENT)):
            entered = True

    assert entering.cancelled_caught
    assert not entered
    await check_scopes()


async def test_an_exit_stack_may_own_processes(transport: Transport, launch: Launch) -> None:
    """They are ended when it is left, the last first, also where it is left by an error."""
    with pytest.raises(LookupError, match=r"^mine$"):
        async with AsyncExitStack() as stack:
            stack.enter_context(trio.CancelScope())
            first = await stack.enter_async_context(transport.process(launch.sh(READY)))
            second = await stack.enter_async_context(transport.process(launch.sh(READY)))
            async with AsyncExitStack() as turn:
                third = await turn.enter_async_context(transport.process(launch.sh(READY)))
                moved = turn.pop_all()
            alive = [is_alive(process.identity.pid) for process in (first, second, third)]
            await moved.aclose()
            left = [is_alive(process.identity.pid) for process in (first, second, third)]
            raise LookupError("mine")

    assert (alive, left) == ([True] * 3, [True, True, False])
    for process in (first, second, third):
        assert await process.wait() == Exit(signal=15, by_us=True)
    await check_scopes()


async def test_what_is_ended_as_it_begins_hears_of_it(transport: Transport, launch: Launch) -> None:
    """SIGTERM reaches what becomes the program, also while it prepares for that."""
    ends: list[Exit] = []

    async def end_at_once() -> None:
        async with transport.process(launch.sh(READY, grace=20)) as process:
            pass
        ends.append(await process.wait())

    for _ in range(4):
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(end_at_once)

    assert ends == [Exit(signal=15, by_us=True)] * 16
