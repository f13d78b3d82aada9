"""The doctor: checks in order, what needs a failed one skipped, no secret told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sortie.daemon.doctor import Diagnosis, diagnose, run_checks
from sortie.daemon.options import RunOptions
from sortie.model import SortieError, TrackerError, TrackerErrorKind
from sortie.model.checks import Check, CheckOutcome, CheckResult, failed, passed, warned
from tests.trackers.toy.server import API_KEY, PROJECT, serving
from tests.workspaces.remotes import make_remote

WORKFLOW = """\
---
tracker:
  kind: toy
  endpoint: {url}
  project: {project}
  api_key: $TOY_KEY
  active_states: [Todo]
  terminal_states: [Done]
  handoff_state: Review
workspace:
  root: work
kiro:
  trust_all_tools: true
---
Do it
"""


def answering(name: str, answer: CheckResult | Exception, *needs: str, remedy: str = "") -> Check:
    """Return a check that gives this answer."""

    async def ask() -> CheckResult:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Check(name=name, ask=ask, needs=needs, remedy=remedy)


async def told_of(*checks: Check) -> dict[str, tuple[str, str, str]]:
    """Run checks and return outcome, sentence and remedy by name, in order."""
    found: list[Diagnosis] = []
    await run_checks("part", checks, found.append)
    return {
        each.name: (each.result.outcome.value, each.result.sentence, each.result.remedy)
        for each in found
    }


async def test_what_needs_a_failed_check_is_skipped_and_all_else_is_run() -> None:
    """A skipped check skips those that need it; a warning hinders nobody."""
    found = await told_of(
        answering("key", failed("no key", "make one")),
        answering("scopes", passed("all"), "key"),
        answering("write", passed("may"), "scopes"),
        answering("clock", warned("late", "set it")),
        answering("budget", passed("enough"), "clock"),
    )

    assert found == {
        "part.key": ("failed", "no key", "make one"),
        "part.scopes": ("skipped", "not looked at: mend part.key first", ""),
        "part.write": ("skipped", "not looked at: mend part.scopes first", ""),
        "part.clock": ("warning", "late", "set it"),
        "part.budget": ("ok", "enough", ""),
    }


async def test_an_error_is_a_failed_check_with_a_remedy() -> None:
    """The check's own remedy is told, else the one for that kind of error."""
    found = await told_of(
        answering("one", SortieError("broken"), remedy="mend it"),
        answering("two", TrackerError(TrackerErrorKind.PERMISSION, "may not")),
        answering("three", passed("well"), "two"),
    )

    assert found["part.one"] == ("failed", "broken", "mend it")
    assert found["part.two"] == (
        "failed",
        "may not",
        "give the credential the right that is missing",
    )
    assert found["part.three"][0] == "skipped"


def diagnosed(directory: Path, url: str, key: str, more: str = "") -> Sequence[Diagnosis]:
    """Return what is found about a toy tracker; ``more`` are further settings."""
    workflow = directory / "WORKFLOW.md"
    text = WORKFLOW.format(url=url, project=PROJECT)
    workflow.write_text(text.replace("workspace:", f"{more}workspace:"))
    found: list[Diagnosis] = []
    environ = {"TOY_KEY": key, "HOME": str(directory), "PATH": "/bin:/usr/bin"}
    diagnose(RunOptions(workflow=workflow, environ=environ), found.append)
    return found


def test_a_tracker_that_answers_passes(tmp_path: Path) -> None:
    """The adapter's own checks come first, then what every tracker is asked."""
    with serving() as server:
        server.put("A-1", labels=["Todo"])
        found = diagnosed(tmp_path, server.url, API_KEY)

    outcomes = [(each.name, each.result.outcome) for each in found]
    assert [each for each in outcomes if not each[0].startswith(("machine.", "agent."))] == [
        ("workflow", CheckOutcome.OK),
        ("settings", CheckOutcome.OK),
        ("tracker.read", CheckOutcome.OK),
        ("tracker.trust", CheckOutcome.OK),
        ("tracker.candidates", CheckOutcome.OK),
        ("tracker.other_states", CheckOutcome.OK),
    ]
    assert sorted(tmp_path.iterdir()) == [tmp_path / "WORKFLOW.md"]


