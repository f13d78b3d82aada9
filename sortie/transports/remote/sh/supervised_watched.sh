# Starts the watchdog of a supervised program that marks itself.
(mark "$marker") || marker=
watchdog=$(watch "$P" "$born" "$marker" "$cookie" "$grace" "$lease" "$place" unless_nothing 3<&- 5<&- 6>&- 7>&- 8>&- 9>&-)
[ -n "$watchdog" ] || refuse unwatched
