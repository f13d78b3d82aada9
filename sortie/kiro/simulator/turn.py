"""One simulated turn, in the order in which Kiro does things."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from argparse import Namespace
from collections.abc import Mapping

from sortie.kiro.places import KiroPlaces
from sortie.kiro.simulator import actions
from sortie.kiro.simulator.actions import ActionError, Log
from sortie.kiro.simulator.console import Console, filling
from sortie.kiro.simulator.directives import Directives, is_directive
from sortie.kiro.simulator.exchange import NEWEST, Exchange, SimulatedStoreError, SimulatedToolUse

LIFETIME = 600
"""Seconds after which a child ends by itself."""

_ORPHANS = ("double_fork", "cleared", "overwritten")
_ENVIRONMENT = 47  # where it begins and ends in memory, in /proc/self/stat behind the name; proc(5)


def leave_child(kind: str, run_id: str | None, log: Log) -> None:
    """Start a process that outlives this one.

    ``plain`` stays in the group with its output closed, ``hold_stdout`` keeps stdout and stderr
    open, ``setsid`` has a session of its own, ``double_fork`` has one and has lost its parent;
    ``cleared`` is a program with an empty environment besides, and ``overwritten`` has replaced
    its own in place, as servers do that show a title. Raises ActionError without a run id, by which
    a daemon would find and end the child.
    """
    if not run_id:
        raise ActionError(f"child={kind}: SORTIE_RUN_ID is not set, so it would never be ended")
    child = os.fork()
    if child == 0:  # pragma: no cover - a forked process reports no coverage
        _live(kind, log)
    if kind in _ORPHANS:
        os.waitpid(child, 0)


def _live(kind: str, log: Log) -> None:  # pragma: no cover - a forked process
    try:
        if kind == "setsid" or kind in _ORPHANS:
            os.setsid()
        if kind in _ORPHANS and os.fork():
            os._exit(0)
        if kind != "hold_stdout":
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)
        if kind == "overwritten":
            _overwrite_environment()
        log.write("child", child_pid=os.getpid(), kind=kind)
        if kind == "cleared":
            os.execve("/bin/sh", ["sh", "-c", f"exec sleep {LIFETIME}"], {})
        time.sleep(LIFETIME)
    finally:
        os._exit(0)


def _overwrite_environment() -> None:  # pragma: no cover - a forked process
    """Write over what others see as the environment; does nothing where there is no /proc."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return
    begin, end = int(fields[_ENVIRONMENT]), int(fields[_ENVIRONMENT + 1])
    ctypes.memset(begin, 0, end - begin)


_REDRAW = 0.2
_TITLE_LIMIT = 200
_ASKS_FOR_DONE = "write the word done to the file .sortie/status"
_BUILT_IN_AGENTS = (None, "default", "kiro_default")


def key_is_bad(key: str) -> bool:
    """Tell whether a key stands for an invalid or expired one."""
    return key == "invalid" or key.startswith("bad")


