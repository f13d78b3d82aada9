# Tells whether another daemon can go on with the program of a supervisor: nothing of its output was
# removed, and nothing will be while no more is acknowledged. One that a signal has ended was perhaps
# ended by the daemon before.
adoptable() {
  [ -e "$place/started" ] && [ ! -e "$place/lapsed" ] && [ ! -e "$place/unkept" ] || return 1
  { IFS=' ' read -r watchdog watchdog_born <"$place/watchdog"; } && lives "$watchdog" "$watchdog_born" || return 1
  { read -r limit <"$place/whole"; } || return 1
  for n in 1 2; do
    ! published "acked$n" || [ "$value" -le "$limit" ] || return 1
  done
  status=
  read -r status <"$place/exit"
  [ "${status:-0}" -le 128 ]
}
