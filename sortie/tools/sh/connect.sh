# Carries lines between an agent and Sortie: those of stdin go there, those from there to stdout.
# Sortie writes this file into the workspace of a run; the tools are there while the run is.

here=${0%/*}
umask 077
exec 3<&0 </dev/null
tries=0
while :; do
  for connection in "$here"/[0-9]*; do
    [ -p "$connection/in" ] && mkdir "$connection/taken" 2>/dev/null && break 2
  done
  tries=$((tries + 1))
  if [ "$tries" -gt 300 ]; then
    echo "Sortie's tools are out of reach: no run that has any is under way in this workspace" >&2
    exit 1
  fi
  sleep 0.1 2>/dev/null || sleep 1
done
cat "$here/token" - <&3 >"$connection/in" 2>/dev/null &
sends=$!
cat "$connection/out" 3<&- &
receives=$!
exec 3<&-
trap 'kill "$sends" "$receives" 2>/dev/null' HUP INT TERM
wait "$receives"
kill "$sends" 2>/dev/null
exit 0
