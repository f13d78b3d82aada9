"""What a run's agent does, gathered from what it tells."""

from __future__ import annotations

import pytest

from sortie.model import UNKNOWN, Activity
from sortie.worker.activity import (
    ACTIVITY_FILE_COUNT,
    ACTIVITY_TOOL_COUNT,
    FILE_CHARACTERS,
    OTHER_TOOLS,
    PATH_LIMIT,
    RunActivity,
)

WORKSPACE = "/w/A-1"


@pytest.fixture
def gathered() -> RunActivity:
    """What an agent in a workspace does."""
    return RunActivity(WORKSPACE)


def files(gathered: RunActivity) -> tuple[str, ...]:
    return gathered.activity.files_modified or ()


def test_nothing_told_is_unknown_and_no_tools_are_none(gathered: RunActivity) -> None:
    """Who tells nothing may have done anything; who tells all, and of no tool, used none."""
    before = gathered.activity
    gathered.traced(None)

    assert before == UNKNOWN
    assert gathered.activity == Activity(files_modified=(), tool_uses={})


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("a.py", "a.py"),
        ("./src//a.py", "src/a.py"),
        ("/w/A-1/src/a.py", "src/a.py"),
        ("/w/A-1/../A-10/a.py", "/w/A-10/a.py"),
        ("../../etc/hosts", "/etc/hosts"),
        ("/w/A-1", "/w/A-1"),
        ("a\nb\x1b[2J\ud800.py", "a\ufffdb\ufffd[2J\ufffd.py"),
    ],
)
def test_a_path_is_relative_where_it_lies_in_the_workspace(
    gathered: RunActivity, told: str, shown: str
) -> None:
    """Others stay absolute, and no path steers a terminal or ends a line."""
    gathered.modified("edit", [told])

    assert files(gathered) == (shown,)


def test_only_tools_that_modify_files_count(gathered: RunActivity) -> None:
    """Each file stands once, in the order of the first time."""
    gathered.modified("edit", ["b.py", "a.py", ""])
    gathered.modified("read", ["read.py"])
    gathered.modified(None, ["unknown.py"])
    gathered.modified("delete", ["a.py", "/w/A-1/b.py", "c.py"])
    gathered.modified("move", ["from.py", "to.py"])

    assert files(gathered) == ("b.py", "a.py", "c.py", "from.py", "to.py")
    assert not gathered.activity.files_omitted


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([f"{n}.py" for n in range(ACTIVITY_FILE_COUNT + 1)], ACTIVITY_FILE_COUNT),
        (["x" * PATH_LIMIT + str(n) for n in range(3)], 0),
        ([str(n) * 1000 for n in range(9, 100)], FILE_CHARACTERS // 2000 + 1),
    ],
)
def test_no_more_is_kept_than_fits(gathered: RunActivity, told: list[str], kept: int) -> None:
    """However many and long the paths are, and it is told that some are missing."""
    gathered.modified("edit", told)

    assert len(files(gathered)) <= kept
    assert sum(map(len, files(gathered))) <= FILE_CHARACTERS
    assert gathered.activity.files_omitted
    assert not set(files(gathered)) - set(told)


def test_uses_are_counted_by_name_and_names_are_bounded(gathered: RunActivity) -> None:
    """What comes after too many names is counted together."""
    for name in ("write", "shell\n", "write", ""):
        gathered.used(name)
    for number in range(ACTIVITY_TOOL_COUNT + 5):
        gathered.used(f"t{number}")
    uses = gathered.activity.tool_uses or {}

    assert (uses["write"], uses["shell\ufffd"], uses[OTHER_TOOLS]) == (2, 1, 9)
    assert len(uses) == ACTIVITY_TOOL_COUNT
    assert sum(uses.values()) == ACTIVITY_TOOL_COUNT + 9


def test_a_traced_model_goes_before_one_that_was_seen(gathered: RunActivity) -> None:
    """A small model that does odd jobs is not the model of the run."""
    gathered.model_seen("small")
    seen = gathered.activity
    gathered.traced("large")
    gathered.model_seen("small")
    gathered.traced(None)

    assert seen == Activity(model="small")
    assert gathered.activity.model == "large"


def test_what_has_changed_is_told_once_and_not_too_often(gathered: RunActivity) -> None:
    """Live numbers come at most every five seconds, and none is missing in the end."""
    nothing = gathered.news(0.0)
    gathered.used("a")
    first = gathered.news(1.0)
    again = gathered.news(20.0)
    gathered.used("a")
    due = gathered.news(21.0)
    gathered.used("a")
    early = gathered.news(24.0)
    rest = gathered.unreported(24.0)

    assert (nothing, again, early, gathered.unreported(30.0)) == (None, None, None, None)
    assert [told.tool_uses for told in (first, due, rest) if told] == [{"a": 1}, {"a": 2}, {"a": 3}]
