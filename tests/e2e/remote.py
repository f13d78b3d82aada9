"""Remote hosts for daemons: real sshds on loopback, each with a home and programs of its own.

All that runs because of them is on this machine, so their processes can be looked at directly.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

import psutil
import trio

from tests.e2e.place import PATIENCE, PROMPT, SORTIE, Json, Place
from tests.transports.ssh.sshd import Keys, Sshd

PROGRAM = "sortie-kiro-sim"
SIMULATOR = os.path.join(os.path.dirname(SORTIE), PROGRAM)
ROOT = "~/workspaces"


class Fleet:
    """The hosts of one test by their names, and the workflow that names them.

    Each host's home is below the place, so that the place knows the processes of runs there.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self.keys = Keys.make(place.root / "client")
        self.hosts: dict[str, Sshd] = {}

    def add(self, *names: str, has_program: bool = True, **options: str | int) -> list[Sshd]:
        """Start hosts under these names, and write them into the workflow."""
        added = [self._make(name, options) for name in names]
        for host in added:
            if has_program:
                self.install(host)
            host.start()
        self.write_workflow()
        return added

    def _make(self, name: str, options: Mapping[str, str | int]) -> Sshd:
        host = Sshd(self._place.root / "hosts" / name, self.keys, options)
        # Only the first SetEnv of a configuration counts, so this one also marks the logins.
        programs = host.home / "bin"
        programs.mkdir()
        host.options["SetEnv"] = (
            f"HOME={host.home} PATH={programs}:/usr/bin:/bin SORTIE_TEST_SSHD={host.name}"
        )
        self.hosts[name] = host
        host.alias(name)
        return host

    def place_at(self, name: str, address: str) -> None:
        """Let a host's name mean another address than this machine's."""
        self.keys.configure(f"Host {name}", f"  HostName {address}")

    def install(self, host: Sshd) -> None:
        """Give a host the agent's program."""
        (host.home / "bin" / PROGRAM).symlink_to(SIMULATOR)

    def write_workflow(
        self,
        prompt: str = PROMPT,
        *,
        hosts: Iterable[str] | None = None,
        worker: Mapping[str, object] | None = None,
        **blocks: Mapping[str, object] | str,
    ) -> None:
        """Write WORKFLOW.md as ``Place.write_workflow`` does, with these hosts or with all."""
        self._place.write_workflow(prompt, **self.blocks(hosts, worker) | blocks)

    def blocks(
        self,
        hosts: Iterable[str] | None = None,
        worker: Mapping[str, object] | None = None,
        root: str = ROOT,
    ) -> dict[str, Mapping[str, object] | str]:
        """Return the blocks of a workflow whose runs are on these hosts, or on all."""
        remote: dict[str, object] = {
            "ssh_hosts": list(self.hosts if hosts is None else hosts),
            "ssh_config": str(self.keys.config),
            "ssh_known_hosts": str(self.keys.known_hosts),
            "ssh_identity_files": [str(self.keys.key)],
            "ssh_pass_env": ["KIRO_SIM_LOG"],
        }
        return {"workspace": {"root": root}, "worker": remote | dict(worker or {})}

    def host_of(self, path: str) -> str:
        """Return the name of the host that has a directory."""
        for name, host in self.hosts.items():
            if path.startswith(f"{host.home}{os.sep}"):
                return name
        raise AssertionError(f"{path} is on no host")

    def agents(self, event: str = "start", *, on: str | None = None) -> list[Json]:
        """Return what the agents of all hosts, or of one, wrote down, oldest first."""
        lines = self._place.agents(event)
        return [line for line in lines if on is None or self.host_of(line["cwd"]) == on]

    def most_at_once(self, name: str) -> int:
        """Return how many agents were at work on a host at the same time."""
        steps = [(line["time"], 1) for line in self.agents("start", on=name)]
        steps += [(line["time"], -1) for line in self.agents("stop", on=name)]
        alive = most = 0
        for _, step in sorted(steps):
            alive += step
            most = max(most, alive)
        return most

    def living(self, name: str) -> list[int]:
        """Return the pids of the processes of runs that live on a host."""
        home = f"{self.hosts[name].home}{os.sep}"
        found = []
        for process in self._place.processes():
            with suppress(psutil.Error, OSError):  # it has ended meanwhile
                if process.environ().get("SORTIE_WORKSPACE", "").startswith(home):
                    found.append(process.pid)
        return found

    def require_nothing_local(self) -> None:
        """Fail if a workspace was made on the daemon's own machine."""
        root = self._place.home / ROOT.removeprefix("~/")
        assert not root.exists(), f"there are workspaces here: {list(root.iterdir())}"

    def close(self) -> None:
        """End all hosts; nothing that logins have started may be left."""
        left = {name: host.close() for name, host in self.hosts.items()}
        assert not any(left.values()), f"still running: {left}"


async def explained(place: Place, issue: str) -> Json:
    """Return what ``sortie explain`` says of an issue."""
    ran = await place.sortie("explain", issue, "--format", "json")
    assert ran.code == 0, ran
    return json.loads(ran.out)


async def ended_at(pid: int) -> float:
    """Wait until a process has ended, and return when that was, in Unix seconds."""
    number = os.pidfd_open(pid)
    try:
        await trio.lowlevel.wait_readable(number)
        return time.time()
    finally:
        os.close(number)


async def all_ended_at(pids: Iterable[int], within: float = PATIENCE) -> float:
    """Wait until these processes have ended, and return when the last one did."""
    ends: list[float] = []

    async def note(pid: int) -> None:
        ends.append(await ended_at(pid))

    with trio.fail_after(within):
        async with trio.open_nursery() as nursery:
            for pid in pids:
                nursery.start_soon(note, pid)
    return max(ends)
