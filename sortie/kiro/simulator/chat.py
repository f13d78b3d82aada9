"""One simulated turn, in the order in which Kiro does things."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping

from sortie.kiro.simulator import actions
from sortie.kiro.simulator.agent_file import Agent, AgentFileError, load_agent
from sortie.kiro.simulator.arguments import Chat
from sortie.kiro.simulator.children import leave_child
from sortie.kiro.simulator.console import Console, filling
from sortie.kiro.simulator.directives import Directives
from sortie.kiro.simulator.hooks import Hooks
from sortie.kiro.simulator.keeping import NEWEST, Keeping, StoreTrouble
from sortie.kiro.simulator.store import record
from sortie.kiro.simulator.work import Work

_ENGINE = "v1"
_REDRAW = 0.2


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
        self._started = time.monotonic()

    def run(self, console: Console, log: actions.Log) -> int:
        """Do the turn and return the exit status. Raises ActionError, OSError, StoreTrouble."""
        do = self._do
        key = self._environment.get("KIRO_API_KEY", "").strip()
        if not key and not do.login:
            wait_for_login(console)
        if not do.login:
            console.mcp_warning()
        try:
            agent = load_agent(self._chat.agent, os.getcwd(), self._environment)
        except AgentFileError as error:
            console.complain(f"error: {error}")
            return 4
        if self._chat.agent:
            log.write("agent", agent=agent.summary())
        if self._chat.require_mcp_startup and (
            missing := _missing_server(agent, self._environment)
        ):
            console.complain(f"error: the required MCP server {missing} did not start")
            return 3
        if do.auth_failure or key_is_bad(key):
            console.bad_key()
            return 0
        if do.child != "none":
            leave_child(do.child, self._environment.get("SORTIE_RUN_ID"), log)
        engine = self._engine()
        hooks = Hooks(agent.hooks, os.getcwd(), self._environment, console.warn)
        self._work = Work(self._prompt, do, agent, hooks)
        self._work.begin(hooks.spawned())
        self._pass_time(console)
        if do.stderr:
            console.complain(do.stderr)
        if do.fail:
            console.complain(f"error: {do.fail}")
            return 1
        if do.fail_first and actions.count_turn() < do.fail_first:
            console.complain("error: this is one of the first turns, which are to fail")
            return 1
        self._work.touch_files()
        if do.exit:
            console.complain(f"error: exit status {do.exit} was asked for")
            return do.exit
        answer = self._answer(console)
        if do.signal:
            os.kill(os.getpid(), do.signal)
        self._close(console, engine, answer)
        return 0

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

    def _answer(self, console: Console) -> str:
        do = self._do
        console.tool(do.tools)
        answer = self._work.answer(self._earlier_prompts)
        console.answer(answer.replace("**", "\x1b[1m", 1).replace("**", "\x1b[22m", 1))
        for size, lines in ((do.output, True), (do.long_line, False)):
            if size:
                console.print(b"\n")
            for block in filling(size, lines=lines):
                console.print(block)
        return answer

    def _earlier_prompts(self) -> list[str]:
        """Return what was said before in the conversation that goes on."""
        from sortie.kiro.simulator.sessions import Sessions

        sessions, session = Sessions(self._environment), self._session
        if not session:
            return []
        if session == NEWEST:
            return sessions.prompts_of(sessions.newest(os.getcwd(), self._do.store or _ENGINE))
        return sessions.prompts_of(sessions.find(session))

    @property
    def _session(self) -> str:
        if self._chat.resume_id is not None and not self._do.ignore_resume_id:
            return self._chat.resume_id
        return NEWEST if self._chat.resume else ""

    def _engine(self) -> str:
        """Return the engine of the turn: that of the conversation that was named."""
        if self._session in ("", NEWEST):
            return self._do.store or _ENGINE
        from sortie.kiro.simulator.sessions import Sessions

        return Sessions(self._environment).own(self._session).engine

    def _close(self, console: Console, engine: str, answer: str) -> None:
        do = self._do
        exchange = self._work.exchange(answer, self._chat.model)
        keeping = Keeping(self._environment, os.getcwd(), session=self._session)
        try:
            record(engine, keeping, exchange)
        except StoreTrouble as error:
            console.complain(f"warning: {error}")
        self._work.end()
        if not do.no_trailer:
            seconds = int(time.monotonic() - self._started)
            console.trailer(do.trailer_style, f"{do.credits:.10g}", seconds)


def _missing_server(agent: Agent, environment: Mapping[str, str]) -> str | None:
    """Return the name of an MCP server whose program cannot be found; none is ever started."""
    import shutil

    path = environment.get("PATH")
    for name, server in agent.mcp_servers.items():
        if "command" in server and shutil.which(server["command"], path=path) is None:
            return name
    return None
