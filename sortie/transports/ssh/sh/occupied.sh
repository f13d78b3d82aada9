[ -r /proc/self/stat ] || no 'the host has no /proc'
cd -P -- "$path" || { yes; leave; }
home=${PWD%/} found=
for p in /proc/[0-9]*; do
  # We ourselves are everywhere in turn.
  [ "$p" = "/proc/$$" ] && continue
  cd -P "$p/cwd" || continue
  case $PWD in "${home:-/}" | "$home"/*) found="$found ${p#/proc/}" ;; esac
done
yes "$found"
