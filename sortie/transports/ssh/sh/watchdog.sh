# Watches over a program on its host, and ends it with its tree when the lease ends: when there is
# no line for L seconds, or the end of file. That comes when Sortie ends it, when the link or the
# daemon is gone, and when the program has exited (sshd closes its stdin then).
#
# fd 1: where it says that it watches; fd 2 and 7: the program's stderr and stdout, where its last
# word goes; fd 3: the lease.
# It runs in a session of its own and without the cookie and the mark, or it would end itself.

trap '' HUP INT QUIT TERM PIPE
cd /
PATH=$PATH:/usr/bin:/bin
export LC_ALL=C
P=$1 S=$2 M=$3 C=$4 G=$5 L=$6 D=$7 A=apart
exec 4>&2 2>/dev/null
# The mark is the tree's.
ulimit -S -w 0 || ulimit -S -x 0

stat_of $$ && set -- $s && [ "$3" = "$P" ] && A=
say() { printf '\001%s %s\n' "$N" "$1"; }
# Tells how it went: 0 is a sign of life, 9 the end.
line() { timeout -s KILL "$L" /bin/sh -c 'IFS= read -r x || exit 9' <&3 3<&- 4>&- 7>&-; }
echo $$
exec >/dev/null
# Where the host has no room for another process, dash exits at the next one it wants to start.
trap at_once EXIT
while line; how=$?; [ $how = 0 ]; do :; done
# There is no timeout here, or one that takes other arguments.
case $how in
  9) ;;
  1|125|127) while read -r x <&3; do :; done ;;
  # In the background: while the network is cut, a full pipe takes nothing.
  *) say lapsed >&4 & ;;
esac
exec 3<&-
# The directory of its stdin is there where the program did not begin. It goes before the others are
# looked for: who comes to write there later finds nothing to wait at.
[ ! -O "$D" ] || [ -L "$D" ] || rm -rf -- "$D"
end
trap - EXIT
say "gone $m" >&4
say "gone $m" >&7
