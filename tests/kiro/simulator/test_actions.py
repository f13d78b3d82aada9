"""What a simulated turn does to files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.kiro.simulator.actions import ActionError, set_state, write_file
from tests.kiro.simulator.conftest import Simulator

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


def test_set_state_keeps_bom_and_line_ends(tmp_path: Path) -> None:
    """A file from another editor keeps its bytes."""
    path = tmp_path / "X-1.md"
    path.write_bytes(b"\xef\xbb\xbf---\r\nstate: Open\r\n---\r\nbody\r\n")

    set_state(f"{path} Done")

    assert path.read_bytes() == b"\xef\xbb\xbf---\r\nstate: Done\r\n---\r\nbody\r\n"


def test_set_state_follows_a_link(tmp_path: Path) -> None:
    """The issue behind a link changes; the link stays one."""
    (tmp_path / "real.md").write_text("---\nstate: Open\n---\n")
    (tmp_path / "link.md").symlink_to("real.md")

    set_state(f"{tmp_path / 'link.md'} Done")

    assert (tmp_path / "real.md").read_text() == "---\nstate: Done\n---\n"
    assert (tmp_path / "link.md").is_symlink()


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


def test_an_action_that_fails_ends_the_turn(simulator: Simulator) -> None:
    """A missing issue file is exit 1 with its name on stderr, and no trailer."""
    ran = simulator.chat("sim: set_state=/missing/X-1.md Done")

    assert ran.status == 1
    assert "/missing/X-1.md" in ran.stderr
    assert "Credits" not in ran.stderr


def test_the_first_turns_fail(simulator: Simulator) -> None:
    """With fail_first=2 the third turn in a directory is the first to succeed."""
    statuses = [simulator.chat("sim: fail_first=2").status for _ in range(4)]

    assert statuses == [1, 1, 0, 0]
