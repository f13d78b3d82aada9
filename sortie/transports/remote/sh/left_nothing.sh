# Tells whether a program that has ended within a second has left no process: all that descends from it is
# younger, and in that time no 30,000 pids are given away and come round. It takes less time than to look
# at all processes of a machine.
left_nothing() {
  m= young= n=$P
  [ -n "$M" ] && [ "$P" -gt 1 ] && read_newest || return
  clock
  [ "$t" -ge "$S" ] && [ "$t" -lt "$((S + 100))" ] || return
  stat_of "$P" && set -- $s && case $1$((${18} > 1)) in [ZXx]0) ;; *) return 1 ;; esac
  since=$newest
  [ "$since" -ge "$P" ] && [ "$((since - P))" -lt 3000 ] || return
  while [ "$n" -lt "$since" ]; do
    n=$((n + 1))
    [ ! -e "/proc/$n" ] || young="$young /proc/$n/limits"
  done
  if [ -n "$young" ]; then
    grep -qs "^Max file locks  *$M " $young
    case $? in 1 | 2) ;; *) return 1 ;; esac
  fi
  each_since "$since" marked note_it
}

unless_nothing() { left_nothing || "$1"; }
