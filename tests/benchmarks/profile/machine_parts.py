"""What the processor runs for a daemon, by ``perf``, and which calls it makes, by ``strace``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_MEMORY = "kernel: memory (page faults, maps)"
_REST = "kernel: interrupts, switches, the rest"
_LIBRARIES = (
    ("python3", "interpreter and its own C code"),
    ("libpython", "interpreter and its own C code"),
    ("libsqlite3", "SQLite"),
    ("_sqlite3", "SQLite"),
    ("libc.so", "C library"),
    ("libc-", "C library"),
    ("ld-linux", "C library"),
    ("libm.so", "C library"),
    ("[vdso]", "C library"),
)
_OTHER_LIBRARIES = "other libraries in C"
_CALLS = {
    "kernel: locks and wake-ups of threads (futex)": ("futex", "sched_yield"),
    "kernel: starts of programs and threads": (
        *("vfork", "fork", "clone", "clone3", "execve", "wait4", "waitid", "exit", "kill"),
        *("pidfd_open", "pidfd_send_signal", "prlimit64", "rt_sigprocmask", "rt_sigaction"),
    ),
    "kernel: to disk (fdatasync, pwrite)": ("fsync", "fdatasync", "pwrite64", "pread64", "sync"),
    "kernel: read, write, sockets, epoll": (
        *("read", "write", "writev", "readv", "sendto", "recvfrom", "sendmsg", "recvmsg", "poll"),
        *("epoll_wait", "epoll_pwait", "epoll_ctl", "epoll_create1", "pipe2", "accept4"),
        *("socket", "shutdown", "setsockopt", "getsockopt", "ioctl"),
    ),
    "kernel: files and directories": (
        *("open", "openat", "close", "stat", "lstat", "fstat", "newfstat", "newfstatat", "newstat"),
        *("newlstat", "getdents64", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename"),
        *("renameat", "renameat2", "link", "linkat", "readlink", "readlinkat", "access"),
        *("faccessat", "faccessat2", "lseek", "fcntl", "dup", "dup2", "dup3", "flock", "statfs"),
        *("fstatfs", "getcwd", "chdir", "fchdir", "utimensat", "fchmod", "ftruncate", "statx"),
    ),
    _MEMORY: ("mmap", "munmap", "mprotect", "brk", "madvise", "mremap"),
}
_GROUPS = {call: group for group, calls in _CALLS.items() for call in calls}
_ENTRY = re.compile(r"__(?:x64|arm64|ia32|se|do)_sys_(\w+)|__do_sys_(\w+)")
_KERNEL = "[kernel"


def of_machine(texts: Iterable[str]) -> Counter[str]:
    """Return how often which part of the machine was seen, from what ``perf script`` says."""
    found: Counter[str] = Counter()
    for text in texts:
        for sample in text.split("\n\n"):
            frames = [line.strip() for line in sample.strip().splitlines()[1:]]
            if frames:
                found[_part_of(frames)] += 1
    return found


def _part_of(frames: list[str]) -> str:
    innermost = frames[0].rpartition("(")[2].rstrip(")")
    if _KERNEL not in innermost:
        name = innermost.rpartition("/")[2]
        named = [part for start, part in _LIBRARIES if name.startswith(start)]
        return named[0] if named else _OTHER_LIBRARIES
    inside = [frame for frame in frames if _KERNEL in frame]
    for frame in reversed(inside):
        entry = _ENTRY.search(frame)
        if entry is not None:
            return _GROUPS.get(entry[1] or entry[2], "kernel: other system calls")
    return _MEMORY if any("page_fault" in frame for frame in inside) else _REST


def system_calls(texts: Iterable[str]) -> Counter[str]:
    """Return how often which call was made, from what ``strace -c -U calls,name`` says."""
    found: Counter[str] = Counter()
    for text in texts:
        for line in text.splitlines():
            words = line.split()
            if len(words) == 2 and words[0].isdigit() and words[1] != "total":
                found[words[1]] += int(words[0])
    return found
