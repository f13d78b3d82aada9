"""Enters a running container, and gives up what a program in it must not have.

This is a part of the program of the fork server, and imports nothing of Sortie. A container engine
has made the container, and a process that does nothing keeps it. Programs are not started by the
engine, which takes a tenth of a second and more: the middleman joins the container's namespaces,
and makes a PID namespace of its own there. So a program sees the container's files and network and
is held by its limits, while the kernel ends it and what it starts as it does everywhere.

What the engine does for its own processes is done here again: no capability, no new privileges, a
``/proc`` in which the kernel's settings are read-only, and a filter of system calls.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress

NAMESPACES = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "net": 0x40000000,
}
"""The flags of the namespaces that are entered, by their names in /proc/PID/ns."""

_ALL_NAMESPACES = 0x7E020000
_EINVAL, _EPERM, _ENOSYS = 22, 1, 38

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 8, 32, 4096
READ_ONLY = ("asound", "bus", "fs", "irq", "sys", "sysrq-trigger")
MASKED = ("acpi", "kcore", "keys", "latency_stats", "timer_list", "sched_debug", "scsi")
"""Files and directories of /proc, as engines treat them."""

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_SET_SECCOMP = 24, 38, 47, 22
_AMBIENT_CLEAR_ALL, _SECCOMP_FILTER = 4, 2
_CAPABILITY_VERSION = 0x20080522

_DENIED = {
    # name: (x86_64, aarch64), see asm/unistd_64.h and asm-generic/unistd.h
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
"""System calls that fail with EPERM: a program without capabilities has no honest use for them."""

_CLONE, _CLONE3 = (56, 220), (435, 435)
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""By the kind of machine: the column of its system calls, and its number for filters."""

_X32 = 0x40000000  # the bit of system calls of the x32 ABI

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "")


def enter(container: int, namespaces: int, cgroups: Iterable[bytes]) -> None:
    """Enter namespaces of the process that a pidfd refers to, and cgroups by their files.

    A namespace that both share is not to be among them: to enter it again may be forbidden.
    Raises OSError.
    """
    for file in cgroups:
        fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"0")
        finally:
            os.close(fd)
    _checked(_libc.setns(container, namespaces))


def close_proc() -> None:
    """Make the kernel's settings in /proc read-only, and hide what tells of the machine."""
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    for name in READ_ONLY:
        path = f"/proc/{name}".encode()
        if os.path.exists(path):
            _checked(_libc.mount(path, path, None, _MS_BIND, None))
            _checked(
                _libc.mount(None, path, None, flags | _MS_REMOUNT | _MS_BIND | _MS_RDONLY, None)
            )
    for name in MASKED:
        path = f"/proc/{name}".encode()
        if os.path.isdir(path):
            _checked(_libc.mount(b"tmpfs", path, b"tmpfs", flags | _MS_RDONLY, None))
        elif os.path.exists(path):
            _checked(_libc.mount(b"/dev/null", path, None, _MS_BIND, None))


def confine() -> None:
    """Give up all capabilities, for good, and have system calls filtered.

    Raises OSError, also where the calls of this machine are not known.
    """
    instructions = system_call_filter(os.uname().machine)
    with suppress(PermissionError):  # in a user namespace of an ordinary user there are none to set
        os.setgroups([])
    _libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    capability = 0
    while _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    if ctypes.get_errno() != _EINVAL:  # that is, it was not the last one
        raise OSError(ctypes.get_errno(), "")
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    _checked(_libc.capset(header, bytes(24)))
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    program = _Program(len(instructions) // 8, instructions)
    _checked(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(program), 0, 0))


def system_call_filter(machine: str) -> bytes:
    """Return a filter for a kind of machine as classic BPF; raise OSError where its calls are not
    known.

    Calls of another architecture, such as those of 32-bit programs, do not exist in it.
    """
    if machine not in ARCHITECTURES:
        raise OSError(_ENOSYS, f"no filter of system calls is known for {machine}")
    column, architecture = ARCHITECTURES[machine]
    load, equal, above, bits, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, deny, absent = 0x7FFF0000, 0x00050000 | _EPERM, 0x00050000 | _ENOSYS
    number, arch, first_argument = 0, 4, 16  # offsets in struct seccomp_data

    def instruction(code: int, operand: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, operand)

    parts = [
        instruction(load, arch),
        instruction(equal, architecture, yes=1),
        instruction(answer, absent),
        instruction(load, number),
        instruction(above, _X32, no=1),
        instruction(answer, absent),
        instruction(equal, _CLONE3[column], no=1),
        instruction(answer, absent),  # its flags cannot be seen; the C library falls back to clone
        instruction(equal, _CLONE[column], no=4),
        instruction(load, first_argument),
        instruction(bits, _ALL_NAMESPACES, no=1),
        instruction(answer, deny),
        instruction(answer, allow),
    ]
    for numbers in _DENIED.values():
        if (denied := numbers[column]) is not None:
            parts += [instruction(equal, denied, no=1), instruction(answer, deny)]
    parts.append(instruction(answer, allow))
    return b"".join(parts)
