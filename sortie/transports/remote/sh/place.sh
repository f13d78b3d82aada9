# Where a supervisor keeps the streams of its program, and how the processes that work there wake each
# other.
#
# o1.N and o2.N hold stdout and stderr from byte N on, total1 and total2 how many bytes there are, end1
# and end2 that there are no more; i.N.K holds stdin from byte N on, as attachment K has brought it, and
# "taken" which of these are valid; "fed" is how much of it the program has been given.
place=${TMPDIR:-/tmp}/sortie-run.$id

say() { printf '\001%s %s\n' "$nonce" "$*"; }
refuse() { say "$@"; exit 0; }
# Opening a FIFO both ways never waits, and a FIFO that no other process has open takes what is written.
tell() { printf '%s\n' "$2" 1<>"$place/$1"; }
# wake WHO WITH writes a line for the process that has asked for one, and then looked at what is there.
# That process withdraws its question itself: the one that wakes it may be killed between two steps.
wake() { [ ! -s "$place/$1" ] || tell "$2" ''; }
# Numbers that only grow are published in files of one line, all of one length: a shell reads byte by
# byte, and one that reads while another writes finds less than is written, or nothing, but never more.
# The line that wakes comes afterwards.
publish() { echo $(($2 + 1000000000000000)) >"$place/$1"; }
# published FILE leaves the number in value.
published() {
  value=
  read -r value <"$place/$1"
  [ ${#value} = 16 ] && value=$((value - 1000000000000000))
}
# Reads how many bytes dd says that it has copied.
copied() {
  set -- ${1##*out}
  got=${1:-0}
}
note_process() { stat_of "$2" && set -- "$1" "$2" $s && echo "$2 ${22}" >"$place/$1"; }
