# Holds a root for one daemon: until its stdin ends, or brings no line for $lease seconds.
#
# The kernel frees a lock of flock(1) when this shell ends. The root itself is locked, as an agent may
# remove the file in it, which names the daemon. Without flock the lock is a directory that names this
# shell by pid and start; another shell may take it after our end.
#
# A leader with a lease, whose number is the token, takes the root over from an older one of its workflow.

[ -L "$root" ] && no "$A_LINK"
if ! exists "$root"; then
  above=${root%/*}
  said=$(mkdir -p -- "${above:-/}" 2>&1) || because "$said"
  said=$(mkdir -m 700 -- "$root" 2>&1) || exists "$root" || because "$said"
fi
go_to_root "$root" || no "$REPLACED"
lock=./@daemon.lock
[ -L "$lock" ] && no "$A_LINK"
exists "$lock" && [ ! -f "$lock" ] && no "$PWD/@daemon.lock is no regular file; remove it"
UNWRITABLE="@daemon.lock cannot be written in $PWD; look at the space and the rights there"
# Says who holds the root. The daemon itself may do so by another name of it: through a link, or with
# its home written out. The session tells that from a name which one that has just ended left behind.
held() {
  by= at=
  { IFS= read -r by; IFS= read -r before; IFS= read -r at; } <"$1"
  if [ "$by" = "$holder" ]; then
    yes "ours ${at:--} $PWD"
    exit 0
  fi
  no "another daemon (${by:-it does not say which}) works in $PWD; give each daemon a workspace.root of its own, or each host to one daemon"
}
start_of() { IFS= read -r s <"/proc/$1/stat" && set -- ${s##*) } && start=${20}; }
# Fails with 1 where another daemon has the lock; an older leader of the same workflow is ended first.
lock_fd() {
  while flock -n "$1"; got=$?; [ "$got" = 1 ] && oust; do :; done
  return "$got"
}

if command -v flock >/dev/null; then
  # Not every file system can lock a directory: a failure that is no refusal (1) is passed over.
  # Without "command" a shell ends where it cannot open what exec is given.
  if command exec 8<.; then
    lock_fd 8
    [ $? != 1 ] || held "$lock"
  fi
  command exec 9>>"$lock" || no "$UNWRITABLE"
  lock_fd 9 || held "$lock"
else
  start_of $$ || no 'the host has neither flock nor /proc'
  me="$$ $start"
  tries=0
  until mkdir "$lock.d"; do
    tries=$((tries + 1))
    [ "$tries" -le 5 ] || no "$UNWRITABLE"
    read -r pid born <"$lock.d/owner" || { sleep 1; read -r pid born <"$lock.d/owner"; }
    start=
    [ -n "$pid" ] && start_of "$pid" && [ "$start" = "$born" ] && { ! oust || continue; } && held "$lock"
    # One of the shells that find it without its owner moves it away.
    mv "$lock.d" "$lock.$$" && rm -rf "$lock.$$"
  done
  printf '%s\n' "$me" >"$lock.d/owner"
  trap 'rm -rf "$lock.d"' EXIT
fi
announce
leading=
[ -z "$token" ] || { start_of $$ && leading="${fence##*/} $token $$ $start"; }
printf '%s\n' "$holder" "$leading" "$session" >"$lock"

# No root lies inside another daemon's: agents of one would work in workspaces of the other, which
# would be removed with a root in them.
foreign() {
  [ -f "$1" ] && [ ! -L "$1" ] || return 1
  by=
  IFS= read -r by <"$1"
  [ "$by" = "$holder" ] && return 1
  if command -v flock >/dev/null; then
    flock -n -E 99 "$1" true
    [ $? = 99 ]
  else
    pid=
    [ -f "$1.d/owner" ] && read -r pid born <"$1.d/owner"
    start=
    [ -n "$pid" ] && start_of "$pid" && [ "$start" = "$born" ]
  fi
}
# A root that is refused is free before that is said: the other daemon may ask for it at once.
let_go() {
  trap - EXIT
  exec 8<&- 9>&-
  command -v flock >/dev/null || rm -rf "$lock.d"
}
nested() {
  let_go
  no "$PWD lies $1 $2, the workspace root of another daemon (${by:-it does not say which}); give each daemon a root outside the other's, with workspace.root"
}
above=$PWD
while [ -n "$above" ]; do
  above=${above%/*}
  foreign "$above/@daemon.lock" && nested inside "${above:-/}"
done
limit=
timeout 5 true && limit='timeout 3'
below=$($limit find . -mindepth 2 -maxdepth 8 -name @daemon.lock -type f)
IFS=$(printf '\n_')
IFS=${IFS%_}
for other in $below; do
  unset IFS
  other=${other%/*}
  foreign "$other/@daemon.lock" && nested around "$PWD${other#.}"
done
unset IFS
end_older
yes "held $session $PWD"
if timeout 5 true; then
  line() { timeout -s KILL "$lease" /bin/sh -c 'IFS= read -r x' <&3 3<&- 8<&- 9>&-; }
else
  line() { IFS= read -r x <&3; }
fi
while line; do tidy; done
exit 0
