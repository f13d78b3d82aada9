"""A daemon as HTTP asks and steers it, made up by a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from sortie.model.asked_questions import QuestionAnswer
from sortie.store import DayRow
from sortie.web.dashboard.activity import ActivityView
from sortie.web.health import Health
from sortie.web.issue import ExplanationView, IssueView
from sortie.web.leases import LeadershipView
from sortie.web.runs import RunView
from sortie.web.source import CommandAnswer, TranscriptSource
from sortie.web.state import StateView


class MadeUp(Protocol):
    """What a test makes up."""

    health: Health
    activity: ActivityView
    secrets: Set[str]
    leaders: Sequence[LeadershipView]

    def source(self) -> TranscriptSource: ...

    def look(self) -> StateView: ...

    async def command(self, command: str) -> CommandAnswer: ...

    async def explain(self, issue: str) -> ExplanationView | str: ...

    async def find(self, issue: str) -> IssueView | str: ...

    async def past(
        self, issue: str | None, limit: int, before: str | None, rule: str | None
    ) -> Sequence[RunView]: ...

    @property
    def diffs(self) -> Mapping[str, str]: ...

    async def run(self, run_id: str) -> RunView | None: ...

    async def used(self, count: int) -> Sequence[DayRow]: ...


class FixedDaemon:
    """See DaemonSource."""

    def __init__(self, world: MadeUp) -> None:
        self._world = world
        self.explain, self.issue, self.run, self.days = (
            world.explain,
            world.find,
            world.run,
            world.used,
        )

    @property
    def transcripts(self) -> TranscriptSource:
        return self._world.source()

    def secrets(self) -> Set[str]:
        return self._world.secrets

    def state(self) -> StateView:
        return self._world.look()

    def overview(self, waiting: int) -> StateView:
        return self._world.look()

    def whole_state(self) -> StateView:
        return self._world.look()

    def health(self) -> Health:
        return self._world.health

    def activity(self) -> ActivityView:
        return self._world.activity

    async def refresh(self) -> CommandAnswer:
        return await self._world.command("refresh")

    async def pause(self) -> CommandAnswer:
        return await self._world.command("pause")

    async def resume(self) -> CommandAnswer:
        return await self._world.command("resume")

    async def stop(self, issue: str) -> CommandAnswer:
        return await self._world.command(f"stop {issue}")

    async def retry(self, issue: str) -> CommandAnswer:
        return await self._world.command(f"retry {issue}")

    async def send_again(self, notification: int | None) -> CommandAnswer:
        return await self._world.command(f"send {notification}")

    async def answer(self, issue: str, answer: QuestionAnswer) -> CommandAnswer:
        said = f"{answer.text} by {answer.by} ({answer.way})"
        return await self._world.command(f"answer {issue}: {said}")

    async def diff(self, run_id: str) -> str | None:
        return self._world.diffs.get(run_id)

    async def leaderships(self, limit: int, before: int | None) -> Sequence[LeadershipView]:
        known = self._world.leaders
        return [one for one in known if before is None or one.token < before][:limit]

    async def history(
        self, *, issue: str | None, limit: int, before: str | None, rule: str | None = None
    ) -> Sequence[RunView]:
        return await self._world.past(issue, limit, before, rule)
