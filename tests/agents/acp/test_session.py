"""Sessions with the scripted agent: one process, many turns, and whatever can go wrong."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.agents.acp import session as session_module
from sortie.agents.acp.agent import AcpAgent
from sortie.agents.acp.conversations import WHY_IT_WAITS
from sortie.agents.acp.settings import AcpSettings
from sortie.agents.permissions import PermissionRules
from sortie.model import AgentError, ErrorKind, TransportError, TurnOutcome
from sortie.model.turns import (
    AgentEvent,
    Notification,
    PermissionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    Usage,
)
from sortie.resources import shortage_behind
from sortie.transports.local import become_subreaper
from tests.agents.acp.scripted import KEY, PROGRAM, TRUSTING, Stage
from tests.agents.kiro.simulated import Heard, is_alive, visit


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    become_subreaper()
    return Stage(tmp_path)


def messages(heard: Heard) -> list[str]:
    return [event.message for event in heard.events if isinstance(event, Notification)]


async def refusal(stage: Stage, agent: AcpAgent) -> AgentError:
    """Return why an agent has no session."""
    with trio.fail_after(60), pytest.raises(ExceptionGroup) as caught:
        await visit(agent, stage.params)
    (error,) = caught.value.exceptions
    assert isinstance(error, AgentError)
    return error


async def test_one_process_serves_all_turns(stage: Stage) -> None:
    """The conversation goes on in it, and its id is known from the start."""
    first, second = await stage.turns(["one", "two"])

    assert [result.outcome for result, _ in (first, second)] == [TurnOutcome.COMPLETED] * 2
    assert first[1].pid == second[1].pid
    assert [messages(heard) for _, heard in (first, second)] == [["prompt 1"], ["prompt 2"]]


async def test_each_prompt_says_under_what_its_spans_belong(stage: Stage) -> None:
    """The process has its session's place in the trace, and each prompt that of its turn."""
    turns = iter(["00-1", "00-2", None])
    env = {**stage.params.env, "TRACEPARENT": "00-session"}
    stage.params = replace(stage.params, env=env, traceparent=lambda: next(turns))

    told = [messages(heard)[-1] for _, heard in await stage.turns(["acp: meta"] * 3)]

    assert told == [
        '{"traceparent": "00-1"} 00-session',
        '{"traceparent": "00-2"} 00-session',
        "null 00-session",
    ]


# Permissions


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        (PermissionRules(), False),
        (TRUSTING, True),
        (PermissionRules(inside={"edit": "allow"}), True),
        (PermissionRules(inside={"default": "allow", "edit": "deny"}), False),
    ],
)
async def test_a_permission_is_answered_by_the_rules(
    stage: Stage, rules: PermissionRules, allowed: bool
) -> None:
    """The tool runs or does not, and the answer is told, with the rule that it follows from."""
    made = stage.workspace / "made"

    _, heard = await stage.turn(f"acp: tool edit {made}", settings=AcpSettings(permissions=rules))

    word = "allowed by permissions.inside for edit (allow_once)"
    if not allowed:
        word = "denied by permissions.inside for edit (reject_once)"
    asked = PermissionAsked(question=f"edit: use edit: {made}", answer=word)
    assert [e for e in heard.events if isinstance(e, PermissionAsked)] == [asked]
    assert [e for e in heard.events if isinstance(e, ToolStarted | ToolEnded)] == [
        ToolStarted(id="t0", name="edit", kind="edit", locations=(str(made),)),
        ToolEnded(
            id="t0",
            failed=not allowed,
            locations=(str(made),),
            error=None if allowed else "it was no",
            output="it was once" if allowed else None,
            about="use edit",
        ),
    ]
    assert made.exists() is allowed


@pytest.mark.parametrize("path", ["/etc/made", "../made", "~/made", "sub/../../made"])
async def test_outside_of_the_workspace_other_rules_go(stage: Stage, path: str) -> None:
    """What is allowed inside is not, for that, allowed elsewhere."""
    _, heard = await stage.turn(f"acp: tool edit {path}")

    (asked,) = (e for e in heard.events if isinstance(e, PermissionAsked))
    assert asked.answer == "denied by permissions.outside for edit (reject_once)"
    assert not (stage.workspace.parent / "made").exists()


async def test_a_turn_that_a_denial_has_ended_is_a_failure(stage: Stage) -> None:
    """Some agents end their turn there, as if all were done; others go on, and that is fine."""
    prompt, settings = "acp: tool edit made", AcpSettings()

    broken_off, _ = await stage.turn(prompt, "--like", "OpenCode", settings=settings)
    gone_on, _ = await stage.turn(prompt, "--like", "gemini-cli", settings=settings)

    assert broken_off.error_kind is ErrorKind.TURN_FAILED
    assert "after a permission was denied: edit: use edit" in (broken_off.message or "")
    assert gone_on.outcome is TurnOutcome.COMPLETED


