"""Deliveries of webhooks: they decide when something is looked at, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from sortie import facts
from sortie.config.reactions import ChecksReaction, ConflictsReaction, ReactionsSettings
from sortie.model import IssueId
from sortie.model.pull_requests import CheckState, PullRequest, PullRequestState
from sortie.model.webhooks import Mention
from sortie.scheduler import Checkpoint, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.webhook_scope import WebhookScope, repository_of
from sortie.scheduler.webhook_table import GRACE, LONGEST_GAP, SHORTEST_GAP, TRUST
from tests.scheduler.driver import POLICY, Driver, issue
from tests.scheduler.watching import Watching, check, request, watch

SCOPE = WebhookScope(tracker="github", project="acme/web", forge="github", repository="acme/web")
HOOKED = replace(POLICY, webhooks=SCOPE)
HERE = ("acme/web",)
REACTIONS = ReactionsSettings(checks=ChecksReaction(), conflicts=ConflictsReaction())


_T = TypeVar("_T")


def of_kind(decided: Sequence[object], kind: type[_T]) -> list[_T]:
    """Return the decisions of a kind."""
    return [each for each in decided if isinstance(each, kind)]


def told(*issues: str, places: tuple[str, ...] = HERE) -> ev.DeliveriesSeen:
    """Return a delivery that names issues."""
    return ev.DeliveriesSeen("github", (Mention(places=places, issues=issues),))


def named(places: tuple[str, ...] = HERE, **names: Any) -> ev.DeliveriesSeen:
    """Return a delivery that names pull requests."""
    return ev.DeliveriesSeen("github", (Mention(places=places, **names),))


def driver() -> Driver:
    """Return a scheduler that has polled twice, so that news are news."""
    made = Driver(HOOKED)
    made.pass_time()
    made.pass_time(POLICY.poll_interval)
    made.pass_time(SHORTEST_GAP)
    return made


def polls_in(made: Driver, seconds: float, step: float = 1.0) -> list[float]:
    """Let time pass and return when it was polled, counted from now."""
    began, found = made.now, []
    while made.now < began + seconds:
        if of_kind(made.pass_time(step), do.Poll):
            found.append(made.now - began)
    return found


def missed_in(made: Driver) -> list[facts.WebhooksMissed]:
    """Let time pass until a change is missed."""
    for _ in range(600):
        if missed := of_kind(made.pass_time(1.0), facts.WebhooksMissed):
            return missed
    return []


def ours(name: str, **changes: object) -> PullRequest:
    """Return a pull request of the repository."""
    return request(name, url=f"https://forge.example/Acme/Web/pull/{ord(name)}", **changes)


def stands(name: str, **changes: object) -> PullRequestState:
    """Return how it stands: nothing moves."""
    return replace(PullRequestState(pull_request=ours(name), conflicts=False), **changes)


def watching(*names: str) -> Watching:
    """Return watched pull requests whose forge tells by webhooks."""
    watches = [watch(name, pull_request=ours(name)) for name in names]
    made = Watching(*watches, settings=REACTIONS)
    policy = made.driver.scheduler.snapshot(0.0).policy
    made.tell(ev.PolicyChanged(replace(policy, webhooks=SCOPE)))
    made.look(*map(stands, names), seconds=0.0)
    made.look(*map(stands, names), seconds=100.0)
    made.pass_time(SHORTEST_GAP)
    return made


def looked_at(
    made: Watching, seconds: float, *shown: PullRequestState, step: float = 1.0
) -> list[float]:
    """Let time pass, answer looks, and return when there were some, counted from now."""
    began, found = made.driver.now, []
    while made.driver.now < began + seconds:
        if of_kind(made.look(*shown, seconds=step), do.LookAtPullRequests):
            found.append(made.driver.now - began)
    return found


def test_an_unknown_issue_is_polled_for_soon() -> None:
    """And the lag is told."""
    made = driver()

    made.tell(told("7"))
    decided = made.pass_time(1.0)

    assert of_kind(decided, do.Poll)
    (followed,) = of_kind(decided, facts.WebhookFollowed)
    assert followed == facts.WebhookFollowed(kind="github", subject="issues", seconds=1.0)


def test_an_issue_in_hand_is_read_again_alone() -> None:
    """By its identifier or its id, whatever their case."""
    made = driver()
    (start,) = made.start(issue("a"))

    made.tell(told("A"))
    decided = made.pass_time(1.0)

    assert of_kind(decided, do.Poll) == []
    assert [ask.ids for ask in of_kind(decided, do.Refresh)] == [frozenset({start.issue.id})]
    made.put(issue("a", "Done"))
    made.tell(told("a"))
    assert of_kind(made.pass_time(SHORTEST_GAP), do.StopWorker)


def test_a_burst_is_a_few_polls() -> None:
    """Ever fewer, as they find nothing new; then as many as ever."""
    made = driver()
    found = []
    for _ in range(600):
        made.tell(told("404"))
        if of_kind(made.pass_time(1.0), do.Poll):
            found.append(made.now)

    gaps = [later - earlier for earlier, later in pairwise(found)]
    assert len(found) < 20
    assert max(gaps) <= LONGEST_GAP + 1
    assert gaps == sorted(gaps)


def test_a_delivery_during_a_poll_is_polled_for_once_more() -> None:
    """What the poll shows may be older."""
    made = driver()
    made.tell(told("7"))
    made.now += 1.0
    (poll,) = of_kind(made.tell(ev.TimePassed()), do.Poll)

    made.tell(told("8"))
    made.settle([poll])

    assert len(polls_in(made, 2 * SHORTEST_GAP)) == 1


@pytest.mark.parametrize(
    "event",
    [
        told("7", places=("acme/other",)),
        ev.DeliveriesSeen("gitlab", (Mention(places=HERE, issues=("7",)),)),
        ev.DeliveriesSeen("github", (Mention(places=HERE),)),
        ev.DeliveriesSeen("github", ()),
        ev.DeliveriesSeen("jira", (), overflowed=True),
        named(("acme/other",), numbers=(5,), commits=("a1",)),
    ],
)
def test_what_is_of_elsewhere_changes_nothing(event: ev.DeliveriesSeen) -> None:
    """Neither what is asked nor how often."""
    made, other = driver(), driver()

    assert made.tell(event) == []
    assert polls_in(made, 100.0) == polls_in(other, 100.0)


def test_polls_become_rare_while_deliveries_come_and_as_frequent_as_ever_after() -> None:
    """Ten times as long, ten minutes at most; the hour counts from the last delivery."""
    made = driver()

    decided = made.tell(told("7"))
    (arriving,) = of_kind(decided, facts.WebhooksArriving)
    assert arriving == facts.WebhooksArriving(kind="github", subject="issues")
    first = polls_in(made, TRUST, step=10.0)
    later = polls_in(made, 600.0, step=10.0)

    assert len(first) <= TRUST / (10 * POLICY.poll_interval) + 1
    assert len(later) >= 600.0 / POLICY.poll_interval - 2


def test_an_answer_with_a_hindrance_is_polled_for_as_often_as_ever() -> None:
    """The agent's program may come back at any time."""
    made = driver()
    made.tell(told("7"))
    made.now += 1.0
    made.tell(ev.TimePassed())
    made.tell(ev.CandidatesFetched((), hindrance="the program is gone"))

    assert made.scheduler.wakeup_at() <= made.now + POLICY.poll_interval


