"""Confirm Kiro's credential before a session: present, and accepted by ``kiro-cli whoami``.

Without one ``chat`` starts a device login and never ends; with a bad one it exits 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import field

import trio

from sortie.agents import SessionParams
from sortie.agents.kiro.settings import KEY_NAME
from sortie.dataclass import dataclass
from sortie.kiro.headless.arguments import WHOAMI
from sortie.lines import strip_escapes
from sortie.model import AgentError, ErrorKind, ProgramNotFound, TransportError, cut
from sortie.model.numbers import seconds_text
from sortie.model.secrets import redactor
from sortie.transports import Command, Exit
from sortie.transports.exit_shortage import exit_shortage

REMEMBERED = 60.0
"""Seconds for which a credential that passed is not asked for again."""

AUTHENTICATED = "Authenticated with API key"
AUTHENTICATION_FAILED = "Authentication failed."

_OUTPUT_LIMIT = 64 * 1024
_SHOWN = 300

_Asked = tuple[tuple[str, ...], bytes]


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What is wrong with a credential, or with asking about it: then ``cause`` is why."""

    kind: ErrorKind
    message: str
    timed_out: bool = False
    cause: TransportError | None = None


@dataclass(slots=True)
class _Asking:
    """A canary under way; ``answered`` stays False where the task that ran it was cancelled."""

    done: trio.Event = field(default_factory=trio.Event)
    answered: bool = False
    trouble: _Trouble | None = None


class CredentialCheck:
    """Runs canaries for all sessions of an adapter.

    Rule 1: for one program and key at most one canary runs; whoever comes meanwhile shares its
    answer, and asks itself where that one was cancelled or could not ask.
    Rule 2: only a passing answer is remembered. Rule 3: the key itself is not kept.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._passed: dict[_Asked, float] = {}
        self._asking: dict[_Asked, _Asking] = {}

    async def confirm(self, argv: tuple[str, ...], params: SessionParams) -> None:
        """Raise AgentError RESPONSE_ERROR unless the credential in ``params.env`` is good."""
        key = params.env.get(KEY_NAME, "").strip()
        if not key:
            raise AgentError(
                ErrorKind.RESPONSE_ERROR,
                f"{KEY_NAME} is not set; kiro-cli cannot run without a terminal unless it has one",
            )
        asked = (argv, hashlib.sha256(key.encode(errors="surrogateescape")).digest())
        while not self._is_remembered(asked):
            asking = self._asking.get(asked)
            if asking is None:
                await self._ask(asked, params)
                return
            await asking.done.wait()
            if asking.answered and (asking.trouble is None or asking.trouble.cause is None):
                _raise(asking.trouble)
                return

    def _is_remembered(self, asked: _Asked) -> bool:
        passed_at = self._passed.get(asked)
        return passed_at is not None and self._clock() - passed_at < REMEMBERED

    async def _ask(self, asked: _Asked, params: SessionParams) -> None:
        asking = self._asking[asked] = _Asking()
        try:
            asking.trouble = await _run_canary(asked[0], params)
            asking.answered = True
            if asking.trouble is None:
                self._passed[asked] = self._clock()
        finally:
            del self._asking[asked]
            asking.done.set()
        _raise(asking.trouble)


def _raise(trouble: _Trouble | None) -> None:
    if trouble is not None:
        error = AgentError(trouble.kind, trouble.message, timed_out=trouble.timed_out)
        raise error from trouble.cause


async def _run_canary(argv: tuple[str, ...], params: SessionParams) -> _Trouble | None:
    """Run ``whoami`` and return what is wrong, if anything."""
    command = Command(
        argv=(*argv, *WHOAMI), cwd=params.workspace, env=params.env, grace=params.stop_grace
    )
    output = bytearray()
    end = Exit()
    with trio.move_on_after(params.read_timeout) as limit:
        try:
            async with params.transport.process(command) as process:
                async for _, chunk in process.output():
                    output += chunk[: _OUTPUT_LIMIT - len(output)]
                end = await process.wait()
        except ProgramNotFound as error:
            return _Trouble(ErrorKind.AGENT_NOT_FOUND, f"the agent's program is gone: {error}")
        except TransportError as error:
            message = f"could not run `kiro-cli whoami`: {error}"
            return _Trouble(ErrorKind.RESPONSE_ERROR, message, cause=error)
    text = redactor([params.env[KEY_NAME].strip()])(output.decode(errors="replace"))
    if limit.cancelled_caught:
        late = f"`kiro-cli whoami` did not answer within {seconds_text(params.read_timeout)}"
        said = cut(" ".join(strip_escapes(text).split()), _SHOWN)
        late = f"{late} (agent.read_timeout_ms)" + (f"; it said: {said}" if said else "")
        return _Trouble(ErrorKind.RESPONSE_ERROR, late, timed_out=True)
    if shortage := exit_shortage("`kiro-cli whoami`", params.transport.host, end, text):
        return _Trouble(ErrorKind.RESPONSE_ERROR, str(shortage), cause=shortage)
    problem = credential_problem(end, text)
    return None if problem is None else _Trouble(ErrorKind.RESPONSE_ERROR, problem)


def credential_problem(end: Exit, output: str) -> str | None:
    """Tell what is wrong with the credential; None where it is good.

    ``output`` is stdout and stderr together, the key already taken out. An exit status of 0 is not
    enough: the output must confirm the key.
    """
    text = " ".join(strip_escapes(output).split())
    shown = cut(text, _SHOWN) or "no output"
    if AUTHENTICATION_FAILED in text:
        return "KIRO_API_KEY is invalid or expired; make a new key"
    if end.signal is not None:
        return f"`kiro-cli whoami` was ended by signal {end.signal}: {shown}"
    if end.status != 0:
        return f"`kiro-cli whoami` exited with status {end.status}: {shown}"
    if AUTHENTICATED not in text:
        return f"`kiro-cli whoami` did not confirm KIRO_API_KEY: {shown}"
    return None