def test_a_wrong_key_fails_the_check_that_meets_it(tmp_path: Path) -> None:
    """What comes after is skipped, and the key stands nowhere."""
    with serving() as server:
        found = diagnosed(tmp_path, server.url, "a-wrong-key")

    outcomes = {each.name: each.result.outcome for each in found}
    assert outcomes["tracker.read"] is CheckOutcome.FAILED
    assert outcomes["tracker.candidates"] is CheckOutcome.SKIPPED
    assert "a-wrong-key" not in repr(found)


def test_the_program_that_reviews_is_looked_for(tmp_path: Path) -> None:
    """Where it is another agent's than the run's."""
    repository = f"repository: {{url: {tmp_path}/none.git}}\n"
    other = f"{repository}self_review: {{agent: claude-code}}\n"
    with serving() as server:
        found = diagnosed(tmp_path, server.url, API_KEY, other)
        same = diagnosed(tmp_path, server.url, API_KEY, f"{repository}self_review: {{}}\n")

    (result,) = [each.result for each in found if each.name == "agent.reviewer"]
    assert result.outcome is CheckOutcome.FAILED
    assert "claude" in result.sentence
    assert [each for each in same if each.name == "agent.reviewer"] == []


@pytest.mark.parametrize(
    ("base", "outcome", "sentence"),
    [
        ("", CheckOutcome.OK, "where work begins at main"),
        (", base: main", CheckOutcome.OK, "where work begins at main"),
        (", base: gone", CheckOutcome.FAILED, "the remote has no branch gone"),
    ],
)
def test_the_base_has_to_be_there(
    tmp_path: Path, base: str, outcome: CheckOutcome, sentence: str
) -> None:
    """Where none is set, it is the remote's default branch."""
    bare = make_remote(tmp_path / "forge")
    with serving() as server:
        found = diagnosed(tmp_path, server.url, API_KEY, f"repository: {{url: {bare}{base}}}\n")

    (result,) = [each.result for each in found if each.name == "repository.remote"]
    assert result.outcome is outcome
    assert sentence in result.sentence


@pytest.mark.parametrize("part", ["sentence", "remedy"])
def test_a_secret_in_what_others_say_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Whoever puts the key into a sentence, it is hidden where the checks leave."""
    from toy_tracker.tracker import ToyTracker

    texts = {"sentence": "fine", "remedy": "none", part: f"the key {API_KEY} is right"}
    leaking = CheckResult(outcome=CheckOutcome.WARNING, **texts)  # type: ignore[arg-type]
    monkeypatch.setattr(ToyTracker, "checks", lambda self: [answering("leak", leaking)])

    with serving() as server:
        found = diagnosed(tmp_path, server.url, API_KEY)

    (leak,) = (each.result for each in found if each.name == "tracker.leak")
    assert getattr(leak, part) == "the key *** is right"


def test_a_crash_of_the_adapter_is_a_failed_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug in one check is told as such, and a bug in listing them too."""
    from toy_tracker.tracker import ToyTracker

    monkeypatch.setattr(
        ToyTracker, "checks", lambda self: [answering("read", ZeroDivisionError("x"))]
    )
    with serving() as server:
        one = diagnosed(tmp_path, server.url, API_KEY)
        monkeypatch.setattr(ToyTracker, "checks", lambda self: 1 // 0)
        all_of_them = diagnosed(tmp_path, server.url, API_KEY)

    results = [
        next(each.result for each in found if each.name.startswith("tracker"))
        for found in (one, all_of_them)
    ]
    assert "crashed (check read)" in results[0].sentence
    assert "crashed (checks)" in results[1].sentence
    assert {result.outcome for result in results} == {CheckOutcome.FAILED}
