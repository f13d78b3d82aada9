"""``sortie doctor`` of hosts: real sshds, each with something else that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.conftest import Start
from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import Fleet
from tests.forges.service import PATH, TOKEN
from tests.ports import free_port
from tests.transports.ssh.sshd import new_key, requires_sshd
from tests.workspaces.git_http import git_server
from tests.workspaces.remotes import make_remote

pytestmark = requires_sshd

INSIDE = ("directory", "program", "git", "disk", "clock", "processes")


async def diagnosed(
    place: Place, FORGE_TOKEN: str | None = None
) -> dict[str, tuple[str, str, str | None]]:
    """Return outcome, message and remedy of each check of a host, by its name without ``hosts.``"""
    ran = await place.sortie("doctor", "--format", "json", FORGE_TOKEN=FORGE_TOKEN)
    checks = json.loads(ran.out)["checks"]
    assert ran.code == (0 if json.loads(ran.out)["ok"] else 1)
    return {
        check["check"].removeprefix("hosts."): (
            check["outcome"],
            check["message"],
            check["remedy"],
        )
        for check in checks
        if check["check"].startswith("hosts.")
    }


def outcomes(found: dict[str, tuple[str, str, str | None]], host: str) -> dict[str, str]:
    """Return the outcomes of one host's checks, but for what this machine may not give."""
    return {
        name.rpartition(".")[2]: outcome
        for name, (outcome, _, _) in found.items()
        if name.startswith(f"{host}.") and not name.endswith(".isolation")
    }


def know(fleet: Fleet, name: str, key: Path) -> None:
    """Write the public half of a key into known_hosts as that of a host."""
    kind, encoded = Path(f"{key}.pub").read_text().split()[:2]
    with fleet.keys.known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{fleet.hosts[name].port} {kind} {encoded}\n")


async def test_what_is_wrong_with_hosts_is_told_step_by_step(place: Place, fleet: Fleet) -> None:
    """Reach, key, login, directory, program: the first that fails is named, with a remedy, and what
    needs it is skipped; what is not known yet is told of and not remembered."""
    fleet.add("good", "new", "changed", "closed", "full")
    fleet.add("bare", has_program=False)
    fleet.keys.configure("Host gone", "  HostName 127.0.0.1", f"  Port {free_port()}")
    for name in ("good", "closed", "full", "bare"):
        know(fleet, name, fleet.hosts[name].host_key)
    know(fleet, "changed", new_key(place.root / "another"))
    fleet.hosts["closed"].authorized_keys.write_text("")
    (fleet.hosts["full"].home / "workspaces").write_text("a file")
    fleet.write_workflow(hosts=[*fleet.hosts, "gone"])
    known = fleet.keys.known_hosts.read_text()

    found = await diagnosed(place)

    inside = dict.fromkeys(INSIDE, "ok")
    well = {"reach": "ok", "host_key": "ok", "login": "ok"} | inside
    unseen = dict.fromkeys(INSIDE, "skipped")
    assert outcomes(found, "good") == well
    assert outcomes(found, "new") == well | {"host_key": "warning"}
    assert (
        outcomes(found, "changed")
        == {
            "reach": "ok",
            "host_key": "failed",
            "login": "skipped",
        }
        | unseen
    )
    assert outcomes(found, "closed") == well | {"login": "failed"} | unseen
    assert outcomes(found, "gone") == dict.fromkeys(well, "skipped") | {"reach": "failed"}
    assert outcomes(found, "full") == well | {"directory": "failed"}
    assert outcomes(found, "bare") == well | {"program": "failed"}
    assert "PID namespace" in found["good.isolation"][1]
    assert found["closed.isolation"][0] == "skipped"
    assert found["gone.reach"][2] == "check that sshd runs, and the port"
    assert "ssh-keygen -R" in str(found["changed.host_key"][2])
    assert "authorized_keys" in str(found["closed.login"][2])
    assert "absolute path" in str(found["bare.program"][2])
    assert fleet.keys.known_hosts.read_text() == known


async def test_a_daemon_at_work_is_not_disturbed(place: Place, start: Start, fleet: Fleet) -> None:
    """Its host is looked at while a run is under way there, which ends well in its own time."""
    fleet.add("one")
    place.add_issue("A", "delay=3")

    async with start() as daemon:
        await daemon.line("turn.started", issue="A")
        found = await diagnosed(place)
        finished = await daemon.line("run.finished", issue="A")

    alone = await place.sortie("doctor", "--host", "one", "--format", "json")
    names = [check["check"] for check in json.loads(alone.out)["checks"]]

    assert {name.split(".")[0] for name in names} == {"workflow", "hosts"}
    assert alone.code == 0
    assert set(outcomes(found, "one").values()) == {"ok"}
    assert finished["status"] == "succeeded"
    assert daemon.lines("host.rested") == []
    assert daemon.lines("host.noticed") == []


