"""What a simulated turn does to files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.kiro.simulator.actions import ActionError, set_state, write_file
from sortie.workflow.prompts import with_status_instructions
from tests.kiro.simulator.conftest import Simulator
from tests.workflow.sample import context

ISSUE = """---
# the state:  of affairs
title: "state: Open"
{line}
labels: [a]   # kept
---
state: Open
---
"""


@pytest.mark.parametrize(
    ("line", "state", "expected"),
    [
        ("state: Open", "Done", "state: Done"),
        ("state: Open   # now", "In Review", "state: In Review   # now"),
        ('state: "To Do"', "Done", "state: Done"),
        ("state:   'To # Do' # x", "Done", "state: Done # x"),
        ("state:", "Done", "state: Done"),
        ("state: Open", 'QA: "second"', 'state: "QA: \\"second\\""'),
        ("state: Open", "1", 'state: "1"'),
    ],
)
def test_set_state_changes_one_line(tmp_path: Path, line: str, state: str, expected: str) -> None:
    """Comments, order, other keys, the body and the file's mode stay as they are."""
    path = tmp_path / "X 1.md"
    path.write_text(ISSUE.format(line=line))
    path.chmod(0o640)

    set_state(f"{path} {state}")

    assert path.read_text() == ISSUE.format(line=expected)
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["X 1.md"]


@pytest.mark.parametrize("content", ["no front matter", "---\ntitle: x\n---\nstate: Open\n"])
def test_set_state_needs_a_state(tmp_path: Path, content: str) -> None:
    """A file without the line is left alone and told about."""
    path = tmp_path / "X-1.md"
    path.write_text(content)

    with pytest.raises(ActionError, match="has no front matter with a state"):
        set_state(f"{path} Done")

    assert path.read_text() == content


def test_set_state_needs_a_file_and_a_state() -> None:
    """A request without a state is malformed."""
    with pytest.raises(ActionError, match=r"is not of the form FILE\.md STATE"):
        set_state("X-1.md")


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "."])
def test_write_stays_in_the_directory(name: str, simulator: Simulator) -> None:
    """A prompt cannot make the simulator write elsewhere."""
    with pytest.raises(ActionError, match="lies outside of"):
        write_file(name)


def test_files_of_a_turn(simulator: Simulator) -> None:
    """The note grows by a line a turn; file and status are written."""
    for number in (1, 2):
        simulator.chat(f"\nsim: write=a/b.txt status=blocked\nTurn {number}\nmore")

    note = Path("SORTIE_DEMO.md").read_text().splitlines()
    assert [line.split(": ", 1)[1] for line in note] == ["Turn 1", "Turn 2"]
    assert Path("a/b.txt").read_text() == "Written by the Kiro simulator.\n"
    assert Path(".sortie/status").read_text() == "blocked\n"


def test_the_first_turns_fail(simulator: Simulator) -> None:
    """With fail_first=2 the third turn in a directory is the first to succeed."""
    statuses = [simulator.chat("sim: fail_first=2").status for _ in range(4)]

    assert statuses == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("more", "word"),
    [("", "done"), ("status=blocked", "blocked"), ("exit=1", None), ("no_trailer=1", None)],
)
def test_it_says_done_where_the_prompt_asks_for_it(
    simulator: Simulator, more: str, word: str | None
) -> None:
    """As Sortie's own instructions do; not where another word is named, or the turn fails."""
    simulator.chat(with_status_instructions(f"Go\nsim: note=0 {more}", context()))

    status = Path(".sortie/status")
    assert (status.read_text().strip() if status.exists() else None) == word
