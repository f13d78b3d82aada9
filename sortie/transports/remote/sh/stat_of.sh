# stat_of PID leaves in s what its stat file says behind the name, which may hold line ends, too.
stat_of() {
  s=
  while IFS= read -r line; do s=$s$line; done <"/proc/$1/stat" || return 1
  s=${s##*) }
  [ -n "$s" ]
}
