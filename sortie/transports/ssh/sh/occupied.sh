# Names who lives in a directory, each with the mark that it inherited: its soft limit on file locks;
# says that it is blind where the host has no /proc.
[ -r /proc/self/stat ] || whole yes blind
cd -P -- "$path" || whole yes
home=${PWD%/} found=
read -r me rest </proc/self/stat
for p in /proc/[0-9]*; do
  # We ourselves are everywhere in turn.
  case $p in "/proc/$me" | "/proc/$$") continue ;; esac
  cd -P "$p/cwd" || continue
  case $PWD in "${home:-/}" | "$home"/*) ;; *) continue ;; esac
  mark=
  while IFS= read -r line; do
    case $line in "Max file locks "*) mark=${line#Max file locks}; break ;; esac
  done <"$p/limits"
  set -- $mark
  found="$found ${p#/proc/}:${1:-?}"
done
whole yes "$found"
