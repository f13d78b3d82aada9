"""Daemons whose agents run in containers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import trio

from sortie.transports.walls.container_engine import ContainerEngine
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.e2e.test_self_review import APPROVES, Reviewed
from tests.transports.containers import (
    ENGINES,
    IMAGE,
    engine_environ,
    require_engine,
    seen_by_tests,
)
from tests.workspaces.remotes import git, make_remote

pytestmark = pytest.mark.timeout(600)
SLOW = 180.0
"""Seconds: an engine waits while another of its programs removes an image, say."""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Give the name of each engine that can be had."""
    return require_engine(request.param)


@pytest.fixture
def place(place: Place, engine: str) -> Place:
    """A place whose agents run in containers without a network."""
    place.agents_log.touch()
    place.write_workflow(
        agent={"command": f"{sys.prefix}/bin/sortie-kiro-sim"},
        sandbox={
            "kind": "container",
            "image": IMAGE,
            "engine": engine,
            "network": "none",
            "read": list(seen_by_tests()),
            "write": [str(place.agents_log)],
        },
    )
    return place


async def containers_of(name: str, engine: str) -> list[str]:
    """Return the containers that there are of this name."""
    asked = await ContainerEngine.find(engine, engine_environ(engine))
    return [name] if await asked.try_("inspect", name) else []


async def test_a_run_has_a_container_and_leaves_none(
    place: Place, start: Start, engine: str
) -> None:
    """What image it was stands in the log, the transcript and the history."""
    place.add_issue("A")

    async with start("--exit-when-idle", **engine_environ(engine)) as daemon:
        began = await daemon.line("container.started", within=SLOW, issue="A")
        await daemon.line("run.finished", within=SLOW, issue="A", status="succeeded")
        left = await containers_of(began["container"], engine)
        assert await daemon.exit_code() == 0
    told = await place.sortie("logs", "A")
    (row,) = json.loads((await place.sortie("history", "--format", "json")).out)
    explained = await place.sortie("explain", "A")

    assert began["image"] == IMAGE
    assert left == []
    assert f"container {began['container']} of image {IMAGE}, sha256:{began['digest']}" in told.out
    assert (row["image"], row["image_digest"]) == (IMAGE, f"sha256:{began['digest']}")
    assert f"image: {IMAGE}, sha256:{began['digest'][:12]}" in explained.out


DEVCONTAINER = """{
  // What is developed in.
  "image": "%s",
  "containerEnv": {"FROM_FILE": "seen inside"},
  "mounts": ["source=/,target=/host,type=bind"], "runArgs": ["--volume=/:/host"],
}"""


@pytest.mark.full  # the test below shows that the base is asked, and others what is made of it
async def test_the_base_of_the_repository_names_the_image(
    place: Place, start: Start, engine: str, tmp_path: Path
) -> None:
    """What an issue's branch says of it counts for nothing, and nothing opens the wall."""
    files = {".devcontainer/devcontainer.json": DEVCONTAINER % IMAGE, "README": "hello\n"}
    bare = make_remote(tmp_path / "forge", files)
    seed = tmp_path / "forge/seed"
    git(seed, "checkout", "-q", "-b", "sortie/A")
    (seed / ".devcontainer/devcontainer.json").write_text('{"image": "localhost/of-the-branch"}')
    git(seed, "commit", "-q", "-a", "-m", "Another image")
    git(seed, "push", "-q", "origin", "sortie/A")
    check = 'test "$FROM_FILE" = "seen inside" && test ! -e /host && grep -q branch .dev*/*.json'
    sandbox = {"kind": "container", "devcontainer": True, "engine": engine, "network": "none"}
    sandbox |= {"read": list(seen_by_tests()), "write": [str(place.agents_log)]}
    place.write_workflow(
        agent={"command": f"{sys.prefix}/bin/sortie-kiro-sim"},
        repository={"url": str(bare), "no_change": "accept"},
        verify={"commands": [check]},
        sandbox=sandbox,
    )
    place.add_issue("A")

    async with start("--exit-when-idle", **engine_environ(engine)) as daemon:
        told = await daemon.line("sandbox.devcontainer", within=SLOW, issue="A")
        began = await daemon.line("container.started", within=SLOW, issue="A")
        verified = await daemon.line("command.verified", within=SLOW, issue="A")
        await daemon.line("run.finished", within=SLOW, issue="A", status="succeeded")
        assert await daemon.exit_code() == 0

    assert told["ignored"] == ["mounts", "runArgs"]
    assert began["image"] == IMAGE
    assert verified["ok"]


