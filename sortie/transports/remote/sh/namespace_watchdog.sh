# Watches over a program in a PID namespace, and ends the namespace when the lease ends. Where the
# watchdog itself is killed, the kernel ends the namespace: the holder is its child, and is killed with
# it, and the namespace's init with the holder.
#
# P is what waits for the program and ends as the program does. The holder begins in the directory of
# the program, which enters the namespace there.

# SIGTERM goes to the program, which is W wrappers below its child.

P=$1 S=$2 G=$3 L=$4 D=$5 W=$6
PATH=$PATH:/usr/sbin:/sbin
hold 3<&- 4>&- 7>&- &
O=$!
echo "holder $O"
exec >/dev/null
cd /

# What waits for a program stops with it, and would not see that another process has continued it.
go_on() {
  stat_of "$P" && [ "${s%% *}" = T ] || return
  child_of "$P"
  stat_of "$c" && [ "${s%% *}" != T ] && kill -s CONT "$P"
}

# The holder ends after the last process of the namespace, which the program can be; what waits for
# that has to reap it. But for the pause nothing is started here. A holder without a child has not made
# the namespace yet, and is not to.
finish() {
  trap - EXIT
  child_of "$O"
  kill -s KILL "${c:-$O}"
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
lease go_on
clock; until=$((t + G))
if lives "$P" "$S"; then
  innermost "$P" "$W"
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
