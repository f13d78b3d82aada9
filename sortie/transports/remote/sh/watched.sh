# Starts the watchdog of a program that is marked, as all that descends from it is.

# Some name a limit on file locks, which no system has, w and others x.
mark() { { ulimit -S -w "$1" || ulimit -S -x "$1"; } 2>/dev/null; }

mark "$marker" || marker=
watchdog=$(watch $$ "$born" "$marker" "$cookie" "$grace" "$lease" "$pipe" 2>&6 5<&- 6>&-)
[ -n "$watchdog" ] || { [ -z "$pipe" ] || rm -rf -- "$pipe"; refuse unwatched; }

if [ -n "$pipe" ]; then
  # From here on the watchdog ends us, where no process comes to write or the lease ends meanwhile.
  say pipe "$pipe/stdin"
  exec 5<"$pipe/stdin"
  rm -rf -- "$pipe"
fi