class SimulatedTurn:
    """A prompt, what it asks for, and where its effects go."""

    def __init__(
        self, chat: Namespace, prompt: str, directives: Directives, environment: Mapping[str, str]
    ) -> None:
        self._chat = chat
        self._do = directives
        self._environment = environment
        self._places = KiroPlaces.of(environment)
        self._started = time.monotonic()
        self._called: list[str] = []
        self._exchange = Exchange(
            directory=os.getcwd(),
            session=chat.resume_id or (NEWEST if chat.resume else ""),
            prompt=prompt,
            model=chat.model or "auto",
            spent=directives.credits,
        )

    def run(self, console: Console, log: actions.Log) -> int:
        """Do the turn and return the exit status. Raises ActionError, StoreError and OSError."""
        do = self._do
        key = self._environment.get("KIRO_API_KEY", "").strip()
        if not key and not do.login:
            console.print(
                b"\nOpen this URL: https://device.login.invalid/start?user_code=SIML-0000\r\n"
                b"Waiting for you to log in in the browser...\r\n"
            )
            _wait_for_ever()
        if not do.login:
            console.mcp_warning()
        if self._agent_file() is None and self._chat.agent not in _BUILT_IN_AGENTS:
            console.complain(f"error: no agent with name {self._chat.agent} found")
            return 4
        if do.auth_failure or key_is_bad(key):
            console.bad_key()
            return 0
        if do.child != "none":
            leave_child(do.child, self._environment.get("SORTIE_RUN_ID"), log)
        if self._chat.resume_id is not None:
            self._require_session(self._chat.resume_id)
        self._pass_time(console)
        if do.stderr:
            console.complain(do.stderr)
        if do.fail_first and actions.count_turn() < do.fail_first:
            console.complain("error: this is one of the first turns, which are to fail")
            return 1
        self._touch_files()
        if not self._call_tools(console):
            return 1
        if do.exit:
            console.complain(f"error: exit status {do.exit} was asked for")
            return do.exit
        self._answer(console)
        if do.signal:
            os.kill(os.getpid(), do.signal)
        try:
            self._store()
        except (SimulatedStoreError, OSError, ValueError, KeyError) as error:
            console.complain(f"warning: the conversation could not be kept: {error}")
        if not do.no_trailer:
            console.trailer(f"{do.credits:.10g}", int(time.monotonic() - self._started))
            if _ASKS_FOR_DONE in self._exchange.prompt and not self._has_said_how_it_stands:
                actions.write_status("done")
        return 0

    def _agent_file(self) -> str | None:
        """Return the file of the agent that was asked for, None where there is none."""
        folders = (".kiro", os.path.dirname(self._places.sessions))
        paths = [os.path.join(f, "agents", f"{self._chat.agent}.json") for f in folders]
        return next(filter(os.path.isfile, paths), None)

    def _pass_time(self, console: Console) -> None:
        do = self._do
        if do.hang:
            _wait_for_ever()
        time.sleep(do.silence)
        step, end = 0, time.monotonic() + do.delay
        while (left := end - time.monotonic()) > 0:
            console.progress(step)
            step += 1
            time.sleep(min(_REDRAW, left))
        if step:
            console.end_progress()

    def _touch_files(self) -> None:
        do, tools = self._do, self._exchange.tools
        if do.note:
            new = {"command": "append", "path": actions.NOTE_FILE, "new_str": self._title}
            tools.append(SimulatedToolUse("fs_write", new))
            actions.append_note(self._title)
        if do.write:
            new = {
                "command": "create",
                "path": do.write.partition(" ")[0],
                "file_text": actions.FILE_CONTENT,
            }
            tools.append(SimulatedToolUse("fs_write", new))
            actions.write_file(do.write)
        if do.status:
            actions.write_status(do.status)
        if do.set_state:
            actions.set_state(do.set_state)

    def _call_tools(self, console: Console) -> bool:
        """Call tools of Sortie's; False where the turn ends because that is not trusted."""
        if not self._do.call:
            return True
        # Imported here: few turns need it, and every turn would start more slowly.
        from sortie.kiro.simulator import shell_tool

        agent = shell_tool.read_agent(self._agent_file())
        for call in self._do.call:
            prompts = [self._exchange.prompt, *self._earlier_prompts()]
            command = shell_tool.command_of_call(call, prompts)
            if command is None:
                raise ActionError(f"call={call}: no prompt tells of tools in this directory")
            if shell_tool.may_run(command, self._chat, agent):
                said, failed = shell_tool.run(command)
            elif self._do.untrusted == "exit":
                console.complain(f"error: {shell_tool.REFUSAL}")
                return False
            else:
                said, failed = shell_tool.REFUSAL, True
            use = SimulatedToolUse(shell_tool.NAME, {"command": command}, said, failed=failed)
            self._exchange.tools.append(use)
            self._called.append(f"{call.partition(' ')[0]}: {said.strip()}")
        return True

    def _answer(self, console: Console) -> None:
        do = self._do
        console.tool(do.tools)
        wrote = f"I added a note to `{actions.NOTE_FILE}`." if do.note else "I changed nothing."
        answer = do.say or f"I have read **{self._title}**.\n{wrote}"
        if do.recall:
            answer = "\n".join(["I remember:", *self._earlier_prompts()])
        answer = "\n".join([answer, *self._called])
        self._exchange.answer = answer
        console.answer(answer.replace("**", "\x1b[1m", 1).replace("**", "\x1b[22m", 1))
        for size, lines in ((do.output, True), (do.long_line, False)):
            if size:
                console.print(b"\n")
            for block in filling(size, lines=lines):
                console.print(block)

    @property
    def _has_said_how_it_stands(self) -> bool:
        by_tool = any(call.partition(" ")[0] in ("set_status", "ask") for call in self._do.call)
        return bool(self._do.status) or by_tool

    @property
    def _title(self) -> str:
        """The first line of the prompt that is neither empty nor a directive."""
        for line in self._exchange.prompt.splitlines():
            if line.strip() and not is_directive(line):
                return line.strip()[:_TITLE_LIMIT]
        return "an empty prompt"

    def _earlier_prompts(self) -> list[str]:
        """Return the earlier prompts of the conversation that this turn continues."""
        # Imported here: few turns need it, and every turn would start more slowly.
        from sortie.kiro.conversations import ConversationStores
        from sortie.kiro.conversations.records import prompts

        stores, session = ConversationStores(self._places), self._exchange.session
        if not session:
            return []
        for summary in stores.summaries(self._exchange.directory):
            if summary.engine == self._do.store and session in (NEWEST, summary.id):
                return list(prompts(stores.load(summary).records))
        return []

    def _require_session(self, identity: str) -> None:
        """Raise StoreError where no conversation has this id; else use the store that has it."""
        from sortie.kiro.conversations import ConversationStores

        found = ConversationStores(self._places).find(identity)
        if found is None:
            raise SimulatedStoreError(f"no session with the id {identity} was found")
        self._do.store = found.engine

    def _store(self) -> None:
        # Each store is imported where it is needed: sqlite3 is a tenth of the start-up time.
        if self._do.store == "v1":
            from sortie.kiro.simulator.store_v1 import record_v1

            record_v1(self._places.database, self._exchange)
        elif self._do.store == "v2":
            from sortie.kiro.simulator.store_v2 import record_v2

            record_v2(self._places.sessions, self._exchange)


def _wait_for_ever() -> None:
    while True:
        signal.pause()
