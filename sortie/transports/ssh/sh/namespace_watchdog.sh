# Watches over a program in a PID namespace, and ends the namespace when the lease ends: see
# watchdog.sh. Where it is killed itself, the kernel ends the namespace: the holder is its child, and
# is killed with it, and the namespace's init with the holder.
#
# P is what waits for the program and ends as the program does, S its start.

trap '' HUP INT QUIT TERM PIPE
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
export LC_ALL=C
P=$1 S=$2 G=$3 L=$4 D=$5
exec 4>&2 2>/dev/null
hold 3<&- 4>&- 7>&- &
O=$!
echo "holder $O"
exec >/dev/null
cd /

say() { printf '\001%s %s\n' "$N" "$1"; }
line() { timeout -s KILL "$L" /bin/sh -c 'IFS= read -r x || exit 9' <&3 3<&- 4>&- 7>&-; }

# What waits for a program stops with it, and would not see that somebody else has continued it.
go_on() {
  stat_of "$P" && [ "${s%% *}" = T ] || return
  child_of "$P"
  stat_of "$c" && [ "${s%% *}" != T ] && kill -s CONT "$P"
}

# The holder ends after the last process of the namespace, which the program can be; what waits for
# that has to reap it. But for the pause nothing is started here.
finish() {
  trap - EXIT
  child_of "$O"
  [ -z "$c" ] || kill -s KILL "$c"
  clock; until=$((t + 500))
  while lives "$P" "$S"; do
    kill -s CONT "$P"
    clock; [ "$t" -lt "$until" ] || kill -s KILL "$P"
    sleep 0.01
  done
  wait "$O"
  say "gone " >&4
  say "gone " >&7
}

# Where the host has no room for another process, dash exits at the next one it wants to start.
trap finish EXIT
while line; how=$?; [ $how = 0 ]; do go_on; done
# There is no timeout here, or one that takes other arguments.
case $how in
  9) ;;
  1|125|127) while read -r x <&3; do :; done ;;
  # In the background: while the network is cut, a full pipe takes nothing.
  *) say lapsed >&4 & ;;
esac
exec 3<&-
[ ! -O "$D" ] || [ -L "$D" ] || rm -rf -- "$D"
clock; until=$((t + G))
if lives "$P" "$S"; then
  child_of "$P"
  kill -s TERM "${c:-$P}"
  # A stopped program takes it when it is continued; what waits for it has stopped with it.
  kill -s CONT "$P" $c
  pause=0.01
  while lives "$P" "$S"; do
    clock; [ "$t" -lt "$until" ] || break
    sleep $pause || sleep 1
    pause=0.05
  done
fi
