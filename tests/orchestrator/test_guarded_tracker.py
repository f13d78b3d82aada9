"""What becomes of a request to the tracker that does not end as the port says."""

from __future__ import annotations

import errno
from collections.abc import Collection, Sequence

import pytest
import trio
from trio.testing import MockClock

from sortie.facts import Fact
from sortie.model import Issue, TrackerError, TrackerErrorKind
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.orchestrator.time_limits import progress
from sortie.resources import Shortages, keep_account
from sortie.telemetry import facts
from tests.trackers.fake import FakeTracker
from tests.worker.rig import issue


class Raising(FakeTracker):
    """A tracker whose lists fail with an error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._raised = error

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        await trio.lowlevel.checkpoint()
        raise self._raised


def translated() -> TrackerError:
    """Return what an adapter makes of it that knows what it met."""
    error = TrackerError(TrackerErrorKind.UNAVAILABLE, "could not connect")
    error.__cause__ = OSError(errno.EMFILE, "Too many open files")
    return error


async def test_a_wait_for_lists_alone_leaves_the_rest_of_the_tracker(
    autojump_clock: MockClock,
) -> None:
    """No list is asked for until the time is over; anything else is."""
    tracker = Raising(
        TrackerError(
            TrackerErrorKind.UNAVAILABLE, "few are left", retry_after=60.0, lists_only=True
        )
    )
    tracker.put(issue("a"))
    guarded = GuardedTracker(tracker, lambda _fact: None)
    waits = []

    for _ in range(2):
        with pytest.raises(TrackerError) as refused:
            await guarded.fetch_candidates(["todo"])
        waits.append((refused.value.retry_after, refused.value.lists_only))
        await trio.sleep(20)
    moved = await guarded.transition(issue("a"), "Review")

    assert waits == [(60.0, True), (40.0, True)]
    assert guarded.pause is None
    assert moved.state == "Review"


async def test_a_pause_between_lists_makes_sense_whatever_the_adapter_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is neither negative nor longer than an hour, and a bug makes it none."""
    tracker = FakeTracker()
    guarded = GuardedTracker(tracker, lambda _fact: None)
    pauses = []
    for said in (12.5, -1.0, 1e9, "soon"):
        monkeypatch.setattr(tracker, "list_pause", lambda said=said: said)
        pauses.append(guarded.list_pause())

    assert pauses == [12.5, 0.0, 3600.0, 0.0]


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), translated()])
async def test_a_shortage_that_a_request_meets_is_on_the_account(error: Exception) -> None:
    """Readiness names it, nobody is said to have crashed, and the request has failed."""
    told: list[Fact] = []
    shortages = Shortages()
    keep_account(shortages)

    with pytest.raises(TrackerError):
        await GuardedTracker(Raising(error), told.append).fetch_candidates(["todo"])

    assert ["limit of open files" in sentence for sentence in shortages.shortages] == [True]
    assert [type(fact) for fact in told] == [facts.TrackerAsked]


async def test_a_bug_of_an_adapter_is_one_failed_answer() -> None:
    """The error names the request and the kind of bug, not what the bug says, which may hold a
    secret; the traceback is told of as a fact."""
    told: list[Fact] = []

    guarded = GuardedTracker(Raising(KeyError("a secret")), told.append)

    with pytest.raises(TrackerError) as caught:
        await guarded.fetch_candidates(["todo"])

    sentence = "the tracker adapter crashed (fetch_candidates): KeyError"
    assert (caught.value.kind, str(caught.value)) == (TrackerErrorKind.UNAVAILABLE, sentence)
    assert [type(fact) for fact in told] == [facts.AdapterCrashed, facts.TrackerAsked]


class Paging(FakeTracker):
    """A tracker whose lists come in pages, one every so many seconds."""

    def __init__(self, pages: int, seconds: float) -> None:
        super().__init__([issue()])
        self._pages = pages
        self._seconds = seconds

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        for _ in range(self._pages):
            await trio.sleep(self._seconds)
            progress()
        return await super().fetch_candidates(states)


async def test_a_long_list_has_the_time_that_its_pages_take(autojump_clock: MockClock) -> None:
    """The limit is on the time between two pages, not on all of them."""
    guarded = GuardedTracker(Paging(pages=5, seconds=50.0), lambda _fact: None)

    assert len(await guarded.fetch_candidates(["todo"])) == 1
    assert trio.current_time() == 250.0


