"""Games of failovers wherever runs live, and the machines whose network they cut."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import trio

from tests.e2e.failover_games import Asked, play
from tests.e2e.failover_places import PLACES
from tests.e2e.machines import Machine, machine
from tests.e2e.place import Place
from tests.store.postgres_server import PostgresServer, postgres_running
from tests.transports.ssh.sshd import MISSING as NO_SSHD

SEED = int(os.environ.get("SORTIE_FAILOVER_SEED", "1"))

_ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=float(sys.argv[2])) as link:
    sys.stdout.write(link.getsockname()[0])
"""


def asks(of: Machine, port: int, seconds: float) -> subprocess.CompletedProcess[str]:
    """Connect from a machine to what listens here."""
    words = [*of.words, sys.executable, "-c", _ASK, str(port), str(seconds)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


async def test_a_machine_reaches_what_listens_here_until_it_is_cut_off() -> None:
    """Its connections come from its own address, and go on when its cable is plugged in again."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    with machine() as made:
        reached = asks(made, port, 60.0)
        link = await listener.accept()
        came_from = link.socket.getpeername()[0]
        made.cut()
        cut = asks(made, port, 0.5)
        made.mend()
        again = asks(made, port, 60.0)
        await link.aclose()
    await listener.aclose()

    assert (reached.returncode, again.returncode) == (0, 0)
    assert came_from == made.address
    assert cut.returncode != 0
    assert "TimeoutError" in cut.stderr or "No route to host" in cut.stderr
    assert not os.path.exists(f"/run/netns/{made.name}")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server with durable commits."""
    with postgres_running(fsync="on") as running:
        yield running


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("where", PLACES)
async def test_a_few_failovers_do_nothing_twice(
    place: Place, server: PostgresServer, where: str
) -> None:
    """One branch, pull request, comment and handoff for each issue; only leaders change anything,
    and one that wakes an hour later changes nothing."""
    if where in ("ssh", "reattached") and NO_SSHD:
        pytest.skip(NO_SSHD)

    wrong = await play(place, server, Asked(place=where, failovers=4), SEED)

    assert wrong == [], f"python -m tests.e2e.failover_games --place {where} --seed {SEED}"
