# Tells what a program needs to be started in bubblewrap: the user, where the home and the workspace
# are, why the program cannot be started, and the files by which it is, as they are named and as
# they are found. Each is ended by a NUL.
#
# $1 is the program, $2 its PATH, nothing for that of the login, $3 the workspace.

tell() { printf '%s\0' "$@"; }
real_directory() { cd -P -- "$1" && pwd -P; }

home=${HOME:-/}
search=${2:-$PATH}
find_program "$1" "$search"
[ -z "$found" ] || { inspect_format "$found"; flaw=${flaw:+could not start $found: $flaw}; }
tell "$(id -u)" "$home" "$(real_directory "$home" || printf %s "$home")" "$(real_directory "$3")" "$flaw"
set -f
for n in 1 2 3 4 5; do
  [ -n "$found" ] || break
  tell "$found" "$(readlink -f -- "$found")"
  case $(exec head -c 2 -- "$found") in '#!') ;; *) break ;; esac
  IFS= read -r line <"$found"
  set -- ${line#??}
  found=$1
  case $1 in
    */env)
      for word; do :; done
      find_program "$word" "$search"
      ;;
  esac
done
exit 0
