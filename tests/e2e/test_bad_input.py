"""Files and issues that are broken, or made to escape."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.place import Json, Place

KEEPER = Path(__file__).parent / "programs" / "keeper.py"

LOG_LINE = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z (debug|info|warning|error) +[a-z_]+\.[a-z_]+( .*)?"
)

MIB = 1024 * 1024

ANCHOR_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


def missing(place: Place) -> None:
    place.workflow.unlink()


def directory(place: Place) -> None:
    place.workflow.unlink()
    place.workflow.mkdir()


def unreadable(place: Place) -> None:
    place.workflow.chmod(0)


def not_utf8(place: Place) -> None:
    place.workflow.write_bytes(b"---\ntracker: {kind: file}\n---\n\xff\xfe\n")


def five_mebibytes(place: Place) -> None:
    place.workflow.write_text("---\n" + "key: [a, b, c]\n" * (5 * MIB // 15) + "---\nWork.\n")


def anchor_bomb(place: Place) -> None:
    place.workflow.write_text(f"---\n{ANCHOR_BOMB}---\nWork.\n")


def deeply_nested(place: Place) -> None:
    place.workflow.write_text(f"---\ntracker: {'[' * 50_000}\n---\nWork.\n")


def a_pipe(place: Place) -> None:
    place.workflow.unlink()
    os.mkfifo(place.workflow)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (missing, "there is no WORKFLOW.md"),
        (directory, "directory"),
        pytest.param(
            unreadable,
            "Permission denied",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file"),
        ),
        (not_utf8, "UTF-8"),
        (five_mebibytes, "MiB"),
        (anchor_bomb, "alias"),
        pytest.param(deeply_nested, "nest", marks=pytest.mark.full),
        pytest.param(a_pipe, "regular file", marks=pytest.mark.full),
    ],
)
async def test_a_workflow_that_cannot_be_used_is_told_promptly(
    place: Place, spoil: Callable[[Place], None], says: str
) -> None:
    """Each ends with 1 and a short text that names the file and the trouble; nothing is made."""
    spoil(place)
    before = sorted(path.name for path in place.root.iterdir())

    ran = await place.sortie("run", "--port", "0", within=20)

    assert ran.code == 1
    assert ran.out == ""
    assert says in ran.err
    assert "WORKFLOW.md" in ran.err
    assert len(ran.err) < 2000
    assert "Traceback" not in ran.err
    assert sorted(path.name for path in place.root.iterdir()) == before


TEMPLATES = (
    "{% for a in range(10**9) %}{{ a }}{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ ''.__class__.__mro__ }}",
    "{{ 'x' * 10**9 }}",
)


async def test_templates_that_go_too_far_fail_their_runs_alone(place: Place, start: Start) -> None:
    """What takes minutes, reaches for Python or fills the memory fails its run in seconds.

    The daemon answers meanwhile, starts no agent with it, and runs on with a mended prompt.
    """
    ends: list[Json] = []

    async with start() as daemon:
        await daemon.ready()
        for number, template in enumerate(TEMPLATES, start=1):
            place.write_workflow(f"Work.\n{template}\n")
            await daemon.line("workflow.reloaded", nth=number)
            place.add_issue(f"T-{number}")
            await daemon.line("run.started", issue=f"T-{number}")
            assert (await daemon.get("/livez")).status_code == 200
            ends.append(await daemon.line("run.finished", issue=f"T-{number}", within=15))
        agents = place.agents()
        place.write_workflow()
        place.add_issue("GOOD")
        await daemon.line("workflow.reloaded", nth=len(TEMPLATES) + 1)
        await daemon.line("issue.moved", issue="GOOD", lifecycle="handoff")

    assert {(end["status"], end["error_kind"]) for end in ends} == {("failed", "template_error")}
    assert [re.match(r"\S*WORKFLOW\.md:(\d+): prompt: ", end["error"]) is None for end in ends] == [
        False
    ] * len(TEMPLATES)
    assert agents == []


ATTACKS: dict[str, dict[str, str]] = {
    "parent": {"identifier": "../../escaped"},
    "absolute": {"identifier": "/tmp/escaped"},
    "template": {"identifier": "{{ 7*7 }}", "title": "{{ 7*7 }} {% for a in b %}"},
    "shell": {"identifier": "$(touch escaped);`touch escaped`", "title": "'; touch escaped #"},
    "controls": {"title": "red\x1b[31m\r\nlevel=error event=forged\x00\x85\u2028\u202e"},
    "named-controls": {"identifier": "one\ntwo\x1b[31m\x00\u2028"},
    "option": {"identifier": "--version", "title": "--version"},
    "long": {"identifier": "x" * MIB, "title": "y" * MIB},
    "longish": {"identifier": "z" * 400, "title": "t" * 900},
}


HARMLESS = tuple(
    fields["identifier"]
    for name, fields in ATTACKS.items()
    if "identifier" in fields and name not in ("named-controls", "long", "longish")
)
"""Identifiers that can be worked on."""


def given_to_agents(place: Place) -> dict[str, Json]:
    """Return what the agents wrote down, by their issue's identifier."""
    given = map(json.loads, (path.read_text() for path in place.workspaces.glob("*/given.json")))
    return {entry["environ"]["SORTIE_ISSUE_IDENTIFIER"]: entry for entry in given}


