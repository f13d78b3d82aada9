"""A turn under its deadlines, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.agents import OnEvents
from sortie.agents.exits import Failure
from sortie.model import (
    TEXT_LIMIT,
    Activity,
    AgentError,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    RunReport,
    RunStatus,
    RunSummary,
    Spending,
    TurnOutcome,
    TurnResult,
)
from sortie.model.secrets import redactor
from sortie.model.turns import (
    AgentEvent,
    AnswerGiven,
    ErrorsWritten,
    ModelAnswered,
    Notification,
    PermissionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    TurnTraced,
    TurnUntraced,
    Usage,
)
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes, Fails, Raises, Silent
from tests.transports.fake import Does
from tests.worker.rig import RUN, Rig

TIMEOUT = Failed(
    kind=ErrorKind.TURN_TIMEOUT,
    message="the turn took longer than agent.turn_timeout_ms (60 s)",
    status=RunStatus.TIMED_OUT,
)
STALL = Failed(
    kind=ErrorKind.TURN_STALLED,
    message="the agent was silent longer than agent.stall_timeout_ms (20 s)",
    status=RunStatus.STALLED,
)
LIMITS = {"turn_timeout_ms": 60_000, "stall_timeout_ms": 20_000}


def completed(rig: Rig) -> facts.TurnCompleted:
    """Return the one fact about the end of the one turn."""
    (fact,) = rig.of(facts.TurnCompleted)
    return fact


async def test_a_turn_past_its_deadline_times_out(clock: MockClock) -> None:
    """An agent that talks and talks is ended at the turn's deadline."""
    rig = Rig(agent=LIMITS)
    rig.agent.scripts["A"] = [Chats(every=10, times=100, credits=1.0)]

    report = await rig.work()

    end = replace(TIMEOUT, message=f"{TIMEOUT.message}; it said last: still at it")
    assert report == RunReport(end=end, turns=1, seconds=60.0)
    assert completed(rig) == facts.TurnCompleted(
        run_id=RUN,
        agent="fake",
        turn=1,
        outcome=TurnOutcome.TIMED_OUT,
        seconds=60.0,
        error_kind=ErrorKind.TURN_TIMEOUT,
        error=end.message,
        timeout="turn",
    )
    rig.assert_nothing_open()


async def test_a_silent_turn_stalls(clock: MockClock) -> None:
    """An agent that says nothing is ended after the stall timeout."""
    rig = Rig(agent=LIMITS)
    rig.agent.scripts["A"] = [Silent()]

    report = await rig.work()

    assert report == RunReport(end=STALL, turns=1, seconds=20.0)
    assert (completed(rig).outcome, completed(rig).timeout) == (TurnOutcome.STALLED, "stall")
    rig.assert_nothing_open()


async def test_output_pushes_the_stall_deadline_on(clock: MockClock) -> None:
    """What is never silent for too long may take as long as the turn may."""
    rig = Rig(agent=LIMITS)
    rig.agent.scripts["A"] = [Chats(every=19, times=3)]

    report = await rig.work()

    assert report == RunReport(end=Finished(finish=Finish.TURNS_USED), turns=1, seconds=57.0)


@pytest.mark.parametrize("off", [0, -1])
async def test_the_stall_timeout_can_be_off(clock: MockClock, off: int) -> None:
    """With 0 or less only the turn's deadline ends a silent agent."""
    rig = Rig(agent={**LIMITS, "stall_timeout_ms": off})
    rig.agent.scripts["A"] = [Silent()]

    report = await rig.work()

    assert report == RunReport(end=TIMEOUT, turns=1, seconds=60.0)


@pytest.mark.parametrize("clings", [0.0, 10.0, 50.0])
async def test_the_first_cause_names_the_end(clock: MockClock, clings: float) -> None:
    """A stalled turn has stalled, whatever it says, and however long it takes, to die."""
    rig = Rig(agent=LIMITS)
    rig.agent.scripts["A"] = [Silent(clings=clings)]

    report = await rig.work()

    assert report == RunReport(end=STALL, turns=1, seconds=20.0 + clings)
    rig.assert_nothing_open()


