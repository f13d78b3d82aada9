# innermost PID WRAPPERS leaves in c the program that so many wrappers below the child of PID have started:
# their first child each. It is the child of PID itself as long as there is no such program.
innermost() {
  child_of "$1"
  outer=$c n=$2
  while [ "$n" -gt 0 ] && [ -n "$c" ]; do
    child_of "$c"
    n=$((n - 1))
  done
  c=${c:-$outer}
}
