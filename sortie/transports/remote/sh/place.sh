# Where a supervisor keeps the streams of its program, and how who works there wakes the others.
#
# o1.N and o2.N hold stdout and stderr from byte N on, total1 and total2 how many bytes there are, end1
# and end2 that there are no more; i.N.K holds stdin from byte N on, as attachment K has brought it, and
# "taken" which of these are valid; "fed" is how much of it the program has been given.
place=${TMPDIR:-/tmp}/sortie-run.$id

say() { printf '\001%s %s\n' "$nonce" "$*"; }
refuse() { say "$@"; exit 0; }
# A FIFO that is opened both ways holds up nobody, and what nobody has open takes all.
tell() { printf '%s\n' "$2" 1<>"$place/$1"; }
# wake WHO WITH writes a line for who has asked for one, and then looked at what is there. The question is
# withdrawn by who has asked: whoever wakes may be killed between two steps.
wake() { [ ! -s "$place/$1" ] || tell "$2" ''; }
# Numbers that only grow are published in files of one line, all of one length: a shell reads byte by
# byte, and who reads while another writes finds less than is written, or nothing, but never more. What
# wakes comes afterwards.
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
