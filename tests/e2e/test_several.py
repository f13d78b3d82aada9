"""Several workflows in one process, as users would run them."""

from __future__ import annotations

import json
import os
import signal

import pytest
import trio

from tests.daemon.service_socket import ServiceSocket
from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, PROMPT, Json, Place
from tests.e2e.remote import Fleet
from tests.e2e.test_service_manager import told
from tests.properties import examples
from tests.transports.ssh.sshd import requires_sshd

NAMES = ("api", "docs", "web")
EACH = examples(8, 20)
"""Issues of each workflow that are worked on through a kill."""


class Several:
    """A directory of workflows; ``all`` is it as a whole, ``one`` each of them."""

    def __init__(self, place: Place) -> None:
        place.workflow.unlink()
        place.issues.rmdir()
        self.all = place
        self.one: dict[str, Place] = {}
        for name in NAMES:
            (place.root / name).mkdir()
            self.one[name] = Place(place.root / name)

    def add_issues(self, count: int, directives: str) -> None:
        """Give each workflow so many issues; the same names stand in all of them."""
        for place in self.one.values():
            for number in range(count):
                place.add_issue(f"N-{number}", directives)

    def handed_off(self) -> int:
        """Count the issues that were handed off."""
        return sum(
            place.state_of(path.stem) == "Human Review"
            for place in self.one.values()
            for path in place.issues.glob("*.md")
        )


@pytest.fixture
def several(place: Place) -> Several:
    """Return a directory of three workflows."""
    return Several(place)


def most_at_once(
    log: list[Json],
    workflow: str | None = None,
    events: tuple[str, str] = ("run.started", "run.finished"),
) -> int:
    """Return how many runs were between two events at the same time, by the log of a daemon's life.

    Each workflow logs for itself, so that lines of one may come before earlier ones of another.
    """
    alive: set[str] = set()
    most = 0
    for line in sorted(log, key=lambda one: str(one["time"])):
        if workflow in (None, line.get("workflow")):
            if line["event"] == events[0]:
                alive.add(line["run"])
            elif line["event"] == events[1]:
                alive.discard(line["run"])
            most = max(most, len(alive))
    return most


async def until_handed_off(several: Several, count: int) -> None:
    """Wait until so many issues of all workflows have been handed off."""
    with trio.fail_after(4 * PATIENCE):
        while several.handed_off() < count:
            await trio.sleep(0.1)


async def states(daemon: Daemon) -> dict[str, Json]:
    """Return how the workflows stand, by name."""
    return {each["name"]: each for each in (await daemon.state())["workflows"]}


async def until_status(daemon: Daemon, name: str, status: str) -> Json:
    """Wait until a workflow stands so, and return how."""
    with trio.fail_after(PATIENCE):
        while (found := (await states(daemon))[name])["status"] != status:
            await trio.sleep(0.1)
    return found


async def test_many_issues_of_three_workflows(several: Several, start: Start) -> None:
    """All is worked on with never more runs than the common limit, through a kill, with a workflow
    that is broken at first and mended, and shares that change; commands find each daemon."""
    several.add_issues(EACH, "delay=0.3")
    good = several.one["web"].workflow.read_text()
    several.one["web"].workflow.write_text("---\ntracker: {kind: nonsense}\n---\n")
    lives: list[list[Json]] = []

    async with start(".", "--max-agents", "5") as daemon:
        broken = await until_status(daemon, "web", "broken")
        assert any("tracker.kind" in error for error in broken["errors"])
        await daemon.ready()
        await daemon.line("run.finished", nth=6)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
        lives.append(daemon.log)

    async with start(".", "--max-agents", "5") as daemon:
        await until_status(daemon, "docs", "running")
        several.one["web"].workflow.write_text(good)
        await until_status(daemon, "web", "running")
        several.one["docs"].write_workflow(share={"weight": 3, "guaranteed": 2})
        await daemon.line("workflow.reloaded", workflow="docs")
        with trio.fail_after(PATIENCE):
            while (await states(daemon))["docs"]["guaranteed"] != 2:
                await trio.sleep(0.1)
        for name, place in several.one.items():
            ran = await place.sortie("status", "--format", "json")
            assert (ran.code, ran.err) == (0, "")
            assert json.loads(ran.out)["workflow"]["path"] == str(place.workflow)
            endpoint = json.loads((place.root / ".sortie.db.daemon").read_text())
            assert endpoint["url"].endswith(f"/workflows/{name}/")
        await until_handed_off(several, len(NAMES) * EACH)
        metrics = await daemon.metrics()
        lives.append(daemon.log)
        for name in NAMES:
            assert metrics.total("sortie_sessions_running", workflow=name) == 0
            assert await daemon.get(f"/workflows/{name}/")

    assert all(most_at_once(log) <= 5 for log in lives)
    assert max(most_at_once(log) for log in lives) == 5
    for name, place in several.one.items():
        done = [run["issue"] for run in await place.history() if run["status"] == "succeeded"]
        assert sorted(done) == sorted(f"N-{number}" for number in range(EACH)), name


@requires_sshd
async def test_workflows_share_the_link_to_a_host(
    several: Several, start: Start, fleet: Fleet
) -> None:
    """All of their runs there go over one connection, through a kill of the daemon."""
    (host,) = fleet.add("one")
    several.all.workflow.unlink()
    for name, place in several.one.items():
        place.write_workflow(PROMPT, **fleet.blocks(root=f"~/{name}"))
    several.add_issues(2, "delay=0.3")

    async with start(".", "--max-agents", "3") as daemon:
        await until_handed_off(several, 2)
        links = host.links()
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start(".", "--max-agents", "3"):
        await until_handed_off(several, 6)
        later = host.links()

    assert (links, later) == (1, 1)
    assert host.links() == 0
    for name, place in several.one.items():
        rows = await place.history()
        done = [row["issue"] for row in rows if row["status"] == "succeeded"]
        assert sorted(done) == [f"N-{number}" for number in range(2)], name
        assert {row["host"] for row in rows} == {"one"}


