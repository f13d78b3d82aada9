# child_of PID leaves in c its first child, or nothing.
child_of() {
  c= list=/proc/$1/task/$1/children
  if [ -e "$list" ]; then
    IFS=' ' read -r c rest <"$list"
    return
  fi
  # A kernel without such lists.
  for e in /proc/[0-9]*; do
    stat_of "${e#/proc/}" || continue
    set -- "$1" $s
    [ "$3" != "$1" ] || { c=${e#/proc/}; return; }
  done
}
