"""The SQLite store and its twin in memory, side by side."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sortie.model import HoldReason, Issue, StoreError
from sortie.scheduler.records import (
    ForgetCrashes,
    ForgetHold,
    ForgetRetry,
    ForgetWorkspace,
    Record,
    RecordCrash,
    RecordHold,
    RecordPause,
    ResetSessions,
)
from sortie.store.memory import MemoryStore
from sortie.store.sqlite import open_store
from tests.store.records import T0, an_issue, begin, end, retry, turn, workspace


@dataclass
class _World:
    """Random commits, most of them such as a scheduler makes, some such as it must not make."""

    random: random.Random
    begun: int = 0
    under_way: list[tuple[str, Issue]] = field(default_factory=list)

    def commit(self) -> Sequence[Record]:
        """Choose records; about one commit in four holds one that contradicts the rows."""
        before = self.begun, list(self.under_way)
        records = [self._record() for _ in range(self.random.randint(1, 4))]
        if self.random.random() < 0.25:
            again = [begin("r1")] if self.begun else []
            unfit: list[Record] = [end("nowhere"), turn("nowhere", 1), *again]
            records.insert(self.random.randrange(len(records) + 1), self.random.choice(unfit))
            self.begun, self.under_way = before
        return records

    def _record(self) -> Record:
        issue = an_issue(f"N-{self.random.randrange(20)}")
        busy = {other.id for _, other in self.under_way}
        choice = self.random.randrange(8)
        if choice < 3 and issue.id not in busy:
            self.begun += 1
            self.under_way.append((f"r{self.begun}", issue))
            return begin(f"r{self.begun}", issue)
        if choice < 6 and self.under_way:
            return self._about_a_run()
        waits: list[Record] = [retry(issue), ForgetRetry(issue_id=issue.id)]
        hold = RecordHold(issue=issue, reason=HoldReason.OPERATOR, detail="")
        holds: list[Record] = [hold, ForgetHold(issue_id=issue.id)]
        known: list[Record] = [ResetSessions(issue_id=issue.id), RecordPause(paused=choice == 7)]
        crashes: list[Record] = [RecordCrash(issue=issue), ForgetCrashes(issue_id=issue.id)]
        gone: list[Record] = [ForgetWorkspace(host=self._host(), path=self._path())]
        return self.random.choice(waits + holds + known + crashes + gone)

    def _about_a_run(self) -> Record:
        run_id, issue = self.random.choice(self.under_way)
        match self.random.randrange(4):
            case 0:
                return turn(run_id, self.random.randint(1, 9), issue, self.random.randint(1, 3))
            case 1:
                return workspace(run_id, issue, self._host(), self._path())
            case _:
                self.under_way.remove((run_id, issue))
                turns = self.random.choice([None, 0, 3])
                amount = self.random.choice([None, 0.25, 1.5])
                return end(run_id, turns=turns, credits=amount, tokens=turns)

    def _host(self) -> str:
        return self.random.choice(["local", "box"])

    def _path(self) -> str:
        return f"/w/{self.random.randrange(6)}"


@pytest.mark.parametrize("seed", range(3))
async def test_the_twins_agree_on_any_course_of_events(tmp_path: Path, seed: int) -> None:
    """After each of many random commits both stores accepted it or both refused it, and in the end
    they tell the same."""
    world = _World(random=random.Random(seed))
    verdicts: list[tuple[str, ...]] = []
    other = MemoryStore()
    async with open_store(str(tmp_path / "sortie.db")) as one:
        for number in range(150):
            records = world.commit()
            verdict = []
            for store in (one, other):
                try:
                    await store.commit(records, T0 + number * 7 % 50)
                except StoreError:
                    verdict.append("refused")
                else:
                    verdict.append("made")
            verdicts.append(tuple(verdict))
            if number == 75:
                assert await one.recover() == await other.recover()

        assert await one.recover() == await other.recover()
        assert list(await one.history(limit=10**6)) == list(await other.history(limit=10**6))
        assert await one.totals() == await other.totals()

    assert set(verdicts) == {("made", "made"), ("refused", "refused")}