async def test_what_is_in_each_others_way_is_refused(several: Several) -> None:
    """The same database, overlapping roots and the same name are told before anything begins."""
    several.one["docs"].write_workflow(db_path=str(several.one["api"].root / ".sortie.db"))
    ran = await several.all.sortie("run", ".")
    assert ran.code == 1
    assert "the workflows api and docs have the same database" in ran.err

    several.one["docs"].write_workflow(
        workspace={"root": str(several.one["api"].workspaces / "below")}
    )
    ran = await several.all.sortie("run", ".")
    assert ran.code == 1
    assert "the workspace roots of api and docs overlap" in ran.err

    other = several.all.root / "more" / "api"
    other.mkdir(parents=True)
    (other / "WORKFLOW.md").write_text(several.one["api"].workflow.read_text())
    ran = await several.all.sortie("run", "api/WORKFLOW.md", "more/api/WORKFLOW.md")
    assert ran.code == 1
    assert "are both named api" in ran.err


async def test_a_locked_database_is_waited_for(several: Several, start: Start) -> None:
    """A workflow that another daemon has is broken, and the others run; a reload tries it again."""
    async with start("docs/WORKFLOW.md") as alone:
        await alone.line("daemon.started")
        async with start(".") as daemon:
            broken = await until_status(daemon, "docs", "broken")
            assert "is in use by another daemon" in broken["errors"][0]
            await until_status(daemon, "api", "running")
            alone.signal(signal.SIGTERM)
            await alone.exit_code()
            daemon.signal(signal.SIGHUP)
            await until_status(daemon, "docs", "running")


async def test_it_leaves_when_all_are_idle(several: Several) -> None:
    """With --exit-when-idle the process ends with the last of its workflows, and says what is
    left."""
    several.add_issues(1, "delay=0")
    ran = await several.all.sortie("run", ".", "--port", "0", "--exit-when-idle", within=90.0)
    assert ran.code == 0
    assert several.handed_off() == 3

    several.one["web"].workflow.write_text("no front matter")
    ran = await several.all.sortie("run", "api/WORKFLOW.md", "web/WORKFLOW.md", "--exit-when-idle")
    assert ran.code == 3
    assert os.path.basename(several.one["web"].root) in ran.err


BUG = """
from sortie.scheduler import polls

def with_a_bug(state, issues, note=polls.note_candidates):
    if any(issue.identifier == "CRASH" for issue in issues):
        raise RuntimeError("a bug")
    note(state, issues)

polls.note_candidates = with_a_bug
"""
"""What Python imports at its start, so that one issue makes its scheduler crash."""


async def test_a_crash_ends_one_workflow_alone(several: Several, start: Start) -> None:
    """Its own runs are ended, and those of the others go on; it is begun again on a reload."""
    patch = several.all.root / "patch"
    patch.mkdir()
    (patch / "sitecustomize.py").write_text(BUG)
    several.one["api"].add_issue("A-1", "delay=8")
    several.one["docs"].add_issue("D-1", "delay=60")

    async with start(".", PYTHONPATH=str(patch)) as daemon:
        await daemon.line("turn.started", workflow="api", issue="A-1")
        await daemon.line("turn.started", workflow="docs", issue="D-1")
        crash = several.one["docs"].add_issue("CRASH")
        broken = await daemon.line("workflow.broken", workflow="docs")
        assert "it has crashed: RuntimeError: a bug" in broken["error"]
        found = await states(daemon)
        assert (found["docs"]["status"], found["web"]["status"]) == ("broken", "running")
        assert found["api"]["counts"]["running"] == 1
        assert several.one["docs"].processes() == []
        assert (await daemon.get("/workflows/docs/")).status_code == 404

        crash.unlink()
        daemon.signal(signal.SIGHUP)
        await until_status(daemon, "docs", "running")
        await daemon.line("run.interrupted", workflow="docs")
        done = await daemon.line("run.finished", workflow="api", issue="A-1")
        assert done["status"] == "succeeded"
        stopped = await several.all.sortie("stop", "D-1", ".")
        assert (stopped.code, stopped.err) == (0, "")
        explained = await several.all.sortie("explain", "D-1", ".")
        assert "D-1" in explained.out
        shown = await several.all.sortie("status", ".")
        assert [f"workflow {name}" in shown.out for name in NAMES] == [True] * 3


async def test_a_manager_follows_the_process(several: Several, start: Start) -> None:
    """A unit with a directory has started once each workflow works or is broken, reloads all of
    them, and ends within the same 30 seconds."""
    manager = ServiceSocket.below(several.all.root)
    several.one["web"].workflow.write_text("no front matter")
    several.one["api"].add_issue("LONG", "delay=600")

    async with start(".", NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="900000") as daemon:
        await told(manager, "STATUS=starting", "READY=1", "WATCHDOG=1")
        await daemon.line("turn.started", workflow="api")
        await told(manager, "STATUS=running 1, waiting 0, held 0, in 2 workflows; broken: web")
        daemon.signal(signal.SIGHUP)
        await told(manager, "READY=1", "RELOADING=1", "READY=1")
    await told(manager, "STOPPING=1", "STATUS=stopping, running 1")
    manager.close()
