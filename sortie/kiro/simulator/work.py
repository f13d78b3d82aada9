"""What a turn does, whoever it is shown to: tools with the hooks around them, and an answer."""

from __future__ import annotations

from sortie.kiro.simulator import actions
from sortie.kiro.simulator.directives import is_directive
from sortie.kiro.simulator.exchange import ERROR, SUCCESS, Exchange, ToolUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sortie.kiro.simulator.agent_file import Agent
    from sortie.kiro.simulator.directives import Directives
    from sortie.kiro.simulator.hooks import Hooks

_TITLE_LIMIT = 200


class Screen:
    """Who is shown what a turn does; one who only reads the answer."""

    def tool_began(self, use: ToolUse) -> None:
        """Show a tool that is about to be used."""

    def permits(self, _use: ToolUse) -> bool:
        """Ask whether a tool may be used."""
        return True

    def tool_ended(self, use: ToolUse) -> None:
        """Show what came of a tool."""


class Work:
    """One turn in the current directory. ``added`` is what hooks add to its context."""

    def __init__(
        self, prompt: str, do: Directives, agent: Agent, hooks: Hooks, screen: Screen | None = None
    ) -> None:
        self.prompt = prompt
        self.added = ""
        self.tools: list[ToolUse] = []
        self._do = do
        self._agent = agent
        self._hooks = hooks
        self._screen = screen or Screen()

    def begin(self, added: str = "") -> None:
        """Run the hooks of the prompt; ``added`` is what the agent's beginning has added."""
        parts = (added, self._hooks.submitted(self.prompt))
        self.added = "\n".join(part for part in parts if part)

    def touch_files(self) -> None:
        """Use the tools that were asked for. Raises ActionError and OSError."""
        do = self._do
        if do.note:
            new = {"command": "append", "path": actions.NOTE_FILE, "new_str": self.title}
            self._use(ToolUse("fs_write", new), lambda: actions.append_note(self.title))
        if do.write:
            new = {"command": "create", "path": do.write, "file_text": actions.WRITTEN}
            self._use(ToolUse("fs_write", new), lambda: actions.write_file(do.write))
        if do.status:
            actions.write_status(do.status)
        if do.set_state:
            actions.set_state(do.set_state)

    def answer(self, earlier: Callable[[], list[str]]) -> str:
        """Return what is said at the end; ``earlier`` tells what was said before this turn."""
        do = self._do
        if do.say:
            return do.say
        if do.recall:
            known = [*earlier(), self.added]
            return "\n".join(["I remember:", *(text for text in known if text)])
        noted = any(
            use.status == SUCCESS and use.args.get("command") == "append" for use in self.tools
        )
        wrote = f"I added a note to `{actions.NOTE_FILE}`." if noted else "I changed nothing."
        return f"I have read **{self.title}**.\n{wrote}"

    def exchange(self, answer: str, model: str | None) -> Exchange:
        """Return the turn as it is kept."""
        model = model or self._agent.model or "auto"
        kept = Exchange(prompt=self.prompt, answer=answer, model=model, spent=self._do.credits)
        kept.tools, kept.context_share = self.tools, self._do.context
        kept.added, kept.agent = self.added, self._agent.name
        return kept

    def end(self) -> None:
        """Run the hooks of the turn's end, once it is kept."""
        self._hooks.stopped(self.prompt)

    @property
    def title(self) -> str:
        """The first line of the prompt that says something."""
        for line in self.prompt.splitlines():
            if line.strip() and not is_directive(line):
                return line.strip()[:_TITLE_LIMIT]
        return "an empty prompt"

    def _use(self, use: ToolUse, deed: Callable[[], None]) -> None:
        """Use a tool that the agent has, unless a hook or somebody who is asked forbids it."""
        if not self._agent.has_tool(use.name):
            return
        self.tools.append(use)
        self._screen.tool_began(use)
        blocked = self._hooks.before(use, self.prompt)
        if blocked is not None:
            use.status, use.result = ERROR, f"a hook has blocked the tool: {blocked}"
        elif not self._screen.permits(use):
            use.status, use.result = ERROR, "the tool use was rejected"
        else:
            use.status = self._do.tool_status
            if use.status == SUCCESS:
                deed()
                use.result = "done"
            else:
                use.result = f"the tool use ended as {use.status}, as it was asked for"
            self._hooks.after(use, self.prompt)
        self._screen.tool_ended(use)
