"""A session begins, or is refused with a reason; whatever program stands in the agent's place."""

from __future__ import annotations

from collections.abc import Mapping

import trio
from msgspec import Struct

from sortie.agents import Agent
from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.testing.agent.check import check
from sortie.testing.agent.scenarios import Scenario
from sortie.testing.agent.subject import AgentRefusal, Subject, ending_text, refusal_of
from sortie.testing.checks import require

READ_TIMEOUT = 1.0
TURN_TIME = 1.0
"""Seconds that a program has which is not the agent, to begin a session and in a turn."""

_ANY = Scenario(prompt="Answer OK.")

OTHER_PROGRAMS: Mapping[str, tuple[str, str]] = {
    "exits-with-0": ("says nothing and exits with 0", "exit 0"),
    "exits-with-1": ("complains and exits with 1", "echo broken >&2; exit 1"),
    "exits-with-127": ("is not there: its shell exits with 127", "exit 127"),
    "is-silent": ("never says anything", "exec sleep 600"),
    "closes-its-output": ("closes its output and lives on", "exec >&- 2>&-; exec sleep 600"),
    "hears-no-signal": ("does not die by SIGTERM", "trap '' TERM; while :; do sleep 1; done"),
    "writes-noise": ("writes 3 MB of random bytes", "head -c 3000000 /dev/urandom"),
    "writes-no-line-end": (
        "writes 11 MB without the end of a line, and lives on",
        "head -c 11000000 /dev/zero; exec sleep 600",
    ),
    "speaks-other-json": (
        "writes JSON that belongs to no protocol",
        "printf '%s\\n' null '[]' '{}' '\"x\"' 1e999 '{\"id\":0}' '{\"id\":1,\"result\":null}'"
        ' \'{"id":{},"error":7}\' \'{"type":[]}\' \'{"type":"result"}\' \'{"method":3}\'',
    ),
    "leaves-a-process": (
        "leaves a process in a session of its own",
        "(setsid sleep 600 >/dev/null 2>&1 &) ; exit 1",
    ),
}
"""What stands in the place of the agent's program, and the shell's words for it."""


@check("start.missing-workspace", "a session needs an existing, absolute directory")
async def missing_workspace(subject: Subject) -> None:
    """Anything else is refused before a program is looked for."""
    file = f"{subject.workspace}/a-file"
    await subject.transport.files.write_file(subject.workspace, "a-file", b"")
    for workspace in ("", "relative", f"{subject.workspace}/not-there", file):
        end = await subject.attempt(_ANY, workspace=workspace)
        require(
            isinstance(end, AgentRefusal) and end.kind is ErrorKind.INVALID_WORKSPACE_CWD,
            f"with the workspace {workspace!r}: {ending_text(end)}",
        )


@check("start.missing-program", "a program that is not there is agent_not_found")
async def missing_program(subject: Subject) -> None:
    """It is refused as the session begins, before a turn is recorded."""
    agent = subject.agent(f"{subject.workspace}/no-such-program")
    end = await subject.attempt(_ANY, agent)
    require(
        isinstance(end, AgentRefusal) and end.kind is ErrorKind.AGENT_NOT_FOUND,
        f"it ended as {ending_text(end)}",
    )


@check("start.stop", "a session that is cancelled while it begins leaves nothing behind")
async def stop(subject: Subject) -> None:
    """The program never answers, and the session is cancelled after half a second."""
    agent = subject.agent(("/bin/sh", "-c", OTHER_PROGRAMS["is-silent"][1]))
    with subject.within(subject.stop_bound + 0.5, "the stop"):
        with trio.move_on_after(0.5):
            async with subject.session(agent=agent) as session:
                await subject.turn(session, _ANY.prompt)
    await subject.require_no_process_left("after the stop")


class _OtherProgram(Struct, frozen=True):
    """Another program in the agent's place."""

    script: str

    async def __call__(self, subject: Subject) -> None:
        """It refuses the session, or no turn completes; in time, and no process is left."""
        agent = subject.agent(("/bin/sh", "-c", self.script))
        had, end = trio.Event(), None
        bound = READ_TIMEOUT + TURN_TIME + 2 * subject.stop_bound
        with subject.within(bound, "its session"), trio.CancelScope() as scope:
            scope.deadline = trio.current_time() + READ_TIMEOUT + subject.stop_bound
            end = await self._life(subject, agent, scope, had)
        late = scope.cancel_called and not had.is_set()
        require(not late, "a session was neither had nor refused within agent.read_timeout_ms")
        completed = isinstance(end, TurnResult) and end.outcome is TurnOutcome.COMPLETED
        require(not completed, "a turn was completed by a program that did nothing")
        await subject.require_no_process_left("after the session")

    async def _life(
        self, subject: Subject, agent: Agent, scope: trio.CancelScope, had: trio.Event
    ) -> TurnResult | AgentRefusal:
        """Return how a session or its turn ended; ``had`` tells that one began in time."""
        try:
            async with subject.session(_ANY, agent=agent, read_timeout=READ_TIMEOUT) as session:
                if not scope.cancel_called:
                    had.set()
                scope.deadline = trio.current_time() + TURN_TIME
                result, _ = await subject.turn(session, _ANY.prompt)
            return result
        except Exception as error:
            return refusal_of(error)


for _name, (_what, _script) in OTHER_PROGRAMS.items():
    promise = f"nothing completes if the program {_what}"
    check(f"program.{_name}", promise)(_OtherProgram(_script))
