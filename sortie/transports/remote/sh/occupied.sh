# Names the processes that live in a directory, with the mark that each inherited: its soft limit on
# file locks;
# says that it is blind where the host has no /proc.
#
# What forks and exits every few milliseconds is missed by a list of all processes; so each that began
# after the list was begun is looked at as well.
[ -r /proc/self/stat ] || whole yes blind
cd -P -- "$path" || whole yes
home=${PWD%/} found=
read -r me rest </proc/self/stat

# lives_here PID tells whether it does. A shell cannot tell where the directory of a process is that has
# mounts of its own, but readlink can.
lives_here() {
  where=
  ! cd -P "/proc/$1/cwd" || where=$PWD
  case $where in
    '' | /proc/*) [ -d "/proc/$1/cwd/" ] && where=$(readlink "/proc/$1/cwd") || return 1 ;;
  esac
  case $where in "${home:-/}" | "$home"/*) ;; *) return 1 ;; esac
}

name_it() {
  mark=
  while IFS= read -r line; do
    case $line in "Max file locks "*) mark=${line#Max file locks}; break ;; esac
  done <"/proc/$p/limits"
  set -- $mark
  found="$found $p:${1:-?}"
}

since=
read_newest && since=$newest
for p in /proc/[0-9]*; do
  p=${p#/proc/}
  # We ourselves are everywhere in turn.
  case $p in "$me" | "$$") continue ;; esac
  lives_here "$p" && name_it
done
name_one() { name_it; return 1; }
[ -n "$found" ] || [ -z "$since" ] || each_since "$since" lives_here name_one
whole yes "$found"