async def test_a_late_turn_that_falls_silent_is_late(clock: MockClock) -> None:
    """A turn ended at its deadline has timed out even if it is then silent for long."""
    rig = Rig(agent={"turn_timeout_ms": 10_000, "stall_timeout_ms": 12_000})
    rig.agent.scripts["A"] = [Silent(clings=30)]

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.TURN_TIMEOUT


@pytest.mark.parametrize("limits", [LIMITS, {**LIMITS, "turn_timeout_ms": 15_000}])
async def test_a_result_that_came_first_stands(clock: MockClock, limits: dict[str, int]) -> None:
    """A success that the agent returns past a deadline, since it had seen it before, counts."""
    rig = Rig(agent=limits)
    rig.agent.scripts["A"] = [Completes(after=25, credits=2.0, shielded=True)]

    report = await rig.work()

    used = Finished(finish=Finish.TURNS_USED)
    assert report == RunReport(end=used, turns=1, spent=Spending(credits=2.0), seconds=25.0)
    assert (completed(rig).outcome, completed(rig).timeout) == (TurnOutcome.COMPLETED, None)


async def test_an_error_of_the_agent_is_a_failed_turn(clock: MockClock) -> None:
    """AgentError out of a turn is that turn's failure, told once."""
    rig = Rig()
    rig.agent.scripts["A"] = [Raises(error=AgentError(ErrorKind.RESPONSE_ERROR, "nonsense"))]

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.RESPONSE_ERROR, message="nonsense")
    assert (completed(rig).outcome, completed(rig).error) == (TurnOutcome.FAILED, "nonsense")


async def test_credits_and_tokens_are_summed(clock: MockClock) -> None:
    """What turns tell is added up, a failed one's too; a turn that tells nothing adds nothing."""
    rig = Rig(agent={"max_turns": 9})
    rig.agent.scripts["A"] = [
        Completes(),
        Completes(credits=0.25, tokens=10),
        Completes(tokens=5),
        Completes(credits=0.0),
        Fails(credits=1.5),
    ]

    report = await rig.work()

    assert (report.turns, report.spent.credits, report.spent.tokens) == (5, 1.75, 15)


async def test_a_turn_is_on_disk_before_its_agent_is_launched(clock: MockClock) -> None:
    """While the disk keeps a turn waiting nothing is launched, nor told as started."""
    rig = Rig(agent={"max_turns": 2})

    async def slow_disk(event: Event) -> None:
        if isinstance(event, ev.TurnStarted):
            launched = len(rig.agent.launched_at)
            await trio.sleep(100)
            assert launched == len(rig.agent.launched_at) == event.turn - 1
            assert len(rig.of(facts.TurnBegan)) == event.turn - 1

    rig.on_commit = slow_disk

    await rig.work()

    assert rig.agent.launched_at == [100.0, 201.0]


async def test_what_an_agent_says_is_told(clock: MockClock) -> None:
    """Launch, first answer and lines become facts with their times."""
    rig = Rig()
    rig.agent.scripts["A"] = [Completes(after=3, says=("one", "two"))]

    await rig.work()

    (launched,) = rig.of(facts.AgentLaunched)
    assert (launched.turn, launched.seconds_since_fetch) == (1, 0.0)
    assert rig.of(facts.AgentAnswered) == [
        facts.AgentAnswered(run_id=RUN, agent="fake", seconds=3.0)
    ]
    assert rig.of(facts.AgentSpoke) == [
        facts.AgentSpoke(run_id=RUN, agent="fake", lines=2, message="two", text="one\ntwo")
    ]


async def test_lines_that_come_together_are_told_together(clock: MockClock) -> None:
    """A batch is one fact with its last message, and counts all lines that its events stand for."""
    rig = Rig()

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        on_events([Notification(message="three", lines=3), Notification(message="four")])
        on_events([])
        return TurnResult(outcome=TurnOutcome.COMPLETED)

    setattr(rig.agent, "play", play)  # noqa: B010
    await rig.work()

    assert [(fact.lines, fact.message) for fact in rig.of(facts.AgentSpoke)] == [
        (4, "four"),
        (0, None),
    ]


