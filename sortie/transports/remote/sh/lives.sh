# lives PID START tells whether that very process is there, and has not ended.
lives() {
  stat_of "$1" || return 1
  set -- "$2" $s
  [ "${21}" = "$1" ] || return 1
  case $2 in [ZXx]) return 1 ;; esac
}
