# Starts the watchdog of a supervised program in a PID namespace, which the watchdog makes.
watched=$(watch "$P" "$born" "$grace" "$lease" "$place" "$wrappers" 3<&- 5<&- 6>&- 7>&- 8>&- 9>&- | {
  await_namespace
  [ -z "$c" ] || ! stat_of "$c" || { set -- $s; echo "yes $c ${20} $holder"; exit; }
  echo "no $flaw"
})
# The watchdog would wait for its lease to lapse, and then for a link that comes to hear of the end.
give_up() { tell lease '- done'; tell lease '- done'; refuse "$@"; }
case $watched in
  yes*) set -- $watched; namespace_init=$2 namespace_born=$3 holder=$4; say namespace "$2" "$3" ;;
  'no missing '*) give_up missing "${watched#no missing }" ;;
  'no directory'*) give_up directory ;;
  'no uncontained '*) give_up uncontained "${watched#no uncontained }" ;;
  *) give_up unspaced "${watched#no }" ;;
esac
