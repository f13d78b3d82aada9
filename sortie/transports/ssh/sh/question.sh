# Frames one operation: it says that it is here, then yes with what follows, or no with a reason,
# then that this was all, and leaves nothing.
#
# When stdin ends first, because nobody waits for the answer any more, the operation is ended.

yes() { printf '\001%s yes %s\n' "$nonce" "$*"; }
no() { printf '\001%s no %s\n' "$nonce" "$*"; leave; }
# What a tool said, behind the names that it repeats.
because() { no "${1##*: }"; }
leave() {
  printf '\001%s end\n' "$nonce"
  kill -s KILL "$tether"
  wait "$tether"
  exit 0
}

# Ends without success in the middle of what follows a yes.
leave_at_once() { kill -s KILL "$tether"; wait "$tether"; exit 1; }

printf '\001%s here\n' "$nonce"
# Nobody may take us for somebody who lives in the home.
cd /
exec 3<&0 2>/dev/null
(while IFS= read -r x; do :; done; kill -s KILL -- -$$) <&3 3<&- >/dev/null &
tether=$!
exec 3<&- </dev/null
unset CDPATH
LC_ALL=C
export LC_ALL
