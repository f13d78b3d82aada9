"""A newer leader of a workflow takes a host over from an older one, whatever that one does."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from sortie.config.settings import Isolation
from sortie.model import HostError, HostTrouble, TransportError
from sortie.resources.lease import LeaseLost
from sortie.transports import Command, Script
from sortie.transports.remote.launch import Bounds
from tests.transports.leftovers import holders
from tests.transports.ssh.leaders import Leader, leader_of
from tests.transports.ssh.sshd import Sshd, requires_sshd, until

pytestmark = [
    requires_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at"),
]

GAMES = int(os.environ.get("SORTIE_TEST_TAKEOVERS", "3"))
"""How many games of takeovers are played."""
FORMER = Path(__file__).with_name("former_leader.py")
PROJECT = Path(__file__).parents[3]
TAKEN = "a newer leader of this workflow has taken the host over"
STUBBORN = 'trap "" TERM; sleep 1000 & setsid sleep 1000 & echo up; while :; do sleep 0.1; done'
full = pytest.mark.full

WAYS = [
    pytest.param(0.0, Isolation.NONE, id="plain"),
    pytest.param(0.0, Isolation.AUTO, id="plain-namespaces", marks=full),
    pytest.param(300.0, Isolation.NONE, id="supervised", marks=full),
    pytest.param(300.0, Isolation.AUTO, id="supervised-namespaces"),
]


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "work" / "root")


def agent(cookie: str, root: str, script: str = STUBBORN) -> Command:
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": cookie}
    return Command(argv=("sh", "-c", script), cwd=root, env=env, grace=0.1)


async def refused(leader: Leader, root: str) -> list[str]:
    """Return what each way to change something is refused with."""
    said = []
    script = Script(
        purpose="touch", text=f"touch {root}/by-script", arguments=(), cwd="/", env={}, limit=1
    )
    with leader.leading() as transport:
        files = transport.files
        changes = (
            partial(files.make_directory, root, "made"),
            partial(files.remove_directory, root, "kept"),
            partial(files.write_file, root, "written", b""),
            partial(files.remove_file, root, "file"),
            partial(transport.run_script, script),
            partial(transport.clear, root, grace=0.0),
            partial(_run, leader, agent("", root, f"touch {root}/by-program")),
        )
        for change in changes:
            with pytest.raises(LeaseLost) as caught:
                await change()
            said.append(str(caught.value))
    return said


async def _run(leader: Leader, command: Command) -> None:
    async with leader.transport.process(command) as process:
        await process.wait()


@pytest.mark.parametrize(("reattach", "isolation"), WAYS)
async def test_a_newer_leader_ends_all_of_the_older_one(
    sshd: Sshd, root: str, reattach: float, isolation: Isolation
) -> None:
    """Before the root is its own, though the links of the older one stand; from then on that is
    refused whatever it changes, by shells that it had before too."""
    bounds, cookie = Bounds(handshake=30.0, reattach=reattach), str(uuid.uuid4())
    leader = partial(leader_of, sshd, root, bounds=bounds, isolation=isolation)
    async with leader(7) as old, leader(8) as new:
        with old.leading() as transport:
            await transport.files.make_directory(root, "kept")
            await transport.files.write_file(root, "file", b"")
            running = transport.process(agent(cookie, f"{root}/kept"))
            process = await running.__aenter__()
            await anext(process.output())
        before = len(holders(cookie))

        await new.hold()
        after = holders(cookie)
        said = await refused(old, root)

        with old.leading(), pytest.raises((LeaseLost, TransportError)):
            with trio.fail_after(30):
                await process.wait()
                raise LeaseLost("it was killed")
        with pytest.raises((LeaseLost, TransportError)):
            await running.__aexit__(None, None, None)
            raise LeaseLost("it was gone")
    assert before >= 3
    assert after == []
    assert all(TAKEN in one for one in said)
    kept = {name for name in os.listdir(root) if not name.startswith("@")}
    assert kept == {"kept", "file"}


async def test_a_launch_is_noted_whole_though_a_dead_supervisor_left_files(
    sshd: Sshd, root: str, tmp_path: Path
) -> None:
    """They are removed on the way; a newer leader finds in the note what watches over the
    program."""
    left = tmp_path / "tmp" / f"sortie-run.{'0' * 32}"
    left.mkdir(parents=True)
    (sshd.home / ".bashrc").write_text(f"export TMPDIR={left.parent}\n")
    bounds, command = Bounds(handshake=30.0, reattach=300.0), agent(str(uuid.uuid4()), root)
    async with leader_of(sshd, root, 1, bounds=bounds) as leader:
        with leader.leading() as transport:
            async with transport.process(command) as process:
                await anext(process.output())
                (note,) = Path(root).glob("@leader-*/launch.*")
                lines = note.read_text().splitlines()

    assert not left.exists()
    assert len(lines) == 2


async def test_another_workflow_is_refused_as_ever(sshd: Sshd, root: str) -> None:
    """So is a daemon without a lease, and one with a lease by a daemon without."""
    async with (
        leader_of(sshd, root, 3) as first,
        leader_of(sshd, root, 9, workflow="other") as other,
    ):
        await first.hold()
        with pytest.raises(HostError, match=r"another daemon .life 3 of flow, token 3. works in"):
            await other.hold()
        with pytest.raises(HostError, match=r"another daemon .life 3 of flow, token 3. works in"):
            await other.locks.hold(root)
        await first.locks.hold(root + "2")
        with pytest.raises(HostError, match=r"another daemon .life 3 of flow. works in") as caught:
            await Leader(other.pool, root + "2", 4).hold()
        await first.hold()

    assert caught.value.trouble is HostTrouble.OCCUPIED


async def test_a_token_that_is_older_than_a_known_one_takes_nothing(sshd: Sshd, root: str) -> None:
    """Whether the newer leader holds the root or not."""
    async with leader_of(sshd, root, 5) as old:
        async with leader_of(sshd, root, 6) as new:
            await new.hold()
            with pytest.raises(LeaseLost, match=TAKEN):
                await old.hold()
            await new.locks.aclose()
            with pytest.raises(LeaseLost, match=TAKEN):
                await old.hold()
            await new.hold()

        known = [path.name for path in Path(root).glob("@leader-*/token.*")]
    assert known == ["token.6"]


async def test_what_an_older_leaders_shell_works_on_is_ended(
    sshd: Sshd, root: str, tmp_path: Path
) -> None:
    """With what that has started; it would change something after the takeover."""
    begun = tmp_path / "begun"
    text = f"(echo >{begun}; sleep 1000; touch {root}/late); touch {root}/late"
    script = Script(purpose="work", text=text, arguments=(), cwd="/", env={}, limit=1)
    async with (
        leader_of(sshd, root, 1) as old,
        leader_of(sshd, root, 2) as new,
        trio.open_nursery() as nursery,
    ):

        async def work() -> None:
            with old.leading() as transport, pytest.raises(TransportError):
                await transport.run_script(script)

        nursery.start_soon(work)
        await until(begun.exists)
        before = [line for line in sshd.running() if "sleep 1000" in line]
        await new.hold()
        after = [line for line in sshd.running() if "sleep 1000" in line]

    assert (len(before), after) == (1, [])
    assert not (Path(root) / "late").exists()


async def test_nothing_is_sent_when_the_lease_is_over(sshd: Sshd, root: str) -> None:
    """No new session is opened, and what was started hears no sign of life any more."""
    cookie = str(uuid.uuid4())
    bounds = Bounds(handshake=30.0, beat=0.1, lease=3.0)
    async with leader_of(sshd, root, 1, bounds=bounds) as leader:
        with leader.leading() as transport:
            await leader.hold()
            async with transport.process(agent(cookie, root, "echo up; sleep 1000")) as process:
                await anext(process.output())
                leader.lease.valid_until = 0.0
                sessions = leader.pool.sessions
                for change in (leader.hold, partial(transport.files.write_file, root, "x", b"")):
                    with pytest.raises(LeaseLost, match="is over"):
                        await change()
                with pytest.raises(LeaseLost, match="is over"):
                    await _run(leader, agent(cookie, root))
                opened = leader.pool.sessions - sessions
                with trio.fail_after(30):
                    while holders(cookie):
                        await trio.sleep(0.05)

    assert opened == 0
    assert not (Path(root) / "x").exists()


class Former:
    """A leader in a process of its own; ``said`` are its lines."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.said: list[str] = []
        self.how: signal.Signals | None = None  # what was done to it

    async def hear(self, word: str, since: int = 0) -> None:
        """Wait until it says a word, behind so many lines."""
        assert self.process.stdout is not None
        rest = b""
        with trio.fail_after(120):
            while not any(line.startswith(word) for line in self.said[since:]):
                chunk = await self.process.stdout.receive_some()
                assert chunk, f"it ended, and said {self.said}"
                *lines, rest = (rest + chunk).split(b"\n")
                self.said += [line.decode() for line in lines]


