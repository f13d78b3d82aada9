"""What ``tracker.query_filter`` finds, and what it may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.model import TrackerError, TrackerErrorKind
from sortie.trackers.github.search_filter import filter_fault, query_of
from tests.trackers.github.opened import github_opened


@pytest.mark.parametrize(
    "text",
    [
        "label:agent",
        'label:"good first issue" -label:wontfix',
        "author:ann no:assignee",
        'milestone:"v1 OR (v2)"',
        "crash when saving",
        'in:title "repo:other"',
    ],
)
def test_qualifiers_are_taken(text: str) -> None:
    """What stands in quotes is text, whatever it looks like."""
    assert filter_fault(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "repo:other/place",
        "-repo:x/y",
        "org:else",
        "user:ann",
        "is:pr",
        "IS:closed",
        "type:pr",
        "state:closed",
        "label:a OR repo:b/c",
        "a AND b",
        "(label:a)",
        'label:"a',
        'label:"a" "',
        "label:a\nrepo:b/c",
        '""repo:b/c',
    ],
)
def test_nothing_reaches_out_of_the_project(text: str) -> None:
    """A filter only narrows what the project and the states choose."""
    assert filter_fault(text) is not None


def test_a_query_names_the_repository_first() -> None:
    """And is one of issues alone."""
    query = query_of("o/r", " label:agent\n", closed=False)

    assert query == "repo:o/r is:issue state:open label:agent"


async def test_a_filter_chooses_among_the_issues(tmp_path: Path) -> None:
    """All pages of what the search finds, one request each."""
    async with github_opened(tmp_path, query_filter='label:"for agents"') as hub:
        for number in range(1, 251):
            hub.service.put(number, names=["Todo", "for agents"] if number % 2 else ["Todo"])

        assert len(await hub.todo()) == 125
        assert hub.server.count(path="/search/issues$") == len(hub.server.asked) == 2


@pytest.mark.parametrize("lags", [True, False])
async def test_an_index_that_lags_starts_nothing_twice(tmp_path: Path, lags: bool) -> None:
    """What a re-read told is later than what the search finds."""
    async with github_opened(tmp_path, query_filter="label:agent") as hub:
        hub.service.put(1, names=["Todo", "agent"])
        if lags:
            hub.service.reindex()
        assert await hub.todo() == ["1"]
        hub.service.relabel(1, "Review", "agent")
        assert await hub.state(1) == "Review"

        listed = await hub.todo()

        assert listed == (["1"] if lags else [])
        assert await hub.state(1) == "Review"  # which is asked before anything is started


async def test_more_than_the_search_gives_is_an_error(tmp_path: Path) -> None:
    """And neither is half a search a list."""
    async with github_opened(tmp_path, query_filter="label:agent") as hub:
        hub.server.contract = None
        for number in range(1, 1002):
            hub.service.put(number, names=["Todo", "agent"])
        with pytest.raises(TrackerError, match="narrow the filter") as too_many:
            await hub.todo()
        for number in range(2, 1002):
            hub.service.remove(number)
        hub.service.incomplete = True
        with pytest.raises(TrackerError, match="not whole") as incomplete:
            await hub.todo()

    assert too_many.value.kind is TrackerErrorKind.INVALID
    assert incomplete.value.kind is TrackerErrorKind.UNAVAILABLE
