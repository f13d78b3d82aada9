# Serves one client of the tools: what it says comes out of stdout, what stdin holds goes to it.
# $1 is the directory of the connection; no other one waits for a client, so what is there is left
# over from programs that were killed. Clients that wait for these are released by the opening of a
# FIFO for both, which waits for nothing itself.
#
# To open an end of a FIFO waits for the other end, so that nothing runs and nothing is looked at
# until a client comes. Once both are open they need no names any more.
#
# A wall may keep stdout open for as long as this runs, so that the end of what the client says is a
# line of its own, which no message can be.

connection=$1
forget() {
  for fifo in "${connection%/*}"/[0-9]*/*; do
    [ ! -p "$fifo" ] || : <>"$fifo"
  done
  rm -rf "${connection%/*}"/[0-9]*
}
umask 077
exec 3<&0
forget
trap 'forget; exit 1' HUP INT TERM
mkdir "$connection" && mkfifo "$connection/out" "$connection/in" || exit 1
exec 4<"$connection/in" && exec 5>"$connection/out" || exit 1
forget
trap - HUP INT TERM
{ cat <&4; printf '\n\004\n'; } 3<&- 5>&- 2>/dev/null &
exec >&- 2>&- 4<&-
cat <&3 >&5
