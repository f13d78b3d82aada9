"""History and totals, page by page."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import (
    TEXT_LIMIT,
    Activity,
    ErrorKind,
    HoldReason,
    RunId,
    RunStatus,
    RunSummary,
    Spending,
    StopReason,
    Streak,
)
from sortie.model.issues import DESCRIPTION_LIMIT
from sortie.scheduler.outcome_records import RecordHandoff
from sortie.scheduler.records import RecordHold
from sortie.store import (
    HistoryRow,
    Store,
    Totals,
    UnknownRun,
)
from tests.contract.store.reading import names
from tests.store.records import (
    T0,
    A,
    B,
    C,
    activity,
    an_issue,
    begin,
    end,
    image,
    moment,
    spending,
    turn,
    workspace,
)

ACTED = Activity(
    model="large \x1b", files_modified=("ü/\u2028.py",), files_omitted=True, tool_uses={"a'b": 2}
)
LEFT = RunSummary(
    answer="Done \ud800.\nLook at it.",
    branch="a-1",
    head_commit="c0ffee",
    commits=2,
    files_changed=3,
    uncommitted=1,
)
SPENT = Spending(input_tokens=1000, output_tokens=234, credits=0.75, cost_usd=0.5)


async def test_history_shows_each_run_whole(store: Store) -> None:
    """A row holds what was recorded, unknown is None, and a run under way has no end."""
    await store.commit(
        [begin("r1", A, streak=Streak(failures=2), host="box", agent="other"), workspace("r1")], T0
    )
    await store.commit(
        [
            spending("r1", SPENT),
            image("r1", "tools:7", "sha256:c0ffee"),
            activity("r1", Activity(model="small", files_modified=("gone.py",))),
            activity("r1", ACTED),
            end(
                "r1",
                RunStatus.TIMED_OUT,
                error_kind=ErrorKind.TURN_TIMEOUT,
                error="too long \ud800",
                turns=2,
                state="Rework",
                summary=LEFT,
            ),
        ],
        T0 + 60,
    )
    await store.commit([begin("r2", B), turn("r2", 1, B)], T0 + 61)

    history = await store.history()

    assert list(history) == [
        HistoryRow(
            run_id=RunId("r2"),
            issue="B-2",
            issue_id=B.id,
            attempt=0,
            status=RunStatus.RUNNING,
            error_kind=None,
            error=None,
            turns=1,
            host="local",
            workspace=None,
            agent="kiro",
            started_at=moment(T0 + 61),
            finished_at=None,
            title=B.title,
            description=B.description,
            state=B.state,
        ),
        HistoryRow(
            run_id=RunId("r1"),
            issue="A-1",
            issue_id=A.id,
            attempt=2,
            status=RunStatus.TIMED_OUT,
            error_kind=ErrorKind.TURN_TIMEOUT,
            error="too long \ud800",
            turns=2,
            spent=SPENT,
            tokens=1234,
            activity=ACTED,
            host="box",
            workspace="/w/A-1",
            agent="other",
            started_at=moment(T0),
            finished_at=moment(T0 + 60),
            title=A.title,
            description=A.description,
            state="Rework",
            summary=LEFT,
            image="tools:7",
            image_digest="sha256:c0ffee",
        ),
    ]


async def test_what_an_agent_was_asked_for_is_kept_and_bounded(store: Store) -> None:
    """Also when the run is over and the issue has changed; its middle is left out where it is long,
    and what no text of SQLite holds comes back as it was."""
    odd = an_issue("O-1", description="mend \ud800 \x00 <b>\n")
    long = an_issue("L-1", description="word " * 10_000)
    await store.commit([begin("r1", odd), end("r1"), begin("r2", long), end("r2")], T0)
    await store.commit([begin("r3", replace(odd, description="more")), end("r3")], T0 + 1)

    told = {row.run_id: row.description or "" for row in await store.history()}

    assert (told[RunId("r1")], told[RunId("r3")]) == ("mend \ud800 \x00 <b>\n", "more")
    assert len(told[RunId("r2")]) <= DESCRIPTION_LIMIT
    assert "[50000 characters, cut]" in told[RunId("r2")]


async def test_history_tells_when_an_issue_was_handed_off(store: Store) -> None:
    """The newest run of the issue has the time and the state, and no other run has them."""
    await store.commit([begin("r1", A), end("r1"), begin("r2", A), end("r2")], T0)
    await store.commit([begin("r3", B), end("r3", summary=LEFT)], T0 + 1)

    await store.commit([RecordHandoff(issue=A, state="Review")], T0 + 9)

    told = [(row.run_id, row.state, row.handed_off_at) for row in await store.history()]
    assert told == [
        ("r3", B.state, None),
        ("r2", "Review", moment(T0 + 9)),
        ("r1", A.state, None),
    ]


async def test_a_run_is_found_by_its_id(store: Store) -> None:
    """As history shows it, whether it is over or not; others are None."""
    await store.commit([begin("r1", A), spending("r1", SPENT), begin("r2", B)], T0)
    await store.commit([end("r1", RunStatus.FAILED, error="x\ud800")], T0 + 1)

    found = [await store.run(RunId(name)) for name in ("r1", "r2", "r3", "", "r1\0")]

    by_id = {row.run_id: row for row in await store.history()}
    assert found == [by_id[RunId("r1")], by_id[RunId("r2")], None, None, None]


async def test_a_text_from_outside_is_cut(store: Store) -> None:
    """What a host or an agent has said without end fills no disk, in a run's error or a hold's
    detail."""
    flood = "could not do it: " + "x" * 1_000_000
    hold = RecordHold(issue=B, reason=HoldReason.OPERATOR, detail=flood)
    await store.commit([begin("r1", A)], T0)
    await store.commit([end("r1", RunStatus.FAILED, error=flood), hold], T0 + 1)

    row = (await store.history())[0]
    held = (await store.recover()).holds[0]

    for kept in (row.error or "", held.detail):
        assert kept.startswith("could not do it: ")
        assert len(kept) <= TEXT_LIMIT


async def test_history_tells_what_sortie_stopped_from_what_failed(store: Store) -> None:
    """Two cancelled runs with one sentence are told apart by why they were stopped."""
    sentence = "the run was stopped: operator"
    for name, stopped_for in (("r1", StopReason.OPERATOR), ("r2", None)):
        await store.commit([begin(name)], T0)
        over = end(name, RunStatus.CANCELLED, error=sentence, stopped_for=stopped_for)
        await store.commit([over], T0 + 1)

    rows = await store.history()

    assert [(row.run_id, row.stopped_for) for row in rows] == [
        ("r2", None),
        ("r1", StopReason.OPERATOR),
    ]


@pytest.mark.parametrize(("told", "kept"), [(None, 3), (0, 0), (5, 5)])
async def test_an_exit_corrects_the_turns_only_if_it_counts_them(
    store: Store, told: int | None, kept: int
) -> None:
    """An exit without a number of turns keeps the recorded one; with one, that stands."""
    await store.commit([begin("r1"), turn("r1", 3)], T0)

    await store.commit([end("r1", turns=told)], T0 + 1)
    history, totals = await store.history(), await store.totals()

    assert [row.turns for row in history] == [kept]
    assert totals.turns == kept


async def test_history_is_newest_first_and_goes_on_without_gap_or_repeat(store: Store) -> None:
    """Pages follow each other by start, runs of one instant by the order of recording, also where
    the clock was set back."""
    for number, at in enumerate([T0, T0 + 5, T0 + 5, T0 + 5, T0 + 1, T0 + 9]):
        issue = A if number % 2 else B
        await store.commit([begin(f"r{number}", issue), end(f"r{number}")], at)

    everything = await names(store)
    first = await names(store, limit=2)
    second = await names(store, limit=2, before=first[-1])
    third = await names(store, limit=2, before=second[-1])
    fourth = await names(store, limit=2, before=third[-1])

    assert everything == ["r5", "r3", "r2", "r1", "r4", "r0"]
    assert first + second + third == everything
    assert fourth == []


async def test_history_of_one_issue_has_only_its_runs(store: Store) -> None:
    """The filter is the identifier, whole and case-sensitive, on every page."""
    for number in range(6):
        issue = A if number % 2 else B
        await store.commit([begin(f"r{number}", issue), end(f"r{number}")], T0 + number)

    of_a = await names(store, issue="A-1")
    next_page = await names(store, issue="A-1", limit=1, before="r5")
    before_anothers = await names(store, issue="A-1", before="r4")
    of_nobody = await names(store, issue="a-1")

    assert of_a == ["r5", "r3", "r1"]
    assert next_page == ["r3"]
    assert before_anothers == ["r3", "r1"]
    assert of_nobody == []


async def test_history_of_one_rule_has_only_its_runs(store: Store) -> None:
    """Of one issue, too; "" is the top level of the settings."""
    for number, rule in enumerate(("docs", "", "docs", "urgent", "docs")):
        issue = A if number % 2 else B
        await store.commit([begin(f"r{number}", issue, rule=rule), end(f"r{number}")], T0 + number)

    assert await names(store, rule="docs") == ["r4", "r2", "r0"]
    assert await names(store, rule="docs", limit=1, before="r4") == ["r2"]
    assert await names(store, rule="urgent", issue="A-1") == ["r3"]
    assert await names(store, rule="urgent", issue="B-1") == []
    assert await names(store, rule="") == ["r1"]


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_page_without_room_is_empty(store: Store, limit: int) -> None:
    """A limit of nothing, or less, gives nothing."""
    await store.commit([begin("r1")], T0)

    page = await names(store, limit=limit)

    assert page == []


async def test_history_before_an_unknown_run_is_an_error(store: Store) -> None:
    """A page cannot follow a run that was never recorded, and the error names that run."""
    await store.commit([begin("r1")], T0)

    with pytest.raises(UnknownRun, match="no run r9 is recorded") as caught:
        await store.history(before=RunId("r9"))

    assert caught.value.run_id == "r9"


async def test_totals_sum_up_all_runs(store: Store) -> None:
    """Runs and turns of runs under way count; credits and tokens where told; time of what ended."""
    await store.commit([begin("r1", A), turn("r1", 1), turn("r1", 2)], T0)
    await store.commit([begin("r2", B), turn("r2", 1, B)], T0 + 1)
    await store.commit([begin("r3", C)], T0 + 2)

    await store.commit([spending("r1", Spending(credits=0.25)), end("r1", turns=2)], T0 + 10)
    used = Spending(credits=0.25, output_tokens=100, cost_usd=1.5, estimated_usd=0.5)
    await store.commit([spending("r2", Spending(credits=0.125)), spending("r2", used)], T0 + 20)
    await store.commit([end("r2", turns=1)], T0 + 21)
    await store.commit([begin("r4", A), begin("r5", B), end("r4")], T0 + 30)
    totals = await store.totals()

    assert totals == Totals(
        runs=5,
        turns=3,
        credits=0.5,
        tokens=100,
        cost_usd=1.5,
        estimated_usd=0.5,
        seconds_running=30.0,
    )


async def test_a_clock_set_back_keeps_what_is_told_and_counts_no_negative_time(
    store: Store,
) -> None:
    """A run that ends before it began is shown so, and adds no time."""
    await store.commit([begin("r1")], T0)

    await store.commit([end("r1")], T0 - 3600)
    (row,) = await store.history()
    totals = await store.totals()

    assert (row.started_at, row.finished_at) == (moment(T0), moment(T0 - 3600))
    assert totals.seconds_running == 0.0


async def test_a_run_cut_short_counts_until_it_was_last_heard_of(store: Store) -> None:
    """The time between a crash and the next start is nobody's running time."""
    await store.commit([begin("r1"), workspace("r1")], T0)
    await store.commit([turn("r1", 1)], T0 + 30)

    await store.recover()
    await store.commit([end("r1", RunStatus.INTERRUPTED), begin("r2")], T0 + 86_400)
    await store.commit([end("r2")], T0 + 86_405)
    totals = await store.totals()

    assert totals.seconds_running == 35.0