async def test_issues_made_to_escape_are_harmless_text(place: Place) -> None:
    """Identifiers, titles and texts stay in the root, in one log line each, and are not rendered.

    Those that can have no workspace or name are told; all others run, each in its own directory.
    """
    place.write_workflow(
        "{{ issue.identifier }}\n{{ issue.title }}\n{{ issue.description }}",
        agent={"command": [sys.executable, str(KEEPER)], "max_turns": 1},
        hooks={"after_create": 'printf %s "$SORTIE_ISSUE_IDENTIFIER" > identifier'},
        trust={"fences": False},
    )
    for name, fields in ATTACKS.items():
        place.add_issue(name, "{{ 7*7 }} {{ ''.__class__ }} \x1b[2J", **fields)
    for name, size in (("big", 200 * 1024), ("huge", MIB)):
        path = place.add_issue(name)
        path.write_text(path.read_text() + "w" * size)
    before = {path.name for path in place.root.iterdir()}

    ran = await place.sortie("run", "--port", "0", "--exit-when-idle", within=60)
    rows = await place.history()

    assert ran.code in (0, 3)
    assert [line for line in ran.err.splitlines() if not LOG_LINE.fullmatch(line)] == []
    assert max(map(len, ran.err.splitlines())) < 20_000
    for name in ("named-controls", "long", "longish", "huge"):
        assert f'tracker.issue_malformed error="{name}.md' in ran.err
    made = {path.name for path in place.root.iterdir()} - before
    assert {name for name in made if not name.startswith(".sortie.db")} == {"workspaces"}
    assert not Path("/tmp/escaped").exists()
    assert list(place.root.rglob("escaped")) == []
    given = given_to_agents(place)
    succeeded = {row["issue"] for row in rows if row["status"] == "succeeded"}
    assert succeeded == set(given) == {*HARMLESS, "controls", "big"}
    assert given["{{ 7*7 }}"]["prompt"] == (
        "{{ 7*7 }}\n{{ 7*7 }} {% for a in b %}\nsim: {{ 7*7 }} {{ ''.__class__ }} \ufffd[2J"
    )
    assert given["big"]["prompt"].endswith("w" * 200 * 1024)
    workspaces = {row["issue"]: Path(row["workspace"]) for row in rows}
    assert {path.parent for path in workspaces.values()} == {place.workspaces}
    assert len(set(workspaces.values())) == len(rows)
    for name, path in workspaces.items():
        assert (path / "identifier").read_text() == name


async def test_what_an_agent_prints_stays_in_its_log_line(place: Place, start: Start) -> None:
    """Escapes, forged lines and floods of an agent's output are one JSON line each, and short."""
    place.add_issue("A", 'output=3000000 stderr="\x1b[31mforged\\n{}" no_trailer=1 credits=1')

    async with start("--log-level", "debug") as daemon:
        await daemon.line("run.finished", issue="A", status="failed")
        metrics = await daemon.metrics()

    assert daemon.lines("agent.warned")
    assert all(len(json.dumps(line)) < 10_000 for line in daemon.log)
    assert metrics.total("sortie_turn_output_lines_total", agent="kiro") > 10_000


async def test_issue_files_that_are_broken_do_not_stop_the_others(
    place: Place, start: Start
) -> None:
    """Binary, empty, huge, linked and doubled files are told with their names and passed over."""
    (place.issues / "binary.md").write_bytes(bytes(range(256)))
    (place.issues / "empty.md").write_text("")
    (place.issues / "list.md").write_text("---\n- a\n---\n")
    (place.issues / "bomb.md").write_text(f"---\n{ANCHOR_BOMB}---\n")
    (place.issues / "loop.md").symlink_to("loop.md")
    os.mkfifo(place.issues / "pipe.md")
    place.add_issue("first", id="same")
    place.add_issue("second", id="same")
    place.add_issue("dots", identifier="..")
    place.add_issue("good")

    async with start() as daemon:
        await daemon.line("issue.moved", issue="good", lifecycle="handoff")
        dots = await daemon.line("run.finished", issue="..")
    told = json.dumps(daemon.log)

    for name in ("binary", "empty", "list", "bomb"):
        assert f"{name}.md" in told
    assert "first.md" in told
    assert "second.md" in told
    assert {line["issue"] for line in daemon.lines("run.started")} == {"..", "good"}
    assert (dots["status"], dots["error_kind"]) == ("failed", "invalid_workspace_cwd")