def test_a_change_that_no_delivery_tells_ends_the_trust() -> None:
    """After a grace time, for an hour, and for two where it happens again."""
    made = driver()
    made.tell(told("7"))
    polls_in(made, 100.0)

    made.put(issue("b"))
    missed = missed_in(made)
    began = made.now
    assert missed[0].changes == 1
    assert missed[0].seconds == TRUST
    made.tell(told("7"))
    assert len(polls_in(made, 600.0, step=10.0)) >= 600.0 / POLICY.poll_interval - 2

    polls_in(made, began + TRUST - made.now, step=10.0)
    made.tell(told("7"))
    polls_in(made, 100.0)
    made.put(issue("c"))
    missed = missed_in(made)
    assert missed[0].seconds == 2 * TRUST


@pytest.mark.parametrize("late", [False, True])
def test_a_change_that_a_delivery_tells_is_no_miss(late: bool) -> None:
    """Also where the poll is quicker than the delivery."""
    made = driver()
    made.tell(told("7"))
    polls_in(made, 100.0)
    made.put(issue("b"))
    if not late:
        made.tell(told("b"))
    polls_in(made, 10 * POLICY.poll_interval - GRACE + 1)
    assert IssueId("b") in made.scheduler.snapshot(made.now).claims
    made.tell(told("B"))

    decided = [each for _ in range(int(3 * GRACE)) for each in made.pass_time(1.0)]

    assert of_kind(decided, facts.WebhooksMissed) == []


