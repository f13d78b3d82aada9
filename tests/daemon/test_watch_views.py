"""What is shown of a watched pull request says in words what a run answers and has answered."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace
from trio.testing import MockClock

from sortie.daemon.watch_views import watch_view
from sortie.model.pull_requests import ReviewThread
from sortie.model.watches import Watch
from sortie.scheduler.watch_standing import WatchExplanation, WatchStage, WatchStanding
from sortie.web.watches import CAUSES_SHOWN
from tests.store.watches import NOTE, REQUEST, a_watch
from tests.worker.rig import issue

HEAD = "0123456789abcdef0123456789abcdef01234567"


def explained(watch: Watch) -> WatchExplanation:
    """Return an explanation of a watch."""
    standing = WatchStanding(
        issue=issue(),
        watch=watch,
        stage=WatchStage.REACTION,
        waits_for="a run",
        next_at=None,
        queued=False,
        held=None,
        rule="docs",
    )
    return WatchExplanation(standing=standing, gates=(), runs=())


async def test_what_a_run_answers_is_said_in_words(autojump_clock: MockClock) -> None:
    """Each cause with its name, its author or its place; nothing of what they have written."""
    whole = a_watch().reaction
    assert whole is not None
    threads = (
        *whole.threads,
        ReviewThread(id="4", path="b.py", notes=(NOTE,)),
        ReviewThread(id="5"),
    )
    watch = Watch(pull_request=REQUEST, since=86400.0, reaction=replace(whole, threads=threads))

    found = watch_view(explained(watch))

    assert found.answers == (
        "conflicts with its base",
        "the failed check test",
        "changes requested by ann",
        "a thread of ann about a.py:3",
        "a thread of ann about b.py",
        "a thread",
        "a comment of ann",
        "a label",
    )
    assert found.standing.reaction == ("conflicts", "checks", "review", "commands")
    assert found.standing.since == datetime(1970, 1, 2, tzinfo=UTC)
    assert found.standing.next_look_at is None
    assert found.standing.rule == "docs"


async def test_the_newest_of_what_was_answered_is_shown(autojump_clock: MockClock) -> None:
    """The others are counted; a name of a cause is told in words."""
    causes = (
        *(f"note:{number}" for number in range(CAUSES_SHOWN)),
        f"conflicts:{HEAD}",
        f"check:{HEAD}:12",
        "review:5",
        "comment:6",
        "label:sortie:fix",
    )

    found = watch_view(explained(Watch(pull_request=REQUEST, since=0.0, causes=causes)))

    assert found.answers == ()
    assert found.causes_omitted == 5
    assert len(found.causes) == CAUSES_SHOWN
    assert found.causes[-6:] == (
        f"note in a review {CAUSES_SHOWN - 1}",
        "conflicts at 0123456789ab",
        "check 12 at 0123456789ab",
        "review 5",
        "comment 6",
        "label sortie:fix",
    )
