"""The way from behind a wall on a remote host to a socket of this machine.

The network behind the wall is a loopback. A small program in there listens on it, and hands its
connections to a unix socket, which the wall shows; on the host that socket is one of this machine,
through the connection of SSH. Where another socket has come in its place, since the link was lost,
the program ends the connections of the one before, which may be silent and not broken.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import trio
from msgspec import Struct

from sortie.model import TransportError
from sortie.transports import PROXY_PORT, WRAPPED_STDIN, ForwardsSockets, Script, Transport
from sortie.transports.remote.scripts import text
from sortie.transports.walls.container_names import PREFIX, is_over, own_life
from sortie.transports.walls.on_host import text_of

_BOUND = 15.0
"""Seconds for removing what a way back has left on its host."""

_PERL = """\
use strict;
use POSIX ();
use Socket;
my ($path, $port) = @ARGV;
my $door;
socket($door, PF_INET, SOCK_STREAM, 0)
  && setsockopt($door, SOL_SOCKET, SO_REUSEADDR, 1)
  && bind($door, sockaddr_in($port, INADDR_LOOPBACK))
  && listen($door, 128) or die "no way to the proxy: $!\\n";
my $child = fork;
defined $child or die "no way to the proxy: $!\\n";
POSIX::_exit(0) if $child;
POSIX::setsid(); chdir '/';
open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
$SIG{CHLD} = 'IGNORE';
sub now { my @found = stat $path; "@found[0, 1, 10]" }
sub move {
  my ($from, $to, $was) = @_;
  $SIG{ALRM} = sub { now() eq $was or POSIX::_exit(1); alarm 5 };
  alarm 5;
  while (1) {
    my $got = sysread $from, my $piece, 65536;
    next if !defined $got && $! == POSIX::EINTR();
    last unless $got;
    for (my $at = 0; $at < $got;) {
      my $put = syswrite $to, $piece, $got - $at, $at;
      next if !defined $put && $! == POSIX::EINTR();
      defined $put or POSIX::_exit(1);
      $at += $put;
    }
  }
  shutdown $to, 1;
}
while (1) {
  accept(my $here, $door) or next;
  defined(my $one = fork) or next;
  next if $one;
  close $door;
  my $was = now();
  my $there;
  socket($there, PF_UNIX, SOCK_STREAM, 0) && connect($there, sockaddr_un($path))
    or POSIX::_exit(1);
  my $other = fork;
  defined $other or POSIX::_exit(1);
  $other ? move($here, $there, $was) : move($there, $here, $was);
  POSIX::_exit(0);
}
"""

_STARTED_BY = (
    f'"$0" "$1" "$2" "$3" "$4" </dev/null {WRAPPED_STDIN}<&- || exit 125; shift 4;'
    f' exec setsid "$@" <&{WRAPPED_STDIN} {WRAPPED_STDIN}<&-'
)
"""As of every program in bubblewrap, behind what leads the way."""


class WayBack(Struct, frozen=True, kw_only=True):
    """A way back: the ``directory`` on the host that holds its socket, the program there that leads
    to it, and the socket here that its connections come to."""

    directory: str
    program: str
    listener: socket.socket

    @property
    def path(self) -> str:
        """The path of the socket on the host."""
        return f"{self.directory}/{_SOCKET}"

    @property
    def started_by(self) -> tuple[str, ...]:
        """The words behind the wall that start the program that they are put before, once the way
        is there."""
        is_perl = self.program.endswith("perl")
        code = ("-e", _PERL) if is_perl else ("-Ic", text_of("proxy_lead"))
        words = (self.program, *code, self.path, str(PROXY_PORT))
        return ("/bin/sh", "-c", _STARTED_BY, *words)


_SOCKET = "proxy"


@asynccontextmanager
async def open_way_back(outside: Transport) -> AsyncIterator[WayBack]:
    """Open a way from a host to this machine. Raises TransportError."""
    if not isinstance(outside, ForwardsSockets):
        raise TransportError(f"there is no way back from host {outside.host}")
    made = await outside.run_script(_script("make a place for a socket", "socket_place"))
    directory, program = [*map(os.fsdecode, made.split(b"\0")), "", ""][:2]
    if not directory.startswith("/"):
        raise TransportError(f"host {outside.host} made no place for a socket; look at TMPDIR")
    try:
        if not program:
            raise TransportError(
                f"host {outside.host} has neither perl nor python3 in its system directories, which"
                " sandbox.network with a list of hosts needs there"
            )
        with ExitStack() as opened:
            here, listener = _listening(opened)
            async with outside.forwarded(f"{directory}/{_SOCKET}", here):
                yield WayBack(directory=directory, program=program, listener=listener)
    finally:
        with trio.move_on_after(_BOUND, shield=True), suppress(TransportError):
            await outside.run_script(
                _script("remove the place of a socket", "remove_socket_place", directory)
            )


def _listening(opened: ExitStack) -> tuple[str, socket.socket]:
    """Return a socket of this machine that listens, and its path. Raises TransportError."""
    try:
        remove_former()
        place = opened.enter_context(TemporaryDirectory(prefix=f"{PREFIX}{own_life()}-net-"))
        path = os.path.join(place, _SOCKET)
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(path)
        listener.listen(128)
    except OSError as exc:
        raise TransportError(f"could not listen on a unix socket here: {exc}") from exc
    return path, listener


@cache
def remove_former() -> None:
    """Remove, once, the directories of sockets that daemons left which were killed."""
    for place in Path(gettempdir()).glob(f"{PREFIX}*-net-*"):
        if is_over(place.name) and place.lstat().st_uid == os.geteuid():
            shutil.rmtree(place, ignore_errors=True)


def _script(purpose: str, name: str, *arguments: str) -> Script:
    return Script(
        purpose=purpose, text=text(name).decode(), arguments=arguments, cwd="/", env={}, limit=4096
    )
