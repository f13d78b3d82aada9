# Finds a program as a shell does, but for relative entries of the path, which are passed over.

# Leaves in flaw why a file cannot be executed, nothing where it can.
inspect() {
  flaw=
  if [ ! -e "$1" ]; then
    flaw=missing
  elif [ ! -f "$1" ]; then
    flaw='it is no regular file'
  elif [ ! -x "$1" ]; then
    flaw='it may not be executed'
  fi
}

# find_program NAME PATH leaves the absolute path in found, or nothing there and why in flaw.
find_program() {
  found= flaws= looked=
  case $1 in
    */*)
      case $1 in /*) found=$1 ;; *) found=${HOME%/}/$1 ;; esac
      inspect "$found"
      [ "$flaw" = missing ] && flaw='it does not exist'
      [ -z "$flaw" ] && return
      flaw="could not use the program $found: $flaw" found=
      return
      ;;
  esac
  left=$2:
  while [ -n "$left" ]; do
    dir=${left%%:*} left=${left#*:}
    case $dir in /*) ;; *) continue ;; esac
    inspect "$dir/$1"
    if [ -z "$flaw" ]; then
      found=$dir/$1
      return
    fi
    [ "$flaw" = missing ] || flaws="$flaws ($dir/$1: $flaw)"
    looked="$looked${looked:+, }$dir"
  done
  flaw="could not find the program '$1'$flaws; looked in ${looked:-no directory}"
}

# Leaves in flaw why Linux would not start a file: a shell would take it for a script instead.
inspect_format() {
  flaw=
  [ -r "$1" ] && [ -r /proc/self/stat ] || return 0
  case $(exec head -c 4 -- "$1") in
    "$ELF"*) ;;
    '#!'*)
      IFS= read -r line <"$1"
      line=${line#??}
      while :; do case $line in [' 	']*) line=${line#?} ;; *) break ;; esac; done
      line=${line%%[ 	]*}
      [ -x "$line" ] || flaw="its interpreter $line does not exist"
      ;;
    *) flaw='it is no program that this system can run' ;;
  esac
}
