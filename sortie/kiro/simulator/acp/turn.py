"""One prompt of a client, from its first update to its answer."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sortie.acp import values
from sortie.acp.wire import Result
from sortie.kiro.simulator import actions
from sortie.kiro.simulator.acp.engines import tell_used
from sortie.kiro.simulator.acp.faults import commit
from sortie.kiro.simulator.acp.link import Cancelled, Link
from sortie.kiro.simulator.acp.session import Session
from sortie.kiro.simulator.agent_file import ALIASES, matches
from sortie.kiro.simulator.children import leave_child
from sortie.kiro.simulator.console import Console, filling
from sortie.kiro.simulator.directives import Directives, read_directives
from sortie.kiro.simulator.exchange import SUCCESS, ToolUse
from sortie.kiro.simulator.keeping import ACP, Keeping, StoreTrouble
from sortie.kiro.simulator.store import record
from sortie.kiro.simulator.work import Screen, Work

_BEAT = 0.1
_TITLE_LIMIT = 200
_BAD_KEY = "Authentication failed. Your API key may be invalid or expired."
_KINDS = {"fs_write": "edit", "fs_read": "read", "execute_bash": "execute"}
_OPTIONS = (
    {"optionId": "allow_once", "kind": "allow_once", "name": "Yes"},
    {"optionId": "allow_always", "kind": "allow_always", "name": "Always"},
    {"optionId": "reject_once", "kind": "reject_once", "name": "No"},
)


class PromptFailed(Exception):
    """The prompt is answered with an error, whose message this is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a turn depends on beside its session; ``trusted`` names tools that need no question."""

    link: Link
    console: Console
    environment: Mapping[str, str]
    trusted: tuple[str, ...] = ()


class Turn(Screen):
    """A prompt of a session; ``run`` returns the answer to it."""

    def __init__(self, around: Surroundings, session: Session, prompt: str) -> None:
        self._around = around
        self._link = around.link
        self._session = session
        self._prompt = prompt
        self._started = time.monotonic()
        self.context_share: float | None = None

    def run(self) -> dict[str, Any]:
        """Do the turn in the session's directory.

        Raises PromptFailed, DirectiveError, ActionError, StoreTrouble, OSError and ClientGone.
        """
        do = read_directives(self._prompt, self._around.environment)
        if do.ignore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.chdir(self._session.directory)
        log = actions.Log(do.log, "acp", self._around.environment)
        log.write("start", prompt_bytes=len(self._prompt.encode()), session=self._session.id)
        self._link.turn = self._session.id
        try:
            stop = self._work(do, log)
        except Cancelled:
            stop = "cancelled"
        finally:
            self._link.turn = ""
        log.write("stop", status=stop)
        return {"stopReason": stop}

    def _work(self, do: Directives, log: actions.Log) -> str:
        self._fail_if_asked(do)
        hooks = self._session.hooks(self._around.environment, self._around.console.warn)
        work = Work(self._prompt, do, self._session.agent, hooks, self)
        work.begin(self._session.added)
        self._session.added = ""
        if do.child != "none":
            leave_child(do.child, self._around.environment.get("SORTIE_RUN_ID"), log)
        self._pass_time(do)
        if do.stderr:
            self._around.console.complain(do.stderr)
        commit(do.acp_fault, self._link, self._session.id, do.say)
        work.touch_files()
        if do.exit:
            self._around.console.complain(f"error: exit status {do.exit} was asked for")
            sys.stdout.flush()
            os._exit(do.exit)
        answer = work.answer(self._earlier)
        self._say(do, answer)
        if do.signal:
            os.kill(os.getpid(), do.signal)
        self._keep(do, work, answer)
        return do.acp_stop or "end_turn"

    def _fail_if_asked(self, do: Directives) -> None:
        key = self._around.environment.get("KIRO_API_KEY", "").strip()
        if do.auth_failure or key == "invalid" or key.startswith("bad"):
            raise PromptFailed(_BAD_KEY)
        if do.fail:
            raise PromptFailed(do.fail)
        if do.fail_first and actions.count_turn() < do.fail_first:
            raise PromptFailed("this is one of the first turns, which are to fail")

    def _pass_time(self, do: Directives) -> None:
        """Wait as long as was asked for, and show that it works where that is not to be silent."""
        if do.hang and do.acp_ignore_cancel:
            while True:
                time.sleep(3600)
        if do.hang:
            self._link.wait(None)
        self._link.wait(do.silence)
        end = time.monotonic() + do.delay
        while (left := end - time.monotonic()) > 0:
            self._update("agent_thought_chunk", content=_text("Thinking... "))
            self._link.wait(min(_BEAT, left))

    def _say(self, do: Directives, answer: str) -> None:
        for line in answer.splitlines(keepends=True):
            self._chunk(line)
        for size, lines in ((do.output, True), (do.long_line, False)):
            blocks = filling(size, lines=lines)
            if not lines:  # in one message
                blocks = iter([b"".join(blocks)])
            for block in blocks:
                if block:
                    self._chunk(block.decode())
                    self._link.wait(0)

    def _keep(self, do: Directives, work: Work, answer: str) -> None:
        exchange = work.exchange(answer, self._session.model)
        keeping = Keeping(
            self._around.environment, self._session.directory, made_by=ACP, session=self._session.id
        )
        try:
            record(do.store or self._session.engine, keeping, exchange)
        except StoreTrouble as error:
            self._around.console.complain(f"warning: {error}")
        work.end()
        if not do.no_trailer:
            milliseconds = int((time.monotonic() - self._started) * 1000)
            tell_used(self._link, self._session, exchange, milliseconds)
            self.context_share = exchange.context_share

    def _earlier(self) -> list[str]:
        """Return what was said before in this conversation."""
        from sortie.kiro.simulator.sessions import Sessions

        sessions = Sessions(self._around.environment)
        try:
            return sessions.prompts_of(sessions.find(self._session.id))
        except StoreTrouble:  # it is its first turn
            return []

    # What the client is shown

    def tool_began(self, use: ToolUse) -> None:
        """Tell of a tool."""
        self._update("tool_call", **_call(use), status="pending", rawInput=dict(use.args))

    def permits(self, use: ToolUse) -> bool:
        """Ask the client, unless the tool is trusted. Raises Cancelled and ClientGone."""
        trusted = {*self._around.trusted, *self._session.allowed}
        if any(matches(pattern, use.name) for pattern in trusted):
            return True
        call = {**_call(use), "status": "pending"}
        params = {"sessionId": self._session.id, "toolCall": call, "options": list(_OPTIONS)}
        answer = self._link.ask("session/request_permission", params)
        outcome = answer.value if isinstance(answer, Result) else {}
        chosen = values.text(outcome, "outcome", "optionId")
        if chosen == "allow_always":
            self._session.allowed.add(use.name)
        return chosen in ("allow_once", "allow_always")

    def tool_ended(self, use: ToolUse) -> None:
        """Tell what came of a tool."""
        content: list[dict[str, Any]] = [{"type": "content", "content": _text(use.result)}]
        if use.status == SUCCESS:
            new = str(use.args.get("new_str") or use.args.get("file_text"))
            path = os.path.abspath(str(use.args["path"]))
            content = [{"type": "diff", "path": path, "oldText": None, "newText": new}]
        status = "completed" if use.status == SUCCESS else "failed"
        self._update("tool_call_update", toolCallId=use.id, status=status, content=content)

    def _chunk(self, text: str) -> None:
        self._update("agent_message_chunk", content=_text(text))

    def _update(self, update: str, /, **body: Any) -> None:
        told = {"sessionUpdate": update, **body}
        self._link.tell("session/update", {"sessionId": self._session.id, "update": told})


def _call(use: ToolUse) -> dict[str, Any]:
    path = str(use.args["path"])
    return {
        "toolCallId": use.id,
        "title": f"{ALIASES.get(use.name, use.name)} {path}"[:_TITLE_LIMIT],
        "kind": _KINDS.get(use.name, "other"),
        "locations": [{"path": os.path.abspath(path)}],
        "_meta": {"kiro": {"toolName": use.name}},
    }


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
