"""The demo, as somebody who has nothing but the package sees it."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import psutil
import pytest

from sortie.telemetry.event_log.reader import read_segment, stored_segments
from sortie.telemetry.event_log.replay import Replay
from tests.e2e.place import SORTIE, Place
from tests.ports import free_port
from tests.transports.containers import engine_environ, require_engine, requires_containers
from tests.transports.endings import requires_namespaces
from tests.transports.sandboxes import requires_bubblewrap
from tests.workspaces.remotes import git


async def test_the_demo_comes_to_its_end(place: Place) -> None:
    """Within a minute all five issues are where they belong, the blocked one after its blocker."""
    port = str(free_port())

    ran = await place.sortie(
        "demo",
        "demo",
        "--exit-when-idle",
        "--review",
        "--port",
        port,
        within=60,
        KIRO_API_KEY=None,
        KIRO_SIM_LOG=None,
        PATH="/usr/bin:/bin",
    )
    hint = shlex.split(ran.out.partition("Look closer: ")[2].partition("\n")[0])
    shown = await place.sortie("history", "--format", "json", "--workflow", "demo/WORKFLOW.md")
    rows = {row["issue"]: row for row in json.loads(shown.out)}
    texts = [path.read_text() for path in sorted((place.root / "demo" / "issues").glob("*.md"))]
    states = [line for text in texts for line in text.splitlines() if line.startswith("state:")]

    assert ran.code == 0
    assert hint == [SORTIE, "history", "--workflow", "demo/WORKFLOW.md"]  # not found on that PATH
    assert states == [
        "state: Human Review",
        "state: Human Review",
        "state: Done",
        "state: Human Review",
        "state: Human Review",
    ]
    assert sorted(rows) == ["DEMO-1", "DEMO-2", "DEMO-3", "DEMO-4", "DEMO-5"]
    # DEMO-3's agent sets its issue to Done: if a poll sees that first, the run is stopped.
    statuses = {name: row["status"] for name, row in rows.items()}
    assert statuses.pop("DEMO-3") in ("succeeded", "cancelled")
    assert set(statuses.values()) == {"succeeded"}
    assert {row["turns"] for row in rows.values()} == {1}
    assert rows["DEMO-4"]["started_at"] > rows["DEMO-3"]["finished_at"]
    assert rows["DEMO-5"]["started_at"] == min(row["started_at"] for row in rows.values())
    for name in rows:
        assert f"run.started issue={name} " in ran.err
        assert name in ran.out
    project = place.root / "demo/project.git"
    assert git(project, "branch", "--format=%(refname:short)").split() == [
        "main",
        *(f"sortie/{name}" for name in sorted(rows)),
    ]
    for branch in ("main", "sortie/DEMO-2"):  # the test that fails, and the branch that mends it
        tree = place.root / branch.replace("/", "-")
        git(place.root, "clone", "-q", "-b", branch, str(project), str(tree))
        done = subprocess.run(["python3", "test_count_lines.py"], cwd=tree, capture_output=True)
        assert (done.returncode == 0) is (branch != "main")
    assert "+    return len(text.splitlines())" in ran.out
    assert "The agents are simulated" in ran.out
    assert "agent.simulated" in ran.err
    assert not (place.home / ".kiro").exists()
    assert replayed(place.root / "demo/.sortie.db.events") > 50


def replayed(directory: Path) -> int:
    """Decide over again what a daemon was told, and return how many events that were."""
    count = 0
    for file in stored_segments(str(directory)):
        segment = read_segment(str(directory), file)
        replay = Replay(segment.header)
        for incident in segment.incidents():
            replay.tell(incident)
            assert replay.differs_at is None, incident
            count += 1
    return count


@requires_namespaces
@pytest.mark.parametrize(
    "sandbox",
    [
        pytest.param("bubblewrap", marks=requires_bubblewrap),
        pytest.param("podman", marks=[pytest.mark.full, requires_containers]),
        pytest.param("docker", marks=pytest.mark.full),
    ],
)
async def test_the_demo_in_a_sandbox_comes_to_its_end(place: Place, sandbox: str) -> None:
    """Its agents see their workspaces, and one the issue that it closes; its commands of verify see
    a clean clone; nothing is left behind."""
    environ: dict[str, str | None] = {"KIRO_API_KEY": None, "KIRO_SIM_LOG": None}
    if sandbox != "bubblewrap":
        environ |= engine_environ(require_engine(sandbox))
    ran = await place.sortie(
        "demo",
        "demo",
        "--sandbox",
        sandbox,
        "--exit-when-idle",
        "--port",
        str(free_port()),
        within=240,
        **environ,
    )
    texts = [path.read_text() for path in sorted((place.root / "demo" / "issues").glob("*.md"))]
    states = [line for text in texts for line in text.splitlines() if line.startswith("state:")]

    assert ran.code == 0
    assert sorted(states) == ["state: Done", *["state: Human Review"] * 4]
    left = [" ".join(one.cmdline()) for one in psutil.process_iter() if one.name() == "bwrap"]
    assert [command for command in left if str(place.root) in command] == []
