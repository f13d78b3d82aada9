"""What a store gives back at the next start."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import (
    LOCAL,
    Activity,
    AgentSession,
    Delivery,
    Finish,
    HoldReason,
    ProcessIdentity,
    RunId,
    Spending,
    Stage,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.model.turns_under_way import DeliveryUnderWay, TurnUnderWay
from sortie.scheduler.records import (
    ForgetComment,
    ForgetCrashes,
    ForgetHold,
    ForgetRetry,
    ForgetWorkspace,
    RecordComment,
    RecordCrash,
    RecordHold,
    RecordPause,
    RecordProcess,
    RecordSpending,
    RecordTakeOver,
    RecordTurnUnderWay,
    RecordUnsaved,
    ResetBudget,
)
from sortie.store import (
    Recovered,
    Store,
    StoredCrash,
    StoredHold,
    StoredRetry,
    Totals,
    UnfinishedRun,
)
from tests.store.records import (
    FULL_ISSUE,
    T0,
    A,
    B,
    C,
    an_issue,
    begin,
    end,
    retry,
    session,
    turn,
    workspace,
)


async def test_an_empty_store_knows_nothing(store: Store) -> None:
    """A new store recovers nothing, has no history, and unknown totals are None."""
    recovered = await store.recover()
    history = await store.history()
    totals = await store.totals()

    assert recovered == Recovered()
    assert list(history) == []
    assert totals == Totals(runs=0, turns=0, credits=None, tokens=None, seconds_running=0.0)


async def test_a_run_under_way_is_recovered_whole(store: Store) -> None:
    """All that was recorded of an unfinished run comes back, the issue equal in every field."""
    streak = Streak(failures=3, continuations=2, interruptions=1)
    process = ProcessIdentity(pid=4711, started_at=1_699_999_999.123456)

    await store.commit([begin("r1", FULL_ISSUE, streak=streak, host="me@box:22")], T0)
    await store.commit([workspace("r1", FULL_ISSUE), turn("r1", 4, FULL_ISSUE, 7)], T0 + 1)
    await store.commit([RecordProcess(run_id=RunId("r1"), process=process)], T0 + 2)
    recovered = await store.recover()

    assert recovered == Recovered(
        unfinished=(
            UnfinishedRun(
                run_id=RunId("r1"),
                issue=FULL_ISSUE,
                streak=streak,
                host="me@box:22",
                process=process,
                workspace="/w/F-1",
                turns=4,
                began=T0,
                heard_of=T0 + 2,
            ),
        ),
        sessions={FULL_ISSUE.id: 7},
        workspaces=(workspace("r1", FULL_ISSUE).workspace,),
    )


async def test_a_turn_with_which_another_daemon_can_go_on_is_recovered(store: Store) -> None:
    """Until its end is recorded, or another turn begins; with since when it is under way, what is
    on record of its run, and from which daemons the run was taken over."""
    spent = Spending(input_tokens=100, output_tokens=20)
    under_way = TurnUnderWay(
        number=2,
        issue=FULL_ISSUE,
        daemon="alpha:17",
        agent="claude-code",
        command="'claude'",
        spent=Spending(input_tokens=60),
        activity=Activity(model="m", files_modified=("a",), tool_uses={"Edit": 2}),
        delivery=DeliveryUnderWay(
            delivery=Delivery(
                branch="b", base="main", host="h", stage=Stage.DROPPED, finish=Finish.DONE
            ),
            recorded=False,
            behind=1,
            unmerged=0,
        ),
        program="p-1",
        memo="resumes",
    )
    run_id = RunId("r1")
    known = RecordTurnUnderWay(run_id=run_id, turn=under_way)

    await store.commit([begin("r1", FULL_ISSUE), turn("r1", 2, FULL_ISSUE, 1)], T0)
    await store.commit([known, RecordSpending(run_id=run_id, spent=spent)], T0 + 1)
    await store.commit([RecordTakeOver(run_id=run_id, daemon="alpha:17", turn=2)], T0 + 2)
    await store.commit([RecordTakeOver(run_id=run_id, daemon="beta:3", turn=2)], T0 + 3)
    (found,) = (await store.recover()).unfinished
    await store.commit([turn("r1", 3, FULL_ISSUE, 1)], T0 + 4)
    (later,) = (await store.recover()).unfinished
    await store.commit([known, RecordTurnUnderWay(run_id=run_id, turn=None)], T0 + 5)
    (latest,) = (await store.recover()).unfinished
    row = await store.run(run_id)

    assert (found.turn, found.turn_at) == (under_way, T0 + 1)
    assert (found.spent, found.began) == (spent, T0)
    assert (later.turn, latest.turn) == (None, None)
    assert row is not None
    assert row.taken_over == "from alpha:17 in turn 2; from beta:3 in turn 2"


async def test_the_newest_known_session_of_an_issue_is_recovered(store: Store) -> None:
    """One that was told later counts, also where a newer run told none; an issue without a
    workspace has none to go on with."""
    known = workspace("r1", A)
    await store.commit([begin("r1", A), known, session("r1", "s-1"), session("r1", "s-2")], T0)
    await store.commit([end("r1"), begin("r2", A), begin("r3", B), session("r3", "s-3")], T0 + 1)

    recovered = await store.recover()

    assert recovered.agent_sessions == {
        A.id: AgentSession(host=LOCAL, agent="kiro", workspace="/w/A-1", session_id="s-2")
    }


async def test_a_workspace_is_unsaved_until_a_run_has_it_again(store: Store) -> None:
    """It is so since it was first found so, whatever is found later."""
    unsaved = RecordUnsaved(host=LOCAL, path="/w/A-1")
    await store.commit([begin("r1", A), workspace("r1", A), end("r1"), unsaved], T0)
    await store.commit([unsaved], T0 + 5)
    first = (await store.recover()).unsaved

    await store.commit([begin("r2", A), workspace("r2", A)], T0 + 9)

    assert first == {(LOCAL, "/w/A-1"): T0}
    assert (await store.recover()).unsaved == {}


async def test_a_session_goes_with_its_directory(store: Store) -> None:
    """One of a directory that was removed does not come back with another of the same name, and
    one of a directory that another issue has now is not handed to anybody."""
    for run_id, issue in (("r1", A), ("r2", B)):
        place = workspace(run_id, issue)
        await store.commit([begin(run_id, issue), place, session(run_id, f"of {run_id}")], T0)
        await store.commit([end(run_id)], T0 + 1)
    both = (await store.recover()).agent_sessions

    gone = ForgetWorkspace(host=LOCAL, path="/w/A-1")
    await store.commit([gone, begin("r3", A), workspace("r3", A)], T0 + 2)
    await store.commit([begin("r4", C), workspace("r4", C, path="/w/B-2")], T0 + 3)
    after = (await store.recover()).agent_sessions

    assert {issue_id: known.session_id for issue_id, known in both.items()} == {
        A.id: "of r1",
        B.id: "of r2",
    }
    assert after == {}


async def test_unfinished_runs_come_in_the_order_they_began(store: Store) -> None:
    """Runs that are over are not recovered, and the others stand in the order of their records."""
    await store.commit([begin("r3", C), begin("r1", A), begin("r2", B)], T0)
    await store.commit([end("r1")], T0 + 1)

    recovered = await store.recover()

    assert [run.run_id for run in recovered.unfinished] == ["r3", "r2"]


async def test_waits_and_holds_are_recovered_with_their_times(store: Store) -> None:
    """A wait is due its delay after the commit; a hold counts from the commit; sorted by time."""
    streak = Streak(failures=2, interruptions=1)
    await store.commit(
        [
            retry(
                FULL_ISSUE,
                kind=WaitKind.HANDOFF,
                trigger=Trigger.HANDOFF,
                streak=streak,
                delay=40.5,
                tries=3,
            ),
            retry(A),
        ],
        T0,
    )
    await store.commit(
        [RecordHold(issue=C, reason=HoldReason.OPERATOR, detail="someone asked")], T0 + 2
    )
    await store.commit(
        [RecordHold(issue=B, reason=HoldReason.AGENT_BLOCKED, detail="\ud800")], T0 + 1
    )

    recovered = await store.recover()

    assert recovered == Recovered(
        retries=(
            StoredRetry(
                issue=A,
                kind=WaitKind.RETRY,
                trigger=Trigger.ERROR,
                streak=Streak(failures=1),
                delay=10.0,
                due_at=T0 + 10.0,
                tries=0,
            ),
            StoredRetry(
                issue=FULL_ISSUE,
                kind=WaitKind.HANDOFF,
                trigger=Trigger.HANDOFF,
                streak=streak,
                delay=40.5,
                due_at=T0 + 40.5,
                tries=3,
            ),
        ),
        holds=(
            StoredHold(issue=B, reason=HoldReason.AGENT_BLOCKED, detail="\ud800", since=T0 + 1),
            StoredHold(issue=C, reason=HoldReason.OPERATOR, detail="someone asked", since=T0 + 2),
        ),
    )


async def test_a_hold_keeps_the_state_that_was_not_reached(store: Store) -> None:
    """Another baseline changes nothing of that, and a later hold for another reason forgets it."""
    failed = RecordHold(
        issue=A,
        reason=HoldReason.HANDOFF_FAILED,
        detail="no",
        baseline_final=False,
        handoff_state="Done?",
    )

    await store.commit([failed], T0)
    await store.commit(
        [replace(failed, baseline_final=True, again=True, handoff_state=None)], T0 + 1
    )
    kept = (await store.recover()).holds
    await store.commit([RecordHold(issue=A, reason=HoldReason.OPERATOR, detail="x")], T0 + 2)
    after = (await store.recover()).holds

    assert [(hold.baseline_final, hold.handoff_state) for hold in kept] == [(True, "Done?")]
    assert [hold.handoff_state for hold in after] == [None]


async def test_a_later_wait_or_hold_replaces_the_earlier(store: Store) -> None:
    """An issue has at most one wait and one hold: the last recorded."""
    moved = an_issue("A-1", state="Doing")

    await store.commit([retry(A), retry(moved, delay=5.0, tries=1)], T0)
    await store.commit(
        [
            RecordHold(issue=A, reason=HoldReason.OPERATOR, detail="first"),
            RecordHold(issue=moved, reason=HoldReason.INTERNAL_ERROR, detail="second"),
        ],
        T0 + 1,
    )
    recovered = await store.recover()

    assert [(r.issue, r.due_at, r.tries) for r in recovered.retries] == [(moved, T0 + 5.0, 1)]
    assert [(h.issue, h.reason, h.detail) for h in recovered.holds] == [
        (moved, HoldReason.INTERNAL_ERROR, "second")
    ]


async def test_another_baseline_leaves_the_rest_of_a_hold(store: Store) -> None:
    """A hold keeps its reason, words and time when it is only compared with something else, and
    what is not held does not become so."""
    moved, reason = an_issue("A-1", state="Doing"), HoldReason.OPERATOR
    await store.commit([RecordHold(issue=A, reason=reason, detail="x", baseline_final=False)], T0)
    unsettled = (await store.recover()).holds

    await store.commit(
        [
            RecordHold(issue=moved, reason=HoldReason.INTERNAL_ERROR, detail="", again=True),
            RecordHold(issue=B, reason=HoldReason.INTERNAL_ERROR, detail="", again=True),
        ],
        T0 + 5,
    )
    baseline_final = (await store.recover()).holds
    await store.commit(
        [RecordHold(issue=A, reason=reason, detail="", baseline_final=False, again=True)], T0
    )
    again = (await store.recover()).holds

    assert again == unsettled
    assert unsettled == (
        StoredHold(issue=A, reason=reason, detail="x", since=T0, baseline_final=False),
    )
    assert baseline_final == (StoredHold(issue=moved, reason=reason, detail="x", since=T0),)


async def test_what_is_forgotten_does_not_come_back(store: Store) -> None:
    """Each forgetting record removes its own, leaves the others, and may find nothing."""
    hold = RecordHold(issue=A, reason=HoldReason.OPERATOR, detail="")
    await store.commit(
        [
            begin("r1", A),
            begin("r2", B),
            workspace("r1", A),
            workspace("r1", A, host="box"),
            workspace("r2", B),
            turn("r1", 1, A, 2),
            turn("r2", 1, B, 1),
            retry(A),
            hold,
            RecordCrash(issue=A),
            RecordCrash(issue=B),
            RecordPause(paused=True),
        ],
        T0,
    )

    await store.commit(
        [
            ForgetWorkspace(host="box", path="/w/A-1"),
            ForgetWorkspace(host="box", path="/w/B-2"),
            ForgetWorkspace(host="local", path="/w/C-3"),
            ForgetCrashes(issue_id=A.id),
            ForgetCrashes(issue_id=C.id),
            ResetBudget(issue_id=A.id),
            ResetBudget(issue_id=C.id),
            ForgetRetry(issue_id=A.id),
            ForgetRetry(issue_id=C.id),
            ForgetHold(issue_id=A.id),
            ForgetHold(issue_id=C.id),
            RecordPause(paused=False),
            end("r1"),
            end("r2"),
        ],
        T0 + 1,
    )
    recovered = await store.recover()

    assert recovered == Recovered(
        sessions={B.id: 1},
        workspaces=(workspace("r1", A).workspace, workspace("r2", B).workspace),
        crashes=(StoredCrash(issue=B, times=1),),
    )


async def test_a_directory_belongs_to_the_issue_that_had_it_last(store: Store) -> None:
    """A host and a path are one directory, with one owner, which may have several on a host."""
    renamed = an_issue("A-2", id=A.id)
    await store.commit(
        [
            begin("r1", A),
            workspace("r1", A),
            workspace("r1", A, host="box"),
            workspace("r1", renamed),
            begin("r2", B),
            workspace("r2", B),
        ],
        T0,
    )

    await store.commit([workspace("r2", B, path="/w/A-1"), workspace("r1", renamed)], T0 + 1)
    recovered = await store.recover()

    assert recovered.workspaces == (
        workspace("r1", A, host="box").workspace,
        workspace("r1", renamed).workspace,
        workspace("r2", B, path="/w/A-1").workspace,
        workspace("r2", B).workspace,
    )


async def test_crashes_are_counted_by_issue(store: Store) -> None:
    """Each crash counts one more, the issue as it last was is kept, and forgetting begins anew."""
    moved = an_issue("A-1", state="Doing")
    await store.commit([RecordCrash(issue=B), RecordCrash(issue=FULL_ISSUE)], T0)
    await store.commit([RecordCrash(issue=B), RecordCrash(issue=A)], T0 + 1)
    await store.commit([RecordCrash(issue=moved)], T0 + 2)

    counted = (await store.recover()).crashes
    await store.commit([ForgetCrashes(issue_id=B.id), RecordCrash(issue=B)], T0 + 3)
    anew = (await store.recover()).crashes

    assert counted == (
        StoredCrash(issue=moved, times=2),
        StoredCrash(issue=B, times=2),
        StoredCrash(issue=FULL_ISSUE, times=1),
    )
    assert anew == (counted[0], StoredCrash(issue=B, times=1), counted[2])


async def test_records_take_effect_in_their_order(store: Store) -> None:
    """Within one commit a run may end and the issue's next begin, and the last word on pause
    stands."""
    await store.commit([begin("r1")], T0)

    await store.commit(
        [
            RecordPause(paused=False),
            end("r1"),
            begin("r2"),
            retry(),
            ForgetRetry(issue_id=A.id),
            RecordPause(paused=True),
        ],
        T0 + 1,
    )
    recovered = await store.recover()

    assert [run.run_id for run in recovered.unfinished] == ["r2"]
    assert recovered.retries == ()
    assert recovered.paused


async def test_comments_that_are_due_are_recovered_until_they_are_forgotten(store: Store) -> None:
    """With all that is needed to make them; forgetting another changes nothing."""
    due = RecordComment(run_id=RunId("r1"), issue=FULL_ISSUE, lifecycle="failure", body="a\n😀")
    await store.commit([begin("r1", FULL_ISSUE), end("r1"), due], T0)

    await store.commit([ForgetComment(run_id=RunId("r1"), lifecycle="completion")], T0)
    (found,) = (await store.recover()).comments
    await store.commit([ForgetComment(run_id=RunId("r1"), lifecycle="failure")], T0)

    assert (found.run_id, found.issue, found.lifecycle, found.body) == (
        due.run_id,
        due.issue,
        due.lifecycle,
        due.body,
    )
    assert (await store.recover()).comments == ()
