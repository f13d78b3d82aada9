# Has all begin, and waits for the program.
# This shell must not be taken for a process that lives in the directory of the program.
cd /
let_go() { LC_ALL=C; export LC_ALL; exec 3<&- 5<&- 6>&- 7>&- 8>&- 9>&- </dev/null >/dev/null; }
(let_go; spool 1) &
note_process spool1 $!
(let_go; spool 2) &
note_process spool2 $!
if [ -n "$fed" ]; then
  (let_go; feed) &
  note_process feeder $!
fi
say root "$P" "${boot:--}" "$stat"
[ -z "$whole" ] || printf '%s\n' "$P ${boot:--} $stat" "$marker" "${namespace_init-} ${namespace_born-}" >"$place/program"
echo "go ${namespace_init-}" >&8
[ -z "$whole" ] || echo yes >"$place/started"
say started "$marker"
echo up >&9
let_go
wait "$P"
status=$?
# What keeps a stream was killed, and what the program wrote is lost; it may have ended of that.
for n in 1 2; do
  is_noted "$place/spool$n" || [ -e "$place/end$n" ] || : >"$place/unkept"
done
echo "$status" >"$place/exit"
wake want1 bell1
tell lease '- exited'
IFS=' ' read -r watchdog born <"$place/watchdog"
while [ ! -e "$place/over" ] && lives "$watchdog" "$born"; do sleep 0.2; done
