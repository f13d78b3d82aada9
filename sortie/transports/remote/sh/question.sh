# Begins a shell that answers questions one after the other, each in a process below this one. An
# answer is yes with what follows, or no with a reason; then the exit status, which says that this
# was all, and is 0 where nothing failed in the middle of what follows a yes. What is said at once
# travels in one packet.
#
# When stdin ends, the daemon waits for no answer any more, and what works on one is killed.

yes() { printf '\001%s yes %s\n' "$nonce" "$*"; }
whole() {
  trap - EXIT
  printf '\001%s %s\n\001%s end 0\n' "$nonce" "$*" "$nonce"
  exit 0
}
no() { whole no "$*"; }
# What a tool said, behind the names that it repeats.
because() { no "${1##*: }"; }

printf '\001%s here\n' "$nonce"
# This shell must not be taken for a process that lives in the home.
cd /
# What is lent keeps fd 9 as its stderr.
exec 9>&2 2>/dev/null
unset CDPATH SORTIE_RUN_ID
login_locale=${LC_ALL-}
LC_ALL=C
export LC_ALL
trap 'kill -s KILL -- -$$' EXIT