@pytest.mark.parametrize(
    "names",
    [{"numbers": (ord("a"),)}, {"branches": ("sortie/a",)}, {"commits": ("a1",)}],
)
def test_a_named_pull_request_is_looked_at_soon_and_alone(names: dict[str, Any]) -> None:
    """By its number, its branch or its head."""
    made = watching("a", "b")

    made.tell(named(**names))
    decided = made.look(stands("a"), stands("b"), seconds=1.0)

    (look,) = of_kind(decided, do.LookAtPullRequests)
    assert set(look.pull_requests) == {IssueId("a")}
    (followed,) = of_kind(decided, facts.WebhookFollowed)
    assert followed.subject == "pull_requests"
    assert followed.seconds == 1.0


@pytest.mark.parametrize(
    ("parts", "expected"),
    [(["talk"], "talk"), (["talk", "talk"], "talk"), (["talk", "checks"], "all"), (["all"], "all")],
)
def test_the_look_is_told_what_has_changed(parts: list[Any], expected: str) -> None:
    """All that has changed since the last one, by whichever names, and nothing of before."""
    made = watching("a", "b")
    names: list[dict[str, Any]] = [{"numbers": (ord("a"),)}, {"branches": ("sortie/a",)}]

    for part, name in zip(parts, names, strict=False):
        made.tell(named(part=part, **name))
    looks = of_kind(made.look(stands("a"), seconds=1.0), do.LookAtPullRequests)
    made.tell(named(numbers=(ord("a"),), part="checks"))
    for _ in range(200):
        looks += of_kind(made.look(stands("a"), seconds=1.0), do.LookAtPullRequests)

    named_looks = [dict(look.named) for look in looks if look.named]
    assert named_looks == [{IssueId("a"): expected}, {IssueId("a"): "checks"}]


def test_those_that_nothing_names_are_looked_at_together_once_an_hour() -> None:
    """However late each was looked at before."""
    made = watching("a", "b")
    shown = [stands("a"), stands("b")]
    made.tell(named(numbers=(ord("a"),)))
    made.look(*shown, seconds=1.0)
    looks = []
    for _ in range(720):
        made.tell(named(branches=("another",)))
        looks += of_kind(made.look(*shown, seconds=10.0), do.LookAtPullRequests)

    both = {IssueId("a"), IssueId("b")}
    # The first was due before deliveries were counted on.
    assert [set(look.pull_requests) for look in looks[1:]] == [both, both]


def test_a_burst_of_deliveries_is_a_few_looks() -> None:
    """A check tells of each of its steps."""
    made = watching("a")
    found = []
    for _ in range(600):
        made.tell(named(numbers=(ord("a"),)))
        if of_kind(made.look(stands("a"), seconds=1.0), do.LookAtPullRequests):
            found.append(made.driver.now)

    assert len(found) < 20


