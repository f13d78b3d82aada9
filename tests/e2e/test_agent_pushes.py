"""What an agent's own git can do at the remote, with ``repository.agent_pushes`` and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.forged import SETTINGS, Forged, forge_of, make_bare, until_all_are_handed_off
from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import SIMULATOR
from tests.forges.service import PATH, TOKEN
from tests.transports.ssh.sshd import requires_sshd
from tests.workspaces.git_http import git_server
from tests.workspaces.git_ssh import GitHost
from tests.workspaces.remotes import git, make_remote

pytestmark = pytest.mark.portless

AGENT = """\
#!/bin/sh
# An agent that commits, pushes by itself, and notes what came of it.
case " $* " in *" chat "*) ;; *) exec {simulator} "$@" ;; esac
echo "done-by-agent T-1" >out.txt
git add out.txt && git commit -q -m Mine
git push -q origin HEAD:refs/heads/{branch} >{root}/push 2>&1 || echo failed >>{root}/push
git push -q {url} HEAD:refs/heads/named >{root}/named 2>&1 || echo failed >>{root}/named
git fetch -q origin >{root}/fetch 2>&1 || echo failed >>{root}/fetch
env >{root}/env
git clone -q {bare} {root}/other && git -C {root}/other push -q origin HEAD:other ||
  echo failed >>{root}/fetch
KIRO_SIM_NOTE=0 exec {simulator} "$@"
"""
BRANCH = "sortie/T-1"


class Served:
    """A forge, with git over HTTP or SSH, and an agent that pushes."""

    def __init__(self, place: Place, forged: Forged, host: GitHost | None = None) -> None:
        self.place = place
        self._host = host
        self.forged = forged
        self.environ = {"FORGE_TOKEN": TOKEN, "SSH_AUTH_SOCK": "/nonexistent"}
        if host is not None:
            self.environ["PATH"] = host.path
        place.add_issue("T-1")

    @property
    def host(self) -> GitHost:
        """The host that serves git over SSH."""
        assert self._host is not None
        return self._host

    def write(self, *, may: bool, **more: str) -> None:
        """Write workflow and agent."""
        program = self.place.root / "agent"
        url = self.forged.blocks["repository"]["url"]
        other = make_remote(self.place.root / "elsewhere")
        told = {"root": self.place.root, "simulator": SIMULATOR, "url": url, "bare": other}
        program.write_text(AGENT.format(**told, branch=BRANCH))
        program.chmod(0o755)
        repository = {**self.forged.blocks["repository"], "agent_pushes": may, **more}
        blocks = {**SETTINGS, **self.forged.blocks, "repository": repository, "hooks": {}}
        blocks["agent"] = {"command": str(program)}
        self.place.write_workflow(PROMPT, **blocks)

    async def run(self, start: Start) -> None:
        """Have the issue handed off."""
        async with start(**self.environ) as daemon:
            await until_all_are_handed_off(self.place, ["T-1"])
        assert TOKEN not in str(daemon.log)

    def said(self, name: str) -> str:
        """Return what the agent noted."""
        return (self.place.root / name).read_text()

    @property
    def branches(self) -> set[str]:
        """The branches at the remote."""
        names = git(self.forged.bare, "for-each-ref", "--format=%(refname:short)", "refs/heads")
        return set(names.split())


@pytest.fixture
def http(place: Place, tmp_path: Path) -> Iterator[Served]:
    """Git over HTTP, with a credential."""
    root = tmp_path / "forge"
    bare = make_bare(root)
    with (
        git_server(root, TOKEN) as remote,
        forge_of("github", bare, f"{remote.url}/{PATH}.git") as forged,
    ):
        yield Served(place, forged)


@pytest.fixture
def ssh(place: Place, tmp_path: Path) -> Iterator[Served]:
    """Git over SSH, with keys that the user's ssh knows."""
    root = tmp_path / "forge"
    bare = make_bare(root)
    host = GitHost(tmp_path, root)
    host.sshd.start()
    with forge_of("github", bare, host.url("scp", f"{PATH}.git")) as forged:
        yield Served(place, forged, host)
    assert host.sshd.close() == []


async def test_an_agent_has_no_credential(http: Served, start: Start) -> None:
    """Over HTTP it can neither push nor fetch; its commit is delivered all the same."""
    http.write(may=False)

    await http.run(start)

    assert "Sortie pushes this branch when you are done" in http.said("push")
    assert "could not read Username" in http.said("named")
    assert "could not read Username" in http.said("fetch")
    assert TOKEN not in http.said("env")
    assert http.branches == {"main", BRANCH}
    http.forged.require_delivered(["T-1"])


async def test_an_agent_that_may_has_it(http: Served, start: Start) -> None:
    """For this one server, in its environment; its push is taken over by the delivery."""
    http.write(may=True)

    await http.run(start)

    assert http.said("push") == http.said("fetch") == http.said("named") == ""
    assert http.branches == {"main", BRANCH, "named"}
    git(http.forged.bare, "branch", "-q", "-D", "named")
    http.forged.require_delivered(["T-1"])
    log = git(http.forged.bare, "log", "-1", "--format=%s", BRANCH)
    assert log == "Mine"


@requires_sshd
async def test_an_agent_has_the_keys_of_its_user(ssh: Served, start: Start) -> None:
    """Over SSH ``git push`` fails, but nothing keeps it from a push to the address itself: only a
    user of its own would."""
    ssh.host.use_own_keys()
    ssh.write(may=False)

    await ssh.run(start)

    assert "Sortie pushes this branch when you are done" in ssh.said("push")
    assert ssh.said("named") == ssh.said("fetch") == ""
    assert "SSH_AUTH_SOCK" not in ssh.said("env")
    assert ssh.branches == {"main", BRANCH, "named"}


@requires_sshd
async def test_an_agent_has_no_key_that_only_the_settings_name(ssh: Served, start: Start) -> None:
    """It would have to look for the file."""
    ssh.write(may=False, identity_file=str(ssh.host.keys.key))

    await ssh.run(start)

    assert "Permission denied" in ssh.said("named")
    assert "Permission denied" in ssh.said("fetch")
    assert ssh.branches == {"main", BRANCH}
    ssh.forged.require_delivered(["T-1"])


@requires_sshd
async def test_an_agent_that_may_has_that_key(ssh: Served, start: Start) -> None:
    """And the user's ssh agent."""
    ssh.write(may=True, identity_file=str(ssh.host.keys.key))

    await ssh.run(start)

    assert ssh.said("push") == ssh.said("fetch") == ssh.said("named") == ""
    assert "SSH_AUTH_SOCK=/nonexistent" in ssh.said("env")
    assert ssh.branches == {"main", BRANCH, "named"}