@pytest.mark.parametrize(("pages", "seconds", "given_up"), [(5, 61.0, 60.0), (100, 50.0, 600.0)])
async def test_a_list_without_progress_or_end_is_given_up(
    autojump_clock: MockClock, pages: int, seconds: float, given_up: float
) -> None:
    """One page too slow is one too many, and a list that never ends is ended all the same."""
    guarded = GuardedTracker(Paging(pages, seconds), lambda _fact: None)

    with pytest.raises(TrackerError, match="the tracker did not answer"):
        await guarded.fetch_candidates(["todo"])

    assert trio.current_time() == given_up


async def test_progress_of_one_request_is_not_that_of_another(autojump_clock: MockClock) -> None:
    """A request that stands still is given up while another one gets on beside it."""

    class OneHangs(Paging):
        async def find(self, name: str) -> Issue | None:
            await trio.sleep_forever()

    guarded = GuardedTracker(OneHangs(pages=5, seconds=50.0), lambda _fact: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(guarded.fetch_candidates, ["todo"])
        with pytest.raises(TrackerError, match="did not answer"):
            await guarded.find("A")
        given_up = trio.current_time()

    assert given_up == 60.0


@pytest.mark.parametrize(
    ("asked", "seconds"), [(30.0, 30.0), (86_400.0, 3600.0), (float("inf"), 3600.0)]
)
async def test_a_tracker_is_left_alone_for_as_long_as_it_says(
    autojump_clock: MockClock, asked: float, seconds: float
) -> None:
    """No request reaches it before, and each is told how long to wait; a day is too long."""
    told: list[Fact] = []
    fake = FakeTracker([issue()])
    fake.down, fake.retry_after = TrackerErrorKind.UNAVAILABLE, asked
    guarded = GuardedTracker(fake, told.append)
    with pytest.raises(TrackerError) as first:
        await guarded.find("A")
    fake.down = None

    await trio.sleep(seconds - 10.0)
    rest = guarded.pause
    with pytest.raises(TrackerError) as second:
        await guarded.comment(issue(), "hello")
    await trio.sleep(10.0)

    assert (first.value.retry_after, second.value.retry_after) == (seconds, 10.0)
    assert rest is not None
    assert (rest.until, guarded.pause) == (seconds, None)
    assert (await guarded.find("A"), fake.remarks("a")) == (issue(), ())
    assert [fact for fact in told if isinstance(fact, facts.TrackerPauseBegan)] == [
        facts.TrackerPauseBegan(
            seconds=seconds, asked=asked, error="the fake tracker is unavailable"
        )
    ]


async def test_a_listener_that_fails_listens_again_later(autojump_clock: MockClock) -> None:
    """Neither an error, a bug nor a rest ends it, and none of them is taken for a change."""
    errors: list[Exception] = [
        TrackerError(TrackerErrorKind.UNAVAILABLE, "busy", retry_after=300.0),
        LookupError("a bug"),
    ]

    class Deaf(FakeTracker):
        async def changed(self) -> None:
            await trio.lowlevel.checkpoint()
            if errors:
                raise errors.pop(0)

    await GuardedTracker(Deaf(), lambda _fact: None).changed()

    assert trio.current_time() == 360.0


async def test_each_request_is_told_of_with_its_outcome(autojump_clock: MockClock) -> None:
    """Success or error, how long it took, and what went wrong."""
    told: list[Fact] = []
    tracker = FakeTracker()
    tracker.delay = 2.0
    guarded = GuardedTracker(tracker, told.append)

    await guarded.fetch_candidates(["todo"])
    tracker.down = TrackerErrorKind.UNAVAILABLE
    with pytest.raises(TrackerError) as caught:
        await guarded.fetch_candidates(["todo"])

    asked = [fact for fact in told if isinstance(fact, facts.TrackerAsked)]
    assert [(fact.operation, fact.result, fact.error) for fact in asked] == [
        ("fetch_candidates", "success", None),
        ("fetch_candidates", "error", str(caught.value)),
    ]
    assert asked[0].seconds == 2.0
