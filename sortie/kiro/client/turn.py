"""One prompt to kiro-cli, from the launch to its messages."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from sortie.kiro.client.agent_file import AgentFile, agent_content
from sortie.kiro.client.errors import (
    AuthenticationError,
    CLIConnectionError,
    CLINotFoundError,
    OptionError,
    SessionNotFoundError,
    TurnTimeoutError,
)
from sortie.kiro.client.evidence import Bookmark, Evidence, bookmark, find_evidence, messages_of
from sortie.kiro.client.messages import AssistantMessage, Message, ResultMessage, TextBlock
from sortie.kiro.client.options import (
    KiroAgentOptions,
    chat_options,
    directory_of,
    environment_of,
)
from sortie.kiro.client.outcome import find_outcome, said_on
from sortie.kiro.client.process import KiroExit, KiroLaunch, KiroProcess
from sortie.kiro.client.sessions import KeptConversations, check_session, is_newest
from sortie.kiro.client.waits import Waits
from sortie.kiro.conversations.records import modified_files
from sortie.kiro.headless.arguments import KEY_NAME, WHOAMI, chat
from sortie.kiro.headless.trailer import Trailer
from sortie.kiro.headless.transcript import answers
from sortie.model.secrets import redactor, unchanged

DEFAULT_PROGRAM = "kiro-cli"

_LIMIT = 15.0  # seconds


def find_program(cli_path: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> str:
    """Return the absolute path of kiro-cli: ``cli_path``, or a name on PATH.

    Raises CLINotFoundError. kiro-cli is not part of this package.
    """
    named = os.path.expanduser(os.fspath(cli_path)) if cli_path is not None else DEFAULT_PROGRAM
    found = shutil.which(named, path=environment.get("PATH", os.defpath)) if named else None
    if found is not None:
        return os.path.abspath(found)
    if cli_path is None:
        raise CLINotFoundError(
            f"there is no {DEFAULT_PROGRAM} on PATH; install it (https://kiro.dev/cli), or name it"
            " by cli_path"
        )
    missing = "is not executable" if os.path.isfile(named) else "does not exist"
    if os.sep not in named:
        missing = "is not on PATH"
    raise CLINotFoundError(f"cli_path: {named!r} {missing}")


def has_key(environment: Mapping[str, str]) -> bool:
    """Tell whether there is a key; a bad one is told by the turn itself."""
    return bool(environment.get(KEY_NAME, "").strip())


class LoginCheck:
    """Asks ``kiro-cli whoami`` whether there is a login. Raises as ``KiroProcess`` does."""

    def __init__(self, program: str, launch: KiroLaunch) -> None:
        asked = replace(launch, argv=(program, *WHOAMI), stdin=None, limit=_LIMIT)
        self.process = KiroProcess(asked)

    def run(self) -> Waits[None]:
        """Raise AuthenticationError where there is none."""
        try:
            finished = yield from self.process.run()
        except TurnTimeoutError as exc:
            raise AuthenticationError(
                f"{KEY_NAME} is not set, and `kiro-cli whoami` did not answer within {_LIMIT:g} s"
            ) from exc
        if finished.status not in (0, None):
            said = said_on(finished.stderr, unchanged)
            raise AuthenticationError(
                f"{KEY_NAME} is not set, and nobody is logged in (`kiro-cli login`)"
                f"{f': {said}' if said else ''}",
                finished.status,
            )


_MCP_DISABLED = b"MCP functionality disabled"

_log = logging.getLogger("sortie.kiro")


class Continuation(Struct, frozen=True, kw_only=True):
    """The conversation that a turn resumes: the one with an id, or the newest of the directory.

    ``named``: the caller has given the id; otherwise it is the conversation of the last turn.
    """

    session_id: str | None = None
    named: bool = False


class Turn:
    """A turn: ``launch``, ``finish``, and, whatever happened, ``stop``.

    Rule: no process and no file of the turn outlives ``stop`` or ``kill``.
    """

    def __init__(
        self, prompt: str, options: KiroAgentOptions, continuation: Continuation | None
    ) -> None:
        self._prompt = prompt
        self._options = options
        self._continuation = continuation
        self._directory = directory_of(options)
        self._environment = environment_of(options)
        self._kept = KeptConversations(self._directory, self._environment)
        self._process: KiroProcess | None = None
        self._agent_file: AgentFile | None = None
        self._before = Bookmark((), 0)
        self._wanted: str | None = None
        self._stderr = b""

    def run(self) -> Waits[list[Message]]:
        """Do the whole of it but ``stop``."""
        yield from self.launch()
        return (yield from self.finish())

    def launch(self) -> Waits[None]:
        """Start kiro-cli.

        Raises CLINotFoundError, CLIConnectionError, AuthenticationError, SessionNotFoundError.
        """
        options = self._options
        program = find_program(options.cli_path, self._environment)
        base = KiroLaunch(
            argv=(program,),
            cwd=self._directory,
            environment=self._environment,
            limit=options.timeout,
            grace=options.stop_grace,
        )
        if not has_key(self._environment):
            check = LoginCheck(program, base)
            self._process = check.process
            yield from check.run()
        resume = yield from self._resume()
        self._before = yield from bookmark(self._kept)
        invocation = chat(
            chat_options(options, self._write_agent_file()), self._prompt, resume=resume
        )
        argv = (program, *invocation.arguments)
        launch = replace(base, argv=argv, stdin=invocation.stdin)
        self._process = KiroProcess(launch, self._watch_stderr)

    def finish(self) -> Waits[list[Message]]:
        """Wait for its end and return what was said and done, the ResultMessage last.

        Raises what a failed turn raises; see docs/kiro-client.md.
        """
        if self._process is None:
            raise CLIConnectionError("the turn was not launched")
        finished = yield from self._process.run()
        self._remove_agent_file()
        if said := said_on(finished.stderr, self._redact):
            _log.info("kiro-cli said: %s", said)
        trailer = find_outcome(finished, self._redact)
        evidence = yield from find_evidence(self._kept, self._before, self._prompt)
        if evidence is not None and self._wanted not in (None, evidence.session_id):
            raise SessionNotFoundError(
                f"kiro-cli did not go on with session {self._wanted}, but with"
                f" {evidence.session_id}: another program has begun that one meanwhile, or this"
                " version ignores --resume-id for its store"
            )
        return [*_said(finished, evidence), _result(trailer, evidence)]

    def stop(self) -> Waits[None]:
        """End its processes and remove its file. Idempotent."""
        if self._process is not None:
            yield from self._process.stop()
        self._remove_agent_file()

    def kill(self) -> None:
        """Do what ``stop`` does, without waiting."""
        if self._process is not None:
            self._process.kill()
        self._remove_agent_file()

    def _resume(self) -> Waits[bool | str]:
        """Return how to name the conversation to go on with.

        ``--resume`` is what every version does; ``--resume-id`` only where another is newer.
        """
        if self._continuation is None:
            return False
        wanted = self._wanted = self._continuation.session_id
        if wanted is None:
            return True
        try:
            if self._continuation.named:
                yield from check_session(self._kept, wanted)
            newest = yield from is_newest(self._kept, wanted)
        except CLIConnectionError:
            if self._continuation.named:
                raise
            newest = True  # a store that cannot be read is no reason to give up
        return newest or wanted

    def _write_agent_file(self) -> str | None:
        options = self._options
        if options.system_prompt is None and not options.mcp_servers:
            return None
        content = agent_content(options.system_prompt, options.mcp_servers)
        self._agent_file = AgentFile(self._environment, content)
        return self._agent_file.name

    def _remove_agent_file(self) -> None:
        if self._agent_file is not None:
            self._agent_file.remove()

    def _watch_stderr(self, chunk: bytes) -> None:
        """Raise OptionError as soon as Kiro says that it starts no MCP server."""
        if self._options.mcp_servers:
            self._stderr = self._stderr[-len(_MCP_DISABLED) :] + chunk
            if _MCP_DISABLED in self._stderr:
                raise OptionError(
                    "mcp_servers: kiro-cli has turned MCP off, as it does under an API key; log in"
                    f" with `kiro-cli login` and unset {KEY_NAME}, or leave them out",
                    "mcp_servers",
                )

    def _redact(self, text: str) -> str:
        servers = (self._options.mcp_servers or {}).values()
        told = [server.get(key, {}) for server in servers for key in ("env", "headers")]
        hidden = [str(value) for each in told for value in each.values()]
        return redactor([self._environment.get(KEY_NAME, "").strip(), *hidden])(text)


def _said(finished: KiroExit, evidence: Evidence | None) -> list[Message]:
    """Return what was said: as the store has it, else as it was printed."""
    if evidence is not None:
        kept = list(messages_of(evidence.records))
        if any(isinstance(message, AssistantMessage) and message.text for message in kept):
            return kept
    else:
        kept = []
    printed = [AssistantMessage(content=[TextBlock(text=t)]) for t in answers(finished.stdout)]
    return [*kept, *printed]


def _result(trailer: Trailer, evidence: Evidence | None) -> ResultMessage:
    return ResultMessage(
        credits=trailer.credits,
        seconds=trailer.seconds,
        session_id=None if evidence is None else evidence.session_id,
        model=None if evidence is None else evidence.model,
        files_modified=() if evidence is None else modified_files(evidence.records),
    )