@asynccontextmanager
async def former(
    sshd: Sshd, root: str, token: int, way: tuple[float, Isolation], seconds: int = 1000
) -> AsyncIterator[Former]:
    """Have a leader that runs agents, each for some seconds."""
    keys = sshd.keys
    files = (str(keys.config), str(keys.known_hosts), str(keys.key))
    words = (sshd.host, *files, root, str(token), str(way[0]), way[1].value, str(seconds))
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    argv = [sys.executable, str(FORMER), *words]
    process = await trio.lowlevel.open_process(argv, env=env, stdout=subprocess.PIPE)
    try:
        yield Former(process)
    finally:
        process.kill()
        await process.wait()


async def clear_away(sshd: Sshd, root: str) -> None:
    """End what the last leader had under way."""
    async with leader_of(sshd, root, 1000) as last:
        await last.hold()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
async def test_a_leader_that_was_stopped_finds_the_host_taken_over(
    sshd: Sshd, root: str, how: signal.Signals
) -> None:
    """A stopped one keeps its links, and changes nothing when it goes on."""
    way = (300.0, Isolation.AUTO)
    async with former(sshd, root, 1, way) as old:
        await old.hear("begun")
        old.process.send_signal(how)
        async with former(sshd, root, 2, way) as new:
            await new.hear("begun")
            if how is signal.SIGSTOP:
                old.process.send_signal(signal.SIGCONT)
                await old.hear("lost: a newer leader")
            written = (Path(root) / "written").read_bytes()
    await clear_away(sshd, root)

    assert not (Path(root) / "verdict").exists()
    assert written == b"2"


@full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(GAMES))
async def test_no_two_agents_work_whenever_a_leader_is_taken_over(
    sshd: Sshd, root: str, seed: int
) -> None:
    """Leaders are stopped at random moments, or killed, or go on beside the next one; their agents
    and what begins these are short, so that takeovers cross launches."""
    rng = random.Random(seed)
    way = (rng.choice([0.0, 300.0]), rng.choice([Isolation.NONE, Isolation.AUTO]))
    begun = 0
    async with AsyncExitStack() as stack:
        leaders: list[Former] = []
        for token in range(1, 9):
            leader = await stack.enter_async_context(former(sshd, root, token, way, 1))
            await leader.hear("begun")
            begun += 1
            for one in leaders[-1:]:
                if one.process.returncode is None and one.how is not signal.SIGKILL:
                    one.process.send_signal(signal.SIGCONT)
                    await one.hear("lost: a newer leader")
            leaders.append(leader)
            await trio.sleep(rng.random() * 1.5)
            how = rng.choice([None, signal.SIGKILL, signal.SIGSTOP])
            leader.how = how
            if how is not None:
                leader.process.send_signal(how)
    await clear_away(sshd, root)

    assert begun == 8
    assert not (Path(root) / "verdict").exists()
