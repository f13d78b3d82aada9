# Ends PID namespaces by their inits, each of which ends after all others in there, and then what
# waits for their programs. The latter reaps a program: a namespace whose program no process reaps
# stays.

# find_init PID leaves in init the init of the namespace that the child of this one is in, and in at
# its start.
find_init() {
  child_of "$1"
  [ -n "$c" ] && [ ! "/proc/$c/ns/pid" -ef /proc/self/ns/pid ] || return
  for e in /proc/[0-9]*; do
    [ "$e/ns/pid" -ef "/proc/$c/ns/pid" ] || continue
    while IFS= read -r line; do
      case $line in NSpid:*[!0-9]1) stat_of "${e#/proc/}" && set -- $s && init=${e#/proc/} at=${20} ;; esac
    done <"$e/status"
  done
}

# living WAITING START INIT START WRAPPERS ... leaves in m the pids of these processes that live, and in
# inits those of inits.
living() {
  m= inits=
  while [ $# -gt 4 ]; do
    ! lives "$3" "$4" || inits="$inits $3"
    ! lives "$1" "$2" || m="$m $1"
    shift 5
  done
  m=$inits$m
}

# end_namespaces GRACE WAITING START INIT START WRAPPERS ... takes the grace time in 1/100 s, and 0 for an init
# that is not known. It leaves in was the pids that were there, and in m those that stay.
end_namespaces() {
  grace=$1 all=
  shift
  while [ $# -gt 4 ]; do
    init=$3 at=$4
    [ "$init" != 0 ] || ! lives "$1" "$2" || find_init "$1"
    all="$all $1 $2 $init $at $5"
    shift 5
  done
  living $all
  was=$m
  [ "$grace" = 0 ] || politely $all
  clock; until=$((t + grace))
  while [ -n "$m" ]; do
    clock; [ "$t" -lt "$until" ] || break
    sleep 0.05 || sleep 1
    living $all
  done
  clock; until=$((t + 500))
  while [ -n "$m" ]; do
    kill -s KILL ${inits:-$m}
    kill -s CONT $m
    clock; [ "$t" -lt "$until" ] || break
    sleep 0.02 || sleep 1
    living $all
  done
}

politely() {
  while [ $# -gt 4 ]; do
    if lives "$1" "$2"; then
      innermost "$1" "$5"
      kill -s TERM "${c:-$1}"
      # A stopped program takes it when it is continued; what waits for it has stopped with it.
      kill -s CONT "$1" $c
    fi
    shift 5
  done
}
