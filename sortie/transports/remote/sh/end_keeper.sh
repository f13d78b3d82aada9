# Kills what keeps a container, by its pid and its start, and tells whether it is gone.
tries=500
while lives "$1" "$2"; do
  kill -s KILL "$1"
  [ "$tries" -gt 0 ] || exit 1
  tries=$((tries - 1))
  sleep 0.02
done
printf gone
