"""From facts to files and back: what is said is there, in its order, and reading is by the page."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import RunId
from sortie.telemetry import facts
from sortie.telemetry.transcripts import Kind, TranscriptLine, as_text, read_page, writer
from sortie.telemetry.transcripts.reader import PAGE_BYTES
from sortie.telemetry.transcripts.sink import FilePosition
from sortie.telemetry.transcripts.writer import TranscriptLimits
from sortie.telemetry.transcripts.writing import Written
from tests.descriptors import no_descriptor_stays_open
from tests.telemetry.samples import ISSUE, RUN, RUN_FINISHED, RUN_STARTED, TURN_FAILED
from tests.telemetry.transcripts.rig import Rig

OTHER = RunId("99999999-2222-3333-4444-555555555555")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_all_that_a_run_does_is_there(at_once: MockClock, rig: Rig) -> None:
    """Output, stderr, permissions, hooks, turns and the run itself, with their turns; of each call
    of a tool one line, and what it said."""
    async with rig.running():
        rig.begin()
        rig.sink(facts.TurnBegan(run_id=RUN, turn=1, max_turns=3))
        rig.say("one\ntwo")
        rig.sink(facts.AgentWroteErrors(run_id=RUN, message="oh", text="oh"))
        rig.sink(facts.ToolCallStarted(run_id=RUN, tool="edit", kind="write", locations=("a", "b")))
        rig.sink(
            facts.ToolCallEnded(
                run_id=RUN,
                tool="edit",
                kind="write",
                locations=("a", "b"),
                seconds=0.25,
                failed=True,
                error="no such file",
            )
        )
        rig.sink(
            facts.ToolCallEnded(
                run_id=RUN,
                tool="shell",
                kind="execute",
                locations=("a",),
                seconds=2.0,
                failed=False,
                about="make\n  a",
                output="one\n\ntwo\n",
            )
        )
        rig.sink(facts.PermissionAnswered(run_id=RUN, question="may I?", answer="no"))
        rig.sink(TURN_FAILED)
        rig.sink(
            facts.HookCompleted(
                hook="after_run",
                result="ok",
                seconds=1.0,
                issue_identifier=ISSUE.identifier,
                run_id=RUN,
                status="exit 0",
                output="done\n",
            )
        )
        rig.sink(RUN_FINISHED)

    assert [(line.kind.value, line.turn, line.text) for line in rig.lines()] == [
        ("run", None, "run began: DEMO-1 (To Do): Mend the fence; attempt 0, kiro on local"),
        ("turn", 1, "turn 1 of 3 began"),
        ("output", 1, "one"),
        ("output", 1, "two"),
        ("stderr", 1, "oh"),
        ("tool", 1, "edit (write) failed after 0.2s: a, b"),
        ("tool", 1, "    no such file"),
        ("tool", 1, "shell (execute) ended after 2.0s: make a"),
        ("tool", 1, "    one"),
        ("tool", 1, "    "),
        ("tool", 1, "    two"),
        ("permission", 1, "may I?: no"),
        ("turn", 1, "turn 1 failed after 2.3s: turn_failed: exit status 1"),
        ("hook", None, "after_run ok after 1.0s: exit 0"),
        ("hook", None, "done"),
        ("run", None, "run succeeded after 5.5s"),
    ]
    assert [line.number for line in rig.lines()] == [*range(1, 17)]
    assert {line.at.timestamp() for line in rig.lines()} == {rig.now}


async def test_a_run_says_what_of_its_pull_request_it_answers(at_once: MockClock, rig: Rig) -> None:
    """Its first line names what has happened; that of another run has no word of it."""
    async with rig.running():
        rig.sink(replace(RUN_STARTED, reaction=("checks", "review")))
        rig.end()

    assert rig.texts(Kind.RUN)[0] == (
        "run began: DEMO-1 (To Do): Mend the fence; attempt 0, kiro on local;"
        " answers checks, review"
    )


async def test_facts_of_no_live_run_leave_nothing(at_once: MockClock, rig: Rig) -> None:
    """What comes before a run began or after its end belongs nowhere."""
    async with rig.running():
        rig.say("before")
        rig.begin()
        rig.end()
        rig.say("behind")
        rig.sink(facts.PermissionAnswered(run_id=RUN, question="behind", answer="no"))

    assert rig.texts(Kind.OUTPUT) == rig.texts(Kind.PERMISSION) == []
    assert [path.name for path in rig.path.iterdir()] == [f"{RUN}.jsonl.gz"]


async def test_it_is_readable_while_the_run_goes_on(at_once: MockClock, rig: Rig) -> None:
    """Who asks the writer gets all that was said up to now, and hears when it has ended."""
    async with rig.running():
        rig.begin()
        rig.say("one")
        first = await rig.writer.page(RUN, 1, 10)
        live = rig.writer.is_live(RUN)
        rig.say("two")
        second = await rig.writer.page(RUN, first.lines[-1].number, 10)
        rig.end()
        last = await rig.writer.page(RUN, second.lines[-1].number, 10)
        over = not rig.writer.is_live(RUN)

    assert [line.text for line in (*first.lines, *second.lines)] == ["one", "two"]
    assert (live, over) == (True, True)
    assert [page.ended for page in (first, second, last)] == [False, False, True]
    with pytest.raises(FileNotFoundError):
        await rig.writer.page(OTHER, 0, 10)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.lists(st.text("ab", max_size=5), min_size=1, max_size=5), max_size=8),
    st.integers(1, 9),
)
def test_pages_put_together_are_the_transcript(said: list[list[str]], limit: int) -> None:
    """However it was said, written and read, each line comes once, and in its order."""
    import tempfile

    with tempfile.TemporaryDirectory() as root:
        rig = Rig(Path(root))

        async def main() -> None:
            rig.begin()
            for texts in said:
                rig.say("\n".join(texts))
                if len(texts) % 2:  # some together, some by themselves
                    await rig.writer.page(RUN, 0, 1)
            await rig.writer.page(RUN, 0, 1)

        trio.run(main)
        found: list[TranscriptLine] = []
        after = 0
        while True:
            page = read_page(str(rig.path), RUN, after, limit)
            found += page.lines
            if not page.more:
                break
            assert len(page.lines) == limit
            after = page.lines[-1].number

    assert [line.number for line in found] == [*range(1, len(found) + 1)]
    assert [line.text for line in found[1:]] == [text for texts in said for text in texts]


async def test_a_page_of_long_lines_is_short(at_once: MockClock, rig: Rig) -> None:
    """A page holds so much text at most, and says that there is more."""
    async with rig.running():
        rig.begin()
        for _ in range(10):
            rig.say("\n".join(["x" * 10_000] * 50))
            page = await rig.writer.page(RUN, 0, 10_000)

    assert page.more
    assert sum(len(line.text) for line in page.lines) <= PAGE_BYTES
    assert len(rig.lines()) == 501


async def test_the_next_daemon_says_that_a_run_was_cut_short(at_once: MockClock, rig: Rig) -> None:
    """What a crash has torn is cut off, and the transcript ends with what became of the run."""
    rig.begin()
    rig.say("one")
    await rig.writer.page(RUN, 0, 1)
    rig.say("torn")
    await rig.writer.page(RUN, 0, 1)
    os.truncate(rig.file(), rig.file().stat().st_size - 5)
    torn = read_page(str(rig.path), RUN, 0, 10)

    life = Rig(rig.root)
    async with life.running():
        life.sink(facts.RunRecovered(run_id=RUN, issue=ISSUE))

    lines = life.lines()
    assert torn.damage is not None
    assert [line.text for line in torn.lines] == [line.text for line in lines[:2]]
    assert [line.number for line in lines] == [1, 2, 3]
    assert lines[2].text.startswith("run interrupted: the daemon ended before it did")
    assert read_page(str(rig.path), RUN, 3, 1).ended
    assert gzip.decompress(rig.file().read_bytes())


async def test_an_endless_run_keeps_its_beginning_and_its_end(at_once: MockClock, rig: Rig) -> None:
    """A transcript never takes more than its share, and says which lines went; cursors go on."""
    rig.use(TranscriptLimits(keep_days=0, max_bytes=64 * 100_000))
    rig.begin()
    cursor, sizes = 0, []
    for _ in range(40):
        rig.say("\n".join(os.urandom(60).hex() for _ in range(100)))
        cursor = (await rig.writer.page(RUN, cursor, 10_000)).lines[-1].number
        sizes.append(rig.file().stat().st_size)
    rig.end()
    last = await rig.writer.page(RUN, cursor, 10)
    lines = rig.lines()
    (gap,) = [index for index, line in enumerate(lines) if line.kind is Kind.GAP]

    assert max(sizes) <= 100_000
    assert cursor == 4001
    assert [line.text[:13] for line in last.lines] == ["run succeeded"]
    assert [line.number for line in lines[:gap]] == [*range(1, gap + 1)]
    assert [line.number for line in lines[gap:]] == [*range(lines[gap].number, 4003)]
    missing = f"lines {gap + 1} to {lines[gap].number} are left out"
    assert lines[gap].text.startswith(missing)
    assert min(gap, len(lines) - gap) > 100


async def test_old_transcripts_are_forgotten(at_once: MockClock, rig: Rig) -> None:
    """Those of runs that ended before the limit go; a live run's stays, silent or not."""
    rig.begin()
    rig.begin(OTHER)
    rig.end(OTHER)
    async with rig.running():
        await trio.sleep(5)
        for path in rig.path.iterdir():
            os.utime(path, (rig.now - 31 * 86_400, rig.now - 31 * 86_400))
        await trio.sleep(3601)

    assert rig.file().exists()
    assert not rig.file(OTHER).exists()
    assert [fact for fact in rig.told if isinstance(fact, facts.TranscriptsForgotten)]


