"""Work that is delivered by git over SSH, to a real sshd as a forge has it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.forged import (
    SETTINGS,
    Forged,
    add_issues,
    forge_of,
    make_bare,
    survive,
    until_all_are_handed_off,
)
from tests.e2e.place import PATIENCE, PROMPT, Place
from tests.e2e.remote import Fleet
from tests.forges.service import PATH, TOKEN
from tests.transports.ssh.sshd import new_key, requires_sshd
from tests.workspaces.git_ssh import GitHost

pytestmark = [requires_sshd, pytest.mark.portless]

FEW = 3
MANY = 50


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHost]:
    """Serve git over SSH; no login may be left at the end."""
    root = tmp_path / "forge"
    root.mkdir()
    host = GitHost(tmp_path, root)
    host.sshd.start()
    yield host
    assert host.sshd.close() == []


@pytest.fixture
def forged(tmp_path: Path, host: GitHost) -> Iterator[Forged]:
    """A forge whose repository has an address of scp's form."""
    bare = make_bare(tmp_path / "forge")
    with forge_of("github", bare, host.url("scp", f"{PATH}.git")) as forged:
        yield forged


def write(place: Place, forged: Forged, *, checking: str = "accept-new", **more: str) -> None:
    """Write the workflow, with further settings of the repository."""
    repository = {**forged.blocks["repository"], **more}
    worker = {"ssh_strict_host_key_checking": checking}
    blocks = {**SETTINGS, **forged.blocks, "repository": repository, "worker": worker}
    place.write_workflow(PROMPT, **blocks)


@pytest.mark.parametrize(
    ("form", "keys"),
    [
        ("ssh", "identity_file"),
        ("scp", "own"),
        pytest.param("scp", "identity_file", marks=pytest.mark.full),
        pytest.param("ssh", "own", marks=pytest.mark.full),
    ],
)
async def test_work_is_delivered(
    place: Place, start: Start, host: GitHost, forged: Forged, form: str, keys: str
) -> None:
    """To either form of an address, with a key that is named and with the user's own."""
    more = {"url": host.url(form, f"{PATH}.git")}
    if keys == "own":
        host.use_own_keys()
    else:
        (place.home / "key dir").mkdir()
        host.keys.key.rename(place.home / "key dir/it's a key")
        more["identity_file"] = "~/key dir/it's a key"
    write(place, forged, **more)
    names = add_issues(place, 1)

    async with start(FORGE_TOKEN=TOKEN, PATH=host.path):
        await until_all_are_handed_off(place, names)

    forged.require_delivered(names)


async def refused(daemon: Daemon) -> str:
    """Return why the first run could not begin."""
    ended = await daemon.line("run.finished")
    assert ended["error_kind"] == "workspace_error"
    return str(ended["error"])


TROUBLES = {
    "unknown": "No ED25519 host key is known for",
    "changed": "has changed and you have requested strict checking",
    "key": "Permission denied (publickey)",
    "no key": "Identity file /nonexistent not accessible",
    "away": "Connection refused",
    "no host": "Could not resolve hostname",
    "repository": "'team/other.git' does not appear to be a git repository",
}


