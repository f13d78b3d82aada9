"""The event log: what was recorded is decided over again, and what is missing is said."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import Comment, Failed
from sortie.model.errors import ErrorKind
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.telemetry.event_log import EventLogLimits, entries, recorder
from sortie.telemetry.event_log.reader import EventLogError, read_segment, stored_segments
from tests.scheduler.driver import EPOCH, POLICY, issue
from tests.telemetry.event_log.rig import Rig

BROKE = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")


async def test_a_moment_is_as_it_was(at_once: MockClock, tmp_path: Path) -> None:
    """Candidate, run, wait and next run: each moment tells what was so then."""
    rig = Rig(tmp_path)
    async with rig.running():
        (start,) = rig.start(issue("a"))
        await rig.sleep(10)
        rig.tell(ev.TurnStarted(start.run_id, 1))
        await rig.sleep(100)
        rig.end(start.run_id, BROKE)
        await rig.sleep(5)

    assert "prepares" in rig.detail(5)
    assert "is in turn 1" in rig.detail(50)
    assert rig.detail(112) == "it waits for its retry, after a failure (1 failure in a row)"


async def test_what_was_written_is_for_its_owner_alone(at_once: MockClock, tmp_path: Path) -> None:
    """Neither the directory nor a segment can be read by others."""
    rig = Rig(tmp_path)
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(10)

    (file,) = Path(rig.path).iterdir()
    assert stat.S_IMODE(os.stat(rig.path).st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_no_word_of_a_description_is_written(at_once: MockClock, tmp_path: Path) -> None:
    """Descriptions and comments are not in the log, and that they change is."""
    rig = Rig(tmp_path)
    secret = Comment(author="ann", body="the-word of the comment")
    told = issue("a", description="the-word of it", comments=(secret,))
    async with rig.running():
        rig.start(told)
        rig.start(replace(told, description="the-word of another"))
        await rig.sleep(1)

    (file,) = stored_segments(rig.path)
    fetched = [i.event for i in read_segment(rig.path, file).incidents()]
    polled = [e.issues[0] for e in fetched if isinstance(e, ev.CandidatesFetched)]
    assert len({one.description for one in polled}) == 2
    assert "the-word" not in repr(fetched)
    assert "the-word" not in repr(rig.past(1).replay.scheduler.snapshot(1.0))


async def test_issues_are_written_once(at_once: MockClock, tmp_path: Path) -> None:
    """A poll that finds what the poll before found costs a few bytes, however many issues."""
    rig = Rig(tmp_path)
    async with rig.running():
        rig.start(*(issue(f"a{n}", description=os.urandom(500).hex()) for n in range(300)))
        await rig.sleep(6)
        first = stored_segments(rig.path)[0].size
        await rig.sleep(600)
        second = stored_segments(rig.path)[0].size

    assert second - first < first / 3


async def test_a_segment_ends_after_a_while(at_once: MockClock, tmp_path: Path) -> None:
    """A new one begins with the state at that time, and nothing is missing between them."""
    rig = Rig(tmp_path)
    async with rig.running():
        (start,) = rig.start(issue("a"))
        rig.tell(ev.TurnStarted(start.run_id, 1))
        await rig.sleep(3 * recorder.SEGMENT_SECONDS - 10)

    assert len(rig.segments()) == 3
    for at in (10, 3599, 3601, 9000):
        assert "is in turn 1" in rig.detail(at)


async def test_a_segment_ends_where_the_clock_was_set(at_once: MockClock, tmp_path: Path) -> None:
    """The times of day after that are those of the clock."""
    rig = Rig(tmp_path)
    async with rig.running():
        (start,) = rig.start(issue("a"))
        await rig.sleep(60)
        rig.clock_set = 7200
        rig.tell(ev.TurnStarted(start.run_id, 1))
        await rig.sleep(60)

    assert len(rig.segments()) == 2
    assert "prepares" in rig.detail(59)
    assert "is in turn 1" in rig.detail(7200 + 100)


async def test_a_loop_that_is_too_fast_leaves_a_gap(
    at_once: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is bounded; what did not fit is counted, and later moments are exact again."""
    monkeypatch.setattr(recorder, "WAITING_LIMIT", 50)
    rig = Rig(tmp_path)
    async with rig.running():
        (start,) = rig.start(issue("a"))
        for _ in range(100):
            rig.tell(ev.HostReached("local"))
        assert len(rig.recorder._waiting) < 60
        rig.now += 1
        await trio.sleep(6)
        rig.now += 6
        rig.tell(ev.TurnStarted(start.run_id, 1))
        await rig.sleep(6)

    (gap,) = (fact for fact in rig.told if isinstance(fact, facts.EventLogGap))
    assert gap.events > 40
    assert len(rig.segments()) == 2
    assert "is in turn 1" in rig.detail(8)
    with pytest.raises(EventLogError, match="nothing is recorded for 2026-06-01T00:00:05Z"):
        rig.past(5)