async def test_whole_lines_and_stderr_are_told(clock: MockClock) -> None:
    """What events say in short is told whole where they have it, of any length."""
    rig, long = Rig(), "x" * 100_000

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        said = Notification(message="two", lines=2, text=f"{long}\ntwo")
        on_events([said, Notification(message="three")])
        on_events([ErrorsWritten(text="oh\nno")])
        return TurnResult(outcome=TurnOutcome.COMPLETED)

    setattr(rig.agent, "play", play)  # noqa: B010
    await rig.work()

    assert [fact.text for fact in rig.of(facts.AgentSpoke)] == [f"{long}\ntwo\nthree"]
    assert rig.of(facts.AgentWroteErrors) == [
        facts.AgentWroteErrors(run_id=RUN, message="no", text="oh\nno")
    ]


async def test_each_turn_is_told_once(clock: MockClock) -> None:
    """Every turn has one start and one end, in order; only the first knows its latency."""
    rig = Rig(agent={"max_turns": 3})
    rig.agent.scripts["A"] = [Completes(), Completes(), Fails()]

    await rig.work()

    assert [fact.turn for fact in rig.of(facts.TurnBegan)] == [1, 2, 3]
    assert [fact.turn for fact in rig.of(facts.TurnCompleted)] == [1, 2, 3]
    assert [f.seconds_since_fetch is None for f in rig.of(facts.AgentLaunched)] == [
        False,
        True,
        True,
    ]


async def test_tools_usage_and_questions_are_told(clock: MockClock) -> None:
    """Each kind of event becomes a fact, and a tool that tells no duration is timed."""
    rig = Rig()
    events: list[AgentEvent] = [
        SessionKnown(session_id="s-1"),
        ToolStarted(id="1", name="shell", kind="execute", locations=("a.py", "a.py")),
        PermissionAsked(question="run make?", answer="yes"),
        Usage(input_tokens=10, output_tokens=5, cost=0.5, currency="USD", cumulative=True),
    ]

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        on_events(events)
        await trio.sleep(2)
        ended = ToolEnded(id="1", failed=True, error="exit 2")
        on_events([ended, ToolEnded(id="2", duration=0.5)])
        on_events([ModelAnswered(seconds=1.5, model="large")])
        on_events([Usage(input_tokens=12, output_tokens=6, cumulative=True)])
        return TurnResult(outcome=TurnOutcome.COMPLETED)

    setattr(rig.agent, "play", play)  # noqa: B010
    report = await rig.work()

    assert report.spent == completed(rig).spent
    assert report.spent.tokens == 18
    assert rig.of(facts.SessionNamed) == [facts.SessionNamed(run_id=RUN, session_id="s-1")]
    assert rig.of(facts.PermissionAnswered) == [
        facts.PermissionAnswered(run_id=RUN, question="run make?", answer="yes")
    ]
    assert rig.of(facts.ToolCallStarted) == [
        facts.ToolCallStarted(
            run_id=RUN, call="1", tool="shell", kind="execute", locations=("a.py",)
        )
    ]
    assert [
        (f.tool, f.kind, f.locations, f.seconds, f.failed, f.error)
        for f in rig.of(facts.ToolCallEnded)
    ] == [
        ("shell", "execute", ("a.py",), 2.0, True, "exit 2"),
        ("", None, (), 0.5, False, None),
    ]
    assert rig.of(facts.ModelAnswerTimed) == [
        facts.ModelAnswerTimed(run_id=RUN, agent="fake", model="large", seconds=1.5)
    ]
    assert [(f.spent.tokens, f.cost) for f in rig.of(facts.AgentUsed)] == [(15, 0.5), (18, None)]


async def test_what_the_agent_has_done_is_told_at_the_end_of_each_turn(clock: MockClock) -> None:
    """The sums of the run go on record, also those of tools that the end of a turn cut off."""
    rig = Rig(agent={"max_turns": 2})

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        (workspace,) = (fact.path for fact in rig.of(facts.WorkspaceReady))
        edited = ToolStarted(id="1", name="write", kind="edit", locations=(f"{workspace}/a.py",))
        on_events([edited, ToolEnded(id="1", locations=("b.py",))])
        on_events([ToolStarted(id="2", name="write", kind="edit", locations=("failed.py",))])
        on_events([ToolEnded(id="2", failed=True), ToolStarted(id="3", name="shell")])
        on_events([TurnTraced(model="large", answer="done"), TurnUntraced(reason="for a test")])
        return TurnResult(outcome=TurnOutcome.COMPLETED)

    setattr(rig.agent, "play", play)  # noqa: B010
    await rig.work()
    told = [event.activity for event in rig.told if isinstance(event, ev.AgentActed)]

    assert told[-1] == Activity(
        model="large", files_modified=("a.py", "b.py"), tool_uses={"write": 4, "shell": 2}
    )
    assert [fact.activity for fact in rig.of(facts.ActivityChanged)] == told
    assert rig.of(facts.ToolsTraced)[0] == facts.ToolsTraced(
        run_id=RUN, model="large", answer="done"
    )
    assert rig.of(facts.ToolsUntraced)[0] == facts.ToolsUntraced(run_id=RUN, reason="for a test")