async def test_what_is_not_offered_is_declined_and_told(stage: Stage) -> None:
    """Files, terminals and unknown requests are refused at once, and the turn goes on."""
    result, heard = await stage.turn("acp: files")

    assert result.outcome is TurnOutcome.COMPLETED
    assert messages(heard)[-1] == "-32601 -32601 -32601"
    assert [e for e in heard.events if isinstance(e, PermissionAsked)] == [
        PermissionAsked(question="fs/read_text_file /etc/passwd", answer="declined"),
        PermissionAsked(question="terminal/create ls", answer="declined"),
        PermissionAsked(question="_vendor/thing", answer="declined"),
    ]


# What is told


async def test_thoughts_plans_cost_and_context_are_told(stage: Stage) -> None:
    """Each in its own form; the cost is what the turn adds to that of the conversation."""
    prompt = "acp: think hm\nacp: plan\nacp: paid 0.5"

    first, second = await stage.turns([prompt, "acp: paid 0.25"])

    assert messages(first[1]) == ["prompt 1", "[thought] hm", "[plan] 1 of 3 done: write"]
    assert first[1].used == [Usage(cost=0.5, currency="USD", context_share=0.25)]
    assert second[1].used == [Usage(cost=0.25, currency="USD", context_share=0.25)]


async def test_credits_are_told_that_come_behind_the_turn(stage: Stage) -> None:
    """Kiro tells them late; they belong to the turn before."""
    _, heard = await stage.turn("acp: credits 0.75")

    share = Usage(context_share=0.25)
    assert heard.used == [share, share, Usage(credits=0.75)]


async def test_tokens_count_as_the_agent_counts(stage: Stage) -> None:
    """Sums of a process become those of a turn, and of an unknown agent nothing is known."""
    sums = await stage.turns(["one", "two"], "--like", "Copilot")
    unknown = await stage.turns(["one"], "--like", "somebody")

    assert [heard.used for _, heard in sums] == [
        [Usage(input_tokens=100, output_tokens=20, model="small")]
    ] * 2
    assert [heard.used for _, heard in unknown] == [[]]


async def test_secrets_are_shown_to_nobody(stage: Stage) -> None:
    """Neither in a text that came in pieces, nor in a title, an error or a warning."""
    (result, heard), (later, _) = await stage.turns(["acp: secret", "acp: fail"])

    assert "***" in messages(heard)
    assert later.warnings[-1] == "key ***"
    assert "bad key ***" in (result.message or "")
    assert KEY not in repr((result, later, heard.events))


# Resuming


@pytest.mark.parametrize("without", ["resume", "load"])
async def test_a_session_goes_on_in_the_next_one(stage: Stage, without: str) -> None:
    """By whichever way the agent has; what is replayed then is not told again."""
    agent = stage.agent("--without", without)
    heard = Heard()

    with trio.fail_after(60):
        async with agent.session(stage.params) as session:
            await session.run_turn("one", Heard())
            known = session.id
        async with stage.session("--without", without, resume=known) as again:
            result = await again.run_turn("two", heard)

    assert (again.id, result.outcome) == (known, TurnOutcome.COMPLETED)
    assert messages(heard) == ["prompt 2"]
    assert not [e for e in heard.events if isinstance(e, ToolStarted | SessionKnown)]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--load", "error"), "no session gone (error -32002 to session/resume)"),
        (("--without", "load,resume"), "the agent cannot go on with earlier sessions"),
        (("--load", "hang"), "the agent did not answer when it was to go on with it"),
    ],
)
async def test_where_a_session_is_gone_a_new_one_begins(
    stage: Stage, words: tuple[str, ...], why: str
) -> None:
    """The loss is told, and the turn runs."""
    heard = Heard()
    settings = AcpSettings(start_timeout_ms=1000)
    if "hang" in words:
        stage.params = replace(stage.params, read_timeout=5.0)

    with trio.fail_after(60):
        async with stage.session(*words, resume="gone", settings=settings) as session:
            result = await session.run_turn("one", heard)

    assert result.outcome is TurnOutcome.COMPLETED
    assert session.id not in ("", "gone")
    lost = f"[session] a new one begins, the earlier one cannot be gone on with: {why}"
    assert messages(heard) == [lost, "prompt 1"]


