"""A process that hides all by which it could be found; see ``main``."""

import os
import resource
import sys
import time

_PATIENCE = 20.0
_STAY = 'echo $$ > "$0.new" && mv "$0.new" "$0" && exec sleep 100'


def main(told: str, cgroup: str, *keeps: str) -> None:
    """Leave a process that hides; it writes its pid to the file ``told``.

    We wait until the name of our cgroup holds ``cgroup``, which may be empty. The process has
    neither our parent, session, environment, directory, output and name, nor our limit on resident
    memory; but it keeps its ``directory`` or its ``mark``, that limit, where it is told to.
    """
    until = time.monotonic() + _PATIENCE
    while cgroup not in _own_cgroup() and time.monotonic() < until:
        time.sleep(0.005)
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    if "directory" not in keeps:
        os.chdir("/")
    if "mark" not in keeps:
        hard = resource.getrlimit(resource.RLIMIT_RSS)[1]
        resource.setrlimit(resource.RLIMIT_RSS, (1 << 40, hard))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.execve("/bin/sh", ["unknown", "-c", _STAY, told], {})


def _own_cgroup() -> str:
    with open("/proc/self/cgroup") as file:
        return next((line for line in file if line.startswith("0::")), "")


if __name__ == "__main__":
    main(*sys.argv[1:])
