"""What programs in bubblewrap see of their host, and the words by which bubblewrap is told."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sortie.transports import WRAPPED_STDIN, Command
from sortie.transports.walls import GONE_VARIABLES, OF_USERS

PROGRAM = "bwrap"
_WRAPPERS = 2
"""Bubblewrap and process 1 of the namespace that it makes stand above the program."""

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/run/systemd/resolve",
    "/run/resolvconf",
)
"""What programs need of the system, where it is there. All else is not: /home, /srv, /var, /run."""

_SHARED = ("/.local", "/usr/local", "/home", "/root")
"""Whose ``bin`` holds programs that have nothing to do with each other."""

STARTED_BY = ("/bin/sh", "-c", f'exec setsid "$0" "$@" <&{WRAPPED_STDIN} {WRAPPED_STDIN}<&-')
"""Bubblewrap keeps its own stdin open for as long as the program runs, which may close it; and its
process 1 leads the session, which is not to be that of the program."""

_OF_KERNEL = tuple(
    f"/proc/{name}"
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "pressure")
)
"""What the user root may write to without any capability, such as the core pattern. Others may not,
and a sandbox inside of this one could not mount /proc where a part of it is covered."""


class Enclosure(Struct, frozen=True, kw_only=True):
    """What programs find inside. ``write`` and ``read`` are paths, as far as they are there;
    ``own`` are directories that are made first, and may be written to. ``hide`` are taken away
    again. A path may begin with ``~``, the home directory. ``has_network`` is the host's network,
    or one that is made for it; without it there is none."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    has_network: bool = True


class FoundPath(Struct, frozen=True, kw_only=True):
    """A file or directory that is there, by its real path."""

    path: str
    is_directory: bool


class Surroundings(Struct, frozen=True, kw_only=True):
    """What a host has of what one program needs: the real path of its ``workspace``, the ``home``
    and its real path, whether its user is root, and the files by which it is ``started``, as they
    are named and as they are found: its own and those of interpreters."""

    workspace: str
    home: str
    real_home: str
    is_root: bool
    started: tuple[str, ...] = ()

    @property
    def installations(self) -> tuple[str, ...]:
        """The directories, outside of the system's, that the program needs to be started."""
        outside = (path for path in self.started if not any(lies_in(path, one) for one in SYSTEM))
        return tuple(dict.fromkeys(map(self._installed_in, outside)))

    def _installed_in(self, path: str) -> str:
        """Return the directory of an installation with the program at this path: the one that holds
        it, or all around a ``bin`` of its own. What is around the home or the workspace is none:
        then it is the file alone."""
        before, modules, _ = path.partition("/lib/node_modules/")
        if modules:
            return f"{before}{modules.rstrip('/')}" if self._is_around(before) else before
        directory = os.path.dirname(path)
        above = os.path.dirname(directory)
        is_bin = os.path.basename(directory) == "bin" and not above.endswith(_SHARED)
        if is_bin and not self._is_around(above):
            return above
        return path if self._is_around(directory) else directory

    def _is_around(self, directory: str) -> bool:
        places = (self.home, self.real_home, self.workspace)
        return any(lies_in(place, directory or "/") for place in places)


class InsideView(Struct, frozen=True, kw_only=True):
    """What one program is shown besides the system: ``own`` of ``write`` are directories that are
    made first, and ``hide`` is taken away again, where it is to be seen."""

    read: tuple[str, ...]
    write: tuple[str, ...]
    own: tuple[str, ...]
    hide: tuple[str, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """All that the program sees."""
        return (*SYSTEM, *self.read, *self.write)


def view_of(enclosure: Enclosure, found: Surroundings) -> InsideView:
    """Return what a program is shown in these surroundings."""

    def at_home(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_at_home(path, found.home) for path in paths)

    own = at_home(enclosure.own)
    of_home = (os.path.join(found.home, name) for name in OF_USERS)
    return InsideView(
        read=(*of_home, *found.installations, *at_home(enclosure.read)),
        write=(*at_home(enclosure.write), *own),
        own=own,
        hide=at_home(enclosure.hide),
    )


def _at_home(path: str, home: str) -> str:
    if path == "~":
        return home
    return os.path.join(home, path[2:]) if path.startswith("~/") else path


def enclosed(
    command: Command,
    found: Surroundings,
    view: InsideView,
    paths: Mapping[str, FoundPath],
    *,
    has_network: bool,
    started_by: tuple[str, ...] = STARTED_BY,
) -> Command:
    """Return the command that starts another in bubblewrap; ``paths`` are those of the view that
    are there, by their names. ``started_by`` are the words before the program, inside."""
    env = {name: value for name, value in command.env.items() if name not in GONE_VARIABLES}
    inside = arguments(found, view, paths, has_network=has_network)
    argv = (PROGRAM, *inside, "--", *started_by, *command.argv)
    return replace(command, argv=argv, env=env, wrappers=command.wrappers + _WRAPPERS)


def arguments(
    found: Surroundings, view: InsideView, paths: Mapping[str, FoundPath], *, has_network: bool
) -> Iterator[str]:
    """Yield bubblewrap's arguments; what comes later lies over what was named before."""
    workspace = found.workspace
    homes = (home for home in (found.home, found.real_home) if home != "/")
    yield from ("--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if not has_network:
        yield "--unshare-net"
    for path in SYSTEM:
        yield from ("--ro-bind-try", path, path)
    yield from ("--dev", "/dev", "--proc", "/proc")
    for path in _OF_KERNEL if found.is_root else ():
        yield from ("--ro-bind-try", path, path)
    for path in dict.fromkeys(("/tmp", "/var/tmp", *homes)):
        yield from ("--tmpfs", path)
    for path in view.read:
        yield from ("--ro-bind-try", path, path)
    for path in view.write:
        yield from ("--bind-try", path, path)
    for hidden in dict.fromkeys(_hidden(view, paths, workspace)):
        path = hidden.path
        yield from ("--tmpfs", path) if hidden.is_directory else ("--ro-bind", "/dev/null", path)
    yield from ("--bind", workspace, workspace, "--remount-ro", "/", "--chdir", workspace)


def _hidden(
    view: InsideView, paths: Mapping[str, FoundPath], workspace: str
) -> Iterator[FoundPath]:
    """Yield what has to be hidden under each name by which it is to be seen, unless it holds the
    workspace, which would be hidden with it."""
    for hidden in (paths[name] for name in view.hide if name in paths):
        if lies_in(workspace, hidden.path):
            continue
        for name in view.shown:
            root = paths[name].path if name in paths else None
            if root is not None and lies_in(hidden.path, root):
                below = hidden.path[len(root) :].lstrip("/")
                yield replace(hidden, path=os.path.join(name, below) if below else name)


def lies_in(path: str, directory: str) -> bool:
    """Tell whether a path is a directory or below it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")
