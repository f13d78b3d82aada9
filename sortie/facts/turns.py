"""Facts about a run's session, turns and agent."""

from __future__ import annotations

from collections.abc import Iterable

from sortie.facts.fact import Level, LogLine, RecurringFailures, RunFact, fact, line, shown_spending
from sortie.model import NOTHING, Activity, ErrorKind, ProcessIdentity, Spending, TurnOutcome

_BAD_OUTCOMES = {TurnOutcome.FAILED, TurnOutcome.TIMED_OUT, TurnOutcome.STALLED}


@fact("turn.agent_files", "info")
class AgentFilesRestored(RunFact, frozen=True, kw_only=True):
    """Files that steer agents stood otherwise than at the base; those of the base are in place for
    a turn."""

    count: int
    paths: tuple[str, ...]


@fact("sandbox.devcontainer", "warning")
class DevcontainerRestricted(RunFact, frozen=True, kw_only=True):
    """The file of the base that names the image says more, which is not heeded."""

    file: str
    ignored: tuple[str, ...]


@fact("container.started", "info")
class ContainerStarted(RunFact, frozen=True, kw_only=True):
    """The container for a run's programs is there; ``digest`` is that of its image."""

    container: str
    image: str
    digest: str


@fact("session.started", "debug")
class SessionStarted(RunFact, frozen=True, kw_only=True):
    """The agent accepted a session; ``session_id`` is None where it has none."""

    session_id: str | None


@fact("session.waiting", "info")
class SessionWaiting(RunFact, frozen=True, kw_only=True):
    """The agent needs a time before it can go on with its session, and the run waits for that.

    ``seconds`` are how long, ``reason`` says why.
    """

    seconds: float
    reason: str


@fact("session.refused", "warning", hidden=("timed_out",))
class SessionRefused(RunFact, frozen=True, kw_only=True):
    """The agent accepted no session; ``timed_out``: it did not answer in time."""

    error_kind: ErrorKind
    error: str
    timed_out: bool = False


@fact("turn.started", "info", hidden=("agent", "prompt"))
class TurnBegan(RunFact, frozen=True, kw_only=True):
    """A turn's prompt is about to be given to an agent, of the kind ``agent``; ``prompt`` is None
    but where ``traces.content`` wants it, and is cut there."""

    turn: int
    max_turns: int
    agent: str = ""
    prompt: str | None = None


@fact("agent.launched", "debug")
class AgentLaunched(RunFact, frozen=True, kw_only=True):
    """A turn's process runs; ``seconds_since_fetch`` is None but for a run's first turn."""

    turn: int
    process: ProcessIdentity
    seconds_since_fetch: float | None = None


@fact("agent.answered", "debug", hidden=("agent",))
class AgentAnswered(RunFact, frozen=True, kw_only=True):
    """A turn's first byte of output came."""

    agent: str
    seconds: float


@fact("agent.spoke", "debug", hidden=("agent", "text"))
class AgentSpoke(RunFact, frozen=True, kw_only=True):
    """The agent wrote ``lines`` lines of output; ``message`` is the last of them, ``text`` are all
    of them, parted by line feeds and of any length."""

    agent: str
    lines: int
    message: str | None
    text: str | None = None


@fact("agent.errors", "debug", hidden=("text",))
class AgentWroteErrors(RunFact, frozen=True, kw_only=True):
    """The agent wrote to its stderr; ``text`` are the lines, as in AgentSpoke."""

    message: str
    text: str


@fact("session.named", "debug")
class SessionNamed(RunFact, frozen=True, kw_only=True):
    """The id of the agent's session is known, which it was not when the session began."""

    session_id: str


@fact("tool.started", "debug", hidden=("call",))
class ToolCallStarted(RunFact, frozen=True, kw_only=True):
    """The agent uses a tool; ``locations`` are the files that it is about, and ``call`` is the id
    that the agent gave this use."""

    call: str = ""
    tool: str
    kind: str | None
    locations: tuple[str, ...]