async def test_a_base_that_names_no_image_holds_the_issue(
    place: Place, start: Start, engine: str, tmp_path: Path
) -> None:
    """No agent is started, and the reason is told."""
    file = '{"build": {"dockerfile": "Dockerfile"}}'
    bare = make_remote(tmp_path / "forge", {".devcontainer.json": file})
    place.write_workflow(
        agent={"command": f"{sys.prefix}/bin/sortie-kiro-sim"},
        repository={"url": str(bare)},
        sandbox={"kind": "container", "devcontainer": True, "engine": engine},
    )
    place.add_issue("A")

    async with start(**engine_environ(engine)) as daemon:
        held = await daemon.line("issue.held", within=SLOW, issue="A")

    assert held["reason"] == "agent_not_found"
    assert (
        ".devcontainer.json of the base main has build, and images are not built" in held["detail"]
    )


@pytest.mark.full
async def test_a_killed_daemon_leaves_no_container(place: Place, start: Start, engine: str) -> None:
    """It ends by itself, and the issue runs again in another."""
    place.add_issue("A", "hang=1")
    async with start(**engine_environ(engine)) as daemon:
        former = (await daemon.line("container.started", within=SLOW, issue="A"))["container"]
        await daemon.line("turn.started", issue="A")
        daemon.process.kill()
        await daemon.process.wait()
    with trio.fail_after(PATIENCE):
        while await containers_of(former, engine):
            await trio.sleep(0.1)

    place.add_issue("A")
    async with start("--exit-when-idle", **engine_environ(engine)) as daemon:
        began = await daemon.line("container.started", within=SLOW, issue="A")
        await daemon.line("run.finished", within=SLOW, issue="A", status="succeeded")
        assert await daemon.exit_code() == 0

    assert began["container"] != former
    assert await containers_of(began["container"], engine) == []


async def test_a_reviewer_has_a_container_of_its_own(
    place: Place, start: Start, engine: str
) -> None:
    """It sees its clone and not the workspace, and neither container is left."""
    reviewed = Reviewed(place)
    named = f"cat /proc/sys/kernel/hostname >>{place.root}/where"
    reviewed.do(f"echo $TURN >>out.txt; {named}")
    reviewed.judge(f"test ! -e {place.workspaces}/T-1; {named}; {APPROVES}")
    written = [place.agents_log, *(place.root / name for name in ("worker", "review", "where"))]
    for path in written:
        path.touch()
    reviewed.write(
        sandbox={
            "kind": "container",
            "image": IMAGE,
            "engine": engine,
            "network": "none",
            "read": [
                *seen_by_tests(),
                *(str(place.root / name) for name in ("agent", "DO", "REVIEW")),
            ],
            "write": [str(path) for path in written],
        }
    )

    async with start("--exit-when-idle", **engine_environ(engine)) as daemon:
        told = await daemon.line("review.finished", within=SLOW, issue="T-1")
        began = daemon.lines("container.started", issue="T-1")
        await daemon.line("run.finished", within=SLOW, issue="T-1", status="succeeded")
        assert await daemon.exit_code(within=SLOW) == 0
    worked, judged = (place.root / "where").read_text().split()

    assert told["verdict"] == "approve"
    assert worked != judged
    assert git(reviewed.bare, "show", "sortie/T-1:out.txt") == "1"
    assert [await containers_of(each["container"], engine) for each in began] == [[]]