async def test_no_secret_that_an_agent_tells_goes_further(clock: MockClock) -> None:
    """Not in a line, a tool, a file, a model or a failure, also where it would be cut in two."""
    rig = Rig()
    long = "x" * 195 + "s3cr3t"

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        on_events([Notification(message="I found s3cr3t")])
        on_events([ToolStarted(id="1", name=long, kind="edit", locations=("s3cr3t.py",))])
        on_events([ToolEnded(id="1"), ModelAnswered(seconds=1, model="s3cr3t")])
        on_events([PermissionAsked(question="s3cr3t?", answer="yes")])
        on_events([TurnTraced(model="large", answer="it is s3cr3t")])
        return Failure(ErrorKind.TURN_FAILED, "refused: s3cr3t").result()

    setattr(rig.agent, "play", play)  # noqa: B010
    rig.redact = lambda text: text.replace("s3cr3t", "***")
    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.TURN_FAILED, message="refused: ***")
    told = f"{rig.facts} {rig.told} {report}"
    assert "s3c" not in told
    assert "***.py" in told


@pytest.mark.parametrize("raises", [True, False])
async def test_a_usage_limit_is_passed_on_with_its_reset(clock: MockClock, raises: bool) -> None:
    """A turn that meets a usage limit says until when, whichever way its adapter tells it."""
    rig = Rig()
    resets_at = datetime(2026, 11, 22, 17, tzinfo=UTC)
    kind = ErrorKind.USAGE_LIMIT

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        if raises:
            raise AgentError(kind, "limit reached", resets_at=resets_at)
        return Failure(kind, "limit reached", resets_at).result()

    setattr(rig.agent, "play", play)  # noqa: B010
    report = await rig.work()

    assert report.end == Failed(kind=kind, message="limit reached", resets_at=resets_at)
    assert completed(rig).error_kind is kind


async def test_texts_of_an_agent_are_bounded(clock: MockClock) -> None:
    """However long its words and lists are, what is told of them is short."""
    rig = Rig()
    long = "x" * 100_000
    events: list[AgentEvent] = [
        Notification(message=long),
        ToolStarted(
            id=long, name=long, kind=long, locations=tuple(f"{n}{long}" for n in range(99))
        ),
        ToolEnded(id=long, failed=True, error=long),
        ModelAnswered(seconds=1.0, model=long),
        PermissionAsked(question=long, answer=long),
        Usage(cost=1.0, currency=long),
    ]

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        on_events(events)
        return TurnResult(
            outcome=TurnOutcome.FAILED,
            error_kind=ErrorKind.TURN_FAILED,
            message=long,
            warnings=(long,) * 1000,
        )

    setattr(rig.agent, "play", play)  # noqa: B010
    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.TURN_FAILED
    assert max(len(repr(fact)) for fact in rig.facts) < 25_000
    assert len(repr(report)) < 10_000


async def test_what_came_together_is_told_in_its_order(clock: MockClock) -> None:
    """What an agent says before it uses a tool is told before the tool, also of one chunk."""
    rig = Rig()
    batch: list[AgentEvent] = [
        Notification(message="I look.", text="I look."),
        ToolStarted(id="t", name="Bash"),
        ToolEnded(id="t"),
        Notification(message="Bash: ls", text=""),
        Notification(message="I saw.", text="I saw."),
    ]

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        on_events(batch)
        return TurnResult(outcome=TurnOutcome.COMPLETED)

    setattr(rig.agent, "play", play)  # noqa: B010
    await rig.work()

    kinds = (facts.AgentSpoke, facts.ToolCallStarted, facts.ToolCallEnded)
    told = [fact for fact in rig.facts if isinstance(fact, kinds)]
    assert [getattr(fact, "text", "a tool") for fact in told] == [
        "I look.",
        "a tool",
        "a tool",
        "I saw.",
    ]