async def test_a_disk_that_is_full_leaves_a_gap(at_once: MockClock, tmp_path: Path) -> None:
    """The failure is told once, then that it is over; the scheduler decides all the while."""
    rig = Rig(tmp_path)
    async with rig.running():
        (start,) = rig.start(issue("a"))
        await rig.sleep(40)
        os.rename(rig.path, f"{rig.path}.away")
        Path(rig.path).write_text("in the way")
        rig.tell(ev.TurnStarted(start.run_id, 1))
        await rig.sleep(20)
        assert rig.writer.error is not None
        os.unlink(rig.path)
        os.rename(f"{rig.path}.away", rig.path)
        await rig.sleep(60)
        assert rig.writer.error is None

    names = [type(fact).__name__ for fact in rig.told if "EventLog" in type(fact).__name__]
    assert names[0] == "EventLogFailed"
    assert "EventLogRecovered" in names
    assert "prepares" in rig.detail(5)
    assert "is in turn 1" in rig.detail(110)
    with pytest.raises(EventLogError, match="the event log covers 2026-06-01T00:00:00Z to"):
        rig.past(50)


async def test_old_segments_are_forgotten(at_once: MockClock, tmp_path: Path) -> None:
    """Those that ended too long ago are deleted, and told; with 0 days all are."""
    rig = Rig(tmp_path, EventLogLimits(keep_days=1, max_bytes=1 << 30))
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(2 * recorder.SEGMENT_SECONDS - 10)
        old, last = stored_segments(rig.path)
        os.utime(f"{rig.path}/{old.name}", (EPOCH, EPOCH))
        rig.now += 2 * 86_400
        await trio.sleep(2 * 86_400)
        await rig.sleep(20)
        assert stored_segments(rig.path)[0].name == last.name
        rig.writer.use(EventLogLimits(keep_days=0, max_bytes=1 << 30))
        await rig.sleep(10)
        assert list(Path(rig.path).iterdir()) == []
        rig.start(issue("b"))
        await rig.sleep(10)

    assert rig.segments() == []
    assert any(isinstance(fact, facts.EventLogForgotten) for fact in rig.told)


async def test_the_log_is_bounded(at_once: MockClock, tmp_path: Path) -> None:
    """The oldest segments go where all together are too large."""
    rig = Rig(tmp_path, EventLogLimits(keep_days=7, max_bytes=300_000))
    async with rig.running():
        for _ in range(40):
            texts = ({"title": os.urandom(100).hex()} for _ in range(100))
            rig.start(*(issue(f"a{n}", **text) for n, text in enumerate(texts)))
            await rig.sleep(11)

    sizes = [file.size for file in stored_segments(rig.path)]
    assert 150_000 < sum(sizes) < 400_000
    with pytest.raises(EventLogError, match="nothing is recorded"):
        rig.past(1)


async def test_another_decision_is_noticed(
    at_once: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler that decides otherwise than the recorded one says since when."""
    rig = Rig(tmp_path)
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(100)
    monkeypatch.setattr(type(POLICY), "is_active", lambda _self, _issue: False)

    assert rig.past(90).replay.differs_at == 0.0


async def test_another_format_is_refused(
    at_once: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence says who wrote what cannot be read."""
    rig = Rig(tmp_path)
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(10)
    monkeypatch.setattr(entries, "FORMAT", 2)

    with pytest.raises(EventLogError, match=r"written by Sortie .*another format"):
        rig.past(5)


async def test_what_a_crash_cut_short_is_read_up_to_there(
    at_once: MockClock, tmp_path: Path
) -> None:
    """A torn end spoils nothing before it, and damage is said in one sentence."""
    rig = Rig(tmp_path)
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(300)
    (file,) = Path(rig.path).iterdir()
    whole = rig.segments()
    os.truncate(file, file.stat().st_size - 60)
    assert 1 < rig.segments()[0] < whole[0]
    file.write_bytes(b"no gzip at all")

    with pytest.raises(EventLogError, match=r"cannot read .*events\.gz of the event log"):
        rig.past(5)


def test_without_a_log_that_is_said(tmp_path: Path) -> None:
    """The sentence names the setting."""
    with pytest.raises(EventLogError, match=r"journal\.keep_days"):
        Rig(tmp_path).past(5)


async def test_while_a_daemon_is_at_work_the_last_event_holds(
    at_once: MockClock, tmp_path: Path
) -> None:
    """Until the time at which it would have been told of something else."""
    rig = Rig(tmp_path)
    async with rig.running():
        (start,) = rig.start(issue("a"))
        rig.tell(ev.TurnStarted(start.run_id, 1))
        await rig.sleep(10)

    assert rig.past(28, alive=True).last_event_at == EPOCH + 10
    with pytest.raises(EventLogError, match="nothing is recorded"):
        rig.past(28)
    with pytest.raises(EventLogError, match="nothing is recorded"):
        rig.past(200, alive=True)


async def test_what_this_version_cannot_decide_is_said(
    at_once: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever breaks in a replay, it is one sentence that names the version."""
    rig = Rig(tmp_path)
    async with rig.running():
        rig.start(issue("a"))
        await rig.sleep(10)

    def broken(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(type(rig.scheduler), "handle", broken)

    with pytest.raises(EventLogError, match=r"cannot decide over again what Sortie [0-9]"):
        rig.past(5)
