# Notes for a newer leader what is under way here, before the look whether there is one.
#
# A newer leader makes its token known first, and ends what is noted after that. So a launch sees the
# token, or its note is seen, and its program is ended by one side or the other.
note_launch() {
  noted=$fence/launch.$token.$marker
  printf '%s\n' "$$ $born $marker ${cookie:--} $wrappers ${id:--}" >"$noted"
}
# note_watchdog PID INIT ITS_START PROGRAM ITS_START: what watches over the program, and in which
# namespace it is; 0 stands for none.
note_watchdog() {
  watching=
  IFS= read -r watching <"/proc/$1/stat"
  set -- "$1" "$2" "$3" "$4" "$5" ${watching##*) }
  printf '%s\n' "$1 ${25:-0} $2 $3 $4 $5 ${marker:--}" >>"$noted"
}
