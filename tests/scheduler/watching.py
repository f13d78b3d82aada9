"""Watched pull requests of a scheduler, and a forge that shows what it is told to show."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from sortie.config.reactions import (
    ChecksReaction,
    CommandsReaction,
    ConflictsReaction,
    MergeReaction,
    MergeRequirements,
    MoveReaction,
    ReactionsSettings,
    ReviewReaction,
)
from sortie.model import HoldReason, IssueId
from sortie.model.pull_requests import (
    CheckState,
    HeadCheck,
    Note,
    PullRequest,
    PullRequestState,
    ReviewThread,
)
from sortie.model.watches import (
    Errand,
    IssueMove,
    Reaction,
    Watch,
)
from sortie.scheduler import Decision, Memory
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.claims import Held
from sortie.scheduler.watch_standing import WatchStanding
from tests.scheduler.driver import EPOCH, POLICY, Driver, issue, starts

SETTINGS = ReactionsSettings(
    checks=ChecksReaction(max_runs=2),
    review=ReviewReaction(debounce_ms=0),
    conflicts=ConflictsReaction(),
    commands=CommandsReaction(),
    merge=MergeReaction(require=MergeRequirements(approvals=0), settle_ms=0),
    merged=MoveReaction(state="Done"),
)


def request(name: str, **changes: object) -> PullRequest:
    """Return the pull request of an issue."""
    known = PullRequest(
        id=f"PR-{name}",
        number=ord(name),
        url=f"https://forge.example/pulls/{name}",
        state="open",
        branch=f"sortie/{name}",
        base="main",
        title=name,
        head=f"{name}1",
    )
    return replace(known, **changes)


def stands(name: str, **changes: object) -> PullRequestState:
    """Return a pull request as the forge shows it: nothing keeps it from its merge."""
    return replace(PullRequestState(pull_request=request(name), conflicts=False), **changes)


def check(number: int, state: CheckState = CheckState.FAILURE) -> HeadCheck:
    """Return a check that is demanded."""
    return HeadCheck(id=str(number), name=f"test-{number}", state=state, required=True)


def thread(name: str, *notes: Note, resolved: bool | None = False) -> ReviewThread:
    """Return a thread with these notes."""
    return ReviewThread(id=name, resolved=resolved, notes=notes)


class Watching:
    """A scheduler with watched pull requests, and a forge that shows what it is told to show."""

    def __init__(
        self,
        *watches: Watch,
        settings: ReactionsSettings = SETTINGS,
        held: HoldReason | None = None,
    ) -> None:
        policy = replace(POLICY, reactions=settings, handoff_state="Review", has_repository=True)
        handed_off = [
            issue(watch.pull_request.branch.removeprefix("sortie/"), "Review") for watch in watches
        ]
        claims = tuple(
            Held(issue=each, reason=held, detail="so", since=0.0)
            for each in handed_off
            if held is not None
        )
        known = tuple(zip(handed_off, watches, strict=True))
        self.driver = Driver(policy, Memory(watches=known, claims=claims))
        self.driver.put(*handed_off)
        self.writers = frozenset({"ann", "bob"})
        self.asked: list[do.RunErrand] = []
        self.looks: list[do.LookAtPullRequests] = []

    def tell(self, event: ev.Event) -> list[Decision]:
        """Tell the scheduler of something, and answer what it asks the tracker."""
        return self._noted(self.driver.settle(self.driver.tell(event)))

    def pass_time(self, seconds: float = 0.0) -> list[Decision]:
        """Let time pass."""
        return self._noted(self.driver.pass_time(seconds))

    def _noted(self, decided: list[Decision]) -> list[Decision]:
        self.asked += [decision for decision in decided if isinstance(decision, do.RunErrand)]
        self.looks += [each for each in decided if isinstance(each, do.LookAtPullRequests)]
        return decided

    def look(self, *shown: PullRequestState, seconds: float = 900.0) -> list[Decision]:
        """Let time pass, have what is due looked at, and return all that was decided."""
        found = {IssueId(s.pull_request.branch.removeprefix("sortie/")): s for s in shown}
        decided = self.pass_time(seconds)
        while self.looks:
            decided += self.show(self.looks.pop(0), found)
        return decided + self.pass_time()

    def show(
        self, look: do.LookAtPullRequests, found: Mapping[IssueId, PullRequestState]
    ) -> list[Decision]:
        """Answer a look."""
        asked = frozenset(look.pull_requests)
        return self.tell(ev.PullRequestsSeen(look.token, asked, found, self.writers))

    @property
    def standings(self) -> dict[str, WatchStanding]:
        """How the pull requests stand, by issue."""
        watched = self.driver.scheduler.snapshot(self.driver.now).watched
        return {str(one.issue.id): one for one in watched}

    def errands(self, *, failed_move: str | None = None) -> list[Errand]:
        """Do and return all errands that are due; moves fail where there is an error."""
        done: list[Errand] = []
        self.pass_time()
        while self.asked:
            ask = self.asked.pop(0)
            done.append(ask.errand)
            error = failed_move if isinstance(ask.errand, IssueMove) else None
            self.tell(ev.ErrandDone(ask.issue.id, ask.token, error))
            self.pass_time()
        return done


def watch(name: str, **changes: object) -> Watch:
    """Return what is on record of a pull request."""
    return replace(Watch(pull_request=request(name), since=EPOCH, heads=(f"{name}1",)), **changes)


def merges(decided: list[Decision]) -> list[str]:
    """Return the issues whose pull requests are to be merged."""
    return [d.issue.id for d in decided if isinstance(d, do.MergePullRequest)]


def reacts(decided: list[Decision]) -> Reaction:
    """Return the reaction that a run is started for."""
    (start,) = starts(decided)
    assert start.reaction is not None
    return start.reaction