@pytest.mark.parametrize(("spent", "first"), [("2.0", 0.5), ("", None)])
async def test_what_a_conversation_had_cost_is_no_turns_cost(
    stage: Stage, spent: str, first: float | None
) -> None:
    """It may be told as the session is loaded; where it is not, the first turn's is unknown."""
    words = ("--without", "resume")
    heard = [Heard(), Heard()]

    with trio.fail_after(60):
        async with stage.session(*words) as session:
            await session.run_turn("one", Heard())
        async with stage.session(*words, f"--spent={spent}", resume=session.id) as again:
            for each in heard:
                await again.run_turn("acp: paid 0.5", each)

    assert [[used.cost for used in each.used] for each in heard] == [[first], [0.5]]


async def test_nothing_is_resumed_where_that_is_not_wanted(stage: Stage) -> None:
    """``acp.resume: false`` begins each run anew."""
    heard = Heard()

    with trio.fail_after(60):
        async with stage.session() as session:
            await session.run_turn("one", Heard())
        settings = AcpSettings(resume=False)
        async with stage.session(resume=session.id, settings=settings) as session:
            await session.run_turn("two", heard)

    assert messages(heard) == ["prompt 1"]


# The life of a process


async def test_a_process_that_dies_between_turns_is_replaced(stage: Stage) -> None:
    """The next turn runs in another one, in the same conversation."""
    first, second = Heard(), Heard()

    with trio.fail_after(60):
        async with stage.session() as session:
            await session.run_turn("acp: die later", first)
            while Path(f"/proc/{first.pid}").exists():  # until then it may still hold its pipes
                await trio.sleep(0.01)
            result = await session.run_turn("two", second)

    assert result.outcome is TurnOutcome.COMPLETED
    assert messages(second) == [
        "[session] the agent was started anew: its process has ended",
        "prompt 2",
    ]


async def test_a_conversation_is_waited_for_without_silence(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gemini CLI loses one that it loads too early: the wait is told, and signs of life come."""
    monkeypatch.setattr("sortie.agents.acp.conversations._MINUTE", 1.2)
    told: list[tuple[float, str]] = []
    batches: list[Sequence[AgentEvent]] = []
    first = Heard()
    words, settings = ("--like", "gemini-cli"), AcpSettings(permissions=TRUSTING)
    agent = AcpAgent((sys.executable, "-S", str(PROGRAM), *words), settings, lambda: 0.0)
    params = replace(stage.params, on_wait=lambda *what: told.append(what))

    with trio.fail_after(60):
        async with agent.session(params) as session:
            await session.run_turn("acp: die later", first)
            while Path(f"/proc/{first.pid}").exists():
                await trio.sleep(0.01)
            begun = trio.current_time()
            await session.run_turn("two", batches.append)
            took = trio.current_time() - begun

    assert told == [(1.2, WHY_IT_WAITS)]
    assert took >= 1.2
    launched = next(n for n, batch in enumerate(batches) if batch)
    assert launched >= 3  # 0.5 seconds from one to the next


async def test_a_process_that_dies_in_a_turn_fails_it(stage: Stage) -> None:
    """With what the agent said last; the session can go on."""
    died, next_ = await stage.turns(["acp: exit 3", "two"])

    assert (died[0].outcome, died[0].error_kind) == (TurnOutcome.FAILED, ErrorKind.PORT_EXIT)
    assert "exited with status 3: scripted agent" in (died[0].message or "")
    assert next_[0].outcome is TurnOutcome.COMPLETED
    assert messages(next_[1])[-1] == "prompt 2"


async def test_a_process_that_is_too_large_is_replaced(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two turns, and its conversation goes on."""
    monkeypatch.setattr(session_module, "MEMORY_INTERVAL", 0.0)
    settings = AcpSettings(memory_limit_mb=200)

    small, large, after = await stage.turns(["one", "acp: grow 300", "three"], settings=settings)

    assert small[1].pid == large[1].pid != after[1].pid
    assert not is_alive(large[1].pid)
    anew, said = messages(after[1])
    assert anew.startswith("[session] the agent was started anew: its process took 3")
    assert said == "prompt 3"


async def test_a_cancelled_turn_leaves_the_process(stage: Stage) -> None:
    """An agent that answers a cancel goes on; the tool that it ran is gone."""
    first, second = Heard(), Heard()
    mark = stage.workspace / "pid"
    stage.params = replace(stage.params, stop_grace=20.0)  # an answer takes no time but a machine's

    with trio.fail_after(60):
        async with stage.session() as session:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    session.run_turn, f"acp: shell echo $$ > {mark}; exec sleep 600", first
                )
                while not (mark.exists() and mark.read_text()):
                    await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
            alive = is_alive(int(mark.read_text()))
            await session.run_turn("two", second)

    assert not alive
    assert first.pid == second.pid