@fact("tool.ended", "debug", hidden=("call", "output"))
class ToolCallEnded(RunFact, frozen=True, kw_only=True):
    """The agent is done with a tool; ``tool`` is "" where its start was not seen.

    ``about`` is what it was given besides files, such as a command, and ``output`` what it said.
    ``call`` is as in ToolCallStarted.
    """

    call: str = ""
    tool: str
    kind: str | None
    locations: tuple[str, ...]
    seconds: float
    failed: bool
    error: str | None = None
    about: str | None = None
    output: str | None = None


@fact("model.answered", "debug", hidden=("agent",))
class ModelAnswerTimed(RunFact, frozen=True, kw_only=True):
    """The model has answered a request of the agent's, after so many seconds."""

    agent: str
    model: str | None
    seconds: float


@fact("agent.used", "debug", hidden=("spent",))
class AgentUsed(RunFact, frozen=True, kw_only=True):
    """The agent has used this since its last report, and the run has used ``spent`` so far;
    ``context_share`` is how full the model's context is, from 0 to 1."""

    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    credits: float | None
    cost: float | None
    currency: str | None
    model: str | None
    context_share: float | None
    spent: Spending


@fact("turn.traced", "debug")
class ToolsTraced(RunFact, frozen=True, kw_only=True):
    """All tools of a turn are known; ``answer`` is the last answer of the model."""

    model: str | None = None
    answer: str | None = None


@fact("turn.untraced", "debug")
class ToolsUntraced(RunFact, frozen=True, kw_only=True):
    """Which tools were used in a turn is not known."""

    reason: str


@fact("run.activity", "debug", hidden=("activity",))
class ActivityChanged(RunFact, frozen=True, kw_only=True):
    """More is known of what a run's agent has done, since the run began."""

    activity: Activity

    def shown(self) -> dict[str, object]:
        files, uses = self.activity.files_modified, self.activity.tool_uses
        return RunFact.shown(self) | {
            "model": self.activity.model,
            "files": None if files is None else len(files),
            "tools": None if uses is None else sum(uses.values()),
        }


@fact("agent.permission", "info")
class PermissionAnswered(RunFact, frozen=True, kw_only=True):
    """The agent asked whether it may do something, and was answered without a person."""

    question: str
    answer: str


@fact("turn.completed", "info", hidden=("agent", "warnings", "timeout", "spent", "answer"))
class TurnCompleted(RunFact, frozen=True, kw_only=True):
    """A turn is over, and has used ``spent``. ``timeout`` is turn, stall or read where one ran
    out; ``answer`` is None but where ``traces.content`` wants what the agent said last."""

    agent: str
    turn: int
    outcome: TurnOutcome
    error_kind: ErrorKind | None = None
    error: str | None = None
    seconds: float
    spent: Spending = NOTHING
    warnings: tuple[str, ...] = ()
    timeout: str | None = None
    answer: str | None = None

    @property
    def level(self) -> Level:
        return "warning" if self.outcome in _BAD_OUTCOMES else "info"

    def shown(self) -> dict[str, object]:
        return RunFact.shown(self) | shown_spending(self.spent)

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        where = {"run": self.run_id, "turn": self.turn}
        for text in self.warnings:
            yield line("warning", "agent.warned", **where, message=text)
        yield from RunFact.log_lines(self, failures)


@fact("agent.status", "info", hidden=("known",))
class StatusFileRead(RunFact, frozen=True, kw_only=True):
    """The agent left a word in ``.sortie/status``, and perhaps why; ``known`` tells whether the
    word means anything."""

    word: str
    known: bool
    reason: str = ""

    @property
    def event(self) -> str:
        return "agent.status" if self.known else "agent.status_unknown"

    @property
    def level(self) -> Level:
        return "info" if self.known else "warning"
