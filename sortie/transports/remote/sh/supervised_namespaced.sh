# Starts the watchdog of a supervised program in a PID namespace, which the watchdog makes.
watched=$(watch "$P" "$born" "$grace" "$lease" "$place" "$wrappers" 3<&- 5<&- 6>&- 7>&- 8>&- 9>&- | {
  await_namespace
  [ -z "$c" ] || ! stat_of "$c" || { set -- $s; echo "yes $c ${20}"; exit; }
  echo "no $flaw"
})
case $watched in
  yes*) set -- $watched; namespace_init=$2; say namespace "$2" "$3" ;;
  *) refuse unspaced "${watched#no }" ;;
esac
