# Prepares to become the program. What it says begins with a byte 1 and the nonce.
#
# fd 3: the lease; fd 5: the program's stdin; fd 6 and 7: its stderr and stdout.

say() { printf '\001%s %s\n' "$nonce" "$*"; }
refuse() { say "$@"; exit 0; }

apart() {
  if command -v setsid >/dev/null; then
    exec setsid "$@"
  elif command -v perl >/dev/null; then
    exec perl -e 'use POSIX; POSIX::setsid(); exec @ARGV' "$@"
  else
    exec "$@"
  fi
}

# Nothing happens unless Sortie is still there: our end of file may come any time.
go() { IFS= read -r line <&3 && [ "$line" = go ] || exit 0; }

exec 6>&2 7>&1 2>/dev/null
unset CDPATH
stat= boot= pipe=
IFS= read -r stat </proc/$$/stat
read -r boot </proc/sys/kernel/random/boot_id
say here $$ "${boot:--}" "$stat"

if [ -n "$program" ]; then
  find_program "$program" "${search-$PATH}"
  [ -n "$found" ] || refuse missing "$flaw"
  inspect_format "$found"
  [ -z "$flaw" ] || refuse missing "could not start $found: $flaw"
fi
cd -P -- "$cwd" || refuse directory
go
set -- ${stat##*) }
born=${20-0}
is_leader || refuse "$refused"
note_launch || refuse unled

if [ -n "$stdin" ]; then
  # The file has no name any more when it gets its content.
  file=$(umask 077; mktemp "${TMPDIR:-/tmp}/sortie.XXXXXXXX") || refuse stdin
  exec 5>"$file" 4<"$file"
  rm -f -- "$file"
  say send
  head -c "$stdin" <&3 >&5 || refuse stdin
  exec 5<&4 4<&-
  say stored
  go
elif [ -n "$piped" ]; then
  pipe=$(umask 077; mktemp -d "${TMPDIR:-/tmp}/sortie.XXXXXXXX") || refuse unpiped
  mkfifo -- "$pipe/stdin" || { rmdir -- "$pipe"; refuse unpiped; }
else
  exec 5</dev/null
fi

# The watchdog is no child of a shell here: one that waits for all its children must not wait for it.
unset SORTIE_RUN_ID
