# Begins a question that changes something: notes it, and looks whether there is a newer leader.
if [ -n "$notes" ]; then
  IFS=' ' read -r me x </proc/self/stat
  stat_of self
  set -- $s
  printf '%s\n' "$me ${20}" >"$fence/ask.$token.$$" || whole unled
  set --
fi
is_leader || whole "$refused"
