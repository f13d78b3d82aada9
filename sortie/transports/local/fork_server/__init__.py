"""The program of the fork server: a small process of one thread that starts the programs of runs.

The daemon cannot do this well itself. It has many threads and much memory, so it must not run code
between fork and exec; and making a PID namespace takes two forks.

For each request the server forks a middleman. That one makes the namespaces, forks their init, and
exits when the program has been executed; init is then adopted by the daemon, which is a child
subreaper. Init is process 1 of its namespace. It starts the program, reaps orphans, passes SIGTERM
on to the program alone, writes the program's wait status to the pipe of statuses, and exits. When
it exits, or is killed, or the daemon ends, the kernel kills all processes of the namespace
(pid_namespaces(7)). Without a namespace the middleman forks the program itself, which the daemon
adopts.

A program may be started in a container that runs: its middleman enters the namespaces of the
container first, and its init ends with the container as well (see ``confinement``).

Its directory is run by ``fork_client``. It imports nothing of Sortie but the modules beside it, as
modules without a package, and of Python no module that takes long to load, which every start of a
daemon would wait for: ``TYPE_CHECKING``, by which type checkers know the package, is set in each
module and not taken from ``typing``. The program gets on its command line:
the pid of the daemon, the descriptors of the socket of requests and of the pipe of statuses, the
soft limit of open files that programs begin with, and a file that its own pid is written to so that
it enters a cgroup, or nothing. A request is one byte
with five descriptors: a file with the request, the pipe of the report, and the program's stdin,
stdout and stderr; and a sixth, a pidfd of the process that keeps a container, where the program is
to be in one. The report has a line for each thing that happened and ends when the program runs and
the middleman is gone.

The server reads no request: its middlemen do. So nothing that it hands on to a later one, or to an
init, is a secret of another program.

Rule 1: the server lives until its socket ends; the daemon alone holds the other end.
Rule 2: init lives no longer than the daemon, which it knows by a pidfd.
"""

from pathlib import Path

PROGRAM = str(Path(__file__).parent)
"""What Python is given to run."""
