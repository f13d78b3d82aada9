# Tells whether no newer leader of the workflow has taken the host over; says in refused why not.
#
# fence: a directory in the workspace root. The greatest token that the host knows is the greatest
# N of the files token.N there: a file is made at once or not at all, so what is known only grows.
# token: that of our lease.
is_leader() {
  refused=lost
  for newer in "$fence"/token.*; do
    [ "${newer##*.}" -le "$token" ] || [ ! -e "$newer" ] || return 1
  done
  refused=unled
  [ -e "$fence/token.$token" ]
}
