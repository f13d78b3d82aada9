# innermost PID WRAPPERS leaves in c the program that so many wrappers below the child of PID have started:
# their first child each. It is the child of PID itself as long as there is no such program. It is
# empty as long as PID has no child in the namespace: what PID starts before is no program.
innermost() {
  child_of "$1"
  [ -n "$c" ] && [ "/proc/$c/ns/pid" -ef /proc/self/ns/pid ] && c=
  outer=$c n=$2
  while [ "$n" -gt 0 ] && [ -n "$c" ]; do
    child_of "$c"
    n=$((n - 1))
  done
  c=${c:-$outer}
}
