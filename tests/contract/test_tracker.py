"""Every tracker, whatever it is made of, is held to the conformance kit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sortie.http.answers import HttpAnswer
from sortie.http.client import HttpClient
from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.testing.tracker import CHECKS, OPTIONAL_FIELDS, OpenRig, Rig, Status, make_issue
from sortie.trackers import ADAPTERS, Capability
from tests.trackers.fake import FakeTracker


class FakeRig:
    """The tracker of other tests."""

    capabilities = frozenset(Capability)
    keeps = OPTIONAL_FIELDS

    def __init__(self) -> None:
        self.tracker = FakeTracker()

    def put(self, issue: Issue) -> None:
        self.tracker.unreadable.pop(issue.id, None)
        said = tuple(replace(c, author_id=c.author) for c in issue.comments)
        self.tracker.put(replace(issue, author_id=issue.author, comments=said))

    def lose(self, issue_id: str) -> None:
        self.tracker.lose(issue_id)

    def spoil(self, issue_id: str) -> None:
        self.tracker.unreadable[IssueId(issue_id)] = TrackerErrorKind.INVALID

    def fail(self) -> None:
        self.tracker.down = TrackerErrorKind.UNAVAILABLE

    def recover(self) -> None:
        self.tracker.down = self.tracker.retry_after = None

    def limit(self, seconds: int) -> None:
        self.fail()
        self.tracker.retry_after = float(seconds)


@asynccontextmanager
async def _fake(_directory: Path) -> AsyncIterator[Rig]:
    yield FakeRig()


def rigs_of(kind: str) -> Mapping[str, OpenRig]:
    """Return the rigs of a kind by name; none where nobody has written its module."""
    package = f"tests.trackers.{kind.replace('-', '_')}"
    if find_spec(package) is None or find_spec(f"{package}.rig") is None:
        return {}
    rigs: Mapping[str, OpenRig] = import_module(f"{package}.rig").RIGS
    return rigs


RIGS: Mapping[str, OpenRig] = {"fake": _fake} | {
    f"{kind}-{name}": rig for kind in ADAPTERS.found for name, rig in rigs_of(kind).items()
}


SPARED = frozenset({"linear-team", "jira-cloud-labels", "jira-data-center-labels"})
"""Those left to --full: small pages are read as large ones are, and Jira's labels are states by the
same code as Linear's."""


@pytest.fixture(
    params=[pytest.param(n, marks=pytest.mark.full if n in SPARED else ()) for n in RIGS]
)
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    """Each tracker that there is, opened and empty."""
    async with RIGS[request.param](tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("kind", ADAPTERS.found)
def test_every_kind_is_held_to_the_kit(kind: str) -> None:
    """A tracker that is found can be loaded, and has a rig."""
    adapter = ADAPTERS.load(kind)

    assert rigs_of(kind), (
        f"tests/trackers/{kind.replace('-', '_')}/rig.py has to hold RIGS, by which this suite "
        f"tries the tracker {adapter.kind!r}; see docs/contributing.md"
    )


@pytest.mark.parametrize("name", CHECKS)
async def test_every_promise_of_the_port_is_kept(rig: Rig, name: str) -> None:
    """By each tracker, as far as it declares it."""
    verdict = await CHECKS[name].verdict(rig)

    if verdict.status is Status.NOT_TRIED:
        pytest.skip(verdict.reason)
    assert verdict.status is Status.PASSED, verdict.reason


def without_lists(told: Any, odd: Any) -> Any:
    """Return what a tracker says, with something else in the place of each list."""
    if isinstance(told, dict):
        return {key: without_lists(value, odd) for key, value in told.items()}
    return odd if isinstance(told, list) else told


@pytest.mark.parametrize("odd", [{}, None, "", [None], ["a"]], ids=repr)
async def test_what_is_no_list_of_issues_is_an_error_and_never_an_empty_list(
    rig: Rig, odd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy, or a server that is out of order, may answer 200 with anything."""
    rig.put(make_issue("A-1"))
    sent, answers = HttpClient._sent, 0

    async def answer(*args: Any) -> HttpAnswer:
        nonlocal answers
        answers += 1
        given = await sent(*args)
        told = without_lists(given.json(), odd)
        return replace(given, content=json.dumps(told).encode(), _parsed=[])

    monkeypatch.setattr(HttpClient, "_sent", answer)
    failed = None
    try:
        await rig.tracker.fetch_candidates(["todo"])
    except TrackerError as exc:
        failed = exc
    if not answers:
        pytest.skip("it is not asked over HTTP by the common client")
    assert failed is not None
    assert failed.kind is TrackerErrorKind.UNAVAILABLE
    if odd != ["a"]:  # labels may be plain texts
        with pytest.raises(TrackerError):
            await rig.tracker.find("A-1")
