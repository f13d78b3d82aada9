"""Daemons whose agents run in a sandbox on SSH hosts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.forged import (
    REVIEWED,
    add_issues,
    forge_of,
    make_bare,
    until_all_are_handed_off,
)
from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import PROGRAM, SIMULATOR, Fleet, explained
from tests.forges.service import PATH, TOKEN
from tests.transports.containers import (
    IMAGE,
    engine_environ,
    know_engine,
    requires_containers,
    seen_by_tests,
)
from tests.transports.endings import requires_namespaces
from tests.transports.image_registry import registry_running, requires_registry
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.sshd import requires_sshd
from tests.workspaces.git_http import git_server
from tests.workspaces.remotes import make_remote

pytestmark = [requires_sshd, requires_namespaces, requires_bubblewrap]
SLOW = 180.0  # seconds: an engine waits while another of its programs removes an image, say
_SORTIE = str(Path(__file__).parents[2])


def blocks(fleet: Fleet, place: Place, **sandbox: object) -> dict[str, object]:
    """Return the blocks of a workflow whose agents say what they can read of the home."""
    for host in fleet.hosts.values():
        (host.home / "secret").write_text("canary\n")
        program = host.home / "bin" / PROGRAM
        program.write_text(f'#!/bin/sh\ncat ~/secret >agent 2>&1\nexec {SIMULATOR} "$@"\n')
        program.chmod(0o755)
    place.agents_log.touch()
    seen = [sys.prefix, sys.base_prefix, _SORTIE]
    return {
        "hooks": {"after_run": "cat ~/secret agent >~/seen-$SORTIE_ISSUE_IDENTIFIER"},
        "sandbox": {
            "kind": "bubblewrap",
            "network": "none",
            "read": seen,
            "write": [str(place.agents_log)],
            **sandbox,
        },
    }


@pytest.mark.parametrize(
    "worker", [{}, pytest.param({"ssh_reattach": True}, id="reattach", marks=pytest.mark.full)]
)
async def test_agents_are_inside_and_hooks_are_outside(
    place: Place, start: Start, fleet: Fleet, worker: dict[str, object]
) -> None:
    """On the host: the agent does its work, and reads nothing of the home there."""
    (host,) = fleet.add("one", has_program=False)
    fleet.write_workflow(worker=worker, **blocks(fleet, place))  # type: ignore[arg-type]
    place.add_issue("A")

    async with start("--exit-when-idle") as daemon:
        await daemon.line("run.finished", issue="A", status="succeeded")

    first, *rest = (host.home / "seen-A").read_text().splitlines()
    assert first == "canary"
    assert "No such file" in "".join(rest)
    assert "canary" not in rest


async def test_without_a_wall_on_any_host_the_issue_is_held(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Nothing starts outside of it, and it is told what each host lacks."""
    (host,) = fleet.add("one", has_program=False)
    wanted = blocks(fleet, place) | {"sandbox": {"kind": "command", "command": "no-such-wall"}}
    fleet.write_workflow(**wanted)  # type: ignore[arg-type]
    place.add_issue("A")

    async with start() as daemon:
        await daemon.line("issue.held", issue="A", reason="agent_not_found")
        told = await explained(place, "A")

    assert "no-such-wall" in str(told)
    assert fleet.agents() == []
    assert not (host.home / "workspaces" / "A" / "agent").exists()


