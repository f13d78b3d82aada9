# Looks once more for a newer leader, when it is noted what watches over the program: nothing of the
# program has begun yet.
set -- "${watchdog:-0}" "${namespace_init:-0}" "${namespace_born:-0}" "${P:-$$}" "$born"
if [ -n "${holder-}" ] && stat_of "$holder"; then
  # What watches over a namespace is the parent of what holds it.
  watchdog=${s#* }
  watchdog=${watchdog%% *}
  shift
  set -- "$watchdog" "$@"
fi
note_watchdog "$@" && is_leader || {
  # The watchdog of a supervised program would wait for its lease to lapse, and for who hears of it.
  [ -z "$place" ] || { tell lease '- done'; tell lease '- done'; }
  refuse "$refused"
}
