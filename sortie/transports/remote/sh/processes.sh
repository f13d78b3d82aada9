# Shows the host's processes and signals some of them, as it is told line by line, until stdin ends.

look_at() {
  stat_of "$1" || return 1
  set -- $s
  started=${20}
}
# Tells whether one of the cookies stands anywhere in a process's environment. A shell drops the NULs
# between the variables, so it may stand in another variable.
names_cookie() {
  while IFS= read -r line || [ -n "$line" ]; do
    for cookie in $cookies; do
      case $line in *"SORTIE_RUN_ID=$cookie"*) return 0 ;; esac
    done
    line=
  done <"/proc/$1/environ"
  return 1
}
# Tells whether a process has one of the cookies; it cannot go away while that is looked at.
carries_cookie() {
  names_cookie "$1" && stat_of "$1" || return 1
  state=${s%% *}
  kill -s STOP "$1"
  own=$(grep -sazhm 1 '^SORTIE_RUN_ID=' "/proc/$1/environ")
  case " $cookies " in *" ${own#SORTIE_RUN_ID=} "*) return 0 ;; esac
  case $state in [Tt]) ;; *) kill -s CONT "$1" ;; esac
  return 1
}

kill_it() {
  kill_group $$
  kill -s KILL "$p" && killed="$killed $p"
  return 0
}
say() { printf '\001%s %s\n' "$nonce" "$*"; }

exec 3<&0 2>/dev/null
unset SORTIE_RUN_ID
LC_ALL=C
export LC_ALL
boot= since=
say here
read -r boot </proc/sys/kernel/random/boot_id
[ -n "$boot" ] && [ -r /proc/self/environ ] || { say blind; exit 0; }
say ready $$ "$boot"
while IFS= read -r line <&3; do
  set -- $line
  case $1 in
    list)
      read_newest && since=$newest
      grep -saHz '' /proc/[0-9]*/stat
      say cookies
      grep -saHz '^SORTIE_RUN_ID=' /proc/[0-9]*/environ
      say listed
      ;;
    youngest)
      shift
      cookies=$* killed=
      [ -z "$since" ] || each_since "$since" carries_cookie kill_it
      say killed "$killed"
      ;;
    signal)
      signal=$2 refused=
      shift 2
      while [ $# -gt 1 ]; do
        pid=$1 born=$2
        shift 2
        # What has the pid now may be another process.
        look_at "$pid" && [ "$started" = "$born" ] || continue
        kill -s "$signal" "$pid" || refused="$refused $pid"
      done
      say signalled "$refused"
      ;;
  esac
done
