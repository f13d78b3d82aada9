"""One simulated turn, in the order in which Kiro does things."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping

from sortie.kiro.simulator import actions
from sortie.kiro.simulator.arguments import Chat
from sortie.kiro.simulator.children import leave_child
from sortie.kiro.simulator.console import Console, filling
from sortie.kiro.simulator.directives import Directives, is_directive
from sortie.kiro.simulator.exchange import SUCCESS, Exchange, ToolUse
from sortie.kiro.simulator.keeping import NEWEST, Keeping, StoreTrouble, kiro_home
from sortie.kiro.simulator.store import record

_REDRAW = 0.2
_TITLE_LIMIT = 200
_BUILT_IN_AGENTS = ("default", "kiro_default")


def key_is_bad(key: str) -> bool:
    """Tell whether a key stands for an invalid or expired one."""
    return key == "invalid" or key.startswith("bad")


def wait_for_login(console: Console) -> None:
    """Do what Kiro does without a key: print a link and wait for ever."""
    console.print(
        b"\nOpen this URL: https://device.login.invalid/start?user_code=SIML-0000\r\n"
        b"Waiting for you to log in in the browser...\r\n"
    )
    wait_for_ever()


def wait_for_ever() -> None:
    while True:
        signal.pause()


class Turn:
    """A prompt, what it asks for, and where its effects go."""

    def __init__(
        self, chat: Chat, prompt: str, directives: Directives, environment: Mapping[str, str]
    ) -> None:
        self._chat = chat
        self._prompt = prompt
        self._do = directives
        self._environment = environment
        self._tools: list[ToolUse] = []
        self._started = time.monotonic()

    def run(self, console: Console, log: actions.Log) -> int:
        """Do the turn and return the exit status. Raises ActionError, OSError, StoreTrouble."""
        do = self._do
        key = self._environment.get("KIRO_API_KEY", "").strip()
        if not key:
            wait_for_login(console)
        console.mcp_warning()
        if self._chat.agent and not self._agent_exists(self._chat.agent):
            console.complain(f"error: no agent with name {self._chat.agent} found")
            return 4
        if do.auth_failure or key_is_bad(key):
            console.bad_key()
            return 0
        if do.child != "none":
            leave_child(do.child, self._environment.get("SORTIE_RUN_ID"), log)
        engine = self._engine()
        self._pass_time(console)
        if do.stderr:
            console.complain(do.stderr)
        if do.fail_first and actions.count_turn() < do.fail_first:
            console.complain("error: this is one of the first turns, which are to fail")
            return 1
        self._touch_files()
        if do.exit:
            console.complain(f"error: exit status {do.exit} was asked for")
            return do.exit
        answer = self._answer(console)
        if do.signal:
            os.kill(os.getpid(), do.signal)
        self._close(console, engine, answer)
        return 0

    def _agent_exists(self, name: str) -> bool:
        kiro = kiro_home(self._environment)
        return name in _BUILT_IN_AGENTS or any(
            os.path.isfile(os.path.join(folder, "agents", f"{name}.json"))
            for folder in (".kiro", kiro)
        )

    def _pass_time(self, console: Console) -> None:
        do = self._do
        if do.hang:
            wait_for_ever()
        time.sleep(do.silence)
        step, end = 0, time.monotonic() + do.delay
        while (left := end - time.monotonic()) > 0:
            console.progress(step)
            step += 1
            time.sleep(min(_REDRAW, left))
        if step:
            console.end_progress()

    def _touch_files(self) -> None:
        do = self._do
        if do.note:
            new = {"command": "append", "path": actions.NOTE_FILE, "new_str": self._title()}
            self._use(ToolUse("fs_write", new), lambda: actions.append_note(self._title()))
        if do.write:
            new = {"command": "create", "path": do.write, "file_text": actions.WRITTEN}
            self._use(ToolUse("fs_write", new), lambda: actions.write_file(do.write))
        if do.status:
            actions.write_status(do.status)
        if do.set_state:
            actions.set_state(do.set_state)

    def _use(self, use: ToolUse, deed: Callable[[], None]) -> None:
        use.status = self._do.tool_status
        if use.status == SUCCESS:
            deed()
        else:
            use.result = f"the tool use ended as {use.status}, as it was asked for"
        self._tools.append(use)

    def _answer(self, console: Console) -> str:
        do = self._do
        console.tool(do.tools)
        answer = self._said()
        console.answer(answer.replace("**", "\x1b[1m", 1).replace("**", "\x1b[22m", 1))
        for size, lines in ((do.output, True), (do.long_line, False)):
            if size:
                console.print(b"\n")
            for block in filling(size, lines=lines):
                console.print(block)
        return answer

    def _said(self) -> str:
        do = self._do
        if do.say:
            return do.say
        if do.recall:
            return "\n".join(["I remember:", *self._earlier_prompts()])
        noted = any(
            use.status == SUCCESS and use.args["command"] == "append" for use in self._tools
        )
        wrote = f"I added a note to `{actions.NOTE_FILE}`." if noted else "I changed nothing."
        return f"I have read **{self._title()}**.\n{wrote}"

    def _earlier_prompts(self) -> list[str]:
        """Return what was said before in the conversation that goes on."""
        from sortie.kiro.simulator.sessions import Sessions

        sessions, session = Sessions(self._environment), self._session
        if not session:
            return []
        if session == NEWEST:
            return sessions.prompts_of(sessions.newest(os.getcwd(), self._do.store))
        return sessions.prompts_of(sessions.find(session))

    @property
    def _session(self) -> str:
        if self._chat.resume_id is not None and not self._do.ignore_resume_id:
            return self._chat.resume_id
        return NEWEST if self._chat.resume else ""

    def _engine(self) -> str:
        """Return the engine of the turn: that of the conversation that was named."""
        if self._session in ("", NEWEST):
            return self._do.store
        from sortie.kiro.simulator.sessions import Sessions

        return Sessions(self._environment).own(self._session).engine

    def _close(self, console: Console, engine: str, answer: str) -> None:
        do = self._do
        exchange = Exchange(
            prompt=self._prompt, answer=answer, model=self._chat.model or "auto", spent=do.credits
        )
        exchange.tools, exchange.context_share = self._tools, do.context
        keeping = Keeping(self._environment, os.getcwd(), session=self._session)
        try:
            record(engine, keeping, exchange)
        except StoreTrouble as error:
            console.complain(f"warning: {error}")
        if not do.no_trailer:
            seconds = int(time.monotonic() - self._started)
            console.trailer(do.trailer_style, f"{do.credits:.10g}", seconds)

    def _title(self) -> str:
        """Return the first line of the prompt that says something."""
        for line in self._prompt.splitlines():
            if line.strip() and not is_directive(line):
                return line.strip()[:_TITLE_LIMIT]
        return "an empty prompt"
