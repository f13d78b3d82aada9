"""Which spans are made of which facts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sortie import facts as f
from sortie.model import ErrorKind, RunId, RunStatus, Spending, Stage, TurnOutcome
from sortie.model.reviews import ReviewVerdict
from sortie.model.traces import (
    RUN as ROOT,
)
from sortie.model.traces import RunTrace, hook_part, is_sampled, span_id_of, trace_id_of, turn_part
from sortie.telemetry.traces.sink import TracedWorkflow, TraceSink
from sortie.telemetry.traces.spans import Span
from tests.telemetry.samples import (
    AGENT_USED,
    FACTS,
    ISSUE,
    PULL_REQUEST,
    RUN,
    RUN_FINISHED,
    RUN_STARTED,
)

BEGIN = 1_800_000_000_000_000_000
SECOND = 1_000_000_000
OTHER = RunId("99999999-2222-3333-4444-555555555555")


class Rig:
    """A sink whose clock goes on by a second before each fact."""

    def __init__(self, sample: float = 1.0, *, content: bool = False) -> None:
        self.now = BEGIN
        self.spans: list[Span] = []
        workflow = TracedWorkflow(
            name="/w/WORKFLOW.md",
            sample=sample,
            content=content,
            provider_of=lambda kind: {"kiro": "kiro", "claude-code": "anthropic"}.get(kind, kind),
            wall=lambda: self.now,
        )
        self.sink = TraceSink(workflow, self.spans.append)

    def tell(self, *facts: f.Fact) -> None:
        for fact in facts:
            self.sink(fact)
            self.now += SECOND

    def one(self, name: str) -> Span:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> set[tuple[str, str]]:
        """Return the names of spans, each with that of its parent."""
        names = {span.span_id: span.name for span in self.spans}
        return {(span.name, names.get(span.parent_id or 0, "")) for span in self.spans}


def tool(call: str, **fields: object) -> f.ToolCallEnded:
    ended = f.ToolCallEnded(
        run_id=RUN, call=call, tool="Bash", kind="execute", locations=(), seconds=2.0, failed=False
    )
    return replace(ended, **fields)


def began(
    turn: int = 1, role: str | None = None, prompt: str | None = None, agent: str = "kiro"
) -> f.TurnBegan:
    return f.TurnBegan(run_id=RUN, turn=turn, max_turns=3, role=role, agent=agent, prompt=prompt)


def completed(turn: int = 1, **fields: object) -> f.TurnCompleted:
    done = f.TurnCompleted(
        run_id=RUN, agent="kiro", turn=turn, outcome=TurnOutcome.COMPLETED, seconds=3.0
    )
    return replace(done, **fields)


def phase(name: str) -> f.RunPhaseChanged:
    return f.RunPhaseChanged(run_id=RUN, phase=f.Phase(name))


def hook(name: str, **fields: object) -> f.HookCompleted:
    ended = f.HookCompleted(
        hook=name, result="ok", seconds=0.5, issue_identifier="DEMO-1", run_id=RUN, status="exit 0"
    )
    return replace(ended, **fields)


WHOLE: Sequence[f.Fact] = (
    RUN_STARTED,
    phase("starting"),
    phase("workspace"),
    f.WorkspaceReady(run_id=RUN, path="/w/DEMO-1", created=True),
    phase("hook"),
    hook("before_run"),
    phase("session"),
    f.SessionStarted(run_id=RUN, session_id="s-1"),
    phase("turn"),
    began(),
    f.ToolCallStarted(run_id=RUN, call="c-1", tool="Bash", kind="execute", locations=()),
    tool("c-1"),
    f.ModelAnswerTimed(run_id=RUN, agent="kiro", model="m-1", seconds=0.5),
    AGENT_USED,
    AGENT_USED,
    completed(spent=Spending(credits=0.25)),
    phase("reread"),
    phase("delivery"),
    f.DeliveryAdvanced(run_id=RUN, stage=Stage.FINISHED, branch="b"),
    f.CommandVerified(run_id=RUN, command="make", ok=False, status="exit 2", seconds=0.25),
    f.DeliveryAdvanced(run_id=RUN, stage=Stage.PROVEN, branch="b", head="abc"),
    phase("review"),
    began(role="reviewer", agent="claude-code"),
    completed(role="reviewer", agent="claude-code"),
    phase("delivery"),
    f.ReviewFinished(
        run_id=RUN,
        verdict=ReviewVerdict.APPROVE,
        commit="abc",
        agent="kiro",
        round=1,
        findings=0,
        seconds=3.0,
    ),
    f.DeliveryAdvanced(run_id=RUN, stage=Stage.PUSHED, branch="b", head="abc"),
    f.DeliveryAdvanced(
        run_id=RUN, stage=Stage.DELIVERED, branch="b", head="abc", pull_request=PULL_REQUEST
    ),
    phase("ending"),
    hook("after_run"),
    RUN_FINISHED,
)


def test_a_run_is_a_tree_of_its_phases_turns_and_tools() -> None:
    """Each part stands below what contains it, within its times, in the trace of the run."""
    rig = Rig()
    rig.tell(*WHOLE)
    by_id = {span.span_id: span for span in rig.spans}

    assert rig.tree() == {
        ("run", ""),
        ("start", "run"),
        ("workspace", "run"),
        ("hook before_run", "run"),
        ("session", "run"),
        ("invoke_agent kiro", "run"),
        ("execute_tool Bash", "invoke_agent kiro"),
        ("chat m-1", "invoke_agent kiro"),
        ("reread", "run"),
        ("delivery", "run"),
        ("verify", "delivery"),
        ("prove", "delivery"),
        ("review", "run"),
        ("invoke_agent claude-code", "review"),
        ("push", "delivery"),
        ("pull request", "delivery"),
        ("end", "run"),
        ("hook after_run", "end"),
    }
    assert {span.trace_id for span in rig.spans} == {trace_id_of(RUN)}
    assert len(by_id) == len(rig.spans)
    for span in rig.spans:
        outer = by_id.get(span.parent_id or 0, span)
        assert outer.start <= span.start <= span.end <= outer.end


def test_the_root_tells_of_the_run() -> None:
    """Whose it is, and how it ended."""
    rig = Rig()
    failed = replace(RUN_FINISHED, status=RunStatus.FAILED, error_kind=ErrorKind.PORT_EXIT)
    rig.tell(replace(RUN_STARTED, rule="bugs", attempt=2), replace(failed, error="exit 3: hush"))
    root = rig.one("run")

    assert (root.parent_id, root.span_id) == (None, span_id_of(RUN, ROOT))
    assert (root.start, root.end, root.error) == (BEGIN, BEGIN + SECOND, "port_exit")
    told = {
        "sortie.run.id": RUN,
        "sortie.workflow": "/w/WORKFLOW.md",
        "sortie.issue.id": "1",
        "sortie.issue.identifier": "DEMO-1",
        "sortie.rule": "bugs",
        "sortie.host": "local",
        "gen_ai.agent.name": "kiro",
        "sortie.attempt": 2,
        "sortie.trigger": "poll",
        "sortie.run.status": "failed",
    }
    assert told.items() <= root.attributes.items()
    assert "hush" not in str(rig.spans)


def test_a_turn_keeps_to_the_conventions() -> None:
    """Model, session and tokens have the names of the conventions; tokens are added up."""
    rig = Rig()
    rig.tell(*WHOLE)
    turn, reviewer = rig.one("invoke_agent kiro"), rig.one("invoke_agent claude-code")

    assert reviewer.attributes["gen_ai.provider.name"] == "anthropic"
    assert reviewer.attributes["sortie.role"] == "reviewer"
    assert "gen_ai.conversation.id" not in reviewer.attributes
    assert turn.kind == "client"
    assert turn.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "kiro",
        "gen_ai.agent.name": "kiro",
        "gen_ai.conversation.id": "s-1",
        "gen_ai.response.model": "m-1",
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 10,
        "sortie.turn": 1,
        "sortie.turn.outcome": "completed",
        "sortie.credits": 0.25,
    }
    assert rig.one("execute_tool Bash").attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "Bash",
        "gen_ai.tool.call.id": "c-1",
        "sortie.tool.kind": "execute",
        "sortie.tool.status": "completed",
    }


def test_the_ids_are_those_that_programs_were_given() -> None:
    """What an agent or a hook adds stands below its turn, or its hook."""
    rig, trace = Rig(), RunTrace(RUN, 1.0)
    rig.tell(*WHOLE)
    turns = [span.span_id for span in rig.spans if span.name.startswith("invoke_agent")]
    before = trace.turn()
    trace.begin_turn()

    def header(span_id: int) -> str:
        return f"00-{trace_id_of(RUN):032x}-{span_id:016x}-01"

    assert before == header(rig.one("session").span_id)
    assert trace.turn() == header(turns[0])
    assert turns == [span_id_of(RUN, turn_part(1)), span_id_of(RUN, turn_part(2))]
    assert rig.one("hook after_run").span_id == span_id_of(RUN, hook_part("after_run"))


def test_a_tool_whose_end_is_not_told_ends_with_its_turn() -> None:
    """One whose start is not told began as long ago as it took, but not before its turn."""
    rig = Rig()
    started = f.ToolCallStarted(run_id=RUN, call="c-1", tool="Edit", kind="edit", locations=())
    rig.tell(RUN_STARTED, began(), started)
    rig.tell(tool("c-9", seconds=1.0), tool("c-10", tool="Read", seconds=900.0, failed=True))
    rig.tell(completed())
    turn = rig.one("invoke_agent kiro")

    assert rig.one("execute_tool Edit").end == turn.end
    assert rig.one("execute_tool Edit").attributes["sortie.unfinished"] is True
    assert rig.one("execute_tool Bash").end - rig.one("execute_tool Bash").start == SECOND
    assert rig.one("execute_tool Read").start == turn.start
    assert rig.one("execute_tool Read").error == "tool_failed"


def test_runs_at_once_do_not_mix() -> None:
    """Facts of two runs come in any order, and each goes to its own trace."""
    rig = Rig()
    rig.tell(
        RUN_STARTED, replace(RUN_STARTED, run_id=OTHER), began(), replace(began(), run_id=OTHER)
    )
    rig.tell(tool("a", tool="One"), replace(tool("b", tool="Two"), run_id=OTHER))
    rig.tell(replace(completed(), run_id=OTHER), replace(RUN_FINISHED, run_id=OTHER))
    rig.tell(completed(), RUN_FINISHED)

    for name, run_id in (("execute_tool One", RUN), ("execute_tool Two", OTHER)):
        assert rig.one(name).trace_id == trace_id_of(run_id)
        assert rig.one(name).parent_id == span_id_of(run_id, turn_part(1))


def test_an_interrupted_run_gets_its_root_from_the_next_daemon() -> None:
    """With the ids that it would have had, the times on record, and as interrupted."""
    first, second = Rig(), Rig()
    first.tell(RUN_STARTED, phase("workspace"), began())
    first.sink.close()
    second.tell(
        f.RunRecovered(
            run_id=RUN,
            issue=ISSUE,
            host="local",
            turns=1,
            began=BEGIN / 1e9,
            heard_of=BEGIN / 1e9 + 7,
        )
    )
    root = second.one("run")

    assert [span.name for span in first.spans] == ["workspace", "invoke_agent kiro"]
    assert {span.parent_id for span in first.spans} == {root.span_id}
    assert {span.trace_id for span in first.spans} == {root.trace_id}
    assert (root.start, root.end) == (BEGIN, BEGIN + 7 * SECOND)
    assert root.error == "interrupted"


@pytest.mark.parametrize("content", [False, True])
def test_prompts_and_answers_are_in_spans_only_where_they_are_wanted(content: bool) -> None:
    """Nor is what tools were given and said, nor an error in the words of an agent."""
    rig = Rig(content=content)
    rig.tell(RUN_STARTED, began(prompt="PROMPT"))
    rig.tell(tool("c", about="GIVEN", output="SAID", locations=("PLACE",)))
    rig.tell(tool("d", failed=True, error="WRONG"))
    rig.tell(completed(answer="ANSWER", outcome=TurnOutcome.FAILED, error="LAST WORDS"))
    rig.tell(replace(RUN_FINISHED, status=RunStatus.FAILED, error="REASON"))
    told = str(rig.spans)

    words = ("PROMPT", "GIVEN", "SAID", "PLACE", "WRONG", "ANSWER", "LAST WORDS", "REASON")
    assert [word for word in words if word in told] == (list(words) if content else [])


def test_no_text_has_a_secret_or_is_longer_than_its_limit() -> None:
    """Whatever attribute, event or name it stands in; half of a pair of surrogates is replaced."""
    rig = Rig(content=True)
    rig.sink.hide(frozenset({"hunter2-hunter2"}))
    rig.tell(replace(RUN_STARTED, rule="hunter2-hunter2"), began(prompt="x" * 200_000))
    rig.tell(tool("c", tool="hunter2-hunter2\ud800", about="run hunter2-hunter2"))
    rig.tell(completed(outcome=TurnOutcome.FAILED, error="hunter2-hunter2"))
    rig.tell(RUN_FINISHED)
    turn = rig.one("invoke_agent kiro")

    assert "hunter2" not in str(rig.spans)
    assert rig.one("execute_tool ***\ufffd").attributes["gen_ai.tool.call.arguments"] == "run ***"
    assert len(str(turn.attributes["gen_ai.input.messages"])) <= 64 * 1024


def test_a_share_of_runs_is_traced() -> None:
    """The same runs by whoever is asked, and all facts of others are passed over."""
    runs = [RunId(f"run-{number}") for number in range(1000)]
    rig = Rig(sample=0.25)
    for run_id in runs:
        rig.tell(replace(RUN_STARTED, run_id=run_id), replace(RUN_FINISHED, run_id=run_id))
    traced = {span.trace_id for span in rig.spans}
    flags = {run_id: RunTrace(run_id, 0.25).turn()[-2:] for run_id in runs}

    assert 180 < len(traced) < 320
    assert traced == {trace_id_of(run_id) for run_id in runs if flags[run_id] == "01"}
    assert not any(is_sampled(trace_id_of(run_id), 0.0) for run_id in runs)
    assert all(is_sampled(trace_id_of(run_id), 1.0) for run_id in runs)


def test_a_later_run_and_a_merge_are_linked_to_the_run_before() -> None:
    """A reaction has the pull request of that run; what an issue waited for is the trigger."""
    rig = Rig()
    rig.tell(RUN_STARTED, RUN_FINISHED)
    rig.tell(f.MergeAttempted(issue=ISSUE, pull_request=PULL_REQUEST, result="refused", error="no"))
    rig.tell(replace(RUN_STARTED, run_id=OTHER, reaction=("checks",)))
    rig.tell(replace(RUN_FINISHED, run_id=OTHER))
    merge, later = rig.one("merge"), rig.spans[-1]
    link = (trace_id_of(RUN), span_id_of(RUN, ROOT))

    assert (merge.links, later.links) == ((link,), (link,))
    assert (merge.trace_id == link[0], merge.error) == (False, "refused")
    assert later.attributes["sortie.trigger"] == "reaction"
    assert later.attributes["sortie.reaction"] == ["checks"]


def test_a_clock_that_is_set_back_makes_no_negative_time() -> None:
    """A span whose end is before its start has no length."""
    rig = Rig()
    rig.tell(RUN_STARTED, began())
    rig.now -= 100 * SECOND
    rig.tell(completed(), RUN_FINISHED)

    assert all(span.start <= span.end for span in rig.spans)


def test_every_kind_of_fact_is_taken() -> None:
    """Of a run that is known, that is not known, and that is over."""
    rig = Rig(content=True)
    for _ in range(2):
        rig.tell(*FACTS)
    rig.sink.close()
    rig.tell(*(fact for fact in FACTS if not isinstance(fact, f.RunStarted)))

    assert rig.spans
