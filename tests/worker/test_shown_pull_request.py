"""A pull request as an agent is told of it: bounded, and strangers are quoted."""

from __future__ import annotations

from typing import Any, cast

from sortie.forges import Forge
from sortie.model import PullRequest, TrackerError, TrackerErrorKind
from sortie.model.pull_requests import (
    CheckState,
    HeadCheck,
    Note,
    PullRequestState,
    Review,
    ReviewThread,
)
from sortie.worker.shown_pull_request import (
    LOG_LINES,
    LOG_SHOWN,
    LOGS_SHOWN,
    THREADS_SHOWN,
    shown_pull_request,
)

REQUEST = PullRequest(
    id="7",
    number=7,
    url="https://forge.example/o/r/pulls/7",
    state="open",
    branch="sortie/a",
    base="main",
    title="Mend\nit",
    head="c" * 40,
)


class LookedAtForge:
    """A forge with one pull request; ``log`` is that of each check."""

    def __init__(self, state: PullRequestState | None, log: str | TrackerError = "") -> None:
        self._state = state
        self._log = log
        self.lines: list[int] = []

    async def look(self, _: object) -> dict[str, PullRequestState]:
        return {} if self._state is None else {REQUEST.id: self._state}

    async def check_log(self, _: HeadCheck, lines: int) -> str:
        self.lines.append(lines)
        if isinstance(self._log, TrackerError):
            raise self._log
        return self._log


def quoted(text: str, what: str) -> str:
    return f"[{what}: {text}]"


async def shown(forge: LookedAtForge) -> dict[str, Any]:
    return await shown_pull_request(cast(Forge, forge), REQUEST, quoted)


def check(name: str, state: CheckState) -> HeadCheck:
    return HeadCheck(id=name, name=name, state=state, required=True, url=f"https://ci/{name}")


async def test_state_checks_reviews_and_open_threads_are_told() -> None:
    """The log of a failed check alone, and threads that are not resolved."""
    note = Note(id="n", author="ann\x1b[1m", body="why?")
    state = PullRequestState(
        pull_request=REQUEST,
        conflicts=True,
        checks=(check("lint", CheckState.SUCCESS), check("test", CheckState.FAILURE)),
        reviews=(Review(id="r", author="bob", state="changes_requested", body="no"),),
        threads=(
            ReviewThread(id="t", path="a.py", line=3, resolved=False, notes=(note,)),
            ReviewThread(id="u", path="b.py", resolved=True, notes=(note,)),
        ),
    )
    forge = LookedAtForge(state, "1 failed")

    told = await shown(forge)

    assert (told["state"], told["conflicts"], told["title"]) == ("open", True, "Mend it")
    assert [(one["name"], one["state"]) for one in told["checks"]] == [
        ("lint", "success"), ("test", "failure")
    ]  # fmt: skip
    assert told["failed_check_logs"] == [
        {
            "check": "test",
            "url": "https://ci/test",
            "end_of_log": "[the log of a check: 1 failed]",
        }
    ]
    assert forge.lines == [LOG_LINES]
    assert told["reviews"][0]["body"] == "[a review: no]"
    (thread,) = told["open_threads"]
    assert (thread["path"], thread["notes"][0]["body"]) == ("a.py", "[a review: why?]")
    assert "\x1b" not in str(told)


async def test_what_a_forge_has_much_of_is_bounded() -> None:
    """So is the log of each check, of which the end is shown."""
    many = tuple(check(f"c{number}", CheckState.FAILURE) for number in range(100))
    thread = ReviewThread(id="t", notes=(Note(id="n", author="a", body="x" * 5000),) * 20)
    state = PullRequestState(pull_request=REQUEST, checks=many, threads=(thread,) * 100)

    told = await shown(LookedAtForge(state, "y" * 100_000 + "end"))

    assert len(told["failed_check_logs"]) == LOGS_SHOWN
    assert told["failed_check_logs"][0]["end_of_log"].endswith("end]")
    assert len(told["open_threads"]) == THREADS_SHOWN
    assert len(str(told)) < 200_000


async def test_what_is_gone_or_cannot_be_read_is_said() -> None:
    """A log that the forge does not give keeps nothing else back."""
    failed = PullRequestState(pull_request=REQUEST, checks=(check("t", CheckState.FAILURE),))
    trouble = TrackerError(TrackerErrorKind.INVALID, "no such job")

    gone = await shown(LookedAtForge(None))
    unreadable = await shown(LookedAtForge(failed, trouble))

    assert gone == {"url": REQUEST.url, "state": "gone"}
    assert "could not be read: no such job" in unreadable["failed_check_logs"][0]["end_of_log"]


async def test_a_long_log_is_cut_before_a_word_that_may_be_a_secret() -> None:
    """A secret is not known by its half, and is hidden only in the whole answer."""
    secret = "ghp_" + "x" * 30
    log = f"token {secret} {'.' * (LOG_SHOWN - 20)}"
    state = PullRequestState(pull_request=REQUEST, checks=(check("test", CheckState.FAILURE),))

    told = await shown(LookedAtForge(state, log))

    (shown_log,) = told["failed_check_logs"]
    assert "x" not in shown_log["end_of_log"].partition(": ")[2]
