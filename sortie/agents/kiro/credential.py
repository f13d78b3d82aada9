"""Confirm Kiro's credential before a session: present, and accepted by ``kiro-cli whoami``.

Without one ``chat`` starts a device login and never ends; with a bad one it exits 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import trio
from msgspec import Struct

from sortie.agents import SessionParams
from sortie.kiro.headless.arguments import KEY_NAME, WHOAMI
from sortie.lines import strip_escapes
from sortie.model import AgentError, ErrorKind, ProgramNotFound, TransportError, cut
from sortie.model.numbers import seconds_text
from sortie.model.secrets import redactor
from sortie.transports import Command, Exit
from sortie.transports.exit_shortage import exit_shortage

CREDENTIAL_LIFETIME = 60.0
"""Seconds for which a credential that passed is not asked for again."""

AUTHENTICATED = "Authenticated with API key"
AUTHENTICATION_FAILED = "Authentication failed."

_OUTPUT_LIMIT = 64 * 1024
_SHOWN = 300

_Asked = tuple[tuple[str, ...], bytes]


class _Trouble(Struct, frozen=True):
    """What is wrong with a credential, or with asking about it: then ``cause`` is why."""

    kind: ErrorKind
    message: str
    timed_out: bool = False
    cause: TransportError | None = None


class _CanaryAnswer(Struct, frozen=True):
    """The result of the canary with a number, and its time."""

    number: int
    at: float
    trouble: _Trouble | None


class CredentialCheck:
    """Runs canaries for all sessions of an adapter.

    Rule 1: at most one canary runs. A session that waited for it shares its answer, and runs one
    itself where that canary was cancelled or could not ask.
    Rule 2: only a passing answer is remembered. Rule 3: the key itself is not kept.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._one_at_a_time = trio.Lock()
        self._count = 0
        self._answers: dict[_Asked, _CanaryAnswer] = {}

    async def confirm(self, argv: tuple[str, ...], params: SessionParams) -> None:
        """Raise AgentError RESPONSE_ERROR unless the credential in ``params.env`` is good."""
        key = params.env.get(KEY_NAME, "").strip()
        if not key:
            raise AgentError(
                ErrorKind.RESPONSE_ERROR,
                f"{KEY_NAME} is not set; kiro-cli cannot run without a terminal unless it has one",
            )
        asked = (argv, hashlib.sha256(key.encode(errors="surrogateescape")).digest())
        earlier = self._count
        async with self._one_at_a_time:
            answer = self._answers.get(asked)
            if answer is None or not self._counts(answer, earlier):
                trouble = await _run_canary(argv, params)
                self._count += 1
                answer = _CanaryAnswer(self._count, self._clock(), trouble)
                self._answers[asked] = answer
        if (trouble := answer.trouble) is not None:
            error = AgentError(trouble.kind, trouble.message, timed_out=trouble.timed_out)
            raise error from trouble.cause

    def _counts(self, answer: _CanaryAnswer, earlier: int) -> bool:
        """Tell whether an answer counts for a session that came after ``earlier`` canaries."""
        if answer.trouble is None:
            return self._clock() - answer.at < CREDENTIAL_LIFETIME
        return answer.number > earlier and answer.trouble.cause is None


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