async def test_a_run_leaves_what_the_agent_said_last(clock: MockClock) -> None:
    """The last turn that said anything counts; secrets are taken out, and then it is cut."""
    rig = Rig(agent={"max_turns": 3})
    rig.redact = redactor(["hush-hush"])
    said: Iterator[list[AgentEvent]] = iter(
        [
            [AnswerGiven(text="first")],
            [AnswerGiven(text="x " * 2030 + "hush-hush\x1b" + " y" * 2000)],
            [Notification(message="nothing for a person")],
        ]
    )

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        on_events(next(said))
        return TurnResult(outcome=TurnOutcome.COMPLETED)

    setattr(rig.agent, "play", play)  # noqa: B010
    report = await rig.work()

    answer = report.summary.answer
    assert answer is not None
    assert len(answer) <= TEXT_LIMIT
    assert answer.startswith("x x")
    assert "hush" not in answer
    assert "\x1b" not in answer


async def test_a_run_leaves_what_was_done_in_git(clock: MockClock) -> None:
    """As git tells it when the agent and after_run are done, without secrets; a stop that comes
    meanwhile does not undo how the run ended."""
    rig = Rig(hooks={"before_run": Does(), "after_run": Does()})
    rig.redact = redactor(["hush-hush"])
    rig.transport.answer = (
        b"head abc\nbranch b-hush-hush\ncommits 2\nsubject abc Say hush-hush\n"
        b"files 3\nuncommitted 1\nend\n"
    )
    rig.transport.pauses["run_script"] = 4.0

    report = await rig.work_stopped_at(8)  # 4 s for the base, 1 s for the turn

    assert report.end == Finished(finish=Finish.TURNS_USED)
    assert report.summary == RunSummary(
        branch="b-***",
        head_commit="abc",
        commits=2,
        files_changed=3,
        uncommitted=1,
        subjects=("abc Say ***",),
    )


async def test_a_git_that_is_silent_costs_its_limit_and_a_sentence(clock: MockClock) -> None:
    """The run goes on without knowing where it began, and does not ask again."""
    rig = Rig(hooks={"before_run": Does()})
    rig.transport.pauses["run_script"] = 1000.0

    report = await rig.work()

    assert report.end == Finished(finish=Finish.TURNS_USED)
    assert report.summary == RunSummary(git_error="git has not answered within 10 s")
    assert report.seconds < 15


def failing(message: str, kind: ErrorKind, warnings: tuple[str, ...], *events: AgentEvent) -> Rig:
    """Return a rig whose agent tells some events and fails."""
    rig = Rig()
    rig.redact = redactor(["hush-hush"])
    result = TurnResult(
        outcome=TurnOutcome.FAILED, error_kind=kind, message=message, warnings=warnings
    )

    async def play(_: object, prompt: str, on_events: OnEvents) -> TurnResult:
        on_events(events)
        return result

    setattr(rig.agent, "play", play)  # noqa: B010
    return rig


@pytest.mark.parametrize(
    ("kind", "warnings", "says", "error"),
    [
        (ErrorKind.PORT_EXIT, ("one", "two", "three", "boom"), "x", "exit 1: two; three; boom"),
        (ErrorKind.TURN_FAILED, ("boom",), "x", "exit 1: boom"),
        (ErrorKind.PORT_EXIT, ("exit 1",), "x", "exit 1"),
        (ErrorKind.PORT_EXIT, ("key hush-hush",), "x", "exit 1: key ***"),
        (ErrorKind.PORT_EXIT, (), "boom", "exit 1: boom"),
        (ErrorKind.TURN_FAILED, (), "an answer", "exit 1"),
        (ErrorKind.USAGE_LIMIT, ("boom",), "x", "exit 1"),
    ],
)
async def test_a_failure_has_the_programs_own_words(
    clock: MockClock, kind: ErrorKind, warnings: tuple[str, ...], says: str, error: str
) -> None:
    """The last lines of stderr, or else of what was printed, end the error, without secrets and
    not twice; a limit, and an agent that has told how the turn failed, need none."""
    rig = failing("exit 1", kind, warnings, Notification(message=says))

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.message == error
    assert completed(rig).error == error