@requires_containers
@pytest.mark.parametrize(
    "worker", [{}, pytest.param({"ssh_reattach": True}, id="reattach", marks=pytest.mark.full)]
)
async def test_a_run_has_a_container_of_its_host(
    place: Place, start: Start, fleet: Fleet, worker: dict[str, object]
) -> None:
    """The history has the digest of its image there, and nothing of it is left."""
    (host,) = fleet.add("one", has_program=False)
    know_engine(host)
    program = host.home / "bin" / PROGRAM
    seen = [*seen_by_tests(), str(program)]
    wanted = blocks(fleet, place, kind="container", image=IMAGE, read=seen)
    wanted["agent"] = {"command": str(program), "max_turns": 1}
    fleet.write_workflow(worker=worker, **wanted)  # type: ignore[arg-type]
    place.add_issue("A")

    async with start("--exit-when-idle") as daemon:
        began = await daemon.line("container.started", issue="A")
        await daemon.line("run.finished", issue="A", status="succeeded")
        assert await daemon.exit_code() == 0
    (row,) = await place.history()
    asked = ["podman", "container", "inspect", began["container"]]
    known = subprocess.run(asked, env=engine_environ(), capture_output=True, check=False)

    assert (row["image"], row["image_digest"]) == (IMAGE, f"sha256:{began['digest']}")
    assert (host.home / "seen-A").read_text().startswith("canary\n")
    assert "No such file" in (host.home / "seen-A").read_text()
    assert known.returncode != 0


@pytest.mark.full
@requires_containers
@requires_registry
async def test_the_base_of_the_repository_names_an_image_that_a_host_pulls(
    place: Place, start: Start, fleet: Fleet, tmp_path: Path
) -> None:
    """From a registry, by its own engine; what the file says besides opens nothing."""
    (host,) = fleet.add("one", has_program=False)
    know_engine(host)
    program = host.home / "bin" / PROGRAM
    (tmp_path / "registry").mkdir()
    with registry_running(tmp_path / "registry") as (image, trusted):
        also = f"CONTAINERS_REGISTRIES_CONF={trusted}"
        host.options["SetEnv"] = f"{host.options['SetEnv']} {also}"
        host.stop()
        host.start()
        said = {"image": image, "containerEnv": {"FROM_FILE": "seen"}, "runArgs": ["--privileged"]}
        files = {".devcontainer.json": json.dumps(said), "README": "hello\n"}
        bare = make_remote(tmp_path / "forge", files)
        wanted = blocks(fleet, place, read=[*seen_by_tests(), str(program)])
        wanted["sandbox"] = {
            **wanted["sandbox"],  # type: ignore[dict-item]
            "kind": "container",
            "devcontainer": True,
        }
        wanted["agent"] = {"command": str(program), "max_turns": 1}
        wanted["repository"] = {"url": str(bare), "no_change": "accept"}
        wanted["verify"] = {"commands": ['test "$FROM_FILE" = seen && test ! -e ~/secret']}
        fleet.write_workflow(**wanted)  # type: ignore[arg-type]
        place.add_issue("A")

        async with start("--exit-when-idle") as daemon:
            ignored = await daemon.line("sandbox.devcontainer", issue="A")
            began = await daemon.line("container.started", within=SLOW, issue="A")
            verified = await daemon.line("command.verified", within=SLOW, issue="A")
            await daemon.line("run.finished", within=SLOW, issue="A", status="succeeded")
            assert await daemon.exit_code() == 0
    (row,) = await place.history()

    assert ignored["ignored"] == ["runArgs"]
    assert (began["image"], row["host"], verified["ok"]) == (image, "one", True)
    assert (row["image"], row["image_digest"]) == (image, f"sha256:{began['digest']}")


@pytest.mark.full
async def test_work_is_verified_and_judged_inside_and_delivered(
    place: Place, start: Start, fleet: Fleet, tmp_path: Path
) -> None:
    """In clones that borrow from the mirror on the host, which can be read inside."""
    (host,) = fleet.add("one", has_program=False)
    walled = blocks(fleet, place)
    bare = make_bare(tmp_path / "forge")
    with (
        git_server(tmp_path / "forge", TOKEN) as server,
        forge_of("github", bare, f"{server.url}/{PATH}.git") as forged,
    ):
        seen = "test ! -e ~/secret && git log -1 --format=%s && touch inside"
        wanted = REVIEWED | forged.blocks | {"sandbox": walled["sandbox"]}
        wanted["verify"] = {"commands": [seen]}
        fleet.write_workflow(PROMPT, **wanted)  # type: ignore[arg-type]
        names = add_issues(place, 1)

        async with start(FORGE_TOKEN=TOKEN):
            await until_all_are_handed_off(place, names)

        forged.require_delivered(names)
    assert (host.home / "secret").exists()
