# Leaves in newest the last pid that the kernel has given away.
read_newest() { IFS=' ' read -r t t t t newest </proc/loadavg; }

# each_since PID BELONGS ACTION does so with each process that is younger than PID and belongs; p is
# its pid and group its group. It fails where the action does, and where too many are younger.
#
# It has looked at every process when it ends well: at each pid after it was given away, until none was
# given away any more. So it catches up with what forks and exits every few milliseconds, which is
# gone before a list of all processes is read: what exits before its turn leaves a child with a
# higher pid. Nothing is started here.
each_since() {
  from=$1 belongs=$2 action=$3 count=0
  while read_newest || return 1; [ "$newest" != "$from" ]; do
    while [ "$from" != "$newest" ]; do
      [ "$count" -lt 3000 ] || return 1
      count=$((count + 1)) from=$((from + 1))
      # Behind the highest pid of most systems comes 1. pid_max gives dash, which reads byte by byte, its
      # first digit only; elsewhere too many are younger.
      case $from in 32769 | 4194305) [ "$newest" -ge "$from" ] || from=1 ;; esac
      [ -e "/proc/$from" ] && p=$from && "$belongs" "$p" && stat_of "$p" || continue
      set -- $s
      case $1 in [ZXx]) [ "${18}" -gt 1 ] || continue ;; esac
      group=$3
      "$action" || return 1
    done
  done
}

# kill_group OURS kills the group in one stroke: a process that forks does not escape that unless its
# child leaves the group as well. A group that was made outside of our pid namespace is called 0, which to kill
# means our own; nor is OURS killed.
kill_group() {
  [ "$group" -le 1 ] || [ "$group" = "$1" ] || kill -s KILL -- "-$group"
}