async def test_all_together_are_bounded(at_once: MockClock, rig: Rig) -> None:
    """The oldest of runs that are over go first, and as many as it takes, while others are live."""
    ids = [RunId(f"{number:08d}-2222-3333-4444-555555555555") for number in range(8)]
    rig.begin()
    async with rig.running():
        for age, run_id in enumerate(ids):
            rig.begin(run_id)
            rig.say("\n".join(os.urandom(60).hex() for _ in range(100)), run_id)
            rig.end(run_id)
            await rig.writer.page(run_id, 0, 1)
            os.utime(rig.file(run_id), (rig.now + age, rig.now + age))
        each = rig.file(ids[0]).stat().st_size
        rig.use(TranscriptLimits(keep_days=0, max_bytes=3 * each + each // 2))
        rig.say("go on")
        await trio.sleep(5)

    left = {path.name for path in rig.path.iterdir()}
    assert left == {f"{run_id}.jsonl.gz" for run_id in (RUN, *ids[5:])}


async def test_none_are_kept_where_none_are_wanted(at_once: MockClock, rig: Rig) -> None:
    """With ``max_bytes`` 0 nothing is collected, and what there was is forgotten."""
    async with rig.running():
        rig.begin()
        rig.end()
        await rig.writer.page(RUN, 0, 1)
        rig.use(TranscriptLimits(keep_days=0, max_bytes=0))
        rig.begin(OTHER)
        rig.say("anything", OTHER)
        await trio.sleep(3601)

    assert list(rig.path.iterdir()) == []


def blocked(rig: Rig) -> Callable[[], object]:
    """Have a file in place of the directory; return what mends that."""
    rig.path.write_text("in the way")
    return rig.path.unlink


async def test_trouble_harms_nobody_and_leaves_a_gap(at_once: MockClock, rig: Rig) -> None:
    """While nothing can be written what waits is bounded; it is told once, and when it is over."""
    mend = blocked(rig)
    async with rig.running():
        rig.begin()
        for number in range(60):
            rig.say(f"{number} " + "x" * 100_000)
            await trio.sleep(1)
        error = rig.writer.error
        mend()
        await trio.sleep(20)
        rig.end()

    outputs = [text.split()[0] for text in rig.texts(Kind.OUTPUT)]
    (gap,) = rig.texts(Kind.GAP)
    kinds = [type(fact) for fact in rig.told]
    assert error == "Not a directory"
    assert (outputs[0], outputs[-1]) == ("0", "59")
    assert gap.startswith(f"{60 - len(outputs)} lines are left out")
    assert set(kinds) == {facts.TranscriptsFailed, facts.TranscriptsRecovered}
    assert kinds.count(facts.TranscriptsRecovered) == 1
    assert rig.lines()[-1].text.startswith("run succeeded")


@pytest.mark.parametrize(
    ("flaw", "kinds"),
    [
        (ZeroDivisionError("a bug"), ["AdapterCrashed", "TranscriptsFailed"]),
        (MemoryError(), ["TranscriptsFailed"]),
    ],
)
async def test_a_bug_or_a_shortage_ends_nothing(
    at_once: MockClock,
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    flaw: Exception,
    kinds: list[str],
) -> None:
    """It is told, a traceback once, and what was said is written when that works again."""

    def broken(*_: object) -> Written:
        raise flaw

    async with rig.running():
        with monkeypatch.context() as patch:
            patch.setattr(writer, "write", broken)
            rig.begin()
            rig.say("one")
            await trio.sleep(60)
        told = list(rig.told)
        await trio.sleep(20)

    seen = [type(fact).__name__ for fact in told]
    assert list(dict.fromkeys(seen)) == kinds
    assert seen.count("AdapterCrashed") <= 1
    assert rig.texts(Kind.OUTPUT) == ["one"]
    assert isinstance(rig.told[-1], facts.TranscriptsRecovered)


async def test_one_file_that_cannot_be_written_harms_no_other(at_once: MockClock, rig: Rig) -> None:
    """A link in place of a run's file is refused; other runs are written meanwhile."""
    rig.path.mkdir()
    rig.file().symlink_to(rig.root / "elsewhere")
    async with rig.running():
        rig.begin()
        rig.begin(OTHER)
        rig.say("one", OTHER)
        await trio.sleep(30)

    assert rig.texts(Kind.OUTPUT, OTHER) == ["one"]
    assert not (rig.root / "elsewhere").exists()
    assert [fact for fact in rig.told if isinstance(fact, facts.TranscriptsFailed)]


async def test_a_silent_run_holds_next_to_nothing(at_once: MockClock, rig: Rig) -> None:
    """Once written, a run has neither buffer nor descriptor; one that is over is not known any
    more."""
    with no_descriptor_stays_open():
        rig.begin()
        await rig.writer.page(RUN, 0, 1)
    size = rig.file().stat().st_size
    silent = rig.sink._open[RUN]

    assert (silent.pending, silent.place) == (None, FilePosition(size, 2))
    rig.end()
    await rig.writer.page(RUN, 0, 1)
    assert not rig.sink.live()


async def test_one_thread_at_a_time_has_the_directory(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, rig: Rig
) -> None:
    """Nobody forgets what another one writes, and nobody writes beside another."""
    under_way, most, works = 0, 0, set[str]()

    async def run(work: Callable[..., Any], *args: Any, **_: object) -> Any:
        nonlocal under_way, most
        if work.__name__ in ("read_page", "read_last"):
            return work(*args)
        under_way += 1
        most = max(most, under_way)
        works.add(work.__name__)
        await trio.sleep(2)
        under_way -= 1
        return work(*args)

    monkeypatch.setattr(writer, "run_in_thread", run)
    monkeypatch.setattr(writer, "FORGET_PERIOD", 3.0)
    rig.begin()
    async with rig.running():
        for _ in range(10):
            rig.say("x")
            await rig.writer.page(RUN, 0, 1)

    assert works == {"write", "forget"}
    assert most == 1


async def test_lines_of_a_reviewer_are_marked(at_once: MockClock, rig: Rig) -> None:
    """What it says and does, also where it is cut to pieces; the agent's lines are not."""
    async with rig.running():
        rig.begin()
        rig.say("mine")
        rig.sink(facts.TurnBegan(run_id=RUN, turn=1, max_turns=2, role="reviewer"))
        said = facts.AgentSpoke(run_id=RUN, agent="x", lines=1, message="", text="theirs")
        rig.sink(replace(said, role="reviewer"))
        rig.end()
        await trio.sleep(1)

    marked = [line for line in rig.lines() if line.role == "reviewer"]
    assert [line.text for line in marked] == ["turn 1 of 2 began", "theirs"]
    assert as_text(marked[1]).endswith("output     reviewer: theirs")
    assert [line.role for line in rig.lines() if line.text == "mine"] == [None]