@pytest.mark.parametrize(
    "trouble",
    [
        word if word in ("changed", "away") else pytest.param(word, marks=pytest.mark.full)
        for word in TROUBLES
    ],
)
async def test_a_host_that_cannot_be_used_costs_no_agent(
    place: Place, start: Start, host: GitHost, forged: Forged, trouble: str
) -> None:
    """One error says why; what is mended is noticed by the next run of the same daemon."""
    if trouble != "no key":
        host.use_own_keys()
    known = host.keys.known_hosts
    match trouble:
        case "unknown":
            write(place, forged, checking="yes")
        case "changed":
            write(place, forged)
            public = " ".join(Path(f"{new_key(place.root / 'other')}.pub").read_text().split()[:2])
            known.write_text(f"[127.0.0.1]:{host.sshd.port} {public}\n")
        case "key":
            write(place, forged)
            host.sshd.authorized_keys.rename(place.root / "right")
        case "no key":
            write(place, forged, identity_file="/nonexistent")
        case "no host":
            write(place, forged, url=f"root@no-such-host.invalid:{PATH}.git")
        case "repository":
            write(place, forged, url=host.url("scp", "team/other.git"))
        case _:
            write(place, forged)
            host.sshd.stop()
    names = add_issues(place, 1)

    async with start(FORGE_TOKEN=TOKEN, PATH=host.path) as daemon:
        told = await refused(daemon)
        if trouble in ("unknown", "changed"):
            known.unlink(missing_ok=True)
            host.sshd.know()
        elif trouble == "key":
            (place.root / "right").rename(host.sshd.authorized_keys)
        elif trouble == "away":
            host.sshd.start()
        if trouble in ("unknown", "changed", "key", "away"):
            assert place.agents() == []
            await until_all_are_handed_off(place, names)

    assert TROUBLES[trouble] in told
    assert told.startswith("could not fetch ")
    assert "access rights" not in told
    assert "@@@" not in told
    if trouble in ("unknown", "changed", "key", "away"):
        forged.require_delivered(names)
    else:
        assert place.agents() == []


async def test_a_host_that_hangs_keeps_no_daemon(
    place: Place, start: Start, host: GitHost, forged: Forged
) -> None:
    """It ends in time, and with it the ssh that waits."""
    host.use_own_keys()
    write(place, forged)
    host.sshd.freeze()
    add_issues(place, 1)

    async with start(FORGE_TOKEN=TOKEN, PATH=host.path) as daemon:
        with trio.fail_after(PATIENCE):
            while "ssh" not in place.programs():
                await trio.sleep(0.05)
        daemon.signal(signal.SIGTERM)
        assert await daemon.exit_code() == 0
        place.require_no_process()
    host.sshd.thaw()

    assert place.agents() == []


@pytest.mark.full
async def test_a_host_that_hangs_is_given_up(
    place: Place, start: Start, host: GitHost, forged: Forged
) -> None:
    """After its time to connect; then the issue waits for its next try."""
    host.use_own_keys()
    write(place, forged)
    host.sshd.freeze()
    names = add_issues(place, 1)

    async with start(FORGE_TOKEN=TOKEN, PATH=host.path) as daemon:
        ended = await daemon.line("run.finished", within=4 * PATIENCE)
        host.sshd.thaw()
        await until_all_are_handed_off(place, names)

    assert "timed out" in ended["error"]
    forged.require_delivered(names)


@pytest.mark.full
@pytest.mark.parametrize(("count", "kills"), [(FEW, 4), (MANY, 24)])
async def test_a_kill_at_any_step_repeats_nothing(
    place: Place, start: Start, host: GitHost, forged: Forged, count: int, kills: int
) -> None:
    """No pull request twice, no commit lost, the base untouched."""
    host.use_own_keys()
    write(place, forged)
    await survive(place, start, forged, add_issues(place, count), kills, seed=count, PATH=host.path)


@pytest.mark.parametrize(
    ("count", "kills"), [(FEW, 2), pytest.param(MANY, 12, marks=pytest.mark.full)]
)
async def test_runs_on_a_host_use_its_ssh(
    place: Place,
    start: Start,
    fleet: Fleet,
    host: GitHost,
    forged: Forged,
    count: int,
    kills: int,
) -> None:
    """With a key that lies on the host where the run lives, by its path there."""
    (far,) = fleet.add("far")
    (far.home / "bin/ssh").symlink_to(host.programs / "ssh")
    host.keys.key.rename(far.home / "key")
    repository = {**forged.blocks["repository"], "identity_file": "~/key"}
    fleet.write_workflow(PROMPT, **{**SETTINGS, **forged.blocks, "repository": repository})

    await survive(place, start, forged, add_issues(place, count), kills, seed=count)
    fleet.require_nothing_local()
