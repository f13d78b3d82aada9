"""The end of a program's tree from outside of it, and what is said where that is not certain."""

from __future__ import annotations

import trio

from sortie.model import HostError, HostTrouble, ProcessesLeft, TransportError
from sortie.transports.remote.launch import RootProcess
from sortie.transports.remote.protocol import numbers_in
from sortie.transports.remote.questions import finish_body, namespaces_body
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.unconfirmed_runs import Remains

FINISH_BOUND = 15.0
"""Seconds for ending a tree over another channel, where its watchdog does not do it."""


async def end_tree(
    shell: Shell, launch: RemoteLaunch, root: RootProcess, remains: Remains | None, *, marked: bool
) -> list[int]:
    """End at once, over another channel, what is left of a program; return the pids that stay.

    ``remains`` tells of its namespace, where it has one. ``marked`` says whether its processes bear
    the mark of the launch. Raises HostError where that is not certain, and LeaseLost where a newer
    leader goes on with the program.
    """
    pid = root.identity.pid
    if remains is not None:
        body = namespaces_body([remains], grace=0.0)
    else:
        body = finish_body(launch, pid, root.ticks, marked=marked)
    question = ShellQuestion(
        attempt=f"end process {pid}",
        body=body,
        bound=FINISH_BOUND,
        urgent=True,
        fence=launch.ends_by,
    )
    try:
        with trio.fail_after(FINISH_BOUND):
            answer = await shell.ask(question)
    except trio.TooSlowError:
        raise unsure(
            shell.host, pid, f"host {shell.host} could not be asked in {FINISH_BOUND:g} s"
        ) from None
    except TransportError as error:
        raise unsure(shell.host, pid, str(error)) from error
    return numbers_in(answer.said.rpartition("|")[2])


def unsure(host: str, pid: int, reason: str) -> HostError:
    """Return the error for what may live on, for whatever reason: as after a lost link."""
    return HostError(
        HostTrouble.DROPPED,
        f"could not tell whether process {pid} on host {host} and what it started are gone:"
        f" {reason}",
    )


def still_there(host: str, pid: int, left: list[int]) -> ProcessesLeft:
    """Return the error for processes that have outlived SIGKILL."""
    return ProcessesLeft(
        f"could not end process {pid} on host {host} and what it started: these are still there"
        f" after SIGKILL: {', '.join(map(str, left))}; look at them with ps there",
        pids=frozenset(left),
    )
