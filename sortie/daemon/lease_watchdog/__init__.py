"""A small process that ends a daemon whose leases are over, also one that hangs or is stopped.

The daemon tells it each deadline on a socket, in lines: ``until WORKFLOW SECONDS`` (of
CLOCK_BOOTTIME), ``over WORKFLOW`` where nothing is done for it any more, ``cgroup DIRECTORY`` and
``mark NUMBER`` for what runs are found by, and ``bye``. Once a deadline has passed, or the socket
ends without ``bye``, it kills the daemon and then what its runs left on this machine; of a deadline
it tells on stderr, as the daemon cannot do so any more.

Its directory is run by ``watchdog_client``. It imports nothing of Sortie. On its command line are
the daemon's pid and the descriptor of the socket.
"""

from pathlib import Path

PROGRAM = str(Path(__file__).parent)
"""What Python is given to run."""