def test_looks_become_rare_and_as_frequent_as_ever_after() -> None:
    """An hour apart, also while a check is pending, which its delivery will tell."""
    pending = [stands(name, checks=(check(1, CheckState.PENDING),)) for name in "ab"]
    made = watching("a", "b")
    made.tell(named(numbers=(ord("a"), ord("b"))))
    made.look(*pending, seconds=1.0)

    rare = looked_at(made, TRUST - 20.0, *pending, step=10.0)
    often = looked_at(made, 600.0, *pending, step=10.0)

    assert len(rare) <= 2
    assert len(often) >= 8


def test_what_no_delivery_tells_is_looked_at_as_often_as_ever() -> None:
    """Whether it can be merged is computed by the forge."""
    made = watching("a")
    made.tell(named(numbers=(ord("a"),)))
    computing = stands("a", conflicts=None)
    made.look(computing, seconds=1.0)

    assert len(looked_at(made, 600.0, computing, step=10.0)) >= 8


def test_a_push_to_the_base_has_all_looked_at_once_as_soon_as_without() -> None:
    """They may conflict with it; a busy base costs no more than before."""
    shown = [stands(name) for name in "ab"]
    made = watching("a", "b")
    made.tell(named(numbers=(ord("a"),)))
    made.look(*shown, seconds=1.0)

    found = []
    for _ in range(100):
        made.tell(named(branches=("main",)))
        if of_kind(made.look(*shown, seconds=10.0), do.LookAtPullRequests):
            found.append(made.driver.now)

    assert 1 <= len(found) <= 3


def test_a_look_that_finds_more_than_was_told_ends_the_trust() -> None:
    """A service that tells of reviews may not tell of checks."""
    shown = stands("a")
    failed = stands("a", checks=(check(1, CheckState.PENDING),))
    made = watching("a")
    made.tell(named(numbers=(ord("a"),)))
    made.look(shown, seconds=1.0)

    decided = [each for _ in range(400) for each in made.look(failed, seconds=10.0)]

    (missed,) = of_kind(decided, facts.WebhooksMissed)
    assert missed.subject == "pull_requests"
    assert len(looked_at(made, 600.0, shown, step=10.0)) >= 1


def test_the_forges_pause_is_kept() -> None:
    """A delivery does not have a forge asked that wants to be left alone."""
    made = watching("a")
    made.tell(named(numbers=(ord("a"),)))
    made.pass_time(1.0)
    look = made.looks.pop()
    made.tell(ev.PullRequestsSeen(look.token, frozenset({IssueId("a")}), {}, error="no", pause=300))

    found = []
    for _ in range(400):
        made.tell(named(numbers=(ord("a"),)))
        if of_kind(made.pass_time(1.0), do.LookAtPullRequests):
            found.append(made.driver.now)
            break

    assert found[0] >= 300


def test_a_picture_goes_on_in_the_same_way() -> None:
    """Arrivals, suspects and what is to be read again are part of it."""
    made = driver()
    made.start(issue("a"))
    made.tell(told("7", "a"))
    picture: Checkpoint = made.scheduler.checkpoint()
    restored = Scheduler.restored(picture)

    for second in range(200):
        at = made.now + second
        assert made.scheduler.wakeup_at() == restored.wakeup_at()
        assert made.scheduler.handle(ev.TimePassed(), at) == restored.handle(ev.TimePassed(), at)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://github.com/Acme/Web/pull/12", "acme/web"),
        ("https://gitlab.com/g/sub/p/-/merge_requests/3", "g/sub/p"),
        ("https://host/gitlab/g/p/-/merge_requests/3", "gitlab/g/p"),
        ("https://codeberg.org/o/r/pulls/1", "o/r"),
    ],
)
def test_the_repository_of_a_pull_request_is_known_by_its_address(url: str, place: str) -> None:
    """As it stands in deliveries."""
    made: PullRequest = request("a", url=url)

    assert repository_of(made) == place
