# stat_of PID leaves in s what its stat file says behind the name, which may hold line ends, too.
stat_of() {
  s=
  while IFS= read -r line; do s=$s$line; done <"/proc/$1/stat" || return 1
  s=${s##*) }
  [ -n "$s" ]
}

# each_newest ROUNDS DEPTH BELONGS ACTION does so with each of the youngest processes that belongs; p
# is its pid and group its group. It ends after so many rounds in a row without an action that
# succeeds.
#
# What forks and exits every few milliseconds is gone before a list of all processes is read. The
# kernel tells the last pid that it gave away, and to look there takes less than a millisecond.
each_newest() {
  round=0 rounds=0 strangers=
  while [ "$round" -lt "$1" ] && [ "$rounds" -lt 3000 ]; do
    round=$((round + 1)) rounds=$((rounds + 1)) back=0
    IFS=' ' read -r t t t t n </proc/loadavg || return 0
    while [ "$back" -lt "$2" ]; do
      p=$((n - back)) back=$((back + 1))
      case "$strangers " in *" $p "*) continue ;; esac
      "$3" "$p" || { [ ! -e "/proc/$p" ] || strangers="$strangers $p"; continue; }
      stat_of "$p" || continue
      case $s in [ZXx]*) continue ;; esac
      s=${s#* * } group=${s%% *}
      "$4" && round=0
    done
  done
}

# kill_group OURS kills the group in one stroke, which who forks does not escape unless its child
# leaves the group as well. One that was made outside of our pid namespace is called 0, which to kill
# means our own; nor is OURS killed.
kill_group() {
  [ "$group" -le 1 ] || [ "$group" = "$1" ] || kill -s KILL -- "-$group"
}