# Refusals


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (("--login",), ErrorKind.RESPONSE_ERROR, "is not logged in: Authentication required"),
        (("--version", "2"), ErrorKind.RESPONSE_ERROR, "speaks version 2 of the protocol, not 1"),
        (
            ("--mute",),
            ErrorKind.RESPONSE_TIMEOUT,
            "did not answer to initialize within 1 s (acp.start_timeout_ms): scripted agent",
        ),
    ],
)
async def test_a_session_that_cannot_begin_is_refused(
    stage: Stage, words: tuple[str, ...], kind: ErrorKind, message: str
) -> None:
    """With the reason, and with no process left."""
    if "--mute" in words:  # the others have as long as a busy machine needs
        stage.params = replace(stage.params, read_timeout=1.0)

    error = await refusal(stage, stage.agent(*words, settings=AcpSettings(start_timeout_ms=1000)))

    assert error.kind is kind
    assert message in str(error)
    assert error.timed_out is (kind is ErrorKind.RESPONSE_TIMEOUT)


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("echo You are not logged in; exit 1", ErrorKind.PORT_EXIT, "status 1: You are not"),
        ("echo no node >&2; exit 127", ErrorKind.AGENT_NOT_FOUND, "agent.command: no node"),
        ("echo boom >&2; kill -SEGV $$", ErrorKind.PORT_EXIT, "by SIGSEGV: boom"),
    ],
)
async def test_a_program_that_speaks_no_protocol_is_refused(
    stage: Stage, script: str, kind: ErrorKind, message: str
) -> None:
    """What it printed is what the operator is told."""
    agent = AcpAgent(("/bin/sh", "-c", script), AcpSettings(), trio.current_time)

    error = await refusal(stage, agent)

    assert error.kind is kind
    assert message in str(error)


async def test_a_program_that_finds_no_memory_is_there(stage: Stage) -> None:
    """Its loader exits with 127, which is no reason to hold an issue: it is a shortage."""
    script = "ulimit -v 1000; exec /bin/ls"
    agent = AcpAgent(("/bin/sh", "-c", script), AcpSettings(), trio.current_time)

    with trio.fail_after(60), pytest.raises(ExceptionGroup) as caught:
        await visit(agent, stage.params)

    (error,) = caught.value.exceptions
    assert isinstance(error, TransportError)
    assert "error while loading shared libraries" in str(error)
    assert shortage_behind(error) is not None


async def test_a_login_that_is_lost_is_told_as_such(stage: Stage) -> None:
    """Also where only a prompt shows it."""
    program = (
        "import json,sys\n"
        "for line in sys.stdin:\n"
        "  m=json.loads(line); i=m['id']\n"
        "  r={'initialize':{'protocolVersion':1},'session/new':{'sessionId':'s'}}\n"
        "  r=r.get(m['method'])\n"
        "  a={'result':r} if r else {'error':{'code':-32000,'message':'who?'}}\n"
        "  print(json.dumps({'id':i}|a),flush=True)\n"
    )
    agent = AcpAgent((sys.executable, "-c", program), AcpSettings(), trio.current_time)

    with trio.fail_after(60):
        async with agent.session(stage.params) as session:
            result = await session.run_turn("x", Heard())

    assert result.error_kind is ErrorKind.RESPONSE_ERROR
    assert "log in first" in (result.message or "")


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "max_turn_requests", "tired"])
async def test_a_turn_that_stops_otherwise_has_failed(stage: Stage, stop: str) -> None:
    """The reason is named."""
    result, _ = await stage.turn(f"acp: stop {stop}")

    assert result.error_kind is ErrorKind.TURN_FAILED
    assert stop in (result.message or "")


# Settings


async def test_model_mode_and_options_are_set(stage: Stage) -> None:
    """Before the first turn, and again in a process that replaces another."""
    settings = AcpSettings(permissions=TRUSTING, model="large", mode="bold", options={"m": "small"})

    first, second = await stage.turns(["acp: exit 3", "two"], settings=settings)

    assert messages(first[1]) == ["prompt 4"]
    assert messages(second[1])[-1] == "prompt 8"
    (history,) = (stage.workspace.parent / ".scripted-agent").iterdir()
    assert shlex.split(history.read_text()) == [
        *("large was set", "bold was set", "small was set", "acp: exit 3"),
        *("large was set", "bold was set", "small was set", "two"),
    ]


async def test_an_option_that_is_not_there_is_refused(stage: Stage) -> None:
    """With the names of those that are."""
    error = await refusal(stage, stage.agent(settings=AcpSettings(options={"speed": "high"})))

    assert error.kind is ErrorKind.RESPONSE_ERROR
    assert "acp.options.speed is set, but the agent offers no such option" in str(error)
    assert "its options: m;" in str(error)