async def test_hosts_are_asked_for_git_and_the_repository(place: Place, fleet: Fleet) -> None:
    """With the credential, which one of them cannot use: its way to the remote is another; and a
    host whose git is too old, or has no git-lfs, says so. Nothing is written there."""
    forge = place.root / "forge"
    bare = make_remote(forge / "team")
    (forge / PATH).with_suffix(".git").symlink_to(bare)
    fleet.add("good", "away", "old")
    for name in fleet.hosts:
        know(fleet, name, fleet.hosts[name].host_key)
    settings = fleet.hosts["away"].home / ".gitconfig"
    settings.write_text("[http]\n  proxy = http://127.0.0.1:9\n")
    old = fleet.hosts["old"].home / "bin/git"
    old.write_text("#!/bin/sh\necho git version 2.20.1\n")
    old.chmod(0o755)
    with git_server(forge, TOKEN) as remote:
        repository: dict[str, object] = {
            "url": f"{remote.url}/{PATH}.git",
            "credential": "$FORGE_TOKEN",
        }
        none = {"kind": "none"}
        fleet.write_workflow(repository=repository, forge=none)
        found = await diagnosed(place, FORGE_TOKEN=TOKEN)
        alone = await place.sortie(
            "doctor", "--host", "good", "--format", "json", FORGE_TOKEN=TOKEN
        )
        wrong = await diagnosed(place, FORGE_TOKEN="another")
        fleet.write_workflow(hosts=["good"], repository=repository | {"lfs": True}, forge=none)
        lfs = fleet.hosts["good"].home / "bin/git-lfs"
        lfs.write_text("#!/bin/sh\nexit 1\n")
        lfs.chmod(0o755)
        broken = await diagnosed(place, FORGE_TOKEN=TOKEN)
        lfs.write_text("#!/bin/sh\necho git-lfs/3.9 and more\n")
        well = await diagnosed(place, FORGE_TOKEN=TOKEN)

    assert found["good.git"][0] == found["good.remote"][0] == "ok"
    assert "git version" in found["good.git"][1]
    assert "where work begins at main" in found["good.remote"][1]
    assert found["away.git"][0] == "ok"
    assert found["away.remote"][0] == "failed"
    assert "repository.credential" in str(found["away.remote"][2])
    assert found["old.git"][:2] == ("failed", "git version 2.20.1 is too old")
    assert found["old.remote"][0] == "skipped"
    assert "hosts.good.remote" in alone.out
    assert wrong["good.remote"][0] == "failed"
    assert TOKEN not in alone.out + str(found) + str(wrong)
    assert broken["good.git"][0] == "failed"
    assert "no git-lfs" in broken["good.git"][1]
    assert well["good.git"][1].endswith(", git-lfs/3.9")
    for host in fleet.hosts.values():
        assert not (host.home / "workspaces").exists()


async def test_the_forge_is_asked_from_here_also_where_runs_are_remote(
    place: Place, fleet: Fleet
) -> None:
    """As the daemon does; git is asked here only where runs are here."""
    bare = make_remote(place.root / "forge")
    url = "https://forge.example/team/thing"
    forge = {"kind": "gitea", "endpoint": f"http://127.0.0.1:{free_port()}"}
    fleet.add("one")
    know(fleet, "one", fleet.hosts["one"].host_key)
    asked = []
    for repository, place_of in (({"url": url}, fleet), ({"url": str(bare)}, place)):
        token = {"credential": "$FORGE_TOKEN"} if repository["url"] == url else {}
        block = {"repository": repository | token} | ({"forge": forge} if token else {})
        place_of.write_workflow(PROMPT, **block)
        ran = await place.sortie("doctor", "--format", "json", FORGE_TOKEN=TOKEN)
        found = {check["check"]: check["outcome"] for check in json.loads(ran.out)["checks"]}
        parts = ("repository", "forge", "hosts.one.remote")
        asked.append({name: found[name] for name in found if name.startswith(parts)})

    assert asked[0] == {"forge.reach": "failed", "hosts.one.remote": "failed"} | {
        name: "skipped" for name in asked[0] if name.startswith("forge.") and name != "forge.reach"
    }
    assert asked[1] == {"repository.git": "ok", "repository.remote": "ok"}
