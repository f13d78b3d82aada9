"""Who belongs to whom, on made-up tables."""

from __future__ import annotations

import math
import os
import subprocess

import pytest
from msgspec.structs import replace

from sortie.model import ProcessIdentity
from sortie.resources.process_identity import identity_of
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.command_trees import CommandTree, CommandTrees
from sortie.transports.local.process_table import ProcessInfo, ProcessTable
from sortie.transports.reaper import ProcessListing

ME = os.getpid()


def adopted(
    identity: ProcessIdentity,
    *,
    dead: bool = False,
    sid: int | None = None,
    cookie: str | None = None,
    cwd: str | None = None,
    started_at: float | None = math.inf,
) -> ProcessInfo:
    """Return a child of ours in a foreign session; with ``sid`` None it leads that session."""
    return ProcessInfo(
        identity=identity if started_at is None else replace(identity, started_at=started_at),
        ppid=ME,
        pgid=identity.pid if sid is None else sid,
        sid=identity.pid if sid is None else sid,
        dead=dead,
        stopped=False,
        adopted=True,
        cookie=cookie,
        homes=(cwd,) if cwd is not None else (),
    )


def table_of(*seen: ProcessInfo) -> ProcessTable:
    return ProcessTable(by_pid={one.pid: one for one in seen}, children={}, complete=False)


def child_process(process: subprocess.Popen[bytes]) -> ChildProcess:
    return ChildProcess(process, identity_of(process.pid))


@pytest.fixture
async def root() -> ChildProcess:
    """Give a root that has exited, and been reaped."""
    root = child_process(subprocess.Popen(["true"]))
    await root.exited()
    root.reap()
    return root


@pytest.fixture
def orphan() -> ProcessIdentity:
    """Give the identity of a process that is over."""
    with subprocess.Popen(["true"]) as child:
        return identity_of(child.pid)


async def test_what_may_be_a_root_that_starts_is_left_undecided(
    root: ChildProcess, orphan: ProcessIdentity
) -> None:
    """A process that leads its session, while a command is started, may be that command's."""
    trees = CommandTrees()
    ours = CommandTree(run_id="ours", cwd="/ours", root=root, ending=True)
    starting = CommandTree(run_id="next", cwd="/next")

    with trees.registered(ours), trees.registered(starting):
        may_be_a_root = trees.members(ours, table_of(adopted(orphan)))
        follower = trees.members(ours, table_of(adopted(orphan, sid=1)))

    assert may_be_a_root == ProcessListing(undecided=True)
    assert list(follower.alive) == [orphan.pid]


async def test_what_nobody_else_can_own_falls_to_who_ends(
    root: ChildProcess, orphan: ProcessIdentity
) -> None:
    """Without any evidence an orphan belongs to whoever may have it, but not to who came later."""
    trees = CommandTrees()
    ending = CommandTree(run_id="one", cwd="/one", root=root, ending=True)
    going_on = CommandTree(run_id="two", cwd="/two", root=root)
    nameless = table_of(adopted(orphan))

    with trees.registered(ending):
        alone = trees.members(ending, nameless)
        ending.known = frozenset()
        with trees.registered(going_on):
            together = trees.members(ending, nameless)
            going_on.ending = True
            both_ending = trees.members(ending, nameless)

    assert list(alone.alive) == [orphan.pid]
    assert together == ProcessListing()
    assert list(both_ending.alive) == [orphan.pid]


async def test_what_began_before_the_root_is_not_its_own(
    root: ChildProcess, orphan: ProcessIdentity
) -> None:
    """An orphan may come from a root that started in the same tick, not from a later one."""
    trees = CommandTrees()
    going_on = CommandTree(run_id="one", cwd="/one", root=root)
    ending = CommandTree(run_id="two", cwd="/two", root=root, ending=True)
    began = root.identity.started_at

    with trees.registered(going_on), trees.registered(ending):
        same_tick = trees.members(ending, table_of(adopted(orphan, started_at=began)))
        before = trees.members(ending, table_of(adopted(orphan, started_at=began - 0.01)))

    assert same_tick == ProcessListing()
    assert list(before.alive) == [orphan.pid]


@pytest.mark.parametrize(
    ("cookie", "cwd"), [("one", "/two"), ("unknown", "/one/below"), (None, "/one")]
)
async def test_evidence_decides_between_two_that_end(
    root: ChildProcess, orphan: ProcessIdentity, cookie: str | None, cwd: str
) -> None:
    """The cookie counts first, then the directory."""
    trees = CommandTrees()
    one = CommandTree(run_id="one", cwd="/one", root=root, ending=True)
    two = CommandTree(run_id="two", cwd="/two", root=root, ending=True)
    seen = table_of(adopted(orphan, sid=1, cookie=cookie, cwd=cwd))

    with trees.registered(one), trees.registered(two):
        of_two = trees.members(two, seen)
        of_one = trees.members(one, seen)

    assert (list(of_one.alive), list(of_two.alive)) == ([orphan.pid], [])


async def test_a_root_that_starts_and_dies_at_once_is_not_reaped() -> None:
    """Its exit status belongs to whoever started it, who may not know its pid yet."""
    trees = CommandTrees()
    child = subprocess.Popen(["sh", "-c", "exit 7"], start_new_session=True)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = table_of(adopted(identity_of(child.pid), dead=True))

    with trees.registered(CommandTree(run_id="starting", cwd="/")):
        trees.reap(zombie)

    assert child.wait() == 7


async def test_what_was_given_up_is_nobodys(root: ChildProcess, orphan: ProcessIdentity) -> None:
    """A process out of reach holds up one end, not all ends after it."""
    trees = CommandTrees()
    family = CommandTree(run_id="one", cwd="/one", root=root, ending=True)
    seen = adopted(orphan, sid=1, cookie="one")
    trees.given_up.add(seen.handle)

    with trees.registered(family):
        assert trees.members(family, table_of(seen)) == ProcessListing()


async def test_a_search_spares_the_tree_of_a_command_that_goes_on(
    root: ChildProcess, orphan: ProcessIdentity
) -> None:
    """Two commands of one run have one cookie: what stands in the tree of one is no prey of the
    other's end, until both end."""
    trees = CommandTrees()
    ours = CommandTree(run_id="one", cwd="/one", root=root, ending=True)
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    theirs = CommandTree(run_id="one", cwd="/one", root=child_process(child))
    their_root = replace(adopted(identity_of(child.pid), cookie="one"), adopted=False)
    below = replace(adopted(orphan, sid=1, cookie="one"), ppid=child.pid, adopted=False)
    table = ProcessTable(
        by_pid={seen.pid: seen for seen in (their_root, below)},
        children={child.pid: [below.pid]},
        complete=True,
    )

    with trees.registered(ours), trees.registered(theirs):
        while_it_goes_on = trees.members(ours, table)
        theirs.ending = True
        when_both_end = trees.members(ours, table)
    child.kill()
    child.wait()

    assert list(while_it_goes_on.alive) == []
    assert list(when_both_end.alive) == [orphan.pid]


Family = tuple[ProcessTable, list[CommandTree]]
