# Makes directories, and tells what is there of some paths: the path, where it really is, and whether it
# is a directory (d or f), each ended by a NUL; of nothing where nothing is to be hidden.
#
# $1 is how many directories follow, $2 how many paths that are to be hidden, behind them; the others are
# to be seen.

tell_path() {
  if [ -d "$1" ]; then
    kind=d
  elif [ -e "$1" ] || [ -L "$1" ]; then
    kind=f
  else
    return 1
  fi
  real=$(readlink -f -- "$1") && [ -e "$real" ] || return 1
  printf '%s\0' "$1" "$real" "$kind"
}

own=$1 hide=$2 any=
shift 2
while [ "$own" -gt 0 ]; do
  [ -d "$1" ] || (umask 077; mkdir -p -- "$1")
  own=$((own - 1))
  shift
done
while [ "$hide" -gt 0 ]; do
  tell_path "$1" && any=yes
  hide=$((hide - 1))
  shift
done
[ -n "$any" ] || exit 0
for path; do tell_path "$path"; done
exit 0
