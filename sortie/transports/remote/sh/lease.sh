# What watchdogs have in common: they hold the lease of a program on its host. It ends when there is
# no line for L seconds, or the end of file. That comes when Sortie ends the program, when the link or
# the daemon is gone, and when the program has exited (sshd closes its stdin then).
#
# fd 1: where a watchdog says that it watches; fd 2 and 7: the program's stderr and stdout, where its
# last message goes; fd 3: the lease. P is the program's pid, S its start, G the grace time in 1/100 s,
# D the directory of the program's stdin, if any, N what messages begin with.

# HUP, INT, QUIT, PIPE and TERM. dash passes 4,096 bytes of a watchdog's text on without a process.
trap '' 1 2 3 13 15
PATH=$PATH:/usr/bin:/bin
export LC_ALL=C
exec 4>&2 2>/dev/null

say() { printf '\001%s %s\n' "$N" "$1"; }
# Tells how it went: 0 is a sign of life, 9 the end.
line() { timeout -s KILL "$L" /bin/sh -c 'read x || exit 9' <&3 3<&- 4>&- 7>&-; }

# lease ACTION returns when the lease has ended; it does the action after each sign of life.
lease() {
  while line; h=$?; [ $h = 0 ]; do "$1"; done
  case $h in
    9) ;;
    # There is no timeout here, or one that takes other arguments.
    1|125|127) while read -r x <&3; do :; done ;;
    # In the background: while the network is cut, a full pipe takes nothing.
    *) say lapsed >&4 & ;;
  esac
  exec 3<&-
  # The directory is there where the program did not begin. It goes before the processes are looked
  # for: what comes to write there later finds nothing to wait at. What waits to write goes on, and
  # what waits to read does not.
  [ ! -O "$D" ] || [ -L "$D" ] || { dd if="$D/stdin" iflag=nonblock; rm -rf "$D"; }
}
